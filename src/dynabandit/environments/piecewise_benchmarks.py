"""PB1 and PB2: the piecewise-stationary benchmarks of GLR-klUCB."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dynabandit.core.streams import LARGEST_STEP
from dynabandit.environments.scheduled import Piecewise
from dynabandit.validation import integer, set_fields

SEGMENTS = 5


@dataclass(frozen=True, kw_only=True)
class PB1(Piecewise):
    """Benchmark 1 of GLR-klUCB: three arms and four changes, each of one arm.

    Parameters
    ----------
    arms
        Always 3.
    segment
        The number of steps of each of the five segments. 1,000 corresponds to a horizon of 5,000; the authors'
        published runs have 20,000 steps with segments of 4,000.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("pb-1").path(horizon=5000, seed=1)[::1000].tolist()
    [[0.9, 0.5, 0.3], [0.9, 0.2, 0.3], [0.1, 0.2, 0.3], [0.1, 0.7, 0.3], [0.1, 0.7, 0.5]]

    References
    ----------
    Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point detection for tackling piecewise-stationary
    bandits. JMLR 23. The means are those of its authors' code, which publishes them as problem 1.
    """

    name = "pb-1"

    arms: int = 3
    segment: int = 1000
    starts: Sequence[int] = field(default=(), init=False)
    means: Sequence[Sequence[float]] = field(
        default=((0.9, 0.5, 0.3), (0.9, 0.2, 0.3), (0.1, 0.2, 0.3), (0.1, 0.7, 0.3), (0.1, 0.7, 0.5)), init=False
    )

    def __post_init__(self) -> None:
        integer("arms", self.arms, 3, 3)
        segment = integer("segment", self.segment, 1, LARGEST_STEP // SEGMENTS)
        set_fields(self, segment=segment, starts=tuple(1 + segment * i for i in range(SEGMENTS)))
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class PB2(PB1):
    """Benchmark 2 of GLR-klUCB: three arms and four changes, each of all arms.

    Parameters
    ----------
    arms
        Always 3.
    segment
        The number of steps of each of the five segments. 1,000 corresponds to a horizon of 5,000; the authors'
        published runs have 20,000 steps with segments of 4,000.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("pb-2").path(horizon=5000, seed=1)[::1000].tolist()
    [[0.9, 0.5, 0.4], [0.7, 0.4, 0.5], [0.5, 0.3, 0.6], [0.3, 0.2, 0.7], [0.1, 0.1, 0.8]]

    References
    ----------
    Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point detection for tackling piecewise-stationary
    bandits. JMLR 23. The means are those of its authors' code, which publishes them as problem 2.
    """

    name = "pb-2"

    means: Sequence[Sequence[float]] = field(
        default=((0.9, 0.5, 0.4), (0.7, 0.4, 0.5), (0.5, 0.3, 0.6), (0.3, 0.2, 0.7), (0.1, 0.1, 0.8)), init=False
    )
