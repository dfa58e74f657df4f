"""The policy contract: the functions of an algorithm, what they receive, and the class that names its parameters."""

import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from dynabandit.core.compilation import Function, compiled, kernel
from dynabandit.core.context import Context
from dynabandit.core.docstrings import inherited_descriptions, sections, with_parameters, with_sections
from dynabandit.core.draws import not_empty
from dynabandit.core.records import NoParams
from dynabandit.core.streams import LARGEST_STEP, Stream
from dynabandit.plugins import is_built_in
from dynabandit.policies.belief import Belief
from dynabandit.policies.beta_posterior import beta_belief
from dynabandit.validation import BOUNDED, RewardDomain, check_field, integer


class PolicyState(NamedTuple):
    """Everything a policy remembers, for one replication or one live bandit.

    Examples
    --------
    >>> PolicyState._fields
    ('memory', 'shared', 'last_played', 'pending', 'models')
    """

    memory: np.ndarray  # (slots, arms)
    shared: np.ndarray  # what belongs to no single arm
    last_played: np.ndarray  # (arms,): the step at which each arm was last chosen, 0 if never
    pending: Any = None  # (arms,): plays whose rewards have not arrived, see `policies.pending_plays`; None: no delays
    models: Any = (
        None  # (models, size): regression models, one per arm or one for all; None for policies without context
    )


class Step(NamedTuple):
    """What is known when an arm is scored.

    Examples
    --------
    >>> Step._fields
    ('number', 'arms', 'common', 'features', 'table', 'random')
    """

    number: int  # 1, 2, ...: the step that is decided
    arms: int
    common: float  # computed once per step by `PolicyFunctions.common`
    features: np.ndarray  # (rows, dimension): one row per arm, or one for all arms; see `core.context.Context`
    table: np.ndarray  # computed once by `PolicyFunctions.table`
    random: Stream


class Reward(NamedTuple):
    """A reward and its time; in a simulation without delays it arrives at the step of the decision.

    Examples
    --------
    >>> late = Reward(value=1.0, decided_at=7, arrived_at=9)
    >>> late.arrived_at - late.decided_at
    2
    """

    value: float
    decided_at: int  # the step of the decision
    arrived_at: int  # the latest step when the reward arrived
    features: Any = None  # (dimension,): those of the chosen arm at the decision; None for policies without context


# Kernels are called with positional arguments. `params` has the type `PolicyFunctions.params` of the policy.
class Start(Protocol):
    def __call__(self, state: PolicyState, arm: int, params: Any, /) -> None: ...


class Learn(Protocol):
    def __call__(self, state: PolicyState, arm: int, reward: Reward, params: Any, /) -> None: ...


class Score(Protocol):
    def __call__(self, state: PolicyState, arm: int, step: Step, params: Any, /) -> float: ...


class Posterior(Protocol):
    def __call__(self, state: PolicyState, arm: int, step: Step, params: Any, /) -> tuple[float, float]: ...


class LawNumbers(Protocol):
    def __call__(self, state: PolicyState, arm: int, step: Step, params: Any, /) -> tuple[float, ...]: ...


class Common(Protocol):
    def __call__(self, state: PolicyState, number: int, params: Any, /) -> float: ...


class Prepare(Protocol):
    def __call__(self, state: PolicyState, step: Step, params: Any, /) -> None: ...


class Explore(Protocol):
    def __call__(self, state: PolicyState, leader: int, step: Step, params: Any, /) -> bool: ...


class Choose(Protocol):
    def __call__(self, state: PolicyState, step: Step, params: Any, /) -> int: ...


class Exploration(Protocol):
    def __call__(self, state: PolicyState, leader: int, step: Step, params: Any, /) -> float: ...


class Reveal(Protocol):
    def __call__(self, state: PolicyState, arm: int, mean: float, /) -> None: ...


