"""Admission control: which requests may wait for the writer."""

import pytest

from dynabandit.service.admission import ALWAYS_ADMITTED, MAX_EVENTS_WAITING, AdmissionControl
from dynabandit.service.errors import OverloadedError


def count_admitted(admission: AdmissionControl, events: int = 1, priority: bool = False) -> int:
    """Return how many requests are admitted before one is refused."""
    for number in range(10_000):
        try:
            admission.enter(events, priority)
        except OverloadedError:
            return number
    raise AssertionError("there is no bound")


@pytest.mark.promise(54)
def test_requests_that_wait_for_each_other_have_a_lower_limit_than_those_that_wait_for_the_disk() -> None:
    assert count_admitted(AdmissionControl(1000, is_congested=lambda: True)) == ALWAYS_ADMITTED
    assert count_admitted(AdmissionControl(1000, is_congested=lambda: False)) == 1000
    assert count_admitted(AdmissionControl(8, is_congested=lambda: False)) == 8


@pytest.mark.promise(55)
def test_requests_with_priority_are_admitted_when_decisions_are_refused() -> None:
    admission = AdmissionControl(8)
    count_admitted(admission)
    assert admission.is_full()
    assert count_admitted(admission, priority=True) == 8


@pytest.mark.promise(54)
def test_a_large_request_counts_as_many() -> None:
    assert count_admitted(AdmissionControl(1000), events=10_000) == MAX_EVENTS_WAITING // 10_000
    huge = AdmissionControl(1000)
    huge.enter(10 * MAX_EVENTS_WAITING)
    assert huge.is_full(), "it is let in alone, and nothing beside it"


def test_an_answered_request_makes_room_for_another() -> None:
    admission = AdmissionControl(2)
    count_admitted(admission, events=100)
    admission.leave(100)
    assert (admission.is_full(), admission.requests, admission.events) == (False, 1, 100)
