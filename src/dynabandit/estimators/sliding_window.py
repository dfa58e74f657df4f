"""A sliding window: the latest rewards have the same weight, older ones have none."""

from collections import deque

from dynabandit.core.compilation import kernel
from dynabandit.estimators import sample_mean
from dynabandit.estimators.base import Belief, Estimator, EstimatorFunctions
from dynabandit.estimators.sample_mean import Sums
from dynabandit.validation import integer


@kernel
def retract(state: Sums, reward: float) -> Sums:
    """Remove one reward; rounding errors do not move the mean out of [0, 1]."""
    plays = state.plays - 1.0
    if plays <= 0.0:
        return Sums(0.0, 0.0, 0.0)
    total = min(max(state.total - reward, 0.0), plays)
    return Sums(total, max(state.squares - reward * reward, 0.0), plays)


class SlidingWindow(Estimator):
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

    functions = EstimatorFunctions(sample_mean.observe, sample_mean.mean, retract)

    def __init__(self, window: int) -> None:
        self._rewards: deque[float] = deque()
        self.window = integer("window", window, 1)
        self.state = sample_mean.START

    def _observe(self, reward: float) -> Sums:
        state = self.state
        if len(self._rewards) == self.window:
            state = retract(state, self._rewards.popleft())
        self._rewards.append(reward)
        return sample_mean.observe(state, reward)

    @property
    def belief(self) -> Belief:
        return sample_mean.belief(self.state)

    @property
    def weight(self) -> float:
        return float(self.state.plays)
