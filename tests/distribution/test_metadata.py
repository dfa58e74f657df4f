"""Version, licence and Python are said in several places, and said alike."""

import re
import runpy
import subprocess
import sys
import tomllib

import pytest
import yaml

import dynabandit as db
from distribution.archives import ROOT
from distribution.test_extras import PROJECT

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
BADGES = runpy.run_path(str(ROOT / "docs" / "pictures" / "badges.py"))
EXTRAS = PROJECT["optional-dependencies"]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_place_says_the_same_version():
    newest = re.search(r"^## (\S+?),? ", read("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == CITATION["version"] == db.__version__
    said = subprocess.run([sys.executable, "-m", "dynabandit", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == f"dynabandit {db.__version__}\n"


def test_mutants_meet_the_tests_that_run_without_compiled_code():
    suite = set(re.findall(r'"(tests/\S+)"', read("mutants/suite.py")))
    _, _, recipe = read("Makefile").partition("NUMBA_DISABLE_JIT=1")
    assert suite == set(re.findall(r"tests/\S+", recipe.partition("\n\n")[0]))


def test_the_citation_agrees_with_the_package_and_names_the_paper():
    assert (CITATION["title"], CITATION["license"]) == (PROJECT["name"], PROJECT["license"])
    assert [author["name"] for author in CITATION["authors"]] == [author["name"] for author in PROJECT["authors"]]
    (paper,) = CITATION["references"]
    assert f"*{paper['title']}*" in read("README.md")
    assert [author["family-names"] for author in paper["authors"]] == ["Lu", "Adams", "Kantas"]


def test_the_licence_is_the_one_that_is_named():
    assert read("LICENSE").startswith(f"{PROJECT['license']} License\n")


@pytest.mark.parametrize("name", ["version", "python", "licence"])
def test_a_badge_says_what_is_true(name):
    path = f"docs/pictures/badge-{name}.svg"
    assert f"]({path})" in read("README.md")
    assert read(path) == BADGES["badge"](*BADGES["facts"]()[name])


def test_the_badges_say_what_the_package_says():
    facts = {name: value for name, (_, value) in BADGES["facts"]().items()}
    classified = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert facts == {"version": db.__version__, "python": " | ".join(classified), "licence": PROJECT["license"]}
    assert PROJECT["requires-python"] == f">={classified[0]}"


def test_all_means_everything_that_users_want_but_the_gpu():
    (every,) = EXTRAS["all"]
    assert set(re.findall(r"[\w-]+", every)[1:]) == EXTRAS.keys() - {"all", "bench", "cuda", "dev", "docs"}


def test_every_extra_is_explained():
    explained = re.findall(r"^\| `(\w+)` \|", read("docs/install.md"), re.MULTILINE)
    assert sorted(explained) == sorted(EXTRAS.keys() - {"dev"})


def test_no_page_names_an_extra_that_is_not_there():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for names in re.findall(r"pip install '(?:\.|dynabandit)\[([\w,]+)\]'", page.read_text(encoding="utf-8")):
            assert set(names.split(",")) <= EXTRAS.keys(), f"{page.name}: {names}"


def test_what_builds_here_is_what_builds_there():
    system = tomllib.loads(read("pyproject.toml"))["build-system"]["requires"]
    assert set(system) <= set(EXTRAS["dev"])
