"""An oracle policy for change detection: each arm restarts at the step at which its mean changes."""

from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.whole import either_index
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy
from dynabandit.validation import number, set_fields, unknown

SLOTS = (*either_index.SLOTS, "told", "truth", "age", "tolerance")
TOLD, TRUTH, AGE, TOLERANCE = (SLOTS.index(name) for name in ("told", "truth", "age", "tolerance"))


class Params(NamedTuple):
    tolerance: float
    is_ucb: bool


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    state.memory[:, arm] = 0.0
    either_index.forget(state, arm)
    state.memory[TOLERANCE, arm] = params.tolerance


@kernel
def reveal(state: PolicyState, arm: int, mean: float) -> None:
    # Only the arm's own column is written: on a GPU, the other arms are revealed at the same time
    memory = state.memory
    memory[AGE, arm] += 1.0
    if memory[TOLD, arm] == 0.0 or abs(mean - memory[TRUTH, arm]) > memory[TOLERANCE, arm]:
        either_index.forget(state, arm)
        memory[TOLD, arm] = 1.0
        memory[TRUTH, arm] = mean
        memory[AGE, arm] = 0.0


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    return either_index.index(state, arm, state.memory[AGE, arm], params.is_ucb)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    either_index.observe(state, arm, reward.value)


@dataclass(frozen=True, kw_only=True)
class OracleRestart(SampleMeanPolicy):
    r"""A reference for comparisons: KL-UCB or UCB that is told each change of a mean and forgets that arm at once. Only
    simulations can run it.

    Its regret is that of learning the new means, without that of detecting the changes. It is no lower bound: after a
    small change it forgets rewards that are still useful, and its index explores for an unknown horizon. On `pb-2`,
    where most changes do not change the best arm, `aff-ucb2` has less regret. If means drift at every step, it would
    restart all the time; `tolerance` ignores small changes.

    Parameters
    ----------
    index
        ``"kl-ucb"`` or ``"ucb"``, with t counted from the restart of the arm.
    tolerance
        The largest change of a mean since the restart of its arm that causes no new restart, in [0, 1].

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("piecewise", starts=[1, 1001], means=[[0.1, 0.9], [0.9, 0.1]])
    >>> runs = db.compare(["kl-ucb", "oracle-restart"], environment, horizon=2000, replications=4, seed=1)
    >>> runs["oracle-restart"].total_regret.mean() < runs["kl-ucb"].total_regret.mean() / 5
    np.True_

    Notes
    -----
    With N plays of the arm and t steps since its mean changed:

    .. math:: \max \left\{ q : N \, \mathrm{kl}(\bar{x}, q) \leq \log t \right\}

    Cost per step: O(K).

    References
    ----------
    The oracle of the experiments of Besson, Kaufmann, Maillard & Seznec (2022), JMLR 23, which restarts all arms; here
    an arm whose mean is constant keeps its rewards.
    """

    name = "oracle-restart"
    slots = SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, reveal=reveal, params=Params)
    informed = True

    burn_in: int = 1
    index: str = "kl-ucb"
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.index not in either_index.INDICES:
            raise unknown("index", self.index, either_index.INDICES)
        set_fields(self, index=str(self.index), tolerance=number("tolerance", self.tolerance, 0.0, 1.0))

    def params(self, arms: int) -> Params:
        return Params(self.tolerance, self.index == "ucb")
