"""What every policy is: a few small functions on numbers, and one class that names its parameters."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP, Stream
from dynabandit.errors import integer, keep
from dynabandit.estimators.base import Belief

__all__ = ["Kernels", "Now", "Policy"]


class Now(NamedTuple):
    """What a decision knows besides the arms' states.

    Examples
    --------
    >>> Now(step=7, arms=3, context=0.0).arms
    3
    """

    step: int  # 1, 2, ... ; the step that is being decided
    arms: int  # how many arms there are now
    context: float  # what the policy's `context` computed once for this step


@kernel
def no_score(
    memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray, table: np.ndarray, source: Stream
) -> float:
    """Score all arms alike."""
    return 0.0


@kernel
def no_context(shared: np.ndarray, step: int, parameters: np.ndarray) -> float:
    """Compute nothing that is common to all arms."""
    return 0.0


@kernel
def never_explore(memory: np.ndarray, leader: int, idle: int, now: Now, parameters: np.ndarray, source: Stream) -> bool:
    """Stay with the best arm."""
    return False


@kernel
def ignore_truth(memory: np.ndarray, arm: int, mean: float) -> None:
    """Look away from the true means, as every honest policy does."""


def no_table(arms: int, horizon: int) -> np.ndarray:
    """Need no table."""
    return np.zeros(0)


class Kernels(NamedTuple):
    """The functions that make up a policy.

    `start` and `table` run before the first step, as plain Python. All others are compiled, for every backend
    alike.

    `memory` is an array (slots, arms) with the policy's state, `shared` a vector with what belongs to no
    single arm, `parameters` the vector that `Policy.numbers` gives.

    Examples
    --------
    >>> import dynabandit as db
    >>> kernels = db.policies.TS.kernels
    >>> kernels.posterior is not None, kernels.optimistic, kernels.still
    (True, False, False)
    """

    start: Callable[..., None]
    """start(memory, shared, arm, parameters): write the state of an arm nothing is known about.

    All arms start alike: what it writes may not depend on `arm`, nor add up in `shared`."""
    learn: Callable[..., None]
    """learn(memory, shared, arm, reward, parameters): take in a reward."""
    score: Callable[..., float] = no_score
    """score(memory, arm, idle, now, parameters, table, source): the arm with the largest score is chosen."""
    posterior: Callable[..., tuple[float, float]] | None = None
    """posterior(memory, arm, idle, now, parameters): instead of `score`, the Beta law of a score to be drawn."""
    optimistic: bool = False
    """Whether a draw from `posterior` below its mean is replaced by that mean."""
    context: Callable[..., float] = no_context
    """context(shared, step, parameters): what all scores of this step have in common."""
    explore: Callable[..., bool] = never_explore
    """explore(memory, leader, idle, now, parameters, source): leave the leader for an arm at random?"""
    reveal: Callable[..., None] = ignore_truth
    """reveal(memory, arm, mean): for yardsticks that are told the true means before each decision."""
    still: bool = False
    """Whether an arm's score stands still while the arm is not played.

    Then the simulator need not ask every arm at every step, and takes log2 K instead of K (`policies.tournament`).
    The score may read `parameters` and the arm's own column of `memory` alone, and `learn` write no other column."""
    table: Callable[[int, int], np.ndarray] = no_table
    """table(arms, horizon): numbers computed once for `score`, such as a power of each idle time.

    Each may depend on the number of arms, and the horizon decide how many there are: a `Bandit` has no horizon
    and takes a short table, so that `score` must be able to compute what lies beyond."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Base of all policies; a subclass is a frozen dataclass whose fields are its parameters.

    A policy holds no state of its own: the state is an array that the simulator, a `Bandit` or a service
    keeps. See ``docs/adding-an-algorithm.md`` for a skeleton to copy.

    Examples
    --------
    >>> import dynabandit as db
    >>> policy = db.policy("dts", memory=5)
    >>> isinstance(policy, db.Policy), policy.slots, policy.parameters
    (True, ('a', 'b'), {'burn_in': 0, 'memory': 5.0, 'prior': (2.0, 2.0)})
    """

    name: ClassVar[str]
    slots: ClassVar[tuple[str, ...]]
    kernels: ClassVar[Kernels]
    informed: ClassVar[bool] = False  # True for yardsticks that see the true means
    needs_double: ClassVar[bool] = False  # True where single precision would overflow or underflow

    burn_in: int = 0

    def __post_init__(self) -> None:
        keep(self, burn_in=integer("burn_in", self.burn_in, 0, LARGEST_STEP))

    def numbers(self, arms: int) -> np.ndarray:
        """Return the parameters as the vector that the kernels read."""
        return np.zeros(1)

    def memory_size(self) -> int:
        """Return how many rows `memory` has: one for each slot, then what a parameter adds, such as a history."""
        return len(self.slots)

    def shared_size(self) -> int:
        """Return the length of the vector `shared`."""
        return 1

    def tuned(self, switches: int, horizon: int) -> "Policy":
        """Return the policy as it would be set up for a path with so many switches of the best arm."""
        return self

    @property
    def needs_tuning(self) -> bool:
        """Whether a parameter is still open, to be taken from the path that is simulated."""
        return False

    @property
    def needs_horizon(self) -> bool:
        """Whether a parameter is still open, to be taken from the length of the simulation alone."""
        return False

    @property
    def left_open(self) -> list[str]:
        """What only a simulation knows of what is to come, and all others must give: "changes", "horizon"."""
        needed = {"changes": self.needs_tuning, "horizon": self.needs_horizon}
        return [name for name, is_needed in needed.items() if is_needed]

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        """Read an arm's mean, variance, forgetting factor and effective size off its column of the memory."""
        raise NotImplementedError

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return asdict(self)

    @property
    def label(self) -> str:
        """The name, with every parameter that differs from its default."""
        changed = [
            f"{field.name}={_written(getattr(self, field.name))}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"{self.name}({', '.join(changed)})" if changed else self.name


def _written(value: Any) -> str:
    """Return a parameter as people write it, with all digits: 5 for 5.0, and no two numbers alike."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_written, value))})"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
