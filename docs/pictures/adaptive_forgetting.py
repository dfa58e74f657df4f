"""Draw docs/pictures/forgetting-*.svg, the four figures of docs/adaptive-forgetting.md."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dynabandit as db
from dynabandit.estimators import AdaptiveForgetting, Estimator, FixedForgetting, SampleMean
from dynabandit.simulation.step_by_step import StepByStep

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
    """Draw the central 95 % of the draws of an arm with 60 rewards and a change half way, by its idle time."""
    figure, (axes,) = blank()
    waits = np.arange(0, 401, 20)
    for name, label, colour in (("ts", "Thompson sampling", GREY), ("aff-ts", "with discounted data (AFF-TS)", ORANGE)):
        low, high = zip(*(draws_after(name, wait) for wait in waits), strict=True)
        axes.fill_between(waits, low, high, color=colour, alpha=0.35, label=label, linewidth=0)
    axes.set(xlabel="idle steps of the arm", ylabel="central 95 % of draws", ylim=(0, 1.2), xlim=(0, waits[-1]))
    axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
    axes.legend(loc="upper left", frameon=False, ncols=2)
    save(figure, "idle")


def draws_after(name: str, wait: int) -> tuple[float, float]:
    """Return the limits of the central 95 % of the draws after some idle steps."""
    policy = db.policy(name)
    run = StepByStep(policy, arms=2, horizon=60)
    rewards = np.random.default_rng(SEED).random(60) < np.where(np.arange(60) < 30, 0.6, 0.1)
    for number, reward in enumerate(rewards, start=1):
        run.learn(0, number, float(reward))
    step = db.policies.Step(61 + wait, 2, 0.0, run.space.features, run.space.table, run.random)
    a, b = policy.functions.posterior(run.state, 0, step, run.params)
    draws = np.random.default_rng(SEED).beta(a, b, size=20_000)
    return tuple(np.quantile(draws, [0.025, 0.975]))


if __name__ == "__main__":
    plt.rcParams.update({"svg.hashsalt": "dynabandit", "svg.fonttype": "none", "font.family": "sans-serif"})
    draw_sample_mean()
    draw_forgetting()
    draw_adaptive()
    draw_idle()
