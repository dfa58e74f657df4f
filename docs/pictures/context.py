"""Draw docs/pictures/context.svg: what features and forgetting are worth; print the numbers of docs/context.md."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dynabandit as db
from dynabandit.policies.auto import RECOMMENDED_WITH_FEATURES

HORIZON, REPLICATIONS, POINTS, SEED = 10_000, 100, 50, 1
PANELS = {
    "nothing changes": db.environment("logistic-drift", change="none"),
    "preferences flip every 2,000 steps": db.environment("logistic-drift", period=2000),
    "digits change arms every 2,000 steps": db.environment("digits", rotation=2000),
}
POLICIES = {
    "a random arm": db.policy("uniform"),
    "without features: mix-ts": db.policy("mix-ts"),
    "features, no forgetting: lin-ucb": db.policy("lin-ucb"),
    "features and forgetting: lin-ucb(discount=0.997)": db.policy("lin-ucb", discount=0.997),
    "features and learned forgetting: auto": db.policy(RECOMMENDED_WITH_FEATURES),
}
COLOURS = ("#BBBBBB", "#E69F00", "#0072B2", "#009E73", "#D55E00")


def main() -> None:
    figure, panels = plt.subplots(1, len(PANELS), figsize=(10.5, 3.6), layout="constrained")
    for axes, (title, environment) in zip(panels, PANELS.items(), strict=True):
        runs = db.compare(
            POLICIES, environment, horizon=HORIZON, replications=REPLICATIONS, seed=SEED, times=POINTS
        )  # fmt: skip
        for (label, run), colour in zip(runs.items(), COLOURS, strict=True):
            error = 1.96 * run.total_regret.std(ddof=1) / REPLICATIONS**0.5
            print(f"{title:45} {label:50} {run.total_regret.mean():7.0f} +- {error:.0f}", flush=True)
            curve = np.r_[0.0, run.regret.mean(axis=0)]
            axes.plot(np.r_[0, run.times], curve, color=colour, label=label, linewidth=1.8)
        axes.set(xlabel="step", xlim=(0, HORIZON), ylim=(0, None))
        axes.set_title(title, fontsize="medium")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("mean regret")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    plt.rcParams.update({"svg.hashsalt": "dynabandit", "svg.fonttype": "none", "font.family": "sans-serif"})
    main()
