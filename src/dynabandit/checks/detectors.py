"""Checks of detectors: what one says of an arm follows from the arm's own rewards since its restart."""

from typing import Any

import numpy as np

from dynabandit.checks.estimators import require
from dynabandit.core.streams import Stream
from dynabandit.policies.base import PolicyState, Reward, Step
from dynabandit.policies.detectors import Detector
from dynabandit.policies.detectors.base import ALL_ARMS, NO_RESTART, THE_ARM
from dynabandit.policies.forced_exploration import NOT_FORCED
from dynabandit.policies.part import Setting

ARMS, REWARDS, SEED = 3, 2000, 3
SETTING = Setting(ARMS, horizon=4 * REWARDS)
MOST_ALARMS = REWARDS // 50
NOTHING = np.zeros(0)


class Tested:
    """A detector of some arms, as a policy would keep it."""

    def __init__(self, detector: Detector) -> None:
        self.kernels, self.params = detector.kernels, detector.params(SETTING)
        rows = len(self.kernels.slots) + detector.history_size(SETTING)
        shared = np.zeros(max(self.kernels.shared, 1))
        self.state = PolicyState(np.zeros((rows, ARMS)), shared, np.zeros(ARMS, dtype=np.int64))
        self.total, self.plays, self.number = np.zeros(ARMS), np.zeros(ARMS), 0
        for arm in range(ARMS):
            self.start(arm)

    def start(self, arm: int) -> None:
        """Let an arm start anew, as a policy does after a change."""
        self.total[arm] = self.plays[arm] = 0.0
        self.state.memory[:, arm] = 0.0
        self.kernels.start(self.state, arm, self.params)

    def learn(self, arm: int, value: float) -> int:
        """Learn a reward, and return whose rewards are to be forgotten."""
        self.number += 1
        self.total[arm] += value
        self.plays[arm] += 1.0
        reward, total, plays = Reward(value, self.number, self.number), float(self.total[arm]), float(self.plays[arm])
        found = int(self.kernels.observe(self.state, arm, reward, total, plays, self.params))
        valid = found in (NO_RESTART, THE_ARM, ALL_ARMS)
        require(valid, f"observe must return NO_RESTART, THE_ARM or ALL_ARMS, got {found}")
        return found

    def alarms(self, values: np.ndarray) -> list[int]:
        """Learn rewards of the first arm; return after how many of them something was to be forgotten."""
        found = []
        for place, value in enumerate(values.tolist(), 1):
            if self.learn(0, value) != NO_RESTART:
                found.append(place)
                for arm in range(ARMS):
                    self.start(arm)
        return found


def detector_declares_itself(detector: Detector) -> None:
    """The class has a name and kernels, and parameters that make an equal detector."""
    kind = type(detector)
    require(isinstance(getattr(kind, "name", None), str) and kind.name, "the class of a detector must have a name")
    require(kind(**detector.parameters) == detector, "the parameters must make an equal object")


def detector_keeps_arms_apart(detector: Detector) -> None:
    """A reward changes no number of another arm, and what is said of an arm does not depend on other arms."""
    tested, disturbed, generator = Tested(detector), Tested(detector), np.random.default_rng(SEED)
    for value in _change(generator).tolist():
        before = tested.state.memory[:, 1:].copy()
        found = tested.learn(0, value)
        require(np.array_equal(before, tested.state.memory[:, 1:]), "a reward of one arm must not change another arm")
        disturbed.state.memory[:, 1:] = generator.random(before.shape)
        disturbed.state.last_played[:] = generator.integers(1000)
        same = disturbed.learn(0, value) == found
        equal = np.array_equal(disturbed.state.memory[:, 0], tested.state.memory[:, 0])
        require(same and equal, "what is said of an arm must not depend on the numbers of other arms or on its plays")
        if found != NO_RESTART:
            return


def finds_a_change(detector: Detector) -> None:
    """Rewards that are all 0 and then all 1 are a change, and soon after it the arm forgets."""
    tested, half = Tested(detector), _length(detector)
    found = tested.alarms(np.repeat([0.0, 1.0], half))
    require(any(place > half for place in found), f"a change from {half} rewards of 0 to {half} of 1 must be found")


def is_quiet_without_a_change(detector: Detector) -> None:
    """Equal rewards, and rewards of a constant mean, cause few alarms."""
    generator = np.random.default_rng(SEED)
    for what, values in (
        ("equal rewards", np.full(REWARDS, 0.5)),
        ("rewards with a constant mean", (generator.random(REWARDS) < 0.5).astype(float)),
    ):
        alarms = len(Tested(detector).alarms(values))
        require(
            alarms <= MOST_ALARMS,
            f"{REWARDS} {what} must cause no alarm, or few of them: at most {MOST_ALARMS}, got {alarms}",
        )


def restarts_as_it_starts(detector: Detector) -> None:
    """After a restart, equal rewards have the same alarms as at the first start: nothing of earlier ones is left."""
    values, fresh, used = _change(np.random.default_rng(SEED)), Tested(detector), Tested(detector)
    used.alarms(values)
    for arm in range(ARMS):
        used.start(arm)
    first, later = fresh.alarms(values), used.alarms(values)
    require(
        first == later,
        "after a restart a detector must find changes as at first: what it knows of an arm must be in its column, "
        f"which is 0 before start; the alarms came after {first[:3]} rewards at first, and after {later[:3]} then",
    )


def explores_as_declared(detector: Detector) -> None:
    """`share` is a probability, a forced arm exists, and clocks are at least 1."""
    tested, generator, kernels = Tested(detector), np.random.default_rng(SEED), detector.kernels
    shared, params = tested.state.shared, tested.params
    for value in [None, *_change(generator)[:200].tolist()]:  # also before the first reward
        if value is not None and tested.learn(0, value) != NO_RESTART:
            tested.start(0)
        number = tested.number + 1
        if kernels.share is not None:
            share = float(kernels.share(shared, number, params))
            require(0.0 <= share <= 1.0, f"share must be in [0, 1], got {share} at step {number}")
        if kernels.forced is not None:
            turn = float(kernels.forced(shared, number, params))
            valid = turn == NOT_FORCED or -turn - 1.0 in range(ARMS)
            require(valid, f"forced must be NOT_FORCED or -1 - arm, got {turn} at step {number}")
        if kernels.clock is not None:
            _check_clock(kernels.clock(shared, number, params), number)
        if kernels.arm_clock is not None:
            step = Step(number, ARMS, 0.0, NOTHING, NOTHING, Stream(0, 0, 0))
            _check_clock(kernels.arm_clock(tested.state.memory[0, 0], step, params), number)


def _check_clock(clock: Any, number: int) -> None:
    require(clock >= 1.0, f"a clock must be at least 1, got {clock} at step {number}")


def _length(detector: Detector) -> int:
    """Return how many rewards before and after a change are enough for a detector."""
    return max(REWARDS // 2, 2 * detector.history_size(SETTING))


def _change(generator: np.random.Generator) -> np.ndarray:
    """Return rewards with a mean that changes once."""
    return (generator.random(REWARDS) < np.repeat([0.1, 0.9], REWARDS // 2)).astype(float)


DETECTOR_CHECKS = (
    detector_declares_itself, detector_keeps_arms_apart, restarts_as_it_starts, finds_a_change,
    is_quiet_without_a_change, explores_as_declared,
)  # fmt: skip
