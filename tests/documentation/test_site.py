"""The site builds without warnings and loads nothing from other hosts."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import dynabandit as db
from browser import PHONE
from dynabandit.catalogue import fields_of

ROOT = Path(__file__).parents[2]
REGISTRIES: dict[str, Mapping[str, type]] = {
    "policies": {**db.policies.POLICIES, **db.policies.CONTEXTUAL_POLICIES},
    "environments": {**db.environments.ENVIRONMENTS, **db.environments.CONTEXTUAL_ENVIRONMENTS},
}
MAX_PICTURE_BYTES = 35_000
OTHER_HOST = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=["']?(?:https?:)?//[^>]*>""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_no_page_loads_anything_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        assert not OTHER_HOST.findall(page.read_text(encoding="utf-8")), page.name


def test_python_sessions_are_rendered_as_code(site: Path) -> None:
    text = (site / "offline.html").read_text(encoding="utf-8")
    assert "<blockquote>" not in text
    assert "language-pycon" in text


@pytest.mark.parametrize("kind", REGISTRIES)
def test_every_registered_class_has_a_page_with_its_parameters(site: Path, kind: str) -> None:
    index = (site / kind / "index.html").read_text(encoding="utf-8")
    for name, one in REGISTRIES[kind].items():
        text = (site / kind / f"{name}.html").read_text(encoding="utf-8")
        assert f'href="{name}.html"' in index
        assert one.__name__ in text
        assert "References" in text
        for parameter in fields_of(one):
            assert f"<code>{parameter.name}</code>" in text, f"{name} does not document {parameter.name}"


@pytest.mark.parametrize("kind", REGISTRIES)
def test_every_page_has_a_small_picture(kind: str) -> None:
    for name in REGISTRIES[kind].keys() - db.policies.CONTEXTUAL_POLICIES.keys():
        picture = ROOT / "docs" / "pictures" / kind / f"{name}.svg"
        assert picture.exists(), "run: python docs/pictures/catalogue.py"
        assert picture.stat().st_size < MAX_PICTURE_BYTES


def test_every_policy_states_its_cost_per_step(site: Path) -> None:
    for name in REGISTRIES["policies"]:
        assert "Cost per step: O(" in (site / "policies" / f"{name}.html").read_text(encoding="utf-8"), name


def test_equations_are_mathml(site: Path) -> None:
    text = (site / "policies" / "ucb.html").read_text(encoding="utf-8")
    assert "<msqrt>" in text
    assert "math::" not in text


def test_the_leaderboard_is_copied_into_the_guide_and_has_a_page_of_all_results(site: Path) -> None:
    text = (site / "which-policy.html").read_text(encoding="utf-8")
    assert text.count("<tr>") > 15
    assert 'href="leaderboard-results.html"' in (site / "leaderboard.html").read_text(encoding="utf-8")
    assert '"entries":[{"trial"' in (site / "leaderboard-results.html").read_text(encoding="utf-8")


def test_the_notebooks_are_shown_with_their_output(site: Path) -> None:
    for name in ("paper", "flights"):
        text = (site / "notebooks" / f"{name}.html").read_text(encoding="utf-8")
        assert text.count('<div class="output"><svg') >= 2
        assert (site / "notebooks" / f"{name}.ipynb").exists()


@pytest.mark.parametrize("page", ["which-policy", "policies/glr-kl-ucb", "notebooks/flights"])
def test_a_page_opens_on_a_phone_without_network_access(site: Path, open_page: Any, page: str) -> None:
    visit = open_page((site / f"{page}.html").as_uri(), size=PHONE)
    assert not visit.errors
    assert all(address.startswith(("file:", "data:")) for address in visit.requests), visit.requests
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
