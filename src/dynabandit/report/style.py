"""The style of each policy in all figures: colour, dash and marker.

The colours are those of Okabe and Ito and of Tol, which readers with the common colour vision deficiencies can
distinguish. An adaptive policy has the colour of its standard policy; standard policies are dashed and hollow,
adaptive ones solid and filled.
"""

import colorsys
from collections.abc import Sequence
from typing import NamedTuple


class Style(NamedTuple):
    """A style in the terms of Plotly; `drawing` translates it for Matplotlib."""

    colour: str
    dash: str = "solid"
    marker: str = "circle"
    filled: bool = True


ORANGE, BLUE, SKY, GREEN, RED, PURPLE = "#E69F00", "#0072B2", "#56B4E9", "#009E73", "#D55E00", "#CC79A7"
GREY = "#868686"

STYLES = {
    "eps-greedy": Style(ORANGE, "dash", "square", filled=False),
    "aff-d-greedy": Style(ORANGE, "solid", "square"),
    "ucb": Style(BLUE, "dash", "circle", filled=False),
    "aff-ucb1": Style(BLUE, "solid", "circle"),
    "aff-ucb1-floor": Style(BLUE, "longdash", "star"),
    "aff-ucb2": Style(SKY, "solid", "triangle-up"),
    "aff-ucb2-growing": Style(SKY, "longdash", "triangle-up"),
    "ts": Style(GREEN, "dash", "diamond", filled=False),
    "aff-ts": Style(GREEN, "solid", "diamond"),
    "ots": Style(RED, "dash", "triangle-down", filled=False),
    "aff-ots": Style(RED, "solid", "triangle-down"),
    "d-ucb": Style(PURPLE, "dot", "x", filled=False),
    "sw-ucb": Style(PURPLE, "dashdot", "pentagon", filled=False),
    "dts": Style("#999933", "dash", "hexagon", filled=False),
    "aff-dts1": Style("#999933", "solid", "hexagon"),
    "aff-dts2": Style("#44AA99", "solid", "cross"),
    "mix-ts": Style("#222222", "solid", "pentagon"),
    "uniform": Style(GREY, "dot", "circle", filled=False),
    "best-arm": Style(GREY, "dashdot", "square", filled=False),
}
UNKNOWN = (
    Style("#AA4499", "solid", "star"),
    Style("#88CCEE", "solid", "pentagon"),
    Style("#DDCC77", "solid", "hexagon"),
    Style("#CC6677", "solid", "cross"),
    Style("#332288", "dashdot", "diamond"),
    Style("#117733", "longdash", "square"),
    Style("#882255", "dash", "triangle-up"),
    Style("#661100", "dot", "circle"),
)
ARM_STYLES = (
    Style("#4477AA"), Style("#EE6677", "dash"), Style("#228833", "dot"), Style("#AA3377", "dashdot"),
    Style("#997700"), Style("#33AADD", "dash"), Style("#222222", "dot"), Style("#EE8866", "dashdot"),
)  # fmt: skip
VARIANTS = (("solid", "circle"), ("dash", "square"), ("dashdot", "triangle-up"), ("dot", "diamond"))


def style(policy: str) -> Style:
    """Return the style of a policy; unknown policies get one of a few others, chosen by name."""
    return STYLES.get(policy) or UNKNOWN[sum(policy.encode()) % len(UNKNOWN)]


def distinct_styles(policies: Sequence[str]) -> list[Style]:
    """Return a style for each of several runs, given the policy of each.

    Several settings of one policy share its hue. Unknown policies have different styles as long as there are enough.

    Examples
    --------
    >>> len(set(distinct_styles(["ucb", "mine", "yours", "ours", "ts", "ts"])))
    6
    """
    unknown = [policy for policy in dict.fromkeys(policies) if policy not in STYLES]
    found, seen = [], dict.fromkeys(policies, 0)
    for policy in policies:
        if (count := policies.count(policy)) > 1:
            found.append(variant(policy, seen[policy], count))
        elif policy in STYLES or len(unknown) == 1:
            found.append(style(policy))
        else:
            found.append(UNKNOWN[unknown.index(policy) % len(UNKNOWN)])
        seen[policy] += 1
    return found


def variant(policy: str, index: int, count: int) -> Style:
    """Return the style of one of several settings of a policy: the same hue, from dark to light."""
    base = style(policy)
    hue, _, saturation = colorsys.rgb_to_hls(*(int(base.colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))
    step = index / max(count - 1, 1)
    shade = colorsys.hls_to_rgb(hue, 0.34 + 0.34 * step, min(saturation, 0.85))
    dash, marker = VARIANTS[index % len(VARIANTS)]
    return Style("#" + "".join(f"{round(255 * part):02X}" for part in shade), dash, marker, base.filled)
