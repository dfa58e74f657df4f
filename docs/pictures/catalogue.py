"""Draw docs/pictures/policies/ and docs/pictures/environments/, a small figure for the page of each.

The figure of a policy shows its regret in `small-changes`, that of an environment one sample path.
"""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dynabandit as db
from dynabandit.environments.rested import RestedEnvironment
from dynabandit.policies import POLICIES
from dynabandit.report.matplotlib_figures import DASHES
from dynabandit.report.style import ARM_STYLES, style

HERE = Path(__file__).parent
ENVIRONMENT, HORIZON, REPLICATIONS, POINTS, SEED = "small-changes", 10_000, 100, 25, 1
EXAMPLES = {
    "fixed": {"means": [0.3, 0.5, 0.7]},
    "piecewise": {"starts": [1, 4001, 7001], "means": [[0.3, 0.6], [0.8, 0.6], [0.1, 0.2]]},
    "recorded": {"rates": [[0.5, 0.7], [0.6, 0.2], [0.4, 0.5], [0.7, 0.6]], "period": 2500},
    "needle": {"arms": 20},
    "exponential-clock": {"rates": [0.0005, 0.002], "low": [0.0, 0.4], "high": [1.0, 0.8]},
    "rested-rotting": {"arms": 4},
    "rested-drops": {
        "arms": 4,
        "initial": [0.5, 0.9, 0.8, 0.7],
        "final": [0.5, 0.1, 0.2, 0.3],
        "drop": [1, 2000, 4000, 6000],
    },
    "rested-rising": {"arms": 4},
    "path": {
        "means": np.column_stack([np.linspace(0.2, 0.8, HORIZON), 0.5 + 0.2 * np.sin(np.arange(HORIZON) / 900.0)])
    },
}
CONTEXTUAL_EXAMPLES = {
    "lin-abrupt": {"segment": 2500},
    "lin-slow": {"turning": 6000},
    "lin-drift": {"change": "jump", "period": 1000},
    "logistic-drift": {"change": "turn", "period": 8000},
    "recorded-contexts": {
        "contexts": np.column_stack([np.ones(200), np.linspace(-1.0, 1.0, 200)]),
        "means": np.column_stack([np.linspace(0.2, 0.8, 200), np.linspace(0.7, 0.3, 200)]),
        "rotation": 4000,
    },
}
BLOCKS = 40  # of the horizon, for the figures of environments with features
SMOOTH = (
    "path", "seasonal", "rotting", "reflected-walk", "logistic-walk", "case-3", "case-4", "ar-1", "rested-rotting",
    "rested-rising",
)  # fmt: skip


def save(figure: plt.Figure, path: Path) -> None:
    """Write a figure with one decimal per number, which is precise enough and makes the file three times smaller."""
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    text = path.read_text(encoding="utf-8")
    short = re.sub(r"(?<=[ \"ML])(-?\d+\.\d)\d+(?=[ \"\n])", r"\1", text)
    path.write_text(re.sub(r"[ \t]+\n", "\n", short), encoding="utf-8")


def blank(ylabel: str) -> tuple[plt.Figure, plt.Axes]:
    figure, axes = plt.subplots(figsize=(6.4, 2.7), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(xlabel="step", ylabel=ylabel, xlim=(0, HORIZON))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure, axes


def draw_policies() -> None:
    environment = db.environment(ENVIRONMENT)
    runs = db.compare(list(POLICIES), environment, horizon=HORIZON, replications=REPLICATIONS, seed=SEED, times=POINTS)
    curves = {name: np.r_[0.0, run.regret.mean(axis=0)] for name, run in runs.items()}
    times = np.r_[0, next(iter(runs.values())).times]
    for name in curves:
        draw_policy(name, times, curves)


def draw_policy(name: str, times: np.ndarray, curves: dict[str, np.ndarray]) -> None:
    """Draw one curve in front of all others, which are one line with gaps: the file is half as large."""
    figure, axes = blank("mean regret")
    others = [np.r_[curve, np.nan] for other, curve in curves.items() if other != name]
    axes.plot(
        np.tile(np.r_[times, np.nan], len(others)), np.concatenate(others), color="#CFCFCF", linewidth=0.8, zorder=1,
        label=f"the {len(others)} others",
    )  # fmt: skip
    axes.plot(times, curves[name], color=style(name).colour, linewidth=2.4, label=name, zorder=2)
    axes.set_ylim(0, None)
    axes.legend(loc="upper left", frameon=False)
    save(figure, HERE / "policies" / f"{name}.svg")


def draw_environments() -> None:
    for name in db.environments.ENVIRONMENTS:
        environment = db.environment(name, **EXAMPLES.get(name, {}))
        figure, axes = blank("mean reward")
        if isinstance(environment, RestedEnvironment):
            path = environment.means_by_plays(HORIZON)
            axes.set_xlabel("plays of the arm")
        else:
            path = environment.path(HORIZON, seed=SEED)
        shown = np.unique(np.r_[0 : HORIZON : HORIZON // 250, HORIZON - 1])
        steps = name not in SMOOTH
        for arm in range(min(path.shape[1], len(ARM_STYLES)) if name != "needle" else path.shape[1]):
            look = ARM_STYLES[arm % len(ARM_STYLES)]
            axes.plot(
                shown + 1, path[shown, arm], color=look.colour, linestyle=DASHES[look.dash], linewidth=1.3,
                drawstyle="steps-post" if steps else "default",
            )  # fmt: skip
        axes.set_ylim(-0.02, 1.02)
        save(figure, HERE / "environments" / f"{name}.svg")


def draw_contextual_environments() -> None:
    for name in db.environments.CONTEXTUAL_ENVIRONMENTS:
        lost = 100.0 * losses(db.environment(name, **CONTEXTUAL_EXAMPLES.get(name, {})))
        figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        image = axes.imshow(
            lost, cmap="Blues", vmin=0.0, vmax=100.0, origin="lower", extent=(0, HORIZON, 0, HORIZON),
            interpolation="none",
        )  # fmt: skip
        axes.set(xlabel="step at which it is used", ylabel="step from which it learned")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        figure.colorbar(image, label="loss, % of a random choice")
        save(figure, HERE / "environments" / f"{name}.svg")


def losses(environment: db.Environment) -> np.ndarray:
    """Return what a linear model loses, fitted to the true means of a block (rows) and used in a block (columns).

    The model chooses the arm with the largest prediction; its regret is divided by that of a random choice.
    """
    means = environment.rewards.expected(environment.path(HORIZON, seed=SEED)).reshape(BLOCKS, -1, environment.arms)
    features = environment.features(HORIZON, seed=SEED)
    features = features.reshape(BLOCKS, -1, *features.shape[1:])
    found = np.zeros((BLOCKS, BLOCKS))
    for source in range(BLOCKS):
        if features.shape[2] == 1:  # a model for each arm
            model = np.linalg.lstsq(features[source, :, 0], means[source], rcond=None)[0]
            predictions = features[:, :, 0] @ model
        else:
            stacked = features[source].reshape(-1, features.shape[-1])
            predictions = features @ np.linalg.lstsq(stacked, means[source].ravel(), rcond=None)[0]
        chosen = np.take_along_axis(means, predictions.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
        best = means.max(axis=2)
        found[source] = (best - chosen).mean(axis=1) / (best - means.mean(axis=2)).mean(axis=1)
    return found


if __name__ == "__main__":
    plt.rcParams.update({"svg.hashsalt": "dynabandit", "svg.fonttype": "none", "font.family": "sans-serif"})
    draw_environments()
    draw_contextual_environments()
    draw_policies()
