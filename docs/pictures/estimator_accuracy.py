"""Draw docs/pictures/accuracy-*.svg, the figures of docs/estimator-accuracy.md, and print its table."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dynabandit as db
from dynabandit.estimators import AdaptiveForgetting, Estimator, FixedForgetting, SampleMean, SlidingWindow

HERE = Path(__file__).parent
REPLICATIONS, SEED, BEFORE = 4000, 1, 2000  # steps at rest before the change

ADAPTIVE: dict[str, tuple[Estimator, str]] = {
    "step size 0.0001": (AdaptiveForgetting(0.0001), "#fdbe85"),
    "step size 0.001": (AdaptiveForgetting(0.001), "#fd8d3c"),
    "step size 0.01": (AdaptiveForgetting(0.01), "#d94701"),
    "step size 0.1": (AdaptiveForgetting(0.1), "#7f2704"),
    "variance-scaled": (AdaptiveForgetting("variance-scaled"), "#009E73"),
}
OTHERS: dict[str, tuple[Estimator, str]] = {
    "sample mean": (SampleMean(), "#777777"),
    "factor 0.999": (FixedForgetting(0.999), "#9ecae1"),
    "factor 0.99": (FixedForgetting(0.99), "#4292c6"),
    "factor 0.9": (FixedForgetting(0.9), "#08519c"),
    "window 1000": (SlidingWindow(1000), "#dcb6e6"),
    "window 100": (SlidingWindow(100), "#a35bb8"),
    "window 10": (SlidingWindow(10), "#5c1a72"),
}

JUMP = np.repeat([0.35, 0.65], [BEFORE, 1000])
DRIFT = 0.5 - 0.15 * np.cos(2 * np.pi * np.arange(BEFORE + 2000) / 2000)  # between 0.35 and 0.65
REST = np.full(3000, 0.5)


def measured(path: np.ndarray, times: np.ndarray) -> dict[str, db.Estimation]:
    """Return the accuracy of every estimator."""
    return {
        name: db.estimation(estimator, path, REPLICATIONS, seed=SEED, times=times)
        for name, (estimator, _) in {**ADAPTIVE, **OTHERS}.items()
    }


def draw(name: str, results: dict[str, db.Estimation], start: int, label: str, *, bias: bool, log: bool) -> None:
    """Draw bias and root mean squared error from step `start` on, adaptive forgetting beside the others."""
    rows = 2 if bias else 1
    figure, axes = plt.subplots(rows, 2, figsize=(9.2, 2.9 * rows), layout="constrained", squeeze=False, sharex=True)
    for column, group in enumerate((ADAPTIVE, OTHERS)):
        for estimator, (_, colour) in group.items():
            result = results[estimator]
            shown = result.times >= start
            steps = result.times[shown] - start + (1 if log else 0)
            axes[-1, column].plot(steps, np.sqrt(result.mse[shown]), color=colour, label=estimator)
            if bias:
                axes[0, column].plot(steps, result.bias[shown], color=colour)
        axes[-1, column].set(xlabel=label, yscale="log", ylim=(0.005, 0.6 if log else 2.0))
        axes[-1, column].set_yticks([0.01, 0.03, 0.1, 0.3], ["0.01", "0.03", "0.1", "0.3"])
        axes[-1, column].minorticks_off()
        if log:
            axes[-1, column].set(xscale="log")
        if bias:
            low, high = (-0.32, 0.05) if name == "jump" else (-0.18, 0.18)
            axes[0, column].set(ylim=(low, high))
            axes[0, column].axhline(0.0, color="black", linewidth=0.6, zorder=0)
        axes[0, column].set_title("adaptive forgetting" if column == 0 else "fixed factors and windows", fontsize=10)
        axes[-1, column].legend(frameon=False, fontsize=7.5, ncols=2, loc="lower left" if log else "upper center")
    axes[-1, 0].set_ylabel("root mean squared error")
    if bias:
        axes[0, 0].set_ylabel("bias")
    for one in axes.flat:
        one.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / f"accuracy-{name}.svg", metadata={"Date": None})
    plt.close(figure)


def rmse(result: db.Estimation, first: int, last: int) -> float:
    """Return the root of the mean squared error, averaged over the recorded steps from `first` to `last`."""
    within = (result.times >= first) & (result.times <= last)
    return float(np.sqrt(result.mse[within].mean()))


def main() -> None:
    plt.rcParams.update({"svg.hashsalt": "dynabandit", "svg.fonttype": "none", "font.family": "sans-serif"})
    jump = measured(JUMP, np.arange(10, len(JUMP) + 1, 10))
    drift = measured(DRIFT, np.arange(20, len(DRIFT) + 1, 20))
    rest = measured(REST, np.unique(np.geomspace(1, len(REST), 80).round().astype(int)))
    draw("jump", jump, BEFORE, "rewards since the jump", bias=True, log=False)
    draw("drift", drift, BEFORE, "rewards", bias=True, log=False)
    draw("rest", rest, 1, "rewards", bias=False, log=True)
    print("| estimator | at rest, 3000th reward | first 100 after the jump | 900 to 1000 after the jump | drift |")
    print("|---|--:|--:|--:|--:|")
    for name in {**ADAPTIVE, **OTHERS}:
        cells = [
            rmse(rest[name], 3000, 3000),
            rmse(jump[name], BEFORE + 1, BEFORE + 100),
            rmse(jump[name], BEFORE + 901, BEFORE + 1000),
            rmse(drift[name], BEFORE + 1, BEFORE + 2000),
        ]
        print(f"| {name} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
