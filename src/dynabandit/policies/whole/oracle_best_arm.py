"""The oracle policy with zero regret: it is told the true means."""

from dataclasses import dataclass
from typing import Any

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step
from dynabandit.policies.whole import sample_mean_policy
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy
from dynabandit.validation import BOUNDED, NORMAL

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
    r"""A reference for comparisons: always play the arm with the largest true mean. Only simulations can run it.

    Examples
    --------
    >>> import dynabandit as db
    >>> sim = db.simulate(db.policy("best-arm"), db.environment("case-1"), horizon=100, seed=1)
    >>> sim.total_regret.mean()
    np.float64(0.0)

    Notes
    -----
    The chosen arm, with the true means:

    .. math:: a_t = \arg\max_a \mu_t(a)

    Cost per step: O(K).

    References
    ----------
    None; regret is defined relative to it, so its own regret is 0.
    """

    name = "best-arm"
    rewards = NORMAL
    live_rewards = BOUNDED
    slots = SLOTS
    functions = PolicyFunctions(
        start=sample_mean_policy.start, score=score, learn=sample_mean_policy.learn, reveal=reveal
    )
    informed = True
