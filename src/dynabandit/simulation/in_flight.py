"""Rewards in flight: a queue of the rewards that have not arrived yet, by the step of their arrival.

Each decision has a place in a ring, its step modulo the capacity of the queue. The places whose rewards arrive at the
same step form a linked list in the order of their decisions. The longest delay is smaller than the capacity, so a
place is free again when it is needed, and memory is bounded by the rewards in flight.
"""

import math
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import Stream
from dynabandit.environments.delays import AT_ONCE, LOST, NO_WINDOW, SETTLED, Delay, DelayParams, draw_delay
from dynabandit.stats import settling_age

# The rows of a queue; the columns of the first three are places, those of the last two are steps of arrival, modulo the
# capacity. With a window a decision has a second place, for the arrival of a positive reward.
# From `ROWS` on, the rows are the features of the decision, if the policy has a context.
ARM, VALUE, NEXT, FIRST, LAST = range(5)
ROWS = 5
NOTHING = -1  # instead of a place, and of an arm if nothing is learned


class InFlight(NamedTuple):
    """The rewards in flight of one replication."""

    queue: np.ndarray  # (ROWS + dimension, places)
    settling: np.ndarray  # the state of the settling age, empty without a window
    params: DelayParams


def empty_queue(delay: Delay, horizon: int, dimension: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a queue without rewards, and the state of the settling age, which is empty without a window."""
    places = delay.capacity(horizon) * (1 if delay.window is None else 2)
    queue = np.full((ROWS + dimension, places), float(NOTHING))
    settling = np.zeros(0 if delay.window is None else settling_age.SIZE)
    if delay.window is not None:
        settling_age.start(settling, float(delay.window))
    return queue, settling


@kernel
def capacity(flight: InFlight) -> int:
    """Return the number of steps that a reward can be in flight, this one included."""
    places = flight.queue.shape[1]
    return places if flight.params.window == NO_WINDOW else places // 2


@kernel
def put(queue: np.ndarray, place: int, bucket: int, arm: int, value: float) -> None:
    """Append a reward to the list of a step of arrival."""
    queue[ARM, place] = arm
    queue[VALUE, place] = value
    queue[NEXT, place] = NOTHING
    if queue[FIRST, bucket] < 0.0:
        queue[FIRST, bucket] = place
    else:
        queue[NEXT, int(queue[LAST, bucket])] = place
    queue[LAST, bucket] = place


@kernel
def send(flight: InFlight, arm: int, value: float, number: int, random: Stream) -> None:
    """Put the reward of a decision at step `number` into the queue."""
    queue, params, size = flight.queue, flight.params, capacity(flight)
    steps, place = draw_delay(params, arm, number, random), number % size
    if params.window == NO_WINDOW:
        if steps != LOST and steps < size:  # a longer delay would end after the horizon
            put(queue, place, (number + steps) % size, arm, value)
        return
    if value <= 0.0 or steps == LOST or steps > params.window:  # closed with the reward 0
        value = 0.0
        steps = params.window
    learned = params.window
    if params.rule == AT_ONCE:
        learned = steps
    elif params.rule == SETTLED:
        age = math.ceil(flight.settling[settling_age.AGE])
        learned = min(int(age), params.window)  # on a GPU, math.ceil returns a float
        if value > 0.0 and steps < size:  # its arrival is observed, and learned if it comes after the settling age
            put(queue, size + place, (number + steps) % size, arm if steps > learned else NOTHING, value)
        if steps > learned:
            value = 0.0
    if learned < size:
        put(queue, place, (number + learned) % size, arm, value)


@kernel
def keep_features(flight: InFlight, features: np.ndarray, number: int) -> None:
    """Keep the features of the decision at step `number` in its place, and in its second place if it has one."""
    queue, size = flight.queue, capacity(flight)
    for place in range(number % size, queue.shape[1], size):
        for i in range(features.size):
            queue[ROWS + i, place] = features[i]


@kernel
def take(flight: InFlight, number: int) -> int:
    """Return the place of the next reward that arrives at step `number`, and remove it; `NOTHING` if there is none."""
    queue, size = flight.queue, capacity(flight)
    bucket = number % size
    place = int(queue[FIRST, bucket])
    if place >= 0:
        queue[FIRST, bucket] = queue[NEXT, place]
        if place >= size:
            decided, window = decided_at(flight, place, number), float(flight.params.window)
            settling_age.observe(flight.settling, float(decided), float(number - decided), window)
            settling_age.update(flight.settling, float(number), window)
    return place


@kernel
def decided_at(flight: InFlight, place: int, number: int) -> int:
    """Return the step of the decision in a place: the latest one, up to step `number`, that the place belongs to."""
    return number - (number - place) % capacity(flight)


@kernel
def is_decision(flight: InFlight, place: int) -> bool:
    """Whether a place holds what is learned of a decision first; else it holds the arrival of a positive reward."""
    return place < capacity(flight)


class Learned(NamedTuple):
    """Rewards in the order in which a policy learned them."""

    arms: np.ndarray
    values: np.ndarray
    decided_at: np.ndarray
    arrived_at: np.ndarray


def learned_rewards(delay: Delay, arms: np.ndarray, rewards: np.ndarray, count: int, random: Stream) -> Learned:
    """Return what a policy learned in a replication with these plays and rewards, of `count` arms."""
    flight = InFlight(*empty_queue(delay, len(arms)), delay.params(count))
    learned = []
    for number, (arm, value) in enumerate(zip(arms.tolist(), rewards.tolist(), strict=True), start=1):
        send(flight, arm, float(value), number, random)
        while (place := take(flight, number)) >= 0:
            rewarded = int(flight.queue[ARM, place])
            if rewarded >= 0:
                learned.append((rewarded, flight.queue[VALUE, place], decided_at(flight, place, number), number))
    columns = np.array(learned, dtype=float).reshape(-1, 4).T
    return Learned(columns[0].astype(np.int64), columns[1], *columns[2:].astype(np.int64))
