"""Draw docs/pictures/rewards.svg, the regret of policies for rewards that are not 0 or 1, and print its numbers."""

from dataclasses import asdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dynabandit as db
from dynabandit.core.compilation import kernel
from dynabandit.environments import RewardLaw
from dynabandit.validation import BOUNDED

ENVIRONMENT, ARMS, HORIZON, REPLICATIONS, SEED = "case-3", 5, 10_000, 100, 1
CLIPPED = "aff-ots"  # on rewards that are clipped to a range and rescaled to [0, 1]
# Law, the range to which rewards are clipped, and policies
PANELS = {
    "normal": (
        db.reward_law("normal", low=-10, high=10, deviation=5),
        (-25.0, 25.0),
        ("aff-normal-ts", "aff-normal-ucb"),
    ),
    "counts": (db.reward_law("counts"), (0.0, 30.0), ("aff-poisson-ts", "aff-normal-ts", "aff-normal-ucb")),
    "revenue": (db.reward_law("revenue"), (0.0, 200.0), ("aff-revenue-ts", "aff-normal-ts", "aff-normal-ucb")),
}
ALWAYS = ("robust-ucb", "normal-ts", "eps-greedy", "uniform")


def clipped(law: RewardLaw, low: float, high: float) -> RewardLaw:
    """Return the law of the same rewards, clipped and rescaled; the regret is still that of the rewards themselves."""
    draw = law.functions.draw

    @kernel
    def draw_clipped(value, arm, step, params):
        return min(max((draw(value, arm, step, params) - low) / (high - low), 0.0), 1.0)

    functions = law.functions._replace(draw=draw_clipped, dtype=np.float64)
    return type("Clipped", (type(law),), {"domain": BOUNDED, "functions": functions})(**asdict(law))


def total_regret(policy: str, law: RewardLaw) -> np.ndarray:
    environment = db.environment(ENVIRONMENT, arms=ARMS, rewards=law)
    return db.simulate(policy, environment, horizon=HORIZON, replications=REPLICATIONS, seed=SEED, times=1).total_regret


def main() -> None:
    figure, panels = plt.subplots(1, len(PANELS), figsize=(10.5, 3.1), layout="constrained")
    for axes, (title, (law, limits, policies)) in zip(panels, PANELS.items(), strict=True):
        found = {name: total_regret(name, law) for name in (*policies, *ALWAYS)}
        found[f"{CLIPPED}, clipped"] = total_regret(CLIPPED, clipped(law, *limits))
        names = sorted(found, key=lambda name: -found[name].mean())
        means = [found[name].mean() for name in names]
        errors = [1.96 * found[name].std(ddof=1) / REPLICATIONS**0.5 for name in names]
        for name, mean, error in zip(names, means, errors, strict=True):
            print(f"{title:8} {name:18} {mean:10.0f} +- {error:.0f}")
        axes.barh(names, means, xerr=errors, color=["#0072B2" if name in policies else "#BBBBBB" for name in names])
        axes.set(title=title, xlabel="regret, in units of the rewards")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    plt.rcParams.update({"svg.hashsalt": "dynabandit", "svg.fonttype": "none", "font.family": "sans-serif"})
    main()
