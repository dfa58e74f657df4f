"""Mean rewards drawn by hand: a grid of columns and levels, with one character per cell in a link."""

import string
from collections.abc import Sequence

from dynabandit.environments import Environment, environment as make_environment

COLUMNS = 60  # pieces of the horizon, each with a mean of its own
LEVELS = 50  # a level is 1/50 of a reward
MOST_ARMS = 8
ALPHABET = (string.digits + string.ascii_uppercase + string.ascii_lowercase)[: LEVELS + 1]

DrawnMeans = tuple[tuple[int, ...], ...]


def encode(drawing: DrawnMeans) -> str:
    """Return a drawing as text: an arm's levels, column by column, and a dot between arms.

    Examples
    --------
    >>> text = encode(((0,) * 60, (50,) * 59 + (25,)))
    >>> text[-5:], decode(text)[1][-1]
    ('ooooP', 25)
    """
    return ".".join("".join(ALPHABET[level] for level in arm) for arm in drawing)


def decode(text: str) -> DrawnMeans:
    """Return the drawing that `encode` wrote, or raise an error that names the problem."""
    arms = text.split(".")
    if not 2 <= len(arms) <= MOST_ARMS:
        raise ValueError(f"drawn must hold 2 to {MOST_ARMS} arms, with a dot between them, got {len(arms)}")
    for place, arm in enumerate(arms, 1):
        if len(arm) != COLUMNS:
            raise ValueError(f"drawn must have {COLUMNS} columns for each arm, got {len(arm)} for arm {place}")
        wrong = next((letter for letter in arm if letter not in ALPHABET), None)
        if wrong is not None:
            raise ValueError(
                f"drawn must be made of {ALPHABET[0]} to {ALPHABET[-1]} (0-9, A-Z, a-o), got {wrong!r} in arm {place}"
            )
    return tuple(tuple(ALPHABET.index(letter) for letter in arm) for arm in arms)


def make_drawn_environment(drawing: Sequence[Sequence[int]], horizon: int) -> Environment:
    """Return the drawing stretched over the horizon, as an environment whose means are constant within a column.

    Examples
    --------
    >>> drawn = make_drawn_environment(((25,) * 60, (0,) * 30 + (50,) * 30), horizon=600)
    >>> drawn.parameters
    {'starts': (1, 301), 'means': ((0.5, 0.0), (0.5, 1.0))}
    """
    columns = list(zip(*drawing, strict=True))
    starts, means = [], []
    for column, levels in enumerate(columns):
        if column == 0 or levels != columns[column - 1]:
            starts.append(1 + column * horizon // COLUMNS)
            means.append(tuple(level / LEVELS for level in levels))
    return make_environment("piecewise", starts=tuple(starts), means=tuple(means))
