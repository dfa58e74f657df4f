"""The oracle policy with zero regret: it is told the true means."""

from dataclasses import dataclass
from typing import Any, ClassVar

from dynabandit.core.compilation import kernel
from dynabandit.policies import sample_mean_policy
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step
from dynabandit.policies.sample_mean_policy import SampleMeanPolicy

__all__ = ["BestArm"]

SLOTS = (*sample_mean_policy.SLOTS, "truth")
TRUTH = SLOTS.index("truth")


@kernel
def reveal(state: PolicyState, arm: int, mean: float) -> None:
    state.memory[TRUTH, arm] = mean


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
    return state.memory[TRUTH, arm]


@dataclass(frozen=True, kw_only=True)
class BestArm(SampleMeanPolicy):
    r"""Play the arm whose true mean is largest now; only a simulation can tell it.

    Parameters
    ----------
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> sim = db.simulate(db.policy("best-arm"), db.environment("case-1"), horizon=100, seed=1)
    >>> sim.total_regret.mean()
    np.float64(0.0)

    Notes
    -----
    The arm that is played, with the true means:

    .. math:: a_t = \arg\max_a \mu_t(a)

    Cost of a step: O(K).

    References
    ----------
    The upper yardstick: regret is measured against it, so its own is 0.
    """

    name: ClassVar[str] = "best-arm"
    slots: ClassVar[tuple[str, ...]] = SLOTS
    functions: ClassVar[PolicyFunctions] = PolicyFunctions(
        start=sample_mean_policy.start, score=score, learn=sample_mean_policy.learn, reveal=reveal
    )
    informed: ClassVar[bool] = True
