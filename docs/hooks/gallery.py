"""Generate the gallery when the site is built: all figures, and the code of each script on a page of its own."""

import itertools
from pathlib import Path
from typing import Any, NamedTuple

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
SCREENSHOTS = "make screenshots"
INTRODUCTION = """\
All figures of this documentation. Select a figure to see the code that draws it; the link below leads to the page that
explains it. [A figure with your own environment](../tutorials/figure.md) is a tutorial."""


class Figure(NamedTuple):
    """A figure of docs/pictures."""

    picture: str
    title: str
    script: str  # what draws it, from the root of the repository, or SCREENSHOTS
    page: str  # the page that explains it


FIGURES: dict[str, list[Figure]] = {
    "Results": [
        Figure("regret.svg", "Policies that forget follow changes", "docs/pictures/regret.py", "index.md"),
        Figure("flights.svg", "The most punctual carrier of a year", "docs/pictures/flights.py", "flights.md"),
        Figure("context.svg", "What features and forgetting are worth", "docs/pictures/context.py", "context.md"),
        Figure("combinations.svg", "Any memory with any rule", "docs/pictures/combinations.py", "combinations.md"),
        Figure("rewards.svg", "Rewards that are not 0 or 1", "docs/pictures/rewards.py", "rewards.md"),
        Figure("delayed-regret.svg", "Regret by delay", "docs/pictures/delayed_rewards.py", "delayed-rewards.md"),
        Figure("delayed-clicks.svg", "Clicks that are late", "docs/pictures/delayed_rewards.py", "delayed-rewards.md"),
    ],
    "Figures for publications": [
        Figure(
            "tutorial-figure.svg", "Two panels, own environment", "docs/pictures/tutorial_figure.py",
            "tutorials/figure.md",
        ),
        Figure("publication-regret.svg", "Regret with intervals", "docs/pictures/publication.py", "figures.md"),
        Figure("publication-boxes.svg", "Total regret as boxes", "docs/pictures/publication.py", "figures.md"),
        Figure("publication-correct.svg", "Share of correct choices", "docs/pictures/publication.py", "figures.md"),
        Figure("publication-paths.svg", "Means of the arms", "docs/pictures/publication.py", "figures.md"),
        Figure("publication-beliefs.svg", "Beliefs of a policy", "docs/pictures/publication.py", "figures.md"),
    ],
    "How adaptive forgetting works": [
        Figure(
            f"forgetting-{name}.svg", title, "docs/pictures/adaptive_forgetting.py", "adaptive-forgetting.md"
        )
        for name, title in {
            "sample-mean": "The sample mean reacts late", "fixed": "Fixed forgetting factors",
            "adaptive": "An adaptive forgetting factor", "idle": "An arm that is not played",
        }.items()
    ]
    + [
        Figure(f"accuracy-{name}.svg", title, "docs/pictures/estimator_accuracy.py", "estimator-accuracy.md")
        for name, title in {
            "rest": "Accuracy: constant means", "jump": "Accuracy: a jump", "drift": "Accuracy: drift",
        }.items()
    ],
    "Speed": [
        Figure("scaling-arms.svg", "Time per step by arms", "benchmarks/scaling.py", "performance.md"),
        Figure("scaling-replications.svg", "Steps per second", "benchmarks/scaling.py", "performance.md"),
    ],
    "Web pages": [
        Figure("live-bandit.png", "The live page of a bandit", SCREENSHOTS, "live-page.md"),
        Figure("live-all.png", "All bandits of a service", SCREENSHOTS, "live-page.md"),
        Figure("playground-drawn.png", "An environment drawn by hand", SCREENSHOTS, "playground.md"),
        Figure("playground-tour.png", "The guided tour", SCREENSHOTS, "playground.md"),
    ],
    "A figure for each policy and environment": [
        Figure("policies/mix-ts.svg", "Policies", "docs/pictures/catalogue.py", "policies/index.md"),
        Figure("environments/case-3.svg", "Environments", "docs/pictures/catalogue.py", "environments/index.md"),
    ],
    "Architecture": [
        Figure("imports.svg", "Imports, drawn from the code", "docs/pictures/imports.py", "architecture.md"),
    ],
}  # fmt: skip
BY_SCRIPT = {
    script: list(figures)
    for script, figures in itertools.groupby(
        sorted(itertools.chain(*FIGURES.values()), key=lambda one: one.script), key=lambda one: one.script
    )
    if script != SCREENSHOTS
}


def on_config(config: Any) -> Any:
    """Add the pages with code to the navigation, below the gallery."""
    for part in config.nav:
        if part.get("Gallery") == "gallery/index.md":
            part["Gallery"] = ["gallery/index.md", *({Path(script).name: code_page(script)} for script in BY_SCRIPT)]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    check()
    files.append(File.generated(config, "gallery/index.md", content=index()))
    for script, figures in BY_SCRIPT.items():
        files.append(File.generated(config, code_page(script), content=page(script, figures)))
    return files


def check() -> None:
    """Raise an error if a figure is not in the gallery, or does not exist."""
    listed = {one.picture for one in itertools.chain(*FIGURES.values())}
    drawn = {path.name for path in PICTURES.glob("*.svg") if not path.name.startswith("badge-")}
    if missing := sorted(drawn - listed):
        raise ValueError(f"docs/hooks/gallery.py does not list {', '.join(missing)}")
    if unknown := sorted(name for name in listed if not (PICTURES / name).exists()):
        raise ValueError(f"docs/hooks/gallery.py lists figures that do not exist: {', '.join(unknown)}")


def code_page(script: str) -> str:
    """Return the page with the code of a script.

    >>> code_page("docs/pictures/delayed_rewards.py")
    'gallery/delayed-rewards.md'
    """
    return f"gallery/{Path(script).stem.replace('_', '-')}.md"


def index() -> str:
    """Return the gallery."""
    parts = ["# Gallery", INTRODUCTION]
    for heading, figures in FIGURES.items():
        parts += [f"## {heading}", '<div class="gallery" markdown>', *map(card, figures), "</div>"]
    return "\n\n".join(parts) + "\n"


def card(figure: Figure) -> str:
    """Return a figure with its links."""
    target = f"../{figure.page if figure.script == SCREENSHOTS else code_page(figure.script)}"
    picture = f"[![{figure.title}](../pictures/{figure.picture}){{ loading=lazy }}]({target})"
    return f"<div markdown>\n\n{picture}\n\n{figure.title}: [explanation](../{figure.page})\n\n</div>"


def page(script: str, figures: list[Figure]) -> str:
    """Return the page with the figures and the code of a script."""
    parts = [f"# {Path(script).name}"]
    parts += [f"![{one.title}](../pictures/{one.picture})" for one in figures]
    explained = sorted({one.page for one in figures})
    links = " and ".join(f"[{name}](../{name})" for name in explained)
    code = (ROOT / script).read_text(encoding="utf-8").rstrip()
    parts += [f"Explained in {links}. This is `{script}`, run by `python {script}`:", f"```python\n{code}\n```"]
    return "\n\n".join(parts) + "\n"
