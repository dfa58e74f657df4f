"""The workflows of a public repository run commands that exist, with the least permissions."""

import os
import re
import subprocess
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

import dynabandit as db
from distribution.archives import ROOT
from distribution.test_extras import PROJECT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
PINNED = re.compile(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+")
REPOSITORY = PROJECT["urls"]["Source"]


def jobs(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))["jobs"]
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_command_of_make_exists_and_every_action_is_pinned(path: Any) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"\bmake ([\w-]+)", text)) <= TARGETS
    assert len(PINNED.findall(text)) == text.count("uses: ")
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}


def test_all_supported_interpreters_are_tested() -> None:
    supported = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    tested = jobs("tests.yml")
    assert tested["tests"]["strategy"]["matrix"]["python"] == supported
    assert tested["packages"]["strategy"]["matrix"]["python"] == [supported[0], supported[-1]]


def test_only_the_jobs_that_publish_may_write_and_they_run_nothing_else() -> None:
    released = jobs("release.yml")
    for name, job in released.items():
        assert ("permissions" in job) == name.startswith("publish-")
        if "permissions" in job:
            assert job["needs"] == "build"
            assert all("run" not in step for step in job["steps"])
    assert released["publish-package"]["permissions"] == {"id-token": "write"}
    assert released["publish-package"]["environment"]["name"] == "pypi"
    assert all("permissions" not in job for job in jobs("tests.yml").values())


@pytest.mark.parametrize(
    ("tag", "passes"), [(f"v{db.__version__}", True), (f"v{db.__version__}1", False), ("v9.9.9", False)]
)
def test_a_release_needs_a_tag_with_its_version(tag: str, passes: bool) -> None:
    [step] = [step for step in jobs("release.yml")["build"]["steps"] if "tag is the version" in step.get("name", "")]
    environment = {**os.environ, "GITHUB_REF_NAME": tag}
    done = subprocess.run(["bash", "-c", step["run"]], cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (done.returncode == 0) == passes


def test_addresses_are_those_of_the_repository() -> None:
    templates = (ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml").read_text(encoding="utf-8")
    for address in [*PROJECT["urls"].values(), *re.findall(r"url: (\S+)", templates)]:
        assert address.startswith((REPOSITORY, REPOSITORY.replace("github.com/dynabandit", "dynabandit.github.io")))
