"""The site builds without warnings and loads nothing from other hosts."""

import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import expect

import dynabandit as db
from dynabandit.catalogue import fields_of
from tools.browser import PHONE

ROOT = Path(__file__).parents[2]
REGISTRIES: dict[str, Mapping[str, type]] = {
    "policies": {**db.policies.POLICIES, **db.policies.CONTEXTUAL_POLICIES},
    "environments": {**db.environments.ENVIRONMENTS, **db.environments.CONTEXTUAL_ENVIRONMENTS},
}
MAX_PICTURE_BYTES = 35_000
# Whose parameters must be described; AsyncClient has the docstrings of Client
DESCRIBED = [
    ("simulation", db.simulate), ("simulation", db.compare), ("simulation", db.estimation), ("bandit", db.Bandit),
    ("client", db.Client), ("async-client", db.AsyncClient), ("local-decider", db.LocalDecider),
    ("results", db.Results), *(("estimators", kind) for kind in vars(db.estimators).values() if inspect.isclass(kind)),
]  # fmt: skip
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
    assert 'id="others"' not in index, "a new policy or environment needs a group in docs/hooks/families.py"
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


def test_no_page_shows_latex(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = re.sub(r"<(pre|code|script|annotation)\b.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.findall(r"\$[^$<>\n]{1,60}\$", text), page.name


def test_equations_have_fonts_with_large_brackets_and_a_fallback(site: Path, open_page: Any) -> None:
    visit = open_page((site / "policies" / "ucb.html").as_uri())
    fonts = visit.page.evaluate("getComputedStyle(document.querySelector('math')).fontFamily").split(", ")
    assert '"STIX Two Math"' in fonts  # browsers have `math` alone, which few systems define
    assert fonts.index("math") < fonts.index("serif")


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


def public_names() -> list[tuple[str, str, Any]]:
    """Return the page, the name and the value of every public name."""
    found = [("", name, getattr(db, name)) for name in db.__all__]
    for page, _, module in [one for one in found if isinstance(one[2], ModuleType)]:
        page = module.__name__.rpartition(".")[2]
        found += [(page, name, getattr(module, name)) for name in module.__all__ if page != "integrations"]
    for part in db.integrations.__all__:
        module = importlib.import_module(f"dynabandit.integrations.{part}")
        found += [("integrations", f"{part}.{name}", getattr(module, name)) for name in module.__all__]
    return [one for one in found if not isinstance(one[2], ModuleType)]


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (site / "api").glob("*.html")}
    own_pages = {kind for registry in REGISTRIES.values() for kind in registry.values()}
    for page, name, value in public_names():
        if not (inspect.isclass(value) and value in own_pages):
            places = [pages[page]] if page else pages.values()
            assert any(f'id="{name}"' in text for text in places), f"{page} {name}"
            assert f'#{name}">' in pages["index"], name


@pytest.mark.parametrize(("page", "subject"), DESCRIBED, ids=lambda one: getattr(one, "__name__", one))
def test_the_reference_describes_all_parameters(site: Path, page: str, subject: Any) -> None:
    text = (site / "api" / f"{page}.html").read_text(encoding="utf-8")
    for part in re.split(r"(?=<h[23] )", text)[1:]:
        anchor = re.findall(r'id="([^"]+)"', part)[0]
        if anchor.split(".")[0] != subject.__name__:
            continue
        value = getattr(subject, anchor.partition(".")[2], subject)
        names = inspect.signature(value).parameters.keys() - {"self"}
        if len(names) > 1:  # the sentence about a function with one parameter says what it is
            for name in names:
                assert re.search(rf"<code>\*{{0,2}}{name}</code>", part), f"{anchor} does not describe {name}"
        assert "Source code" in part


def test_the_reference_has_signatures_links_and_equations(site: Path) -> None:
    text = (site / "api" / "simulation.html").read_text(encoding="utf-8")
    assert re.search(r'href="https://github.com/[^"]+/src/dynabandit/simulation/api.py#L\d+-L\d+"', text)
    signature = re.sub(r"<[^>]+>", "", text[text.index('id="compare"') :])
    assert "replications: int = 1," in signature
    assert ") -&gt; dict[str, Simulation]" in signature
    assert "<mfrac>" in (site / "api" / "estimators.html").read_text(encoding="utf-8")
    assert "source code</a>" in (site / "policies" / "ucb.html").read_text(encoding="utf-8")


def test_the_search_works_from_the_file_system(site: Path, open_page: Any) -> None:
    visit = open_page((site / "api" / "index.html").as_uri())
    visit.page.click(".md-search__input")
    visit.page.keyboard.type("LocalDecider")
    first = visit.page.locator(".md-search-result__link").first  # of what is typed so far
    expect(first).to_have_attribute("href", re.compile("local-decider.html"))
    assert not visit.errors


COPIED = """page => {
  const code = document.querySelector(page + " code");
  code.setAttribute("data-md-copying", "");  // as the copy button does
  const text = code.innerText;
  code.removeAttribute("data-md-copying");
  return text.trimEnd();
}"""


def test_copy_buttons_copy_only_what_one_types(site: Path, open_page: Any) -> None:
    visit = open_page((site / "api" / "estimators.html").as_uri())
    assert visit.page.evaluate(COPIED, ".language-pycon").splitlines() == [
        "from dynabandit.estimators import AdaptiveForgetting",
        "estimate = AdaptiveForgetting(step_size=0.001)",
        "for reward in [0] * 200 + [1] * 30:",
        "    _ = estimate.update(reward)",
        "round(estimate.mean, 2), round(estimate.forgetting, 2)",
    ]
    visit = open_page((site / "cli.html").as_uri())
    assert visit.page.evaluate(COPIED, ".language-console").startswith("dynabandit ")
