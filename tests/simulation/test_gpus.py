"""How a simulation is divided among GPUs and their lanes; tools/gpu_cases.py compares results with those of the CPU."""

import contextlib
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.philox import MASK, philox
from dynabandit.core.streams import stream
from dynabandit.simulation.cuda import devices, launch
from dynabandit.simulation.cuda.devices import run_divided
from dynabandit.simulation.cuda.group_shapes import LANES, MOST_ROUNDS, GroupShape, group_shape, in_step
from dynabandit.simulation.cuda.philox_words import philox_in_words
from dynabandit.simulation.request import Progress, SimulationRequest
from dynabandit.simulation.stepper import empty_record
from tools.waiting import wait_for

Report = list[tuple[int, int]]


class FakeGpus:
    """GPUs that note which of them a thread has activated."""

    def __init__(self, free: list[int]) -> None:
        self.free, self.active = free, threading.local()

    @contextlib.contextmanager
    def activated(self, number: int) -> Iterator[None]:
        self.active.number = number
        yield
        del self.active.number

    def all(self) -> list[contextlib.AbstractContextManager[None]]:
        return [self.activated(number) for number in range(len(self.free))]

    def free_bytes(self) -> int:
        return self.free[self.active.number]


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> FakeGpus:
    """Three GPUs of different sizes."""
    fakes = FakeGpus([1 << 30, 1 << 20, 1 << 30])
    monkeypatch.setattr(devices, "all_devices", fakes.all)
    monkeypatch.setattr(devices, "free_bytes", fakes.free_bytes)
    monkeypatch.setattr(launch, "free_bytes", fakes.free_bytes)
    return fakes


@pytest.mark.parametrize(
    ("replications", "parts"), [(8, {(0, 2), (2, 5), (5, 8)}), (3, {(0, 1), (1, 2), (2, 3)}), (2, {(0, 1), (1, 2)})]
)
def test_each_gpu_gets_its_share_and_its_own_thread(
    gpus: FakeGpus, replications: int, parts: set[tuple[int, int]]
) -> None:
    ran: dict[tuple[int, int], tuple[int, str]] = {}

    def run_part(low: int, high: int, progress: Progress) -> None:
        ran[low, high] = (gpus.active.number, threading.current_thread().name)

    run_divided(run_part, replications, 10, lambda done, total: None)
    assert ran.keys() == parts
    assert [ran[part][0] for part in sorted(parts)] == list(range(len(parts)))
    assert threading.current_thread().name not in {name for _, name in ran.values()}


def test_progress_is_that_of_all_gpus(gpus: FakeGpus) -> None:
    seen: Report = []

    def run_part(low: int, high: int, progress: Progress) -> None:
        for done in range(1, 11):
            progress(done * (high - low), 10 * (high - low))

    run_divided(run_part, 8, 10, lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert len(seen) == 30
    assert seen[-1] == (80, 80)


@pytest.mark.parametrize("culprit", ["part", "progress"])
def test_an_error_stops_all_gpus_and_is_raised(gpus: FakeGpus, culprit: str) -> None:
    failed = threading.Event()
    reports: Report = []

    def run_part(low: int, high: int, progress: Progress) -> None:
        if low == 5:
            failed.set()
        if low == 5 and culprit == "part":
            raise OSError("the third GPU is lost")
        failed.wait()
        wait_for(lambda: progress(1, 10))  # until it raises an error

    def report(done: int, total: int) -> None:
        reports.append((done, total))
        if culprit == "progress":
            raise OSError("the third GPU is lost")

    with pytest.raises(OSError, match="the third GPU is lost"):
        run_divided(run_part, 8, 10, report)
    assert len(reports) == 1 or culprit == "part"


def test_the_memory_of_each_gpu_limits_its_batches(gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: dict[int, list[tuple[int, int]]] = {}

    class FakeBatch:
        def __init__(self, request: SimulationRequest, *rest: object) -> None:
            first = request.random.replication
            self.range = (first, first + request.replications)

        def run(self, *progress: int) -> None:
            batches.setdefault(gpus.active.number, []).append(self.range)

    monkeypatch.setattr(launch, "_Batch", FakeBatch)
    world, times = db.environment("case-3", arms=100), np.array([10])
    request = SimulationRequest(world, {"ucb": db.policy("ucb")}, 10, 900, stream(1, 100), times)
    launch.run(request, {"ucb": empty_record(times, 900, 0)})
    assert batches[0] == [(100, 400)]
    assert batches[2] == [(700, 1000)]
    assert len(batches[1]) > 1
    assert batches[1][0][0] == 400
    assert batches[1][-1][1] == 700
    assert [end for _, end in batches[1][:-1]] == [start for start, _ in batches[1][1:]]
    assert devices.least_free_bytes() == 1 << 20


@pytest.mark.parametrize("arms", [2, 3, 10, 50, 100, 101, 500, 5000])
def test_lane_groups_are_narrow_if_replications_are_many(arms: int) -> None:
    widths = []
    for replications in (1, 100, 10_000, 100_000, 10_000_000):
        shape = group_shape(arms, replications)
        assert shape.rounds == 0 or (shape.rounds - 1) * shape.width < arms <= shape.rounds * shape.width
        assert shape.rounds <= MOST_ROUNDS
        widths.append(shape.width)
    assert widths[0] == widths[1] == min(LANES, 1 << (arms - 1).bit_length())
    assert widths == sorted(widths, reverse=True)


def test_a_large_block_keeps_in_step_if_replications_are_many() -> None:
    shape = GroupShape(8, 13)
    assert in_step(shape, 10_000) == GroupShape(8, 13, 640, True)
    assert in_step(shape, 1000) == GroupShape(8, 13, shape.threads, True)


def test_words_of_a_gpu_are_those_of_philox() -> None:
    keys = np.random.default_rng(1).integers(0, 1 << 40, size=(50, 6)).tolist()
    for key in [[0] * 6, [MASK] * 6, *keys]:
        assert philox_in_words(*key) == philox(*key)
