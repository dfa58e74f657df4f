"""Draw docs/pictures/regret.svg: Thompson sampling with and without adaptive forgetting, and the recommended policy."""

from pathlib import Path

import matplotlib.pyplot as plt

import dynabandit as db

CURVES = {
    "ts": ("Thompson sampling", "#999999", "--"),
    "aff-ts": ("with adaptive forgetting (AFF-TS)", "#0072B2", "-"),
    "mix-ts": ("recommended policy (auto)", "#D55E00", "-"),
}


def main() -> None:
    environment = db.environment("small-changes")
    runs = db.compare(list(CURVES), environment, horizon=10_000, replications=200, seed=1, times=500)
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(7.2, 4.6), sharex=True, height_ratios=[1, 2], layout="constrained"
    )
    path = environment.path(10_000, seed=1)
    for arm, colour in enumerate(("#E69F00", "#56B4E9", "#009E73")):
        top.plot(path[:, arm], color=colour, label=f"arm {arm + 1}")
    top.set(ylabel="mean reward", ylim=(0, 1))
    top.legend(loc="upper right", ncols=3, frameon=False)
    for name, (label, colour, dash) in CURVES.items():
        sim = runs[name]
        mean, error = sim.regret.mean(axis=0), 1.96 * sim.regret.std(axis=0, ddof=1) / sim.replications**0.5
        bottom.plot(sim.times, mean, dash, color=colour, label=label)
        bottom.fill_between(sim.times, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    bottom.set(xlabel="step", ylabel="cumulative regret", xlim=(0, 10_000), ylim=(0, None))
    bottom.legend(loc="upper left", frameon=False)
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "dynabandit"
    main()
