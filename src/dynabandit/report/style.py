"""The style of each policy in all figures: colour, dash and marker.

Each policy of the paper has a colour of its own. Those of the policies that are drawn together, greedy and Thompson
sampling or UCB, were chosen by a search for colours that differ as much as possible, also for readers with red-green
deficiencies, and that can be seen on a white and on a dark page. Standard policies are dashed and hollow, adaptive ones
solid and filled.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple


class Style(NamedTuple):
    """A style in the terms of Plotly; `matplotlib_figures` translates it for Matplotlib."""

    colour: str
    dash: str = "solid"
    marker: str = "circle"
    filled: bool = True


GREY = "#868686"

STYLES = {
    "eps-greedy": Style("#987507", "dash", "square", filled=False),
    "aff-d-greedy": Style("#DE9B2D", "solid", "square"),
    "ts": Style("#6EB895", "dash", "diamond", filled=False),
    "aff-ts": Style("#0B897C", "solid", "diamond"),
    "ots": Style("#82463A", "dash", "triangle-down", filled=False),
    "aff-ots": Style("#941B83", "solid", "triangle-down"),
    "ucb": Style("#7973B8", "dash", "circle", filled=False),
    "aff-ucb1": Style("#52A9EE", "solid", "circle"),
    "aff-ucb1-floor": Style("#D55E00", "longdash", "star"),
    "aff-ucb2": Style("#026D68", "solid", "triangle-up"),
    "aff-ucb2-growing": Style("#D55E00", "longdash", "cross"),
    "d-ucb": Style("#762EA8", "dot", "x", filled=False),
    "sw-ucb": Style("#959E59", "dashdot", "pentagon", filled=False),
    "dts": Style("#999933", "dash", "hexagon", filled=False),
    "aff-dts1": Style("#B4552D", "solid", "hexagon"),
    "aff-dts2": Style("#44AA99", "solid", "star"),
    "mix-ts": Style("#D6336C", "solid", "pentagon"),
    "uniform": Style(GREY, "dot", "circle", filled=False),
    "best-arm": Style(GREY, "dashdot", "square", filled=False),
}
OTHERS = (
    Style("#7A57C7", "solid", "star"),
    Style("#1F83C4", "dash", "triangle-up"),
    Style("#1E9E6A", "dashdot", "diamond"),
    Style("#E08A1E", "dot", "circle"),
    Style("#C2356B", "longdash", "square"),
    Style("#7A7A00", "solid", "hexagon"),
    Style("#00A3A3", "dash", "cross"),
    Style("#8C564B", "dashdot", "pentagon"),
)
ARM_STYLES = (
    Style("#4477AA"), Style("#EE6677", "dash"), Style("#228833", "dot"), Style("#AA3377", "dashdot"),
    Style("#997700"), Style("#33AADD", "dash"), Style("#222222", "dot"), Style("#EE8866", "dashdot"),
)  # fmt: skip


def style(policy: str) -> Style:
    """Return the style of a policy; unknown policies get one of a few others, chosen by name."""
    return STYLES.get(policy) or OTHERS[sum(policy.encode()) % len(OTHERS)]


def distinct_styles(policies: Sequence[str]) -> list[Style]:
    """Return a style for each of several runs, given the policy of each.

    A policy has its own style if it has one and is there once. All other runs get the next one of a list.

    Examples
    --------
    >>> len(set(distinct_styles(["ucb", "mine", "yours", "ours", "ts", "ts"])))
    6
    """
    others = itertools.count()
    return [
        STYLES[policy] if policy in STYLES and policies.count(policy) == 1 else other_style(next(others))
        for policy in policies
    ]


def other_style(index: int) -> Style:
    """Return the style of the settings of a policy, or of policies without a style of their own, by their number."""
    turn, place = divmod(index, len(OTHERS))
    return OTHERS[place]._replace(filled=turn % 2 == 0)
