"""Sequential tests: their error rate holds over all time, so they can be looked at after every observation.

Each accumulates evidence, a number that exceeds 1 / alpha at any time with probability at most alpha while the
hypothesis is true (an e-process, as in Ramdas, Grünwald, Vovk and Shafer, 2023).
"""

import math
from collections.abc import MutableSequence

from dynabandit.core.compilation import kernel

# The state of a test of a mean against a bound: count, sum, sum of squared deviations, and the evidence of each bet
COUNT, TOTAL, SQUARES, EVIDENCE = 0, 1, 2, 3
BETS = (0.5, 0.2, 0.08, 0.032, 0.0128, 0.005, 0.002)
SIZE = EVIDENCE + len(BETS)
FIRST_TESTED = 300  # observations that estimate the variance, if the values have no known range
LARGEST = 1e100  # of the evidence, so that it stays finite
FALSE_ALARM = 0.05  # probability of any false alarm, for all arms and metrics of a bandit together
SAMPLE_RATIO_PRIOR = 100.0  # observations that the prior of the sample-ratio test is worth


@kernel
def add_excess(state: MutableSequence[float], excess: float, room: float) -> float:
    """Add a value to the test that a mean never exceeds a bound, and return the evidence that it does.

    `excess` is the value minus the bound, and `room` the bound minus the smallest possible value; infinity if that is
    not known. For a lower bound, change the sign of both.

    Each bet multiplies its evidence by a number whose mean is at most 1 while the mean of the values is at most the
    bound. A new one begins at every observation t with the weight 1 / (t (t + 1)), so that a violation that begins late
    is found, too: after t observations below the bound it needs 2 log(t) more log evidence.

    Without a range, the first 300 values estimate the variance, and the test is valid asymptotically: the factors are
    those of Delyon (2009), which hold for every distribution with that variance.

    Examples
    --------
    >>> state = [0.0] * SIZE
    >>> evidence = [add_excess(state, 0.3, 0.5) for _ in range(40)]
    >>> round(evidence[0], 2), next(n for n, found in enumerate(evidence, 1) if found > 20)
    (1.04, 20)
    """
    count, total = state[COUNT] + 1.0, state[TOTAL] + excess
    before = state[TOTAL] / max(state[COUNT], 1.0)
    variance = state[SQUARES] / max(state[COUNT] - 1.0, 1.0)
    state[SQUARES] += (excess - before) * (excess - total / count)
    state[COUNT], state[TOTAL] = count, total
    tests = count if room < math.inf else count - FIRST_TESTED
    if tests < 1.0:
        return 1.0
    weight = 1.0 / (tests * (tests + 1.0))
    for k in range(len(BETS)):
        if room < math.inf:
            factor = 1.0 + BETS[k] * excess / room
        elif variance > 0.0:
            bet = BETS[k] / math.sqrt(variance)
            factor = math.exp(bet * excess - bet**2 * (excess**2 + 2.0 * variance) / 6.0)
        else:
            factor = 1.0
        state[EVIDENCE + k] = min((state[EVIDENCE + k] + weight) * factor, LARGEST)
    return evidence_of(state) + 1.0 / (tests + 1.0)


@kernel
def evidence_of(state: MutableSequence[float]) -> float:
    """Return the evidence of a test so far, without the little that later bets begin with."""
    evidence = 0.0
    for k in range(len(BETS)):
        evidence += state[EVIDENCE + k]
    return evidence / len(BETS)


def needed_evidence(column: int, first_arms: int, metrics: int) -> float:
    """Return the evidence at which an arm violates the bound of a metric.

    The rate of false alarms is divided between the metrics, equally, and between the arms: the first ones share one
    half of it, and arm number k of those that are added later gets first_arms / (k (k - 1)) of the other half. The sum
    over all arms, however many are added, is then at most `FALSE_ALARM`.

    Examples
    --------
    >>> needed_evidence(0, 5, 1), needed_evidence(5, 5, 2)
    (200.0, 480.0)
    """
    number = column + 1
    arms = first_arms if number <= first_arms else number * (number - 1) / first_arms
    return 2.0 * arms * metrics / FALSE_ALARM


def sample_ratio_evidence(inside: float, outside: float, share: float) -> float:
    """Return the evidence that observations belong to a group with another probability than `share`.

    This is the sequential test of Lindon and Malek (2022): the share against a beta prior around it, which is worth
    100 observations.

    Examples
    --------
    >>> round(sample_ratio_evidence(100, 900, 0.1), 2), sample_ratio_evidence(200, 800, 0.1) > 1e10
    (0.3, True)
    """
    prior_in, prior_out = SAMPLE_RATIO_PRIOR * share, SAMPLE_RATIO_PRIOR * (1.0 - share)
    mixture = _log_beta(prior_in + inside, prior_out + outside) - _log_beta(prior_in, prior_out)
    return math.exp(min(mixture - inside * math.log(share) - outside * math.log1p(-share), math.log(LARGEST)))


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
