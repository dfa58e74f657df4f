"""Admission control: which requests may wait for the writer."""

from dynabandit.service.admission import ALWAYS_ADMITTED, MAX_EVENTS_WAITING, AdmissionControl
from dynabandit.service.errors import OverloadedError


def let_in(room: AdmissionControl, events: int = 1, priority: bool = False) -> int:
    """Return how many calls are let in before one is turned away."""
    for number in range(10_000):
        try:
            room.enter(events, priority)
        except OverloadedError:
            return number
    raise AssertionError("there is no bound")


def test_calls_that_wait_for_each_other_have_a_lower_bound_than_calls_that_wait_for_the_disk() -> None:
    assert let_in(AdmissionControl(1000, is_congested=lambda: True)) == ALWAYS_ADMITTED
    assert let_in(AdmissionControl(1000, is_congested=lambda: False)) == 1000
    assert let_in(AdmissionControl(8, is_congested=lambda: False)) == 8


def test_requests_with_priority_are_let_in_where_decisions_are_turned_away() -> None:
    room = AdmissionControl(8)
    let_in(room)
    assert room.is_full()
    assert let_in(room, priority=True) == 8


def test_large_calls_take_the_room_of_many() -> None:
    assert let_in(AdmissionControl(1000), events=10_000) == MAX_EVENTS_WAITING // 10_000
    huge = AdmissionControl(1000)
    huge.enter(10 * MAX_EVENTS_WAITING)
    assert huge.is_full(), "it is let in alone, and nothing beside it"


def test_whoever_leaves_makes_room() -> None:
    room = AdmissionControl(2)
    let_in(room, events=100)
    room.leave(100)
    assert (room.is_full(), room.requests, room.events) == (False, 1, 100)
