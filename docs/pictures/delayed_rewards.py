"""Draw docs/pictures/delayed-*.svg and write the tables of docs/delayed-rewards.md.

The numbers are those of docs/measured/delayed-rewards.json, which ``python benchmarks/delayed_rewards.py`` measures;
another file can be given as an argument.
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
PAGE = HERE.parent / "delayed-rewards.md"
MEASURED = HERE.parent / "measured" / "delayed-rewards.json"
Numbers = dict[str, list[float]]

DELAYS = ("0", "100", "1000")
COLUMNS = (("0", "0.0"), ("100", "0.01"), ("1000", "0.01"), ("0", "0.2"), ("100", "0.2"), ("1000", "0.2"))
RULES = ("immediate", "at-once", "held", "settled")
SHOWN = {
    "ucb": "#777777", "kl-ucb": "#4292c6", "ts": "#a35bb8", "aff-ucb2-growing": "#009E73", "aff-ots": "#d94701",
    "aff-dts2": "#fd8d3c", "aff-d-greedy": "#111111",
}  # fmt: skip


def policies(numbers: Numbers, part: str) -> list[str]:
    """Return the policies that a part was measured for."""
    return list(dict.fromkeys(key.split("/")[1] for key in numbers if key.startswith(f"{part}/")))


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(headings)} |", "|---|" + "--:|" * (len(headings) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def draw_delays(numbers: Numbers, scale: float) -> None:
    """Draw the regret against the mean delay."""
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.4), layout="constrained", sharey=True)
    for axis, lost in zip(axes, ("0.01", "0.2"), strict=True):
        for name in SHOWN:
            if f"delays/{name}/0/{lost}" in numbers:
                regret = [numbers[f"delays/{name}/{delay}/{lost}"][0] for delay in DELAYS]
                axis.plot(range(3), regret, marker="o", color=SHOWN[name], label=name)
        axis.axhline(0.24 * scale, color="#bbbbbb", linestyle=":", label="uniform")
        axis.set(xticks=range(3), xticklabels=["0", "100", "1,000"], xlabel="mean delay")
        axis.set_title(f"{float(lost):.0%} of the rewards lost", fontsize="medium")
    axes[0].set_ylabel("regret")
    axes[1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(HERE / "delayed-regret.svg")


def draw_clicks(numbers: Numbers) -> None:
    """Draw the regret of each way to learn clicks."""
    names = [name for name in SHOWN if f"clicks/{name}/settled" in numbers]
    figure, axis = plt.subplots(figsize=(9.2, 3.0), layout="constrained")
    for place, (rule, colour) in enumerate(zip(RULES, ("#bbbbbb", "#d94701", "#9ecae1", "#08519c"), strict=True)):
        heights = [numbers[f"clicks/{name}/{rule}"][0] for name in names]
        axis.bar(np.arange(len(names)) + 0.2 * place - 0.3, heights, 0.2, color=colour, label=rule)
    axis.set(xticks=range(len(names)), xticklabels=names, ylabel="regret")
    axis.legend(fontsize="small")
    figure.savefig(HERE / "delayed-clicks.svg")


def text(numbers: Numbers, settings: dict[str, int]) -> str:
    """Return the measured part of the page."""
    horizon, replications = settings["horizon"], settings["replications"]
    of_delays = [
        [f"`{name}`", *(f"{numbers[f'delays/{name}/{mean}/{lost}'][0]:.0f}" for mean, lost in COLUMNS)]
        for name in policies(numbers, "delays")
    ]
    headings = [f"{'no delay' if mean == '0' else f'{int(mean):,}'}, {float(lost):.0%} lost" for mean, lost in COLUMNS]
    of_clicks = [
        [f"`{name}`", *(f"{numbers[f'clicks/{name}/{rule}'][0]:.0f}" for rule in RULES)]
        for name in policies(numbers, "clicks")
    ]
    of_shares = [
        [f"`{name}`", f"{numbers[f'silent/{name}'][0]:.1%}", _share(numbers.get(f"new-arm/{name}"))]
        for name in policies(numbers, "silent")
    ]
    return f"""The first table shows the mean regret after {horizon:,} steps over {replications:,} replications.
There are 5 arms. The best arm has the mean 0.7 and the others 0.4, and the best arm changes three times. Delays are
geometric, with the mean and the share of lost rewards in the heading. The regret of the policy `uniform` is
{0.24 * horizon:,.0f}.

![Regret against the mean delay](pictures/delayed-regret.svg)

{table(["policy", *headings], of_delays)}

The second table shows the regret for clicks. One arm has a click with probability 0.1, and the other four with 0.05.
The mean delay is 50 steps, and the window is 1,000 steps. The regret of the policy `uniform` is {0.04 * horizon:,.0f}.

![Regret with clicks](pictures/delayed-clicks.svg)

{table(["policy", *RULES], of_clicks)}

The third table shows two shares of decisions. *Arm without rewards*: the share of an arm whose rewards never arrive, if
all five arms have the mean 0.5. *New arm*: the share of an added arm in the next 1,000 decisions, if no reward arrives
during this time. The best of the four other arms has the mean 0.6.

{table(["policy", "arm without rewards", "new arm"], of_shares)}
"""


def _share(found: list[float] | None) -> str:
    return "" if found is None else f"{found[0]:.1%}"


def main() -> None:
    """Draw the figures and write the tables."""
    content = json.loads(Path(sys.argv[1] if len(sys.argv) > 1 else MEASURED).read_text(encoding="utf-8"))
    numbers, settings = content["numbers"], content["settings"]
    draw_delays(numbers, settings["horizon"])
    draw_clicks(numbers)
    page = PAGE.read_text(encoding="utf-8")
    measured = f"<!-- measured -->\n{text(numbers, settings)}<!-- /measured -->"
    page = re.sub(r"<!-- measured -->.*<!-- /measured -->", lambda _: measured, page, flags=re.S)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
