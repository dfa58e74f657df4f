"""The style of each policy in all figures: colour, dash and marker.

Each policy of the paper has a colour of its own. Those of the policies that are drawn together, greedy and Thompson
sampling or UCB, were chosen by a search for colours that differ as much as possible, also for readers with red-green
deficiencies, and that can be seen on a white and on a dark page. Standard policies are dashed and hollow, adaptive ones
solid and filled.
"""

from typing import NamedTuple


class Style(NamedTuple):
    """A style in the terms of Plotly; `drawing` translates it for Matplotlib."""

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
    "aff-dts1": Style("#999933", "solid", "hexagon"),
    "aff-dts2": Style("#44AA99", "solid", "star"),
    "uniform": Style(GREY, "dot", "circle", filled=False),
    "best-arm": Style(GREY, "dash", "square", filled=False),
}
UNKNOWN = (
    Style("#AA4499", "solid", "star"),
    Style("#88CCEE", "solid", "pentagon"),
    Style("#DDCC77", "solid", "hexagon"),
    Style("#CC6677", "solid", "cross"),
)
ARM_STYLES = (
    Style("#4477AA"), Style("#EE6677", "dash"), Style("#228833", "dot"), Style("#AA3377", "dashdot"),
    Style("#997700"), Style("#33AADD", "dash"), Style("#222222", "dot"), Style("#EE8866", "dashdot"),
)  # fmt: skip
SETTING_COLOURS = ("#7A57C7", "#1F83C4", "#1E9E6A", "#E08A1E", "#C2356B", "#7A7A00", "#00A3A3", "#8C564B")
SETTING_SHAPES = (("solid", "circle"), ("dash", "square"), ("dashdot", "triangle-up"), ("dot", "diamond"))


def style(policy: str) -> Style:
    """Return the style of a policy; unknown policies get one of a few others, chosen by name."""
    return STYLES.get(policy) or UNKNOWN[sum(policy.encode()) % len(UNKNOWN)]


def setting_style(index: int) -> Style:
    """Return the style of the settings of a policy, or of policies without a style of their own, by their number."""
    turn, place = divmod(index, len(SETTING_COLOURS))
    dash, marker = SETTING_SHAPES[(place + turn) % len(SETTING_SHAPES)]
    return Style(SETTING_COLOURS[place], dash, marker)