LARGEST_COLUMN = 272  # slots of memory, or shared numbers, of a policy with an `idle_posterior`: a row of a draw tree
EXAMPLE = """\
>>> import dynabandit as db
>>> bandit = db.Bandit("{name}", arms=["red", "green"], seed=7)
>>> bandit.reward(bandit.choose(), 1)"""
EXAMPLE_WITH_FEATURES = """\
>>> import dynabandit as db
>>> bandit = db.Bandit("{name}", arms=["red", "green"], features=["hour"], seed=7)
>>> bandit.reward(bandit.choose({{"hour": 18}}), 1)"""
USES_PRIOR = "; by default 0, so that the prior is used from the first step."
# How the posterior of an arm changes between its plays and rewards, see `PolicyFunctions.idle_posterior`
CONSTANT, MONOTONE = "constant", "monotone"


@kernel
def idle_steps(state: PolicyState, arm: int, step: Step) -> int:
    """Return the number of steps since an arm was last played; 0 for the arm of the previous step."""
    return step.number - 1 - state.last_played[arm]


@kernel
def row_of(rows: np.ndarray, arm: int) -> int:
    """Return the row of an arm in an array that has one row per arm or one for all arms: of features, or of models.

    It does not return the row itself: functions of a GPU cannot return a part of an array.
    """
    return arm if rows.shape[0] > 1 else 0


@kernel
def zero_score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
    """Give all arms the same score."""
    return 0.0


@kernel
def no_common(state: PolicyState, number: int, params: Any) -> float:
    """Compute nothing that the arms share."""
    return 0.0


@kernel
def no_preparation(state: PolicyState, step: Step, params: Any) -> None:
    """Prepare nothing."""


@kernel
def never_explore(state: PolicyState, leader: int, step: Step, params: Any) -> bool:
    """Always play the leader."""
    return False


@kernel
def ignore_mean(state: PolicyState, arm: int, mean: float) -> None:
    """Ignore the true means."""


def no_table(arms: int, horizon: int) -> np.ndarray:
    """Need no table."""
    return np.zeros(0)


class ScoreLaw(NamedTuple):
    """The law of the random score of each arm; `policies.rules.score_laws` makes it together with the score."""

    family: str  # a constant of `policies.rules.score_laws`
    numbers: LawNumbers
    """numbers(state, arm, step, params): the numbers of the law of one arm; NaN if the law is not known."""


