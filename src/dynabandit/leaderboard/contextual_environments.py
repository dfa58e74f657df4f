"""The environments of the leaderboard of policies that decide by features."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dynabandit.environments import Environment, environment as make_environment
from dynabandit.leaderboard.environments import HORIZON, ONE_CHANGE, Trial, select

PUBLISHED = 6_000  # steps of the environments of D-LinUCB
# Policies without context that run, too: what the features are worth
WITHOUT_CONTEXT = ("mix-normal-ts", "uniform")
# Enough for a first look, and without real data
QUICK_CONTEXTUAL = ("lin-abrupt", "still-4x5", "flip-4x5", "turn-4x5", "logistic-flip-4x5", "moving-contexts-4x5")
SHARED = {"models": "shared"}


class Definition(NamedTuple):
    """How to make an environment; real data are read only then."""

    family: str
    name: str
    parameters: Mapping[str, Any] = {}
    steps: int = HORIZON


DEFINITIONS = {  # "AxD" is for A arms and D features; the defaults have 4 and 5
    "lin-abrupt": Definition("published", "lin-abrupt", steps=PUBLISHED),
    "lin-slow": Definition("published", "lin-slow", steps=PUBLISHED),
    "still-4x5": Definition("still", "lin-drift", {"change": "none"}),
    "still-shared-20x10": Definition("still", "lin-drift", {"arms": 20, "dimension": 10, "change": "none", **SHARED}),
    "logistic-still-4x5": Definition("still", "logistic-drift", {"change": "none"}),
    "flip-4x5": Definition("flip", "lin-drift", {"period": 2000}),
    "flip-shared-10x5": Definition("flip", "lin-drift", {"arms": 10, "period": 2000, **SHARED}),
    "redraw-2x2": Definition("redraw", "lin-drift", {"arms": 2, "dimension": 2, "change": "redraw", "period": 2000}),
    "redraw-3x30": Definition("redraw", "lin-drift", {"arms": 3, "dimension": 30, "change": "redraw", "period": 5000}),
    "jump-4x5": Definition("jump", "lin-drift", {"change": "jump", "period": 500}),
    "jump-20x5": Definition("jump", "lin-drift", {"arms": 20, "change": "jump", "period": 500}),
    "breakpoints-4x5": Definition("breakpoints", "lin-drift", {"change": "breakpoints", "period": 2000}),
    "breakpoints-shared-50x10": Definition(
        "breakpoints", "lin-drift", {"arms": 50, "dimension": 10, "change": "breakpoints", "period": 2000, **SHARED}
    ),
    "turn-4x5": Definition("turn", "lin-drift", {"change": "turn", "period": 10_000}),
    "turn-shared-10x5": Definition("turn", "lin-drift", {"arms": 10, "change": "turn", "period": 5000, **SHARED}),
    "walk-4x5": Definition("walk", "lin-drift", {"change": "walk", "period": 5000}),
    "walk-shared-10x20": Definition(
        "walk", "lin-drift", {"arms": 10, "dimension": 20, "change": "walk", "period": 5000, **SHARED}
    ),
    "logistic-flip-4x5": Definition("logistic", "logistic-drift", {"period": 2000}),
    "logistic-turn-shared-10x5": Definition(
        "logistic", "logistic-drift", {"arms": 10, "change": "turn", "period": 10_000, **SHARED}
    ),
    "moving-contexts-4x5": Definition("moving-contexts", "moving-contexts"),
    "moving-contexts-jump-4x5": Definition("moving-contexts", "moving-contexts", {"change": "jump"}),
    **{name: Definition("labels", name) for name in ("digits", "image-segments", "phishing", "bananas")},
    "prompts": Definition("prompts", "prompts"),
    "flights": Definition("flights", "flights"),
}


def make_contextual_trials(names: Sequence[str] = (), horizon: int | None = None) -> dict[str, Trial]:
    """Return the environments with these ids or of these families, all if no name is given.

    With `horizon` each has that many steps instead of its own number.

    Examples
    --------
    >>> trials = make_contextual_trials(["published", "jump-20x5"])
    >>> list(trials), trials["jump-20x5"].environment.arms
    (['lin-abrupt', 'lin-slow', 'jump-20x5'], 20)
    """
    return {
        identifier: Trial(identifier, one.family, make_environment(one.name, **one.parameters), horizon or one.steps)
        for identifier, one in select(DEFINITIONS, names).items()
    }


def make_contextual_change(horizon: int = HORIZON) -> Trial:
    """Return the environment of the detection delay: halfway all coefficients change their sign."""
    flipped = make_environment("lin-drift", change="flip", period=max(1, horizon // 2))
    return Trial(ONE_CHANGE, ONE_CHANGE, flipped, horizon)


def make_timed_environment() -> Environment:
    """Return ten arms and ten features from a table, which takes hardly any of the time of a step."""
    random = np.random.default_rng(1)
    contexts, means = random.normal(size=(200, 10)), random.uniform(size=(200, 10))
    return make_environment("recorded-contexts", contexts=contexts, means=means)
