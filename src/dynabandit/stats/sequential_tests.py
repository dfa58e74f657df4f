"""Sequential tests: their error rate holds over all time, so they can be looked at after every observation.

Each accumulates evidence, a number that exceeds 1 / alpha at any time with probability at most alpha while the
hypothesis is true (an e-process, as in Ramdas, Grünwald, Vovk and Shafer, 2023).
"""

import math
from collections.abc import MutableSequence, Sequence

from dynabandit.core.compilation import kernel
from dynabandit.stats.confidence_sequences import has_enough_values

# The state of a test of a mean against a bound: count, sum and sum of squares (used without a range), evidence of bets
COUNT, TOTAL, SQUARES, EVIDENCE = 0, 1, 2, 3
BETS = (0.5, 0.2, 0.08, 0.032, 0.0128, 0.005, 0.002)
SIZE_WITH_RANGE = EVIDENCE + len(BETS)
# And of one without a range: sum of the distances from the bound, sum of the unfinished batch, whether that will be
# tested, number of tested batches, largest distance of a batch's mean from the bound, mean of the last batch, sum of
# the squared differences of consecutive means, sum of their squared deviations
DISTANCES, BATCH, IS_TESTED, TESTS, REACH, PREVIOUS, DIFFERENCES, DEVIATIONS = range(
    SIZE_WITH_RANGE, SIZE_WITH_RANGE + 8
)
SIZE = SIZE_WITH_RANGE + 8
BATCH_SIZE = 32.0  # values without a range that are tested together
FIRST_TESTED = 300.0  # effective number of values without a range before the first test
FEWEST_BATCHES = 100.0  # from which the share of the largest one and their correlation say something
LARGEST_SHARE = 0.1  # of one batch in the sum of squares, above which nothing is tested
LARGEST_CORRELATION = 0.2  # of consecutive batches
LARGEST = 1e100  # of the evidence, so that it stays finite
FALSE_ALARM = 0.05  # probability of any false alarm, for all arms and metrics of a bandit together
SAMPLE_RATIO_PRIOR = 100.0  # observations that the prior of the sample-ratio test is worth


def new_test(room: float) -> list[float]:
    """Return the state of a test without values; `room` is that of `add_excess`."""
    return [0.0] * (SIZE_WITH_RANGE if room < math.inf else SIZE)


@kernel
def add_excess(state: MutableSequence[float], excess: float, room: float) -> float:
    """Add a value to the test that a mean never exceeds a bound, and return the evidence that it does.

    `excess` is the value minus the bound, and `room` the bound minus the smallest possible value; infinity if that is
    not known. For a lower bound, change the sign of both.

    Each bet multiplies its evidence by a number whose mean is at most 1 while the mean of the values is at most the
    bound. A new one begins at every observation t with the weight 1 / (t (t + 1)), so that a violation that begins late
    is found, too: after t observations below the bound it needs 2 log(t) more log evidence.

    Without a range, an observation is the mean of a batch of values, and the bet is relative to the largest one so far.
    What an observation adds to the factor is cut off at 1 on both sides, so that the mean of the factor is at most 1 if
    the observation, given the earlier ones, is symmetric about a mean of at most the bound, whatever its variance is.
    Nothing is tested while a few large values or one batch make up most of the distance from the bound.

    Examples
    --------
    >>> state = new_test(0.5)
    >>> evidence = [add_excess(state, 0.3, 0.5) for _ in range(40)]
    >>> round(evidence[0], 2), next(n for n, found in enumerate(evidence, 1) if found > 20)
    (1.04, 20)
    """
    state[COUNT] += 1.0
    state[TOTAL] += excess
    if room < math.inf:
        return _bet(state, excess / room, math.inf, state[COUNT])
    state[DISTANCES] += abs(excess)
    state[SQUARES] += excess**2
    state[BATCH] += excess
    if state[COUNT] % BATCH_SIZE == 0.0:
        _end_batch(state)
    return evidence_of(state) + 1.0 / (state[TESTS] + 1.0)


@kernel
def _end_batch(state: MutableSequence[float]) -> None:
    """Bet on the mean of a batch of values without a range, and decide whether the next batch is tested."""
    mean, batches = state[BATCH] / BATCH_SIZE, state[COUNT] / BATCH_SIZE
    overall = state[TOTAL] / state[COUNT]
    if state[IS_TESTED] > 0.0:
        state[TESTS] += 1.0
        _bet(state, 2.0 * mean / state[REACH], 1.0, state[TESTS])
    if batches > 1.0:
        state[DIFFERENCES] += (mean - state[PREVIOUS]) ** 2
        mean_before = (state[TOTAL] - state[BATCH]) / (state[COUNT] - BATCH_SIZE)
        state[DEVIATIONS] += (mean - mean_before) * (mean - overall)
    state[BATCH], state[PREVIOUS] = 0.0, mean
    state[REACH] = max(state[REACH], abs(mean))
    squares = state[DEVIATIONS] + batches * overall**2
    has_small_batches = batches < FEWEST_BATCHES or state[REACH] ** 2 <= LARGEST_SHARE * squares
    has_enough = has_enough_values(state[DISTANCES], state[SQUARES], FIRST_TESTED)
    state[IS_TESTED] = 1.0 if has_enough and has_small_batches and state[REACH] > 0.0 else 0.0


@kernel
def _bet(state: MutableSequence[float], excess: float, largest: float, tests: float) -> float:
    """Multiply the evidence of each bet, by at most 1 + `largest`, and return the evidence of all."""
    weight = 1.0 / (tests * (tests + 1.0))
    for k in range(len(BETS)):
        factor = 1.0 + max(min(BETS[k] * excess, largest), -1.0)
        state[EVIDENCE + k] = min((state[EVIDENCE + k] + weight) * factor, LARGEST)
    return evidence_of(state) + 1.0 / (tests + 1.0)


@kernel
def evidence_of(state: MutableSequence[float]) -> float:
    """Return the evidence of a test so far, without the little that later bets begin with."""
    evidence = 0.0
    for k in range(len(BETS)):
        evidence += state[EVIDENCE + k]
    return evidence / len(BETS)


def unmet_condition(state: Sequence[float]) -> str | None:
    """Return why a test without a range may not be valid or finds nothing, as far as its values show it.

    Examples
    --------
    >>> state = new_test(math.inf)
    >>> for n in range(10_000):
    ...     evidence = add_excess(state, -1e6 if n == 5_000 else 1.0, math.inf)
    >>> unmet_condition(state)
    'a few values make up most of the distance from the bound'
    """
    batches = state[COUNT] // BATCH_SIZE if len(state) == SIZE else 0.0
    if batches < FEWEST_BATCHES:
        return None
    if state[IS_TESTED] == 0.0 and state[REACH] > 0.0:
        return "a few values make up most of the distance from the bound"
    if state[DEVIATIONS] > 0.0:
        correlation = 1.0 - state[DIFFERENCES] / (2.0 * state[DEVIATIONS])
        if correlation - 2.0 / math.sqrt(batches) > LARGEST_CORRELATION:
            return f"the means of consecutive batches of {BATCH_SIZE:g} values depend on each other"
    return None


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
