"""Measure the time per step for 2 to 1,000,000 arms and the steps per second for 1 to 100,000 replications.

python benchmarks/scaling.py            print the numbers
python benchmarks/scaling.py --write    also write the figures, docs/performance.md and docs/measured/scaling.json
"""

import argparse
import math
import time
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

import dynabandit as db
from dynabandit.choosing.draw_tree import uses_draw_tree
from report import DOCS, machine, shortest, table, write

ARMS = (2, 10, 100, 1000, 10_000, 100_000, 1_000_000)
SHOWN = ("ts", "aff-ots", "mix-ts", "ucb", "aff-ucb2", "eps-greedy")
SCANNED = "aff-ucb2, all arms scored"
REPLICATIONS = (1, 10, 100, 1000, 10_000, 100_000)
THROUGHPUT = ("ucb", "aff-ucb2", "aff-ots")
STEPS = 1000  # of each replication, where replications are many
TARGET = 0.15  # seconds of one measurement
COLOURS = {
    "ts": "#c2554a", "aff-ots": "#b8860b", "mix-ts": "#d977a8", "ucb": "#3f7fbf", "aff-ucb2": "#2e9e6b",
    "eps-greedy": "#8d6cc4", SCANNED: "#7f8c99",
}  # fmt: skip


def policy_of(name: str) -> db.policies.Policy:
    """Return a policy; the scanned variant does not use the tree of scores and scores all arms at every step."""
    if name != SCANNED:
        return db.policy(name)
    kind = type(db.policy("aff-ucb2"))
    return type("Scanned", (kind,), {"functions": kind.functions._replace(static_index=False)})()


def microseconds_per_step(name: str, world: db.environments.Environment) -> float:
    """Return the time per step after the burn-in, measured with the progress reports of a simulation."""
    policy, arms = policy_of(name), world.arms
    burn_in = policy.burn_in * arms
    in_tree = policy.functions.static_index or uses_draw_tree(policy.functions, arms)
    slow = arms >= 100_000 and not in_tree
    steps, block = (64, 64) if slow else (4096, 1024)
    while True:
        marks: list[tuple[int, float]] = []
        db.simulate(
            policy, world, horizon=burn_in + steps + 2 * block, seed=1, threads=1, block=block, times=1,
            progress=lambda done, total, marks=marks: marks.append((done, time.process_time())),
        )  # fmt: skip
        after = [mark for mark in marks if mark[0] >= burn_in + block]
        played, taken = after[-1][0] - after[0][0], after[-1][1] - after[0][1]
        if taken >= TARGET or steps >= 1_000_000:
            return 1e6 * taken / played
        steps = min(1_000_000, int(steps * min(100.0, max(2.0, 1.3 * TARGET / max(taken, 1e-9)))))


def million_steps_per_second(name: str, replications: int) -> float:
    """Return the throughput of all cores on 10 arms with constant means, in wall-clock time."""
    world = db.environment("fixed", means=np.linspace(0.1, 0.9, 10))

    def play() -> object:
        return db.simulate(name, world, horizon=STEPS, replications=replications, seed=1, times=1)

    return replications * STEPS / shortest(play, 5 if replications < 1000 else 1) / 1e6


def measure(every_arms: tuple[int, ...], counts: tuple[int, ...]) -> dict[str, Any]:
    by_arms: dict[str, dict[str, float]] = {name: {} for name in (*SHOWN, SCANNED)}
    for name in by_arms:
        microseconds_per_step(name, db.environment("fixed", means=[0.2, 0.8]))  # compiles
    for arms in every_arms:
        means = np.random.default_rng(7).permutation(np.linspace(0.1, 0.9, arms))
        world = db.environment("fixed", means=means)
        for name in by_arms:
            by_arms[name][str(arms)] = microseconds_per_step(name, world)
    by_replications = {
        name: {str(count): million_steps_per_second(name, count) for count in counts} for name in THROUGHPUT
    }
    return {"machine": machine(), "microseconds": by_arms, "million_steps_per_second": by_replications}


