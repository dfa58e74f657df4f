"""Reward laws: how a reward is drawn, given the value in [0, 1] that the path of an environment has at a step."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from dynabandit import validation
from dynabandit.core.compilation import kernel
from dynabandit.core.draws import beta, not_empty, poisson
from dynabandit.core.records import NoParams
from dynabandit.core.streams import REWARD, Stream, normal_pair, uniform, words
from dynabandit.validation import (
    LARGEST_REWARD,
    SMALLEST_AMOUNT,
    RewardDomain,
    check_field,
    check_parameter_names,
    number,
    unknown,
)

LARGEST_SCALE = 1000.0  # the time of a Poisson draw grows with its mean
AMOUNT_ATTEMPT = 1  # attempt 0 of the stream decides whether there is an amount


class RewardStep(NamedTuple):
    """What is known when a reward is drawn.

    Examples
    --------
    >>> RewardStep._fields
    ('number', 'random')
    """

    number: int  # 1, 2, ...: the step of the decision
    random: Stream


# Kernels are called with positional arguments. `params` has the type `RewardFunctions.params`.
class DrawReward(Protocol):
    def __call__(self, value: float, arm: int, step: RewardStep, params: Any, /) -> float: ...


class ExpectedReward(Protocol):
    def __call__(self, value: Any, params: Any, /) -> Any: ...


class MeanByPlays(Protocol):
    def __call__(self, value: float, plays: int, arm: int, params: Any, /) -> float: ...


@kernel
def value_of_path(value: Any, params: Any) -> Any:
    """Return the value of the path."""
    return value


@kernel
def mean_of_path(value: float, plays: int, arm: int, params: Any) -> float:
    """Return the value of the path, however often the arm was played."""
    return value


class RewardFunctions(NamedTuple):
    """The kernels of a reward law, and how plays change an arm.

    Examples
    --------
    >>> Bernoulli.functions.observes_plays
    False
    """

    draw: DrawReward
    """draw(value, arm, step, params): the reward of an arm, given the value of its path in [0, 1]."""
    expected: ExpectedReward = value_of_path
    """expected(value, params): the mean of the reward; it increases with the value of the path."""
    params: type = NoParams
    """The named tuple that `RewardLaw.params` returns; its fields are floats."""
    dtype: type = np.float64
    """The type in which rewards are kept."""
    mean: MeanByPlays = mean_of_path
    """mean(value, plays, arm, params): `EnvironmentFunctions.mean` of the environment."""
    mean_params: type = NoParams
    """The named tuple of arrays that `mean` receives: the parameters of the environment."""
    rising: bool = False
    """`EnvironmentFunctions.rising` of the environment."""

    @property
    def observes_plays(self) -> bool:
        """Whether the mean of an arm depends on how often it was played."""
        return self.mean is not mean_of_path


@dataclass(frozen=True, kw_only=True)
class RewardLaw:
    """Base class of the reward laws; a subclass is a frozen dataclass whose fields are its parameters.

    Examples
    --------
    >>> import dynabandit as db
    >>> law = db.reward_law("normal", low=-1, deviation=0.5)
    >>> law.domain.description, law.expected(0.25)
    ('a number in [-1e+100, 1e+100]', -0.5)
    """

    name: ClassVar[str]
    domain: ClassVar[RewardDomain]
    functions: ClassVar[RewardFunctions]

    def params(self) -> Any:
        """Return the parameters as the named tuple that the functions read."""
        return NoParams()

    def expected(self, path: Any) -> Any:
        """Return the mean rewards for values of a path, a number or an array."""
        return self.functions.expected(path, self.params())

    @property
    def parameters(self) -> dict[str, Any]:
        """The name and the parameters, from which `reward_law` makes an equal law."""
        return {"name": self.name, **asdict(self)}


@kernel
def draw_bernoulli(value: float, arm: int, step: RewardStep, params: Any) -> float:
    return 1.0 if uniform(step.random, REWARD, step.number, arm) < value else 0.0


@dataclass(frozen=True, kw_only=True)
class Bernoulli(RewardLaw):
    """Rewards of 0 or 1; the path is the probability of a 1.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("case-1").rewards
    Bernoulli()
    """

    name = "bernoulli"
    domain = validation.BERNOULLI
    functions = RewardFunctions(draw_bernoulli, dtype=np.uint8)


BERNOULLI = Bernoulli()


class BoundedParams(NamedTuple):
    concentration: float


@kernel
def draw_bounded(value: float, arm: int, step: RewardStep, params: BoundedParams) -> float:
    a, b = not_empty((params.concentration * value, params.concentration * (1.0 - value)))
    return beta(a, b, step.random, REWARD, step.number, arm)


@dataclass(frozen=True, kw_only=True)
class Bounded(RewardLaw):
    r"""Rewards between 0 and 1 from a Beta distribution; the path is their mean.

    Parameters
    ----------
    concentration
        The sum a + b of the parameters of the Beta distribution, positive: a large one gives rewards near their mean.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("case-3", rewards={"name": "bounded", "concentration": 4}).rewards
    Bounded(concentration=4.0)

    Notes
    -----
    With the concentration c and the value x of the path:

    .. math:: \mathrm{Beta}(c x, \; c (1 - x)), \quad \text{mean } x, \quad
        \text{variance } \frac{x (1 - x)}{1 + c}
    """

    name = "bounded"
    domain = validation.BOUNDED
    functions = RewardFunctions(draw_bounded, params=BoundedParams)

    concentration: float = 10.0

    def __post_init__(self) -> None:
        check_field(self, "concentration", number, 0.0, math.inf, open_low=True)

    def params(self) -> BoundedParams:
        return BoundedParams(self.concentration)


class NormalParams(NamedTuple):
    low: float
    high: float
    deviation: float


@kernel
def expected_normal(value: Any, params: NormalParams) -> Any:
    return params.low + (params.high - params.low) * value


@kernel
def draw_normal(value: float, arm: int, step: RewardStep, params: NormalParams) -> float:
    noise, _ = normal_pair(words(step.random, REWARD, step.number, arm, 0))
    return expected_normal(value, params) + params.deviation * noise


@dataclass(frozen=True, kw_only=True)
class Normal(RewardLaw):
    r"""Normal rewards with a drifting mean and a constant standard deviation.

    Parameters
    ----------
    low, high
        The mean reward where the path is 0, and where it is 1, which must be larger.
    deviation
        The standard deviation, at least 0.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("case-3", rewards=db.reward_law("normal", low=-100, high=100)).rewards.expected(0.75)
    50.0

    Notes
    -----
    With the value x of the path:

    .. math:: N\left( \mathrm{low} + (\mathrm{high} - \mathrm{low}) x, \; \mathrm{deviation}^2 \right)
    """

    name = "normal"
    domain = validation.NORMAL
    functions = RewardFunctions(draw_normal, expected_normal, NormalParams)

    low: float = 0.0
    high: float = 1.0
    deviation: float = 0.5

    def __post_init__(self) -> None:
        largest = LARGEST_REWARD / 100.0  # a reward may be some deviations away from its mean
        check_field(self, "low", number, -largest, largest)
        check_field(self, "high", number, -largest, largest)
        if self.low >= self.high:
            raise ValueError(f"low must be below high = {self.high:g}, got {self.low:g}")
        check_field(self, "deviation", number, 0.0, largest)

    def params(self) -> NormalParams:
        return NormalParams(self.low, self.high, self.deviation)


class CountsParams(NamedTuple):
    scale: float


@kernel
def expected_counts(value: Any, params: CountsParams) -> Any:
    return params.scale * value


@kernel
def draw_counts(value: float, arm: int, step: RewardStep, params: CountsParams) -> float:
    return poisson(expected_counts(value, params), step.random, REWARD, step.number, arm)


@dataclass(frozen=True, kw_only=True)
class Counts(RewardLaw):
    """Poisson counts 0, 1, 2, ... with a drifting mean, the scale times the value of the path.

    Parameters
    ----------
    scale
        The mean count where the path is 1, in (0, 1000]; larger counts are almost normal.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.reward_law("counts", scale=5).expected(0.5)
    2.5
    """

    name = "counts"
    domain = validation.COUNTS
    functions = RewardFunctions(draw_counts, expected_counts, CountsParams, np.int32)

    scale: float = 10.0

    def __post_init__(self) -> None:
        check_field(self, "scale", number, 0.0, LARGEST_SCALE, open_low=True)

    def params(self) -> CountsParams:
        return CountsParams(self.scale)


class RevenueParams(NamedTuple):
    conversion: float
    log_median: float
    log_deviation: float


@kernel
def expected_revenue(value: Any, params: RevenueParams) -> Any:
    mean_amount = math.exp(params.log_median + 0.5 * params.log_deviation * params.log_deviation)
    return params.conversion * mean_amount * value


@kernel
def draw_revenue(value: float, arm: int, step: RewardStep, params: RevenueParams) -> float:
    if uniform(step.random, REWARD, step.number, arm) >= params.conversion * value:
        return 0.0
    noise, _ = normal_pair(words(step.random, REWARD, step.number, arm, AMOUNT_ATTEMPT))
    return math.exp(params.log_median + params.log_deviation * noise)


@dataclass(frozen=True, kw_only=True)
class Revenue(RewardLaw):
    r"""Revenue per visitor: mostly 0, else a log-normal amount; the conversion probability drifts.

    Parameters
    ----------
    conversion
        The probability of an amount where the path is 1, in (0, 1].
    median
        The median amount, in [1e-50, 1e50].
    log_deviation
        The standard deviation of the logarithm of an amount, in [0, 5]; with 1, one amount in six is more than 2.7
        times the median.

    Examples
    --------
    >>> import dynabandit as db
    >>> law = db.reward_law("revenue", conversion=0.1, median=20)
    >>> round(law.expected(0.5), 2)
    1.65

    Notes
    -----
    With the value x of the path, the reward is 0 or, with probability conversion * x,

    .. math:: \exp\left( N( \log \mathrm{median}, \; \mathrm{log\_deviation}^2 ) \right), \quad \text{mean reward }
        \mathrm{conversion} \cdot x \cdot \mathrm{median} \cdot e^{\mathrm{log\_deviation}^2 / 2}
    """

    name = "revenue"
    domain = validation.REVENUE
    functions = RewardFunctions(draw_revenue, expected_revenue, RevenueParams)

    conversion: float = 0.1
    median: float = 20.0
    log_deviation: float = 1.0

    def __post_init__(self) -> None:
        check_field(self, "conversion", number, 0.0, 1.0, open_low=True)
        check_field(self, "median", number, math.sqrt(SMALLEST_AMOUNT), math.sqrt(LARGEST_REWARD))
        check_field(self, "log_deviation", number, 0.0, 5.0)

    def params(self) -> RevenueParams:
        return RevenueParams(self.conversion, math.log(self.median), self.log_deviation)


REWARD_LAWS: dict[str, type[RewardLaw]] = {
    "bernoulli": Bernoulli,
    "bounded": Bounded,
    "normal": Normal,
    "counts": Counts,
    "revenue": Revenue,
}


def reward_law(name: str | RewardLaw | Mapping[str, Any], /, **parameters: Any) -> RewardLaw:
    """Return the reward law with this name, for the parameter ``rewards`` of an environment.

    Parameters
    ----------
    name
        A name, such as ``"normal"``, or a mapping with the name and parameters; a law is returned unchanged.
    parameters
        Parameters that differ from the defaults; `environments.REWARD_LAWS[name]` documents them.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.reward_law("normal", deviation=0.1)
    Normal(low=0.0, high=1.0, deviation=0.1)
    >>> db.reward_law({"name": "counts", "scale": 2})
    Counts(scale=2.0)
    """
    if isinstance(name, RewardLaw):
        if parameters:
            raise TypeError(f"parameters {sorted(parameters)} go with a law's name, not with {name!r}")
        return name
    if isinstance(name, Mapping):
        parameters = {**{key: value for key, value in name.items() if key != "name"}, **parameters}
        name = name.get("name", "")
    if not isinstance(name, str) or name not in REWARD_LAWS:
        raise unknown("reward law", name, REWARD_LAWS)
    check_parameter_names(f"reward law {name!r}", parameters, [field.name for field in fields(REWARD_LAWS[name])])
    return REWARD_LAWS[name](**parameters)
