"""ADWIN as Bifet & Gavalda (2007) write it, except that a change drops all rewards: lists, without compiled code."""

import math
from collections.abc import Sequence

Bucket = list[float]  # the rewards of a bucket, the oldest first


def added(buckets: list[Bucket], reward: float, most: int) -> list[Bucket]:
    """Section 3.2: a new bucket for each reward; of more than M buckets of one size, the two oldest are merged."""
    found = [*buckets, [reward]]
    size = 1
    while True:
        places = [place for place, bucket in enumerate(found) if len(bucket) == size]
        if len(places) <= most:
            return found
        oldest, next_one = places[:2]
        found[oldest : next_one + 1] = [found[oldest] + found[next_one]]
        size *= 2


def has_changed(buckets: Sequence[Bucket], delta: float) -> bool:
    """Figure 1 with the cut of theorem 3.1: m is the harmonic mean of n_0 and n_1 (half of it), delta' = delta / n."""
    rewards = [reward for bucket in buckets for reward in bucket]
    n = len(rewards)
    for border in range(1, len(buckets)):
        before = sum(len(bucket) for bucket in buckets[:border])
        first, second = rewards[:before], rewards[before:]
        m = 1 / (1 / len(first) + 1 / len(second))
        cut = math.sqrt(1 / (2 * m) * math.log(4 / (delta / n)))
        if abs(sum(first) / len(first) - sum(second) / len(second)) >= cut:
            return True
    return False


def restarts(rewards: Sequence[float], delta: float, every: int, most: int) -> tuple[list[int], list[Bucket]]:
    """The numbers of the rewards after which an arm restarts, and its buckets in the end."""
    found: list[int] = []
    buckets: list[Bucket] = []
    plays = 0
    for number, reward in enumerate(rewards, start=1):
        buckets = added(buckets, reward, most)
        plays += 1
        if plays % every == 0 and has_changed(buckets, delta):
            found.append(number)
            buckets, plays = [], 0
    return found, buckets
