"""Every block of code in the documentation runs: as a doctest, here, or in the test that is named here."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from documentation.blocks import ADDRESS, DOCS, blocks, check, commands
from dynabandit.service.stores import open_store
from tools.harness import running, wait_longer

TESTED_HERE = (
    "../README.md", "index.md", "install.md", "which-policy.md", "guides/researcher.md", "guides/engineer.md",
    "adaptive-forgetting.md", "rewards.md", "estimator-accuracy.md", "figures.md",
)  # fmt: skip
TESTED_ELSEWHERE = {
    "adding-an-algorithm.md": "tests/documentation/test_own_policy.py",
    "cli.md": "tests/cli/test_commands.py: each option is documented, and each command has tests",
    "compositions.md": "tests/policies/test_compositions_page.py",
    "gpu-and-clusters.md": "tests/experiments/test_dask_executor.py and tests/simulation: they need GPUs and clusters",
    "integrations.md": "tests/integrations/test_docs.py",
    "javascript.md": "tests/service/test_javascript_client.py",
    "leaderboard.md": "tests/leaderboard/test_run.py: parts are merged; its run needs a GPU",
    "operations.md": "tests/service/test_operations.py",
    "personalizer.md": "tests/service/http/test_personalizer.py",
    "offline.md": "tests/offline/test_open_bandit.py",
    "service.md": "tests/service/test_docs.py",
    "specs.md": "tests/cli/test_commands.py",
    "tutorials/algorithm.md": "tests/documentation/test_tutorials.py",
    "tutorials/banner-test.md": "tests/documentation/test_tutorials.py",
    "tutorials/figure.md": "tests/documentation/test_tutorials.py",
    "tutorials/log-analysis.md": "tests/documentation/test_tutorials.py",
}
# They need a package index, run until they are stopped, or take minutes
NOT_RUN = ("pip install ", "dynabandit serve", "make ")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service whose store is in the current folder, shared by all pages."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch, running(open_store(f"sqlite:///{folder}/dynabandit.db")) as server:
        patch.chdir(folder)
        wait_longer(patch)
        yield server.url


@pytest.mark.parametrize("name", TESTED_HERE)
def test_the_blocks_of_a_page_run_in_order(name: str, address: str) -> None:
    for kind, code in blocks(name):
        if kind == "toml":
            tomllib.loads(code)
            Path("my.toml").write_text(code, encoding="utf-8")
        elif kind == "python":
            exec(compile(code.replace(ADDRESS, address), name, "exec"), {})
        elif kind == "sh":
            assert all(line.startswith(NOT_RUN) for line in code.splitlines()), f"{name}: no test runs {code}"
        else:
            assert kind == "console", f"{name} has a block of {kind}, which no test runs"
            for command, expected in commands(code):
                if not command.startswith(NOT_RUN):
                    check(command, expected)


def test_every_page_with_code_is_tested() -> None:
    for page in sorted(DOCS.rglob("*.md")):
        name = page.relative_to(DOCS).as_posix()
        if name not in TESTED_HERE and name not in TESTED_ELSEWHERE:
            assert not blocks(name), f"{name} has code that no test runs: add the page to TESTED_HERE"
