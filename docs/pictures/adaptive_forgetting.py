"""Draw docs/pictures/forgetting-*.svg, the four figures of docs/adaptive-forgetting.md."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dynabandit as db
from dynabandit.estimators import AdaptiveForgetting, Estimator, FixedForgetting, SampleMean

HERE = Path(__file__).parent
STEPS, CHANGE, SEED = 1200, 600, 3
TRUTH = np.where(np.arange(STEPS) < CHANGE, 0.3, 0.75)
REWARDS = (np.random.default_rng(SEED).random(STEPS) < TRUTH).astype(float)
SHOWN = np.arange(0, STEPS, 3)
GREY, BLUE, ORANGE, GREEN = "#777777", "#0072B2", "#D55E00", "#009E73"


def follow(estimator: Estimator) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the forgetting factor after each reward."""
    after = [(one.mean, one.forgetting) for one in (estimator.update(reward) for reward in REWARDS)]
    return np.array(after).T


def blank(rows: int = 1, **how: object) -> tuple[plt.Figure, list[plt.Axes]]:
    figure, axes = plt.subplots(rows, 1, figsize=(7.2, 2.6 * rows), layout="constrained", squeeze=False, **how)
    for one in axes[:, 0]:
        one.spines[["top", "right"]].set_visible(False)
    return figure, list(axes[:, 0])


def save(figure: plt.Figure, name: str) -> None:
    figure.savefig(HERE / f"forgetting-{name}.svg", metadata={"Date": None})
    plt.close(figure)


def draw_truth(axes: plt.Axes) -> None:
    axes.plot(
        [0, CHANGE, CHANGE, STEPS],
        [0.3, 0.3, 0.75, 0.75],
        color="black",
        linewidth=1.0,
        linestyle=":",
        label="true mean",
    )
    axes.set(ylim=(0, 1), xlim=(0, STEPS), ylabel="mean reward")


def draw_sample_mean() -> None:
    figure, (axes,) = blank()
    draw_truth(axes)
    axes.plot(SHOWN, follow(SampleMean())[0][SHOWN], color=GREY, linewidth=2, label="sample mean")
    axes.set_xlabel("rewards of the arm")
    axes.legend(loc="upper left", frameon=False)
    save(figure, "sample-mean")


def draw_forgetting() -> None:
    figure, (axes,) = blank()
    draw_truth(axes)
    for factor, colour, width in ((0.8, "#E69F00", 0.8), (0.98, BLUE, 1.4), (0.998, GREEN, 1.8)):
        axes.plot(
            SHOWN, follow(FixedForgetting(factor))[0][SHOWN], color=colour, linewidth=width, label=f"factor {factor}"
        )
    axes.set_xlabel("rewards of the arm")
    axes.legend(loc="upper left", frameon=False, ncols=2)
    save(figure, "fixed")


def draw_adaptive() -> None:
    figure, (top, bottom) = blank(2, sharex=True)
    mean, factor = follow(AdaptiveForgetting(step_size=0.0001))
    draw_truth(top)
    top.plot(SHOWN, mean[SHOWN], color=ORANGE, linewidth=1.8, label="adaptive mean")
    top.legend(loc="upper left", frameon=False)
    bottom.plot(SHOWN, factor[SHOWN], color=ORANGE)
    bottom.set(ylabel="forgetting factor", xlabel="rewards of the arm", ylim=(None, 1.005))
    save(figure, "adaptive")


def draw_idle() -> None:
    """The 95 % range of draws for an arm that is played 60 times, with a change half way, and then waits."""
    figure, (axes,) = blank()
    waits = np.arange(0, 401, 20)
    for name, label, colour in (("ts", "Thompson sampling", GREY), ("aff-ts", "with fading data (AFF-TS)", ORANGE)):
        low, high = zip(*(draws_after(name, wait) for wait in waits), strict=True)
        axes.fill_between(waits, low, high, color=colour, alpha=0.35, label=label, linewidth=0)
    axes.set(xlabel="steps that the arm has been idle", ylabel="what it may draw", ylim=(0, 1.2), xlim=(0, waits[-1]))
    axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
    axes.legend(loc="upper left", frameon=False, ncols=2)
    save(figure, "idle")


def draws_after(name: str, wait: int) -> tuple[float, float]:
    """Return between which values 95 % of the draws of an arm lie that has waited so many steps."""
    policy = db.policy(name)
    memory, shared = np.zeros((policy.memory_size(), 2)), np.zeros(policy.shared_size())
    numbers = policy.numbers(2)
    policy.kernels.start(memory, shared, 0, numbers)
    for reward in np.random.default_rng(SEED).random(60) < np.where(np.arange(60) < 30, 0.6, 0.1):
        policy.kernels.learn(memory, shared, 0, float(reward), numbers)
    now = db.policies.Now(step=61 + wait, arms=2, context=0.0)
    a, b = policy.kernels.posterior(memory, 0, wait, now, numbers)
    draws = np.random.default_rng(SEED).beta(a, b, size=20_000)
    return tuple(np.quantile(draws, [0.025, 0.975]))


if __name__ == "__main__":
    plt.rcParams.update({"svg.hashsalt": "dynabandit", "svg.fonttype": "none", "font.family": "sans-serif"})
    draw_sample_mean()
    draw_forgetting()
    draw_adaptive()
    draw_idle()
