"""SquareCB: probabilities that fall with the gap to the best prediction of a linear model."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.estimators import links
from dynabandit.estimators.regression_kernels import Kind, make_regression
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step
from dynabandit.policies.memories import regression_policy
from dynabandit.policies.memories.regression_policy import DiscountedPolicy, make_learn, make_prediction
from dynabandit.policies.rules.score_laws import weighted_scores
from dynabandit.validation import LARGEST_FACTOR, check_field, number

REGRESSION = make_regression(links.identity, Kind())
PREDICTION = make_prediction(REGRESSION)
LEADER, OTHERS = 0, 1  # entries of `shared`: the arm with the largest prediction, the probability of all others
SHARED_SIZE = 2
SMALLEST = 1e-37  # of a probability; also a float32


class Params(NamedTuple):
    prior: float
    step_size: float
    scale: float
    exponent: float


@kernel
def probability(gap: float, step: Step, params: Params) -> float:
    """Return the probability of an arm whose prediction is below the best one by `gap`."""
    return 1.0 / (step.arms + params.scale * step.number**params.exponent * gap)


@kernel
def prepare(state: PolicyState, step: Step, params: Params) -> None:
    leader, predictions = 0, state.memory[0]
    for arm in range(step.arms):
        mean, _ = PREDICTION(state, arm, step, params)
        predictions[arm] = mean
        if mean > predictions[leader]:
            leader = arm
    others = 0.0
    for arm in range(step.arms):
        if arm != leader:
            others += probability(predictions[leader] - predictions[arm], step, params)
    state.shared[LEADER], state.shared[OTHERS] = leader, others


@kernel
def weight(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    leader, predictions = int(state.shared[LEADER]), state.memory[0]
    if arm == leader:
        return max(1.0 - state.shared[OTHERS], SMALLEST)
    return probability(predictions[leader] - predictions[arm], step, params)


@dataclass(frozen=True, kw_only=True)
class SquareCB(DiscountedPolicy):
    r"""Play arms at random, the more rarely the further their predicted reward is below the best one. A baseline of the
    literature for decisions with features.

    The predictions are those of a ridge regression.

    Parameters
    ----------
    scale
        The factor of the learning rate, at least 0, for rewards of about 0 to 1; 0 plays at random.
    exponent
        How fast the learning rate grows with the step, in [0, 1].
    prior
        The precision of the prior of every coefficient, in [1e-12, 1e12], in rewards: the ridge penalty.
    discount
        The factor by which the data fade per step, in (0, 1]; 1 keeps all data. The prior does not fade.
    model
        ``"separate"``: a model for each arm; ``"shared"``: one model for all arms, which have features of their own;
        ``"hybrid"``: both; ``"auto"``: shared if arms have features of their own, else separate.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("square-cb", scale=100).label
    'square-cb(scale=100)'

    Notes
    -----
    With the predictions :math:`\hat y_a = x_a' \theta` of the model of ``"lin-ucb"`` and the best one
    :math:`\hat y_b`, an arm other than b is played with probability

    .. math:: p_a = \frac{1}{K + \gamma_t (\hat y_b - \hat y_a)}, \quad \gamma_t = \mathrm{scale} \cdot
        t^{\mathrm{exponent}}

    and b with the rest. The paper has a constant rate for a known horizon; one that grows with the step, and the
    defaults, are those of Vowpal Wabbit.

    Cost per step: O(K d^2).

    References
    ----------
    Foster & Rakhlin (2020), Beyond UCB: optimal and efficient contextual bandits with regression oracles. ICML.
    """

    name = "square-cb"
    slots = ("prediction",)  # of the arm at the latest decision
    kernels = REGRESSION
    functions = PolicyFunctions(
        start=regression_policy.start,
        learn=make_learn(REGRESSION),
        prepare=prepare,
        params=Params,
        contextual=True,
        **weighted_scores(weight),
    )

    scale: float = 10.0
    exponent: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "scale", number, 0.0, LARGEST_FACTOR)
        check_field(self, "exponent", number, 0.0, 1.0)

    def params(self, arms: int) -> Any:
        return Params(self.prior, 0.0, self.scale, self.exponent)

    def shared_size(self) -> int:
        return SHARED_SIZE
