"""Facts that are stated in several places agree: version, licence, Python versions and extras."""

import re
import runpy
import tomllib

import pytest
import yaml  # type: ignore[import-untyped]
from typer.testing import CliRunner

import dynabandit as db
from distribution.archives import ROOT
from distribution.test_extras import PROJECT
from dynabandit.cli.commands import app

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
BADGES = runpy.run_path(str(ROOT / "docs" / "pictures" / "badges.py"))
EXTRAS = PROJECT["optional-dependencies"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere() -> None:
    newest = re.search(r"^## (\S+?),? ", read("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == CITATION["version"] == db.__version__
    assert CliRunner().invoke(app, ["--version"]).stdout == f"dynabandit {db.__version__}\n"


def test_mutation_testing_uses_the_tests_without_compiled_code() -> None:
    suite = set(re.findall(r'"(tests/\S+)"', read("mutants/suite.py")))
    makefile = read("Makefile")
    _, _, folders = makefile.partition("INTERPRETED := ")
    _, _, recipe = makefile.partition("NUMBA_DISABLE_JIT=1")
    listed = set(re.findall(r"tests/\S+", folders.partition("\n\n")[0] + recipe.partition("\n\n")[0]))
    assert suite - listed == {"tests/core"}  # whose samples are larger in compiled code
    assert all((ROOT / path.partition("::")[0]).exists() for path in listed)


def test_the_citation_agrees_with_the_package_and_names_the_paper() -> None:
    assert (CITATION["title"], CITATION["license"]) == (PROJECT["name"], PROJECT["license"])
    assert CITATION["repository-code"] == PROJECT["urls"]["Source"]
    assert [author["name"] for author in CITATION["authors"]] == [author["name"] for author in PROJECT["authors"]]
    (paper,) = CITATION["references"]
    assert f"*{paper['title']}*" in read("README.md")
    assert [author["family-names"] for author in paper["authors"]] == ["Lu", "Adams", "Kantas"]


def test_the_licence_file_has_the_stated_licence() -> None:
    assert read("LICENSE").startswith(f"{PROJECT['license']} License\n")


@pytest.mark.parametrize("name", ["version", "python", "licence"])
def test_a_badge_is_up_to_date(name: str) -> None:
    path = f"docs/pictures/badge-{name}.svg"
    assert f"]({path})" in read("README.md")
    assert read(path) == BADGES["badge"](*BADGES["facts"]()[name])


def test_the_badges_agree_with_the_package() -> None:
    facts = {name: value for name, (_, value) in BADGES["facts"]().items()}
    classified = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert facts == {"version": db.__version__, "python": " | ".join(classified), "licence": PROJECT["license"]}
    assert PROJECT["requires-python"] == f">={classified[0]}"


def test_the_extra_all_has_all_extras_for_users_except_cuda() -> None:
    (every,) = EXTRAS["all"]
    assert set(re.findall(r"[\w-]+", every)[1:]) == EXTRAS.keys() - {"all", "bench", "cuda", "dev", "docs"}


def test_every_extra_is_documented() -> None:
    documented = re.findall(r"^\| `(\w+)` \|", read("docs/install.md"), re.MULTILINE)
    assert sorted(documented) == sorted(EXTRAS.keys() - {"dev"})


def test_the_documentation_names_only_existing_extras() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for names in re.findall(r"pip install '(?:\.|dynabandit)\[([\w,]+)\]'", page.read_text(encoding="utf-8")):
            assert set(names.split(",")) <= EXTRAS.keys(), f"{page.name}: {names}"


def test_the_development_environment_can_build_the_package() -> None:
    system = tomllib.loads(read("pyproject.toml"))["build-system"]["requires"]
    assert set(system) <= set(EXTRAS["dev"])