class PolicyFunctions(NamedTuple):
    """The functions that make up a policy.

    `table` is plain Python and runs before the first step. All others are kernels, compiled for every backend.

    Examples
    --------
    >>> import dynabandit as db
    >>> functions = db.policies.TS.functions
    >>> functions.posterior is not None, functions.optimistic, functions.static_index
    (True, False, False)
    """

    start: Start
    """start(state, arm, params): write the state of an arm without rewards.

    All arms start with the same state: what it writes must depend neither on `arm` nor on how often it was called."""
    learn: Learn
    """learn(state, arm, reward, params): update the state with a reward."""
    score: Score = zero_score
    """score(state, arm, step, params): the arm with the largest score is chosen."""
    posterior: Posterior | None = None
    """posterior(state, arm, step, params): instead of `score`, the Beta posterior from which a score is drawn."""
    optimistic: bool = False
    """Whether a draw from `posterior` or `law` below its mean is replaced by the mean."""
    common: Common = no_common
    """common(state, number, params): a number that all scores of a step share, read as `step.common`."""
    explore: Explore = never_explore
    """explore(state, leader, step, params): whether to play a random arm instead of the leader."""
    reveal: Reveal = ignore_mean
    """reveal(state, arm, mean): for oracle policies, which receive the true means before each decision."""
    static_index: bool = False
    """Whether the score of an arm changes only when the arm is played or one of its rewards arrives.

    The simulator then updates log2 K scores per step instead of all K (`choosing.argmax_tree`). The score may read only
    `params`, the arm's own column of `memory` and its pending plays, and `learn` may write no other column."""
    table: Callable[[int, int], np.ndarray] = no_table
    """table(arms, horizon): numbers computed once, such as a power of each idle time, read as `step.table`.

    The values may depend on the number of arms; the horizon may only decide how many there are. A `Bandit` has no
    horizon and uses a short table, so `score` must be able to compute the values beyond it."""
    params: type = NoParams
    """The named tuple that `Policy.params` returns; its fields are floats, ints, bools or such tuples."""
    contextual: bool = False
    """Whether the functions read features: `step.features`, `reward.features` and `state.models`."""
    prepare: Prepare = no_preparation
    """prepare(state, step, params): called once per step before the scores; it may write to the state,
    such as the parameters that Thompson sampling draws once for a model of all arms."""
    law: ScoreLaw | None = None
    """The law of the scores, if `score` is random, for exact propensities (`policies.rules.score_laws`)."""
    exploration: Exploration | None = None
    """exploration(state, leader, step, params): the probability that `explore` is true, if it is random."""
    idle_posterior: str | None = None
    """How `posterior` changes between the plays and rewards of an arm: CONSTANT, MONOTONE, or None if in another way.

    With many arms a constant or monotone one is drawn in O(log K) steps (`choosing.draw_tree`). It may then read only
    `params`, the arm's own column of `memory`, its pending plays and, if it is MONOTONE, the step and when the arm was
    last played: each shape must rise or fall with the step. Arms with the column that `start` wrote and without pending
    plays may also read `step.common`, and nothing else: all have one posterior. `learn` may write no other column. At
    most 272 slots and shared numbers."""
    choose: Choose | None = None
    """choose(state, step, params): the arm itself, in place of scores, for policies in plain Python.

    None of their functions are compiled (`policies.python_policy`)."""

    @property
    def in_python(self) -> bool:
        """Whether the functions are plain Python, which cannot be compiled."""
        return self.choose is not None


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Base class of all policies; a subclass is a frozen dataclass whose fields are its parameters.

    A policy object has no state: the state is kept by the simulator, a `Bandit` or a service.
    ``docs/adding-an-algorithm.md`` has a skeleton to copy. A docstring describes only the parameters that those
    of the base classes do not describe.

    Parameters
    ----------
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> policy = db.policy("dts", memory=5)
    >>> isinstance(policy, db.Policy), policy.slots, policy.parameters
    (True, ('a', 'b'), {'burn_in': 0, 'memory': 5.0, 'prior': (2.0, 2.0)})
    """

    name: ClassVar[str]
    slots: ClassVar[tuple[str, ...]]
    functions: ClassVar[PolicyFunctions]
    informed: ClassVar[bool] = False  # True for oracle policies, which are told the true means
    needs_double: ClassVar[bool] = False  # True if single precision would overflow or underflow
    rewards: ClassVar[RewardDomain] = BOUNDED  # which rewards the policy can learn from
    live_rewards: ClassVar[RewardDomain | None] = None  # what a `Bandit` accepts by default, if it is not all of them

    burn_in: int = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls) and (text := vars(cls).get("__doc__")):  # base classes have no name
            text, example = inspect.cleandoc(text), own_example(cls)
            if example and "Examples" not in sections(text):
                text = with_sections(sections(text) | {"Examples": example})
            cls.__doc__ = with_parameters(text, cls.described_parameters())

    @classmethod
    def described_parameters(cls) -> dict[str, str]:
        """Return the descriptions of parameters that a docstring need not repeat: those of base classes."""
        found = inherited_descriptions(cls)
        if cls.burn_in == 0 and hasattr(cls, "prior"):
            found["burn_in"] = found["burn_in"].removesuffix(USES_PRIOR).rstrip(".") + USES_PRIOR
        return found

    def __post_init__(self) -> None:
        check_field(self, "burn_in", integer, 0, LARGEST_STEP)

    def params(self, arms: int) -> Any:
        """Return the parameters as the named tuple that the functions read."""
        return NoParams()

    def memory_size(self) -> int:
        """Return the number of rows of `memory`: one per slot, plus what a parameter adds, such as a history."""
        return len(self.slots)

    def shared_size(self) -> int:
        """Return the length of the vector `shared`."""
        return 1

    def initial_models(self, arms: int, context: Context) -> np.ndarray:
        """Return the array `models` before the first reward: a row per arm, all equal, or one row for all arms.

        A policy whose functions are `contextual` defines this method.
        """
        raise NotImplementedError

    def models_shape(self, arms: int, context: Context) -> tuple[int, int]:
        """Return the shape of `initial_models`, which a policy may know without making the array."""
        rows, size = self.initial_models(arms, context).shape
        return rows, size

    def restored(self, memory: np.ndarray, last_played: np.ndarray) -> np.ndarray:
        """Return the memory of a bandit that may have been saved by an earlier release as this release keeps it."""
        return memory

    def tuned(self, switches: int, horizon: int) -> "Policy":
        """Return the policy set up for a path on which the best arm changes `switches` times."""
        return self

    def practical(self) -> "Policy":
        """Return the policy as it can be used without knowing the future: one change, and a horizon that doubles."""
        return self

    @property
    def needs_tuning(self) -> bool:
        """Whether a parameter is not set and depends on the simulated path."""
        return False

    @property
    def needs_horizon(self) -> bool:
        """Whether a parameter is not set and depends on the horizon."""
        return False

    @property
    def left_open(self) -> list[str]:
        """Which of "changes" and "horizon" must be given, because only a simulation knows them in advance."""
        needed = {"changes": self.needs_tuning, "horizon": self.needs_horizon}
        return [name for name, is_needed in needed.items() if is_needed]

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        """Return an arm's mean, variance, forgetting factor and effective size from its column of the memory.

        A policy with a `posterior` reports it, prior included: the mean a / (a + b), the variance of a Bernoulli reward
        with this mean, and the size a + b. It is the posterior without idle time: AFF-TS and AFF-OTS draw from one
        whose data are discounted further while the arm is idle. A policy without a posterior defines this method; the
        mean of an arm without rewards is NaN then.
        """
        functions = self.functions
        if functions.posterior is None:
            raise NotImplementedError
        a, b = not_empty(self.law_numbers(functions.posterior, column, shared))
        return beta_belief(float(a), float(b), self.forgetting(column))

    def law_numbers(self, numbers: Callable[..., Any], column: np.ndarray, shared: np.ndarray) -> Any:
        """Return the numbers of the law of an arm's score without idle time, such as of its `posterior`."""
        functions, params = self.functions, self.params(1)
        last_played, pending = np.zeros((2, 1), dtype=np.int64)
        state = PolicyState(column[:, np.newaxis], shared, last_played, pending)
        table, nothing = functions.table(1, 1), np.zeros(0)
        step = Step(1, 1, functions.common(state, 1, params), nothing, table, Stream(0, 0, 0))
        return numbers(state, 0, step, params)

    def forgetting(self, column: np.ndarray) -> float:
        """Return the factor by which the next reward of an arm discounts earlier ones, for `belief`."""
        return 1.0

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return asdict(self)

    @property
    def label(self) -> str:
        """The name, with every parameter that differs from its default."""
        changed = [
            f"{field.name}={_shown(getattr(self, field.name))}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"{self.name}({', '.join(changed)})" if changed else self.name


def own_example(kind: type[Policy]) -> str:
    """Return the example of a policy of this package; none of others, whose names may be unknown."""
    if not is_built_in(kind):
        return ""
    return (EXAMPLE_WITH_FEATURES if kind.functions.contextual else EXAMPLE).format(name=kind.name)


def compiled_for(functions: PolicyFunctions, function: Function) -> Function:
    """Return a function that is made of those of a policy: compiled, unless the policy is in plain Python."""
    return function if functions.in_python else compiled(function)


def new_state(policy: Policy, columns: int, params: Any, context: Context | None = None) -> PolicyState:
    """Return the state of a policy without any reward; a contextual policy needs the context."""
    if policy.functions.idle_posterior is not None and max(policy.memory_size(), policy.shared_size()) > LARGEST_COLUMN:
        raise ValueError(f"idle_posterior must be None with more than {LARGEST_COLUMN} slots or shared numbers")
    memory, shared = np.zeros((policy.memory_size(), columns)), np.zeros(policy.shared_size())
    models = None
    if policy.functions.contextual:
        models = policy.initial_models(columns, needed_context(policy, context))
    last_played, pending = np.zeros((2, columns), dtype=np.int64)
    state = PolicyState(memory, shared, last_played, pending, models)
    policy.functions.start(state, 0, params)
    memory[:] = memory[:, :1]  # all arms start with the same state
    return state


def needed_context(policy: Policy, context: Context | None) -> Context:
    """Return the context of a contextual policy, or raise an error if there is none."""
    if context is None:
        raise ValueError(f"policy {policy.label!r} decides by features, but there are none: it needs a context")
    return context


def _shown(value: Any) -> str:
    """Return a parameter as users write it, with all digits: 5 for 5.0."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
