"""The contract of a detector: it sees every reward, and says whose rewards are to be forgotten."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dynabandit.core.records import NoParams
from dynabandit.policies.part import Part, Setting
from dynabandit.validation import BOUNDED, RewardDomain

NO_RESTART, THE_ARM, ALL_ARMS = range(3)  # whose rewards are to be forgotten


class DetectorKernels(NamedTuple):
    """The kernels of a detector.

    `start` and `observe` receive a state whose first rows and shared numbers are those of the detector, the others only
    `shared`, whose first numbers are those of the detector. `params` is what `Detector.params` returns.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.detectors.GLR.kernels.slots
    ('started', 'stride')
    """

    slots: tuple[str, ...]
    start: Callable[..., None]
    """start(state, arm, params): write the column of an arm that has no rewards, or whose rewards were forgotten; it is
    0 before."""
    observe: Callable[..., int]
    """observe(state, arm, reward, total, plays, params): after the reward `reward.value`, with the sum and the number
    of the arm's rewards since its restart, this one included, return NO_RESTART, THE_ARM or ALL_ARMS."""
    clock: Callable[..., float] | None = None
    """clock(shared, number, params): what the logarithm of a bound counts in place of the clock of the memory, at least
    1."""
    arm_clock: Callable[..., float] | None = None
    """arm_clock(first, step, params): the same for each arm, from the first slot of the detector."""
    share: Callable[..., float] | None = None
    """share(shared, number, params): the share of steps in which arms are played to test them."""
    forced: Callable[..., float] | None = None
    """forced(shared, number, params): -1 - arm if an arm is played in turn at this step, else `NOT_FORCED`. Rules that
    draw play a random arm with the probability `share` instead."""
    shared: int = 0
    """How many numbers the detector keeps for all arms together."""
    params: type = NoParams


@dataclass(frozen=True, kw_only=True)
class Detector(Part):
    """A test whether the rewards of an arm have changed, after which its rewards or those of all arms are forgotten.

    Examples
    --------
    >>> import dynabandit as db
    >>> isinstance(db.detectors.GLR(), db.detectors.Detector)
    True
    """

    kernels: ClassVar[DetectorKernels]
    rewards: ClassVar[RewardDomain] = BOUNDED

    def history_size(self, setting: Setting) -> int:
        """Return the number of rows after the slots, such as for sums of earlier rewards.

        It must not depend on the number of arms, which is 1 in this setting: a `Bandit` gets and loses arms.
        """
        return 0
