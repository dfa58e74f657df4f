"""Change-point Thompson sampling with per-arm switching, literally: Mellor & Shapiro (2013), PA-CTS.

Every arm has a law of its run length, the steps since its mean last changed. At each step, every arm's law passes one
message: each run goes on with probability 1 - rate or ends with probability rate; for the arm that was played, both
are weighted by the predictive probability of the reward under the run's own Beta posterior. A run that ends leaves
the prior behind. All runs are kept, one for each step, and nothing is put together or passed over.

Where the rate is unknown, `rates` is a prior of equally likely ones, and the law is joint with the run length.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

History = Sequence[tuple[int, float]]


class Run(NamedTuple):
    """A hypothesis about one arm: it last changed `length` steps ago, under the rate of this number."""

    rate: int
    length: int
    probability: float
    a: float
    b: float


def runs(
    history: History, arm: int, rates: Sequence[float], prior: tuple[float, float], most: int | None = None
) -> list[Run]:
    """All hypotheses about an arm before step len(history) + 1; their probabilities sum to 1.

    With `most`, no more than so many different posteriors are kept of runs that have seen rewards: for a new one, the
    least likely goes. The paper resamples instead.
    """
    held = [Run(number, 0, 1 / len(rates), *prior) for number in range(len(rates))]
    for played, reward in history:
        if most is not None and played == arm:
            held = without_the_least_likely(held, prior, most)
        passed = []
        for number, rate in enumerate(rates):
            ended = []
            for run in (run for run in held if run.rate == number):
                a, b = run.a, run.b
                seen = run.probability
                if played == arm:
                    seen *= reward * a / (a + b) + (1 - reward) * b / (a + b)
                    a, b = a + reward, b + 1 - reward
                passed.append(Run(number, run.length + 1, (1 - rate) * seen, a, b))
                ended.append(rate * seen)
            passed.append(Run(number, 0, math.fsum(ended), *prior))
        total = math.fsum(run.probability for run in passed)
        held = [run._replace(probability=run.probability / total) for run in passed]
    return held


def without_the_least_likely(held: list[Run], prior: tuple[float, float], most: int) -> list[Run]:
    """Give up the runs with the least likely posterior, where there are too many to take in another one."""
    likely: dict[tuple[float, float], float] = {}
    for run in sorted(held, key=lambda run: -run.length):
        if (run.a, run.b) != prior:
            likely[run.a, run.b] = likely.get((run.a, run.b), 0.0) + run.probability
    if len(likely) < most:
        return held
    least = min(likely, key=lambda posterior: likely[posterior])
    return [run for run in held if (run.a, run.b) != least]


def draw(held: Sequence[Run], uniform: float, prior: tuple[float, float]) -> tuple[float, float]:
    """The Beta law of a run drawn by inverse transform: rate by rate from the longest run to the shortest.

    Runs that have seen no reward of the arm, all of which hold the prior, come last.
    """
    for run in sorted(held, key=lambda run: (run.rate, -run.length)):
        if (run.a, run.b) != prior:
            uniform -= run.probability
            if uniform < 0:
                return run.a, run.b
    return prior