def plot(name: str, lines: dict[str, dict[str, float]], across: str, up: str) -> None:
    """Draw labelled lines on two logarithmic axes, in colours that are readable on white and on black."""
    grey = "#808891"
    matplotlib.rcParams.update({"svg.fonttype": "path", "font.size": 11, "svg.hashsalt": name})
    figure = Figure(figsize=(8.0, 4.6))
    axes = figure.subplots()
    ends = []
    for label, values in lines.items():
        x, y = [int(count) for count in values], list(values.values())
        axes.loglog(x, y, marker="o", markersize=4, linewidth=1.8, color=COLOURS[label])
        ends.append((y[-1], label, x[-1]))
    low, high = np.floor(np.log10(axes.get_ylim()[0])), np.ceil(np.log10(axes.get_ylim()[1]))
    axes.set_ylim(10**low, 10**high)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(10.0, numticks=20))
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1.0 else f"{value:g}")
        axis.set_minor_formatter(NullFormatter())
    place = -math.inf
    for y, label, x in sorted(ends):  # move labels up that would overlap
        place = max(math.log10(y), place + 0.055 * (high - low))
        axes.annotate(
            label,
            (x, 10**place),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            color=COLOURS[label],
            annotation_clip=False,
        )
    axes.set_xlabel(across, color=grey)
    axes.set_ylabel(up, color=grey)
    axes.tick_params(colors=grey, which="both")
    axes.grid(color=grey, alpha=0.25, linewidth=0.6)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(grey)
    for kind in ("svg", "png"):
        folder = DOCS / "pictures" if kind == "svg" else DOCS.parent / "out"
        folder.mkdir(exist_ok=True)
        figure.savefig(
            folder / f"{name}.{kind}",
            transparent=True,
            bbox_inches="tight",
            metadata={"Date": None} if kind == "svg" else None,
        )


def text_of(numbers: dict[str, Any]) -> str:
    times, rates = numbers["microseconds"], numbers["million_steps_per_second"]
    rows = [
        [f"`{name}`" if name != SCANNED else f"`{name.split(',')[0]}`, all arms scored"]
        + [f"{t:.3g}" for t in of.values()]
        for name, of in times.items()
    ]
    heads = [f"K = {int(arms):,}" for arms in times["ucb"]]
    many = [[f"`{name}`", *(f"{rate:.3g}" for rate in of.values())] for name, of in rates.items()]
    return "\n\n".join(
        [
            "`benchmarks/scaling.py`: arms with constant means, one thread, microseconds per step after the burn-in:",
            table(["policy", *heads], rows),
            "![Time per step for 2 to 1,000,000 arms](pictures/scaling-arms.svg)",
            GROWTH,
            MANY,
            table(["policy", *(f"{int(count):,}" for count in rates["ucb"])], many),
            "![Steps per second for 1 to 100,000 replications](pictures/scaling-replications.svg)",
        ]
    )


MANY = (
    "Throughput in million steps per second, all cores, replications of 1,000 steps with 10 arms with constant means. "
    "With few replications the start-up time of a simulation is visible:"
)
GROWTH = """\
- **Scores that change only when an arm is played** are kept in a tree (`choosing/argmax_tree.py`): those of AFF-UCB2,
  greedy policies and `uniform`. A step updates the path from one leaf to the root, which has log2 K nodes: 20 for a
  million arms. The choices are those of a scan of all arms. The remaining growth comes from slower memory accesses.
- **Thompson sampling** draws again at every step. With more than 1,000 arms, a tree finds the largest draw without
  drawing all of them ([Thompson sampling with many arms](thompson-many-arms.md)).
- **The scores of UCB** change at every step, so all arms are scored."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="update the figures, the page and the numbers in docs")
    parser.add_argument("--quick", action="store_true", help="up to 100,000 arms and 1,000 replications only")
    given = parser.parse_args()
    numbers = measure(ARMS[:-1], REPLICATIONS[:-2]) if given.quick else measure(ARMS, REPLICATIONS)
    print(text_of(numbers))
    if given.write:
        plot("scaling-arms", numbers["microseconds"], "arms", "microseconds per step")
        plot("scaling-replications", numbers["million_steps_per_second"], "replications", "million steps per second")
        write("scaling", numbers, text_of(numbers))


if __name__ == "__main__":
    main()
