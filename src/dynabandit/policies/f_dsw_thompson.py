"""f-dsw TS: two posteriors for each arm, one that fades and one that looks at its latest rewards."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.draws import beta, not_empty
from dynabandit.core.streams import LARGEST_STEP, SCORE, SECOND, Stream
from dynabandit.errors import integer, keep, number
from dynabandit.estimators.base import Belief
from dynabandit.policies import discounted_thompson as historic
from dynabandit.policies.base import Kernels, Now, Policy
from dynabandit.policies.thompson import beta_belief, checked_prior

__all__ = ["FDSWTS"]

SLOTS = ("successes", "failures", "plays", "hot_successes", "hot_failures")  # the first two are those of D-TS
PLAYS, HOT_SUCCESSES, HOT_FAILURES = range(2, 5)
RING = len(SLOTS)  # then the latest rewards of the arm, in a ring
WINDOW, COMBINE = range(3, 5)  # behind the parameters of D-TS
CHOICES = ("min", "max", "mean")
MINIMUM, MAXIMUM = 0.0, 1.0  # places in `CHOICES`


@kernel
def score(
    memory: np.ndarray,
    arm: int,
    idle: int,
    now: Now,
    parameters: np.ndarray,
    table: np.ndarray,
    source: Stream,
) -> float:
    a, b = not_empty(historic.posterior(memory, arm, idle, now, parameters))
    faded = beta(a, b, source, SCORE, now.step, arm)
    a = parameters[historic.PRIOR_A] + memory[HOT_SUCCESSES, arm]
    b = parameters[historic.PRIOR_B] + memory[HOT_FAILURES, arm]
    hot = beta(a, b, source, SECOND, now.step, arm)
    if parameters[COMBINE] == MINIMUM:
        return min(faded, hot)
    if parameters[COMBINE] == MAXIMUM:
        return max(faded, hot)
    return 0.5 * (faded + hot)


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    historic.learn(memory, shared, arm, reward, parameters)
    window = int(parameters[WINDOW])
    plays = int(memory[PLAYS, arm])
    place = RING + plays % window
    if plays >= window:
        oldest = memory[place, arm]
        memory[HOT_SUCCESSES, arm] = max(memory[HOT_SUCCESSES, arm] - oldest, 0.0)
        memory[HOT_FAILURES, arm] = max(memory[HOT_FAILURES, arm] - (1.0 - oldest), 0.0)
    memory[HOT_SUCCESSES, arm] += reward
    memory[HOT_FAILURES, arm] += 1.0 - reward
    memory[place, arm] = reward
    memory[PLAYS, arm] = plays + 1.0


@dataclass(frozen=True, kw_only=True)
class FDSWTS(Policy):
    r"""f-discounted-sliding-window Thompson sampling: combine a draw from a fading and from a hot posterior.

    The historic posterior is that of `DiscountedTS`, where all arms fade. The hot one counts the latest rewards of the
    arm itself, however long ago they were.

    Parameters
    ----------
    combine
        The paper's f: ``"max"`` is optimistic, ``"min"`` pessimistic, and ``"mean"`` between them.
    discount
        The historic factor per reward of any arm, in (0, 1].
    window
        How many rewards of an arm its hot posterior counts. The defaults are those of the authors' synthetic worlds of
        1,000 steps for max and mean; for min they took 0.95 and 75.
    prior
        The Beta prior of both posteriors of every arm, a pair of positive numbers.
    burn_in
        How often each arm is played at first; by default the prior decides from the first step on.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("f-dsw-ts", combine="min", discount=0.95, window=75).label
    'f-dsw-ts(combine=min, discount=0.95, window=75)'

    Notes
    -----
    With discounted counts S and F, and counts of the latest n rewards of the arm:

    .. math:: f\left( \theta, \theta' \right), \quad \theta \sim \mathrm{Beta}(a + S_\gamma, \; b + F_\gamma), \quad
        \theta' \sim \mathrm{Beta}(a + S_n, \; b + F_n)

    Cost of a step: O(K), two draws an arm; memory: O(K n).

    References
    ----------
    Cavenaghi, Sottocornola, Stella & Zanker (2021), Non stationary multi-armed bandit: empirical evaluation of a new
    concept drift-aware algorithm. Entropy 23.
    """

    name: ClassVar[str] = "f-dsw-ts"
    slots: ClassVar[tuple[str, ...]] = SLOTS
    kernels: ClassVar[Kernels] = Kernels(start=historic.start, score=score, learn=learn, context=historic.context)
    needs_double: ClassVar[bool] = True

    burn_in: int = 0
    combine: str = "max"
    discount: float = 0.99
    window: int = 50
    prior: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.combine, str) or self.combine not in CHOICES:
            raise ValueError(f"combine must be 'min', 'max' or 'mean', got {self.combine!r}")
        discount = number("discount", self.discount, 0.0, 1.0, open_low=True)
        keep(
            self,
            discount=discount,
            window=integer("window", self.window, 1, LARGEST_STEP),
            prior=checked_prior(self.prior),
        )

    def numbers(self, arms: int) -> np.ndarray:
        return np.array([*self.prior, self.discount, float(self.window), float(CHOICES.index(self.combine))])

    def memory_size(self) -> int:
        return RING + self.window

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        """Read an arm's hot posterior; its effective size is a + b, the prior included."""
        a = self.prior[0] + float(column[HOT_SUCCESSES])
        b = self.prior[1] + float(column[HOT_FAILURES])
        return beta_belief(a, b, self.discount)
