"""The environments of the leaderboard. Those of one family count as one: their results are averaged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from dynabandit.environments import Delay, Environment, delay as make_delay, environment as make_environment
from dynabandit.validation import unknown

HORIZON, SHORT, LONG, CLICKS = 10_000, 1_000, 100_000, 50_000
ARMS = (2, 10, 50, 100)
ANY_SIZE = ("case-1", "case-2", "case-3", "case-4", "seasonal", "rotting", "burst")  # families by number of arms
ONE_CHANGE = "one-change"  # for the detection delay; not ranked
# Enough for a first look, and all with ten arms, so that each policy is compiled once
QUICK = (
    "case-1-10", "case-3-10", "seasonal-10", "stationary-close-10", "random-breakpoints-10", "ar-1-10", "late-riser-10",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Trial:
    """One environment of the leaderboard."""

    id: str
    family: str
    environment: Environment
    horizon: int
    delay: Delay | None = None


def make_trials(horizon: int | None = None) -> dict[str, Trial]:
    """Return all environments by id; with `horizon`, each has that many steps instead of its own number.

    Examples
    --------
    >>> trials = make_trials()
    >>> trials["pb-1"].family, trials["case-3-50"].family, trials["case-3-10-long"].horizon
    ('pb', 'case-3', 100000)
    """
    trials: dict[str, Trial] = {}

    def add(
        family: str,
        identifier: str,
        make: Callable[[int], Environment],
        steps: int = HORIZON,
        delay: Delay | None = None,
    ) -> None:
        length = horizon or steps
        trials[identifier] = Trial(identifier, family, make(length), length, delay)

    for name in ANY_SIZE:
        for arms in ARMS:
            add(name, f"{name}-{arms}", _named(name, arms=arms))
    for name in ("small-changes", "needle"):
        add(name, name, _named(name))
    for name, segments in (("pb-1", 5), ("pb-2", 5), ("pb-3", 4), ("pb-4", 8)):
        add("pb", name, _segments(name, segments))
    for arms, changed in ((10, "all"), (50, "all"), (10, "one")):
        identifier = f"random-breakpoints-{arms}" + ("-one-arm" if changed == "one" else "")
        add("random-breakpoints", identifier, _named("random-breakpoints", arms=arms, changed=changed))
    add("stationary", "stationary-close-10", lambda _: _fixed([0.5] * 9 + [0.55]))
    add("stationary", "stationary-spread-10", lambda _: _fixed(np.linspace(0.05, 0.86, 10)))
    add("stationary", "stationary-100", lambda _: _fixed(np.linspace(0.1, 0.694, 100)))
    for arms in (2, 10, 50):
        add("ar-1", f"ar-1-{arms}", _named("ar-1", arms=arms))
    add("ar-1", "ar-1-fast-10", _named("ar-1", arms=10, persistence=0.99))
    add("late-riser", "late-riser-10", _slow_riser)
    add("late-riser", "late-riser-50", _sudden_riser)
    for arms in (10, 50):
        add("come-and-go", f"come-and-go-{arms}", partial(_come_and_go, arms))
    add("clicks", "clicks-10", _clicks, CLICKS)
    add(
        "clicks",
        "clicks-seasonal-10",
        lambda steps: make_environment("seasonal", arms=10, period=steps / 2, middle=0.012, amplitude=0.01),
        CLICKS,
    )
    for suffix, steps in (("short", SHORT), ("long", LONG)):
        for name in ("case-1", "case-3"):
            add(suffix, f"{name}-10-{suffix}", _named(name, arms=10), steps)
        add(suffix, f"pb-1-{suffix}", _segments("pb-1", 5), steps)
    for name, mean in (("case-3", 100), ("case-3", 1000), ("case-1", 100)):
        late = make_delay("geometric", mean=mean, lost=0.01)
        add("delayed", f"{name}-10-delay-{mean}", _named(name, arms=10), delay=late)
    return trials


class InFamily(Protocol):
    """A member of a family."""

    @property
    def family(self) -> str: ...


Member = TypeVar("Member", bound=InFamily)


def select(trials: Mapping[str, Member], names: Sequence[str]) -> dict[str, Member]:
    """Return the trials with these ids or of these families; all if no name is given.

    Examples
    --------
    >>> list(select(make_trials(), ["case-3", "pb-1"]))
    ['case-3-2', 'case-3-10', 'case-3-50', 'case-3-100', 'pb-1']
    """
    families = dict.fromkeys(trial.family for trial in trials.values())
    for name in names:
        if name not in trials and name not in families:
            raise unknown("environment of the leaderboard", name, (*families, *trials))
    return {key: trial for key, trial in trials.items() if not names or key in names or trial.family in names}


def make_one_change(horizon: int = HORIZON) -> Trial:
    """Return the environment of the detection delay: ten constant arms, of which the worst becomes the best halfway."""
    before = [0.6, *(0.5 for _ in range(8)), 0.3]
    change = horizon // 2 + 1
    return Trial(ONE_CHANGE, ONE_CHANGE, _piecewise([1, change], np.array([before, [*before[:-1], 0.9]])), horizon)


def _named(name: str, **parameters: object) -> Callable[[int], Environment]:
    return lambda _: make_environment(name, **parameters)


def _segments(name: str, count: int) -> Callable[[int], Environment]:
    """Return one of the authors' benchmarks, stretched over all steps."""
    return lambda steps: make_environment(name, segment=max(1, steps // count))


def _fixed(means: Sequence[float] | np.ndarray) -> Environment:
    return make_environment("fixed", means=np.round(means, 6).tolist())


def _piecewise(starts: Sequence[int], means: np.ndarray) -> Environment:
    return make_environment("piecewise", starts=list(starts), means=means.round(6).tolist())


def _starts(pieces: int, steps: int) -> list[int]:
    """Return the first step of each of several equally long pieces, of at least one step each."""
    return [1 + max(piece, piece * steps // pieces) for piece in range(pieces)]


def _slow_riser(steps: int) -> Environment:
    """Return ten arms, of which the worst rises slowly between 30 % and 70 % of the time and becomes the best."""
    times = np.arange(50) / 50
    means = np.tile([0.5, *[0.4] * 8, 0.0], (50, 1))
    means[:, -1] = np.interp(times, [0.3, 0.7], [0.2, 0.8])
    return _piecewise(_starts(50, steps), means)


def _sudden_riser(steps: int) -> Environment:
    """Return fifty arms, of which one of the worst suddenly becomes the best after 80 % of the time."""
    before = [0.6, *[0.5] * 24, *[0.2] * 25]
    return _piecewise([1, 1 + max(1, 4 * steps // 5)], np.array([before, [*before[:-1], 0.9]]))


def _come_and_go(arms: int, steps: int) -> Environment:
    """Return arms that exist for a quarter of the time each, one after the other, and have a mean of 0 otherwise."""
    piece, arm = np.arange(50)[:, None], np.arange(arms)[None, :]
    value = 0.3 + 0.6 * (0.6180339887 * arm % 1.0)
    exists = (piece / 50 - arm / arms) % 1.0 < 0.25
    return _piecewise(_starts(50, steps), np.where(exists, value, 0.0))


def _clicks(steps: int) -> Environment:
    """Return click rates of about 1 %, which move to other arms three times."""
    rates = np.linspace(0.004, 0.022, 10)
    return _piecewise(_starts(4, steps), np.array([np.roll(rates, 3 * piece) for piece in range(4)]))
