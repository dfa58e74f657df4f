"""Estimators of the mean reward of an arm: views of memories, which keep and compute everything."""

import math
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.docstrings import inherit_parameters
from dynabandit.policies.belief import Belief
from dynabandit.policies.memories import adaptive, sample_mean, unit_free, window
from dynabandit.policies.memories.base import Memory
from dynabandit.policies.part import Setting
from dynabandit.policies.whole.robust_ucb import catoni_mean, check_confidence, robust_moments
from dynabandit.validation import BOUNDED, NORMAL, RewardDomain, integer, number

ONE_ARM = Setting(1)


@kernel
def keep_all(state: Any, reward: float) -> Any:
    """Keep the oldest reward."""
    return state


class EstimatorFunctions(NamedTuple):
    """The kernels of an estimator, which its objects and compiled code call.

    Examples
    --------
    >>> from dynabandit.estimators import FixedForgetting
    >>> functions, estimate = FixedForgetting.functions, FixedForgetting(0.5)
    >>> functions.mean(functions.observe(estimate.state, 1.0, *estimate.params))
    1.0
    """

    observe: Callable[..., Any]
    """observe(state, reward, *params): return the next state, of the same type; `state` is a named tuple of floats."""
    mean: Callable[[Any], float]
    """mean(state): return the estimated mean after at least one reward."""
    retract: Callable[[Any, float], Any] = keep_all
    """retract(state, reward): return the state without its oldest reward, for an estimator with a window."""


class Estimator:
    """Base class of the estimator objects.

    A subclass sets `state` in its constructor, defines `functions`, `belief` and `weight`, and sets `params` if
    `functions.observe` has parameters.

    Examples
    --------
    >>> from dynabandit.estimators import FixedForgetting
    >>> estimate = FixedForgetting(0.5).update(1).update(0)
    >>> isinstance(estimate, Estimator), estimate
    (True, FixedForgetting(mean 0.3333, weight 1.5))
    """

    functions: ClassVar[EstimatorFunctions]
    rewards: ClassVar[RewardDomain] = BOUNDED  # which rewards it accepts
    state: Any
    """What the estimator remembers, a named tuple of floats."""
    params: tuple[Any, ...] = ()
    """The further arguments of `functions.observe`."""
    window: int = 0
    """How many of the latest rewards count, if `functions.retract` removes older ones."""

    def update(self, reward: float) -> "Estimator":
        """Update the estimator with a reward.

        Parameters
        ----------
        reward
            A number, by default in [0, 1], or a bool.

        Returns
        -------
        Estimator
            The estimator itself, so that calls can be chained.
        """
        self.state = self._observe(self.rewards.check(reward))
        return self

    def _observe(self, reward: float) -> Any:
        return self.functions.observe(self.state, reward, *self.params)

    @property
    def belief(self) -> Belief:
        """Mean, variance, forgetting and effective size."""
        raise NotImplementedError

    @property
    def mean(self) -> float:
        """The estimated mean reward; NaN before the first reward."""
        return self.belief.mean

    @property
    def variance(self) -> float:
        """The estimated variance of a reward; 0 if there is too little data."""
        return self.belief.variance

    @property
    def forgetting(self) -> float:
        """The factor by which the next reward discounts earlier ones; 1 forgets nothing."""
        return self.belief.forgetting

    @property
    def effective_size(self) -> float:
        """The number of equally weighted rewards whose mean has the same precision."""
        return self.belief.effective_size

    @property
    def weight(self) -> float:
        """The sum of the weights of all rewards so far."""
        raise NotImplementedError

    def __repr__(self) -> str:
        mean = "nothing observed" if math.isnan(self.mean) else f"mean {self.mean:.4g}"
        return f"{type(self).__name__}({mean}, weight {self.weight:.4g})"


class MemoryEstimator(Estimator):
    """An estimator whose state are the numbers that a memory keeps for an arm."""

    memory_kind: ClassVar[type[Memory]]  # its descriptions of parameters hold for the estimator, too

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "memory_kind" in vars(cls):
            inherit_parameters(cls, cls.memory_kind)

    def __init__(self, memory: Memory, state: Any) -> None:
        self._memory = memory
        self.params = (memory.params(ONE_ARM),)
        self.state = state

    @property
    def belief(self) -> Belief:
        return self._memory.belief(np.array(self.state), np.zeros(1), ONE_ARM)

    @property
    def weight(self) -> float:
        return float(self.state.w)


class SampleMean(MemoryEstimator):
    """Mean and variance of all rewards so far with equal weights.

    Use it for constant means. It reacts slowly to changes: after n rewards, a new reward changes the mean by 1/n of its
    deviation.

    Examples
    --------
    >>> from dynabandit.estimators import SampleMean
    >>> estimate = SampleMean()
    >>> for reward in (1, 0, 0, 1):
    ...     _ = estimate.update(reward)
    >>> estimate.mean, estimate.effective_size
    (0.5, 4.0)

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2.
    """

    functions = EstimatorFunctions(sample_mean.observe, sample_mean.mean)

    def __init__(self) -> None:
        super().__init__(sample_mean.SampleMean(), sample_mean.START)

    @property
    def weight(self) -> float:
        return float(self.state.plays)


