"""A horizon that doubles, for policies whose parameters follow from a horizon that nobody knows.

The parameters at step t are those for the horizon 2^k, the smallest power of two that is at least t. What the policy
has learned stays: it does not restart when the horizon doubles. The horizon starts at 128 and stops at 2^20, about a
million steps, so that windows are bounded; later steps use the parameters for that horizon.
"""

import functools
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.records import to_row, vector_reader
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.belief import Belief

DOUBLING = "doubling"
FIRST = 128
HORIZONS = tuple(FIRST << doublings for doublings in range(14))
DOUBLINGS = 0  # shared: how often the horizon has doubled, before the numbers of the policy


class DoublingParams(NamedTuple):
    """The parameters of a policy for each horizon."""

    width: int  # how many numbers the parameters for one horizon are
    rows: np.ndarray  # the parameters for all horizons, one after another


@kernel
def double(shared: np.ndarray, step: int, params: DoublingParams) -> None:
    """Double the horizon until it is after `step`, the latest one."""
    doublings = int(shared[DOUBLINGS])
    last = params.rows.size // params.width - 1
    while doublings < last and step >= FIRST << doublings:
        doublings += 1
    shared[DOUBLINGS] = doublings


@inlined_kernel
def own_state(state: PolicyState) -> PolicyState:
    """Return the state as the policy with a fixed horizon has it."""
    return PolicyState(state.memory, state.shared[DOUBLINGS + 1 :], state.last_played, state.pending, state.models)


def with_doubling_horizon(own: PolicyFunctions) -> PolicyFunctions:
    """Return the functions of a policy, reading the parameters for the current horizon."""
    read = vector_reader(own.params)
    start_arm, learn_reward, score_arm, posterior_of = own.start, own.learn, own.score, own.posterior
    common_number, explores = own.common, own.explore
    numbers_of = None if own.law is None else own.law.numbers
    exploration_of = own.exploration

    @inlined_kernel
    def current(state: PolicyState, params: DoublingParams) -> Any:
        first = int(state.shared[DOUBLINGS]) * params.width
        return read(params.rows[first : first + params.width])

    @kernel
    def start(state: PolicyState, arm: int, params: DoublingParams) -> None:
        start_arm(own_state(state), arm, current(state, params))

    @kernel
    def learn(state: PolicyState, arm: int, reward: Reward, params: DoublingParams) -> None:
        learn_reward(own_state(state), arm, reward, current(state, params))
        double(state.shared, reward.arrived_at, params)

    @inlined_kernel
    def score(state: PolicyState, arm: int, step: Step, params: DoublingParams) -> float:
        return score_arm(own_state(state), arm, step, current(state, params))

    @inlined_kernel
    def posterior(state: PolicyState, arm: int, step: Step, params: DoublingParams) -> tuple[float, float]:
        return posterior_of(own_state(state), arm, step, current(state, params))  # type: ignore[misc]

    @kernel
    def common(state: PolicyState, number: int, params: DoublingParams) -> float:
        return common_number(own_state(state), number, current(state, params))

    @kernel
    def explore(state: PolicyState, leader: int, step: Step, params: DoublingParams) -> bool:
        return explores(own_state(state), leader, step, current(state, params))

    @kernel
    def numbers(state: PolicyState, arm: int, step: Step, params: DoublingParams) -> tuple[float, ...]:
        return numbers_of(own_state(state), arm, step, current(state, params))  # type: ignore[misc]

    @kernel
    def exploration(state: PolicyState, leader: int, step: Step, params: DoublingParams) -> float:
        return exploration_of(own_state(state), leader, step, current(state, params))  # type: ignore[misc]

    return own._replace(
        start=start,
        learn=learn,
        score=score,
        posterior=None if posterior_of is None else posterior,
        common=common,
        explore=explore,
        static_index=False,
        idle_posterior=None,
        params=DoublingParams,
        law=None if own.law is None else own.law._replace(numbers=numbers),
        exploration=None if exploration_of is None else exploration,
    )


class DoublingHorizon:
    """What a policy with `horizon="doubling"` does differently; it comes before the class of the policy."""

    fixed: ClassVar[Any]  # the class of the policy
    parameters: dict[str, Any]

    def __new__(cls, **parameters: Any) -> Self:
        if parameters.get("horizon") != DOUBLING:  # `dataclasses.replace` with a fixed horizon
            return cls.fixed(**parameters)
        return object.__new__(cls)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.fixed.__reduce__ is not object.__reduce__:  # of a composition, whose class is made when it is needed
            return self.fixed.__reduce__(self)
        return functools.partial(self.fixed, **self.parameters), ()

    def _with_horizon(self, horizon: int) -> Policy:
        policy: Policy = self.fixed(**{**self.parameters, "horizon": horizon})
        return policy

    def params(self, arms: int) -> DoublingParams:
        rows = [to_row(self._with_horizon(horizon).params(arms)) for horizon in HORIZONS]
        return DoublingParams(len(rows[0]), np.concatenate(rows))

    def memory_size(self) -> int:
        return max(self._with_horizon(horizon).memory_size() for horizon in HORIZONS)

    def shared_size(self) -> int:
        return max(self._with_horizon(horizon).shared_size() for horizon in HORIZONS) + 1

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        now = self._with_horizon(HORIZONS[int(shared[DOUBLINGS])])
        return now.belief(column, shared[DOUBLINGS + 1 :])


@functools.cache
def doubling_class(kind: type[Policy]) -> type[Policy]:
    """Return the class of policies of a kind with `horizon="doubling"`."""
    own = {"fixed": kind, "functions": with_doubling_horizon(kind.functions)}
    named = {"__doc__": kind.__doc__, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (DoublingHorizon, kind), own | named)
