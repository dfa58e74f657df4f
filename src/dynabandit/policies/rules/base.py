"""The contract of a rule: how arms are compared, given what a memory says about each of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.core.records import NoParams
from dynabandit.policies.base import Exploration
from dynabandit.policies.part import Part
from dynabandit.validation import NORMAL, RewardDomain


class Nothing(NamedTuple):
    """The numbers that a rule stores for an arm, if it stores none."""


@kernel
def size_left(size: float, w: float, k: float, kept: float) -> float:
    """Return the size of an arm that has kept a share of its weight."""
    return size * kept


@kernel
def no_level(clock: float, unit: float, params: Any) -> float:
    """Return 0: the rule has no term that grows with time."""
    return 0.0


class RuleKernels(NamedTuple):
    """The kernels of a rule, functions of the numbers of one arm. `params` is what `Rule.params` returns.

    A rule that compares scores defines `score`. To store numbers that change only with a reward, it also defines
    `stored`, `store` and `from_stored`, which must return the same score. A rule that draws names its `family`.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.rules.Hoeffding.kernels.static, db.rules.Thompson.kernels.family
    (True, 'beta')
    """

    score: Callable[..., float] | None = None
    """score(mean, size, level, params): the arm with the largest score is chosen; the mean of an arm without rewards
    is infinite, unless the arm has pending plays, which count in its size."""
    level: Callable[..., float] = no_level
    """level(clock, unit, params): what all scores of a step share; `clock` and `unit` are those of the memory."""
    stored: type = Nothing
    store: Callable[..., Any] | None = None
    """store(mean, size, w, k, params): the numbers to store, of type `stored`; the mean may be infinite."""
    from_stored: Callable[..., float] | None = None
    """from_stored(stored, level, params): the score of an arm without pending plays."""
    fades: bool = True
    """Whether the score follows the weight of a memory that fades while an arm is idle."""
    faded: Callable[..., float] | None = None
    """faded(stored, mean, log_kept, idle, arms, level, params): the same score for an arm of a memory that fades
    exponentially; infinity if it has no rewards."""
    rescaled: Callable[..., Any] | None = None
    """rescaled(stored, factor): the numbers to store after all weights were multiplied by a factor."""
    size_left: Callable[..., float] = size_left
    """size_left(size, w, k, kept): the size of an arm, to which pending plays are added."""
    static: bool = False
    """Whether the score follows from the stored numbers alone: there is no level."""
    family: str | None = None
    """The family of laws that scores are drawn from: "beta", "normal", "gamma" or "student"; or "moments" for a rule
    with a `bound`. See `MemoryKernels.laws`."""
    bound: Callable[..., float] | None = None
    """bound(mean, variance, size, params): the score of an arm, from the variance and the number of its rewards."""
    optimistic: bool = False
    """Whether a draw below the mean of its law is replaced by this mean."""
    predicted: Callable[..., float] | None = None
    """predicted(mean, variance, clock, step, prior, params): the score of an arm for which a memory with models
    predicts this mean from features, with this variance in units of that of a reward; `prior` is the precision of each
    coefficient."""
    reads_clock: bool = False
    """Whether `predicted` reads the clock of the memory, which is 0 otherwise."""
    compare: Callable[..., None] | None = None
    """compare(predictions, shared, step, params): called once per step with the predicted means of all arms, before
    weight(predictions, shared, arm, step, params): the arm is chosen with a probability proportional to it."""
    weight: Callable[..., float] | None = None
    shared: int = 0
    """How many numbers the rule keeps for all arms together, for `compare`."""
    exploration: Exploration | None = None
    params: type = NoParams


@dataclass(frozen=True, kw_only=True)
class Rule(Part):
    """How arms are compared: any rule can decide with any memory that knows what the rule needs.

    Examples
    --------
    >>> import dynabandit as db
    >>> isinstance(db.rules.UCB(), db.rules.Rule)
    True
    """

    kernels: ClassVar[RuleKernels]
    rewards: ClassVar[RewardDomain] = NORMAL