class SlidingWindow(SampleMean):
    """Mean and variance of the latest rewards, at a cost that does not depend on the window length.

    Use it if the time between changes is known.

    Parameters
    ----------
    window
        The number of rewards in the window, at least 1.

    Examples
    --------
    >>> from dynabandit.estimators import SlidingWindow
    >>> estimate = SlidingWindow(window=2)
    >>> for reward in (0, 0, 1, 1):
    ...     _ = estimate.update(reward)
    >>> estimate.mean
    1.0

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    functions = EstimatorFunctions(sample_mean.observe, sample_mean.mean, window.retract)

    def __init__(self, window: int) -> None:
        super().__init__()
        self._rewards: deque[float] = deque()
        self.window = integer("window", window, 1)

    def _observe(self, reward: float) -> Any:
        if len(self._rewards) == self.window:
            self.state = window.retract(self.state, self._rewards.popleft())
        self._rewards.append(reward)
        return super()._observe(reward)


class FixedForgetting(MemoryEstimator):
    """Mean and variance with weights that decrease geometrically with the age of a reward.

    Use it if the rate of change is known.

    Parameters
    ----------
    forgetting
        The factor per reward, in [0, 1]; 1 gives the sample mean, 0 the latest reward.

    Examples
    --------
    >>> from dynabandit.estimators import FixedForgetting
    >>> estimate = FixedForgetting(0.9)
    >>> for reward in (0, 0, 1, 1):
    ...     _ = estimate.update(reward)
    >>> round(estimate.mean, 4)
    0.5525

    References
    ----------
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 2.
    """

    functions = EstimatorFunctions(adaptive.observe, adaptive.mean)

    def __init__(self, forgetting: float) -> None:
        first = adaptive.START._replace(forgetting=number("forgetting", forgetting, 0.0, 1.0))
        super().__init__(adaptive.Adaptive(step_size=0), first)


class AdaptiveForgetting(MemoryEstimator):
    """Mean and variance with a forgetting factor that adapts to the rate of change.

    The memory `dynabandit.memories.Adaptive` explains how. Use it if the rate of change is unknown.

    Examples
    --------
    >>> from dynabandit.estimators import AdaptiveForgetting
    >>> estimate = AdaptiveForgetting(step_size=0.001)
    >>> for reward in [0] * 200 + [1] * 30:
    ...     _ = estimate.update(reward)
    >>> round(estimate.mean, 2), round(estimate.forgetting, 2)
    (0.64, 0.52)

    The sample mean of the same rewards is 0.13.
    """

    memory_kind: ClassVar[type[Memory]] = adaptive.Adaptive
    functions = EstimatorFunctions(adaptive.observe, adaptive.mean)

    def __init__(self, step_size: float | str = 0.001, floor: float = 0.0, loss: str = "squared-error") -> None:
        super().__init__(adaptive.Adaptive(step_size=step_size, floor=floor, loss=loss), adaptive.START)


class UnitFreeForgetting(AdaptiveForgetting):
    """Adaptive forgetting for rewards in any unit: all rewards times a constant give the same forgetting factors.

    Rewards may be any numbers. The memory `dynabandit.memories.UnitFree` explains how the step size has no unit.

    Examples
    --------
    >>> from dynabandit.estimators import UnitFreeForgetting
    >>> euros, cents = UnitFreeForgetting(), UnitFreeForgetting()
    >>> for reward in [3, 5, 4, 4, 3, 5] * 30 + [9, 11, 10] * 10:
    ...     _ = euros.update(reward), cents.update(100 * reward)
    >>> round(euros.mean, 1), round(cents.mean), round(euros.forgetting, 2), round(cents.forgetting, 2)
    (8.5, 847, 0.67, 0.67)
    """

    memory_kind = unit_free.UnitFree
    functions = EstimatorFunctions(unit_free.observe_unit_free, adaptive.mean)
    rewards = NORMAL

    def __init__(self, step_size: float = 0.0001, floor: float = 0.0) -> None:
        MemoryEstimator.__init__(self, unit_free.UnitFree(step_size=step_size, floor=floor), adaptive.START)


class CatoniMean(Estimator):
    r"""A robust mean of the latest rewards, for heavy tails.

    One extreme reward can spoil a sample mean; here its influence grows only with the logarithm of its size. Rewards
    may be any numbers.

    Parameters
    ----------
    window
        How many of the latest rewards count.
    confidence
        The probability with which the error may be large, in (0, 1): a small one makes the mean more robust.

    Examples
    --------
    >>> from dynabandit.estimators import CatoniMean
    >>> estimate = CatoniMean(window=100)
    >>> for reward in [1, 2, 3, 2, 1, 3, 2, 2] * 6 + [1000]:
    ...     _ = estimate.update(reward)
    >>> round(estimate.mean, 1), round((96 + 1000) / 49, 1)
    (2.6, 22.4)

    Notes
    -----
    The root theta of an equation with the n rewards in the window. The variance v is the median of the variances of
    five blocks of them, so that extreme rewards do not inflate it; with less than ten rewards, the sample variance:

    .. math:: \sum_i \psi\left( \alpha (x_i - \theta) \right) = 0, \quad \psi(x) = \mathrm{sign}(x) \log\left( 1 + |x| +
        \frac{x^2}{2} \right), \quad \alpha = \sqrt{\frac{- 2 \log(\mathrm{confidence})}{n v}}

    References
    ----------
    Catoni (2012), Challenging the empirical mean and empirical variance: a deviation study. Annales de l'IHP 48.
    """

    rewards = NORMAL

    def __init__(self, window: int = 100, confidence: float = 0.05) -> None:
        self.window = integer("window", window, 1)
        self.confidence = check_confidence(confidence)
        self.state: tuple[float, ...] = ()

    def _observe(self, reward: float) -> tuple[float, ...]:
        return (*self.state, reward)[-self.window :]

    @property
    def belief(self) -> Belief:
        if not self.state:
            return Belief(math.nan, 0.0, 1.0, 0.0)
        rewards = np.array(self.state)
        moments = robust_moments(rewards)
        mean = catoni_mean(rewards, moments, -math.log(self.confidence))
        return Belief(float(mean), float(moments.variance), 1.0, float(len(rewards)))

    @property
    def weight(self) -> float:
        return float(len(self.state))
