"""Draw docs/pictures/flights.svg and print the table of docs/flights.md."""

import datetime
from pathlib import Path

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np

import dynabandit as db
from dynabandit import offline

PER_DAY = (1, 24, 240)
REPLICATIONS = 200
POLICIES = (
    "eps-greedy", "ucb", "ts", "ots", "d-ucb", "sw-ucb", "dts",
    "aff-d-greedy", "aff-ucb1", "aff-ucb2", "aff-ts", "aff-ots", "aff-dts1", "aff-dts2", "uniform",
)  # fmt: skip
DRAWN = {
    "aff-dts2": ("AFF-DTS2", "#D55E00", "-"),
    "aff-ots": ("AFF-OTS", "#0072B2", "-"),
    "ts": ("Thompson sampling", "#777777", "--"),
    "ucb": ("UCB", "#777777", ":"),
}
LEADERS = {"VX": "#CC79A7", "AA": "#009E73", "DL": "#E69F00"}
SMOOTHED = 28  # days
SEED = 1


def on_time(run: db.Simulation, year: offline.Flights) -> np.ndarray:
    """Return the share of choices that were on time, per replication."""
    return year.rates.max(axis=1).mean() - run.total_regret / run.horizon


def table(year: offline.Flights) -> dict[int, dict[str, db.Simulation]]:
    """Print the shares with intervals, sorted by the middle column."""
    found = {}
    for per_day in PER_DAY:
        environment = year.environment(per_day)
        found[per_day] = db.compare(
            list(POLICIES), environment, horizon=environment.longest, replications=REPLICATIONS, seed=SEED, times=365
        )
    order = sorted(POLICIES, key=lambda name: -on_time(found[24][name], year).mean())
    print("| policy | " + " | ".join(f"{count} per day" for count in PER_DAY) + " |")
    print("|---|" + "---|" * len(PER_DAY))
    for name in order:
        cells = []
        for per_day in PER_DAY:
            sample = 100.0 * on_time(found[per_day][name], year)
            cells.append(f"{sample.mean():.2f} ± {1.96 * sample.std(ddof=1) / len(sample) ** 0.5:.2f}")
        print(f"| `{name}` | " + " | ".join(cells) + " |")
    return found


def draw(year: offline.Flights, runs: dict[str, db.Simulation]) -> None:
    days = np.array([datetime.date(2013, 1, 1) + datetime.timedelta(days=day) for day in range(365)])
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(7.2, 6.0), sharex=True, height_ratios=[1, 1.2], layout="constrained"
    )
    window = np.ones(SMOOTHED) / SMOOTHED
    middle = slice(SMOOTHED // 2, 365 - SMOOTHED // 2 + 1)
    for arm, carrier in enumerate(year.carriers):
        smooth = np.convolve(year.rates[:, arm], window, mode="valid")
        colour = LEADERS.get(carrier, "#CCCCCC")
        label = year.names[arm] if carrier in LEADERS else None
        top.plot(days[middle], smooth, color=colour, label=label, linewidth=1.8 if carrier in LEADERS else 1.0)
    top.plot([], [], color="#CCCCCC", label="seven others")
    top.set(ylabel=f"on time, mean of {SMOOTHED} days", ylim=(0.38, 1.0))
    top.legend(loc="lower left", ncols=2, frameon=False, fontsize=8)
    draw_gains(bottom, days, year, runs)
    bottom.xaxis.set_major_formatter(mdates.DateFormatter("%b"))
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


def draw_gains(axes: plt.Axes, days: np.ndarray, year: offline.Flights, runs: dict[str, db.Simulation]) -> None:
    """Draw the gain of each policy over a random carrier, with 24 choices per day."""
    at_random = np.cumsum(24 * year.rates.mean(axis=1))
    best = np.cumsum(24 * year.rates.max(axis=1))
    for name, (label, colour, dash) in DRAWN.items():
        gain = best - runs[name].regret - at_random
        mean, error = gain.mean(axis=0), 1.96 * gain.std(axis=0, ddof=1) / len(gain) ** 0.5
        axes.plot(days, mean, dash, color=colour, label=label)
        axes.fill_between(days, mean - error, mean + error, color=colour, alpha=0.25, linewidth=0)
    single = year.carriers.index("VX")
    always = np.cumsum(24 * year.rates[:, single]) - at_random
    axes.plot(days, always, color="black", linewidth=0.8, label="always Virgin America (known afterwards)")
    axes.set(ylabel="more flights on time than at random", xlim=(days[0], days[-1]))
    axes.legend(loc="upper left", frameon=False, fontsize=8)


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "dynabandit"
    flights = offline.flights()
    draw(flights, table(flights)[24])
