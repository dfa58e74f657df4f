"""Draw docs/pictures/combinations.svg from docs/measured/combinations.json, and print the tables of the page.

Regret is divided by the least regret of all combinations in the same environment; means are geometric, and each family
of environments counts once. Intervals are from a bootstrap over families.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
DATA = HERE.parent / "measured" / "combinations.json"
LEAST = 1e-9  # regret; smaller numbers count as this
RESAMPLES = 2000
SPLITS = 200  # random halves of the families, to see what choosing the best of many combinations promises too much


class Grid:
    """log(regret / least regret) of each combination, by memory, rule, detector and family."""

    def __init__(self, data: dict[str, Any]) -> None:
        keys = [tuple(key.split(" + ")) for key in data["regret"]]
        parts = [(rule, memory, *(rest or ("none",))) for rule, memory, *rest in keys]
        self.rules, self.memories, self.detectors = (list(dict.fromkeys(names)) for names in zip(*parts, strict=True))
        self.detectors.sort(key=lambda name: name != "none")
        families = list(data["environments"].values())
        self.families = list(dict.fromkeys(families))
        regret = np.maximum(np.array(list(data["regret"].values())), LEAST)
        ratios = np.log(regret / regret.min(axis=0))
        by_family = np.array([ratios[:, np.array(families) == family].mean(axis=1) for family in self.families]).T
        shape = len(self.memories), len(self.rules), len(self.detectors), len(self.families)
        self.logs = np.full(shape, np.nan)
        for (rule, memory, detector), row in zip(parts, by_family, strict=True):
            place = self.memories.index(memory), self.rules.index(rule), self.detectors.index(detector)
            self.logs[place] = row

    def name(self, place: tuple[int, ...]) -> str:
        """Return the name of a combination."""
        memory, rule, detector = place
        names = [self.rules[rule], self.memories[memory], self.detectors[detector]]
        return " + ".join(name for name in names if name != "none")


def resampled(families: int) -> np.ndarray:
    """Return which families each bootstrap sample has."""
    return np.random.default_rng(1).integers(0, families, (RESAMPLES, families))


def effect(grid: Grid, axis: int) -> list[tuple[float, float, float]]:
    """Return by what each part of an axis multiplies the regret of the mean part, with a 95 % interval."""
    others = tuple(other for other in range(3) if other != axis)
    mean = grid.logs.mean(axis=others)  # (parts, families)
    mean = mean - mean.mean(axis=0)
    samples = mean[:, resampled(mean.shape[1])].mean(axis=2)
    low, high = np.quantile(samples, [0.025, 0.975], axis=1)
    return [tuple(np.exp(values)) for values in zip(mean.mean(axis=1), low, high, strict=True)]


def shares(mean: np.ndarray) -> dict[str, float]:
    """Return which share of the variance of a table each axis explains by itself, and what is left to interactions."""
    centred = mean - mean.mean()
    found = {
        name: float((centred.mean(axis=tuple(other for other in range(3) if other != axis)) ** 2).mean())
        for axis, name in enumerate(("memory", "rule", "detector"))
    }
    total = float((centred**2).mean())
    found["interactions"] = total - sum(found.values())
    return {name: value / total for name, value in found.items()}


def shares_with_intervals(grid: Grid) -> dict[str, tuple[float, float, float]]:
    values = shares(grid.logs.mean(axis=3))
    samples = [shares(grid.logs[..., picks].mean(axis=3)) for picks in resampled(len(grid.families))]
    return {
        name: (value, *np.quantile([sample[name] for sample in samples], [0.025, 0.975]))
        for name, value in values.items()
    }


def best_of_half(grid: Grid) -> tuple[float, float]:
    """Return the mean log ratio to the best single combination of the families it was chosen on, and of the others."""
    generator, families = np.random.default_rng(2), len(grid.families)
    seen, unseen = [], []
    flat = grid.logs.reshape(-1, families)
    for _ in range(SPLITS):
        order = generator.permutation(families)
        first, second = order[: families // 2], order[families // 2 :]
        best = flat[:, first].mean(axis=1).argmin()
        seen.append(flat[best, first].mean())
        unseen.append(flat[best, second].mean())
    return float(np.exp(np.mean(seen))), float(np.exp(np.mean(unseen)))


def draw(grid: Grid) -> None:
    """Draw the geometric mean ratio of each memory with each rule, one panel per detector."""
    mean = np.exp(grid.logs.mean(axis=3))
    figure, panels = plt.subplots(2, 2, figsize=(9.0, 7.2), sharex=True, sharey=True, layout="constrained")
    largest = float(np.quantile(mean, 0.95))
    for number, (axes, detector) in enumerate(zip(panels.flat, grid.detectors, strict=True)):
        table = mean[:, :, number]
        image = axes.imshow(table, cmap="viridis_r", norm="log", vmin=mean.min(), vmax=largest, aspect="auto")
        axes.set_title("no detector" if detector == "none" else f"with the detector {detector}")
        axes.set_xticks(range(len(grid.rules)), grid.rules, rotation=60, ha="right")
        axes.set_yticks(range(len(grid.memories)), grid.memories)
        for (row, column), value in np.ndenumerate(table):
            dark = value > (mean.min() * largest) ** 0.5
            axes.text(
                column, row, f"{value:.2g}" if value >= 10 else f"{value:.1f}", ha="center", va="center", fontsize=7,
                color="white" if dark else "black",
            )  # fmt: skip
    bar = figure.colorbar(image, ax=panels, label="regret, times the least of all", shrink=0.6)
    bar.set_ticks(
        ticks := [tick for tick in (1.5, 2, 3, 5, 10) if mean.min() <= tick <= largest], labels=map(str, ticks)
    )
    bar.minorticks_off()
    plt.rcParams["svg.fonttype"] = "none"  # letters as text: a quarter of the size
    figure.savefig(HERE / "combinations.svg", metadata={"Date": None})


def main() -> None:
    data = json.loads(DATA.read_text(encoding="utf-8"))
    grid = Grid(data)
    draw(grid)
    for axis, (title, names) in enumerate(
        (("memory", grid.memories), ("rule", grid.rules), ("detector", grid.detectors))
    ):
        print(f"\n| {title} | regret, times the mean {title} | 95 % interval |\n|---|---|---|")
        rows = sorted(zip(effect(grid, axis), names, strict=True))
        for (value, low, high), name in rows:
            print(f"| `{name}` | {value:.2f} | {low:.2f} to {high:.2f} |")
    print("\n| what explains the differences | share | 95 % interval |\n|---|---|---|")
    for name, (value, low, high) in shares_with_intervals(grid).items():
        print(f"| {name} | {value:.0%} | {low:.0%} to {high:.0%} |")
    print("\n| combination | preset | regret, times the least | 95 % interval | worst family |\n|---|---|---|---|---|")
    mean = grid.logs.mean(axis=3)
    for flat in mean.ravel().argsort()[:20]:
        place = np.unravel_index(flat, mean.shape)
        logs = grid.logs[place]
        samples = logs[resampled(logs.size)].mean(axis=1)
        low, high = np.exp(np.quantile(samples, [0.025, 0.975]))
        name = grid.name(place)
        label = data["labels"][name].partition("(")[0]
        own = f"`{label}`" if "+" not in label else ""
        worst = grid.families[int(logs.argmax())]
        print(
            f"| `{name}` | {own} | {np.exp(logs.mean()):.2f} | {low:.2f} to {high:.2f} | {np.exp(logs.max()):.1f}, "
            f"{worst} |"
        )
    first, recommended = (grid.logs[np.unravel_index(flat, mean.shape)] for flat in mean.ravel().argsort()[:2])
    samples = (first - recommended)[resampled(first.size)].mean(axis=1)
    low, high = np.exp(np.quantile(samples, [0.025, 0.975]))
    ratio = np.exp((first - recommended).mean())
    print(f"\nThe first has {ratio:.3f} ({low:.3f} to {high:.3f}) times the regret of the second.")
    seen, unseen = best_of_half(grid)
    print(f"\nThe best of all on half of the families: {seen:.3f} there, {unseen:.3f} on the other half.")


if __name__ == "__main__":
    main()
