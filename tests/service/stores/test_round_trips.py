"""What a commit costs on PostgreSQL: round trips, statements and locks."""

import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import httpx
import psycopg
import pytest

from dynabandit.client import Client
from dynabandit.service.domain.decision_details import read_details
from dynabandit.service.request_queue import MAX_LOCKED_BANDITS, WriterRequest, commits
from dynabandit.service.stores import BanditKey, Statements
from dynabandit.service.stores.postgres import LEADER_LOCKS, PostgresStore
from dynabandit.service.stores.rows import BanditUnit, BeginResult
from tools.harness import ARMS, Running, running, status_of, talking
from tools.waiting import PATIENCE, wait_for


class RecordingStore(PostgresStore):
    """A store that remembers each round trip as its statements, and how many locks each commit held."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.trips: list[list[str]] = []
        self.locks: list[int] = []
        self.conflicts = self.news = 0  # commits that were tried again, events that other processes wrote
        self._watcher = psycopg.connect(url, autocommit=True)

    def _execute(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        if " clock" not in statement:  # read after an interruption, such as on a busy machine
            self.trips.append([statement])
        return super()._execute(statement, values)

    def run(self, statements: Statements) -> list[list[tuple[Any, ...]]]:
        self.trips.append([statement for statement, _ in statements])
        return super().run(statements)

    def begin(
        self, known: Mapping[int, int], keys: Collection[BanditKey] = (), units: Collection[BanditUnit] = ()
    ) -> BeginResult:
        found = super().begin(known, keys, units)
        self.news += sum(map(len, found.events.values()))
        return found

    def rollback(self) -> None:
        self.conflicts += self.in_transaction
        super().rollback()

    def commit(self, *arguments: Any) -> None:
        count = "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database AND datname = current_database()"
        which = f"locktype = 'advisory' AND objid <> {LEADER_LOCKS['histories']}"
        found = self._watcher.execute(f"{count} WHERE {which}".encode()).fetchone()
        assert found is not None
        self.locks.append(found[0])
        super().commit(*arguments)

    def close(self) -> None:
        super().close()
        self._watcher.close()


@pytest.fixture
def recorded(postgres_url: str) -> Iterator[tuple[RecordingStore, Running, Client]]:
    """A service whose maintenance does not disturb the counts."""
    store = RecordingStore(postgres_url)
    with running(store, maintenance_seconds=1e6) as server, talking(server.url) as (client, _):
        for number in range(8):
            client.create(f"b{number}", ARMS)
        yield store, server, client


@pytest.mark.promise(108)
def test_a_commit_takes_two_round_trips_however_many_bandits_it_has(
    recorded: tuple[RecordingStore, Running, Client],
) -> None:
    store, _, client = recorded
    made = [client.decide(f"b{number}") for number in range(8)]
    store.trips.clear()
    store.locks.clear()
    client.decide("b0")
    decide = [["BEGIN", "EXECUTE lock_bandits (?)", "EXECUTE new_events (?, ?)", "EXECUTE used_keys (?, ?)"], 2]
    assert [store.trips[0], len(store.trips[1])] == decide
    assert client.reward(made[0].decision, 1)
    assert {one.status for one in client.reward_many((one.decision, 1) for one in made[1:])} == {200}
    assert [len(trip) for trip in store.trips] == [4, 2, 3, 2, 3, 2]
    assert all(trip[-1] == "COMMIT" for trip in store.trips[1::2])
    assert store.locks == [1, 1, 7]


@pytest.mark.promise(108)
def test_rewards_that_are_sent_again_do_not_take_a_round_trip_each(
    recorded: tuple[RecordingStore, Running, Client],
) -> None:
    store, server, client = recorded
    made = [one.decision for name in ("b0", "b1") for one in client.decide_many(name, 400)]
    # As if later decisions had taken their place in memory
    server.run_in_writer(lambda work: work.states[work.find("b1") or 0].open.clear())
    for value, status in ((1, 200), (1, 200), (0, 409)):
        store.trips.clear()
        assert {one.status for one in client.reward_many((one, value) for one in [*made, made[0]])} == {status}
        assert len(store.trips) < 40, "of 801 rewards, which are learned in slices"


@pytest.mark.promise(108)
def test_metrics_take_two_round_trips(recorded: tuple[RecordingStore, Running, Client]) -> None:
    store, _, client = recorded
    client.set_guardrails("b0", {metric: {"bound": 1, "direction": "max"} for metric in ("latency", "errors")})
    made = client.decide("b0")
    store.trips.clear()
    client.metrics(made.decision, {"latency": 2, "errors": 0})
    assert [len(trip) for trip in store.trips] == [4, 2]


@pytest.mark.promise(163)
def test_the_units_of_a_local_batch_are_looked_up_together(recorded: tuple[RecordingStore, Running, Client]) -> None:
    store, server, client = recorded
    client.create("held", ARMS, "ucb", seed=1, holdout={"share": 0.5})
    units = [f"u{number}" for number in range(100)]
    for decider in ("a" * 16, "b" * 16):
        store.trips.clear()
        decisions = [{"arm": 0, "unit": unit} for unit in units]
        batch = {"id": client.state("held").id, "decider": decider, "first": 1, "base": 1, "decisions": decisions}
        assert httpx.post(f"{server.url}/v1/bandits/held/local-decisions", json=batch).status_code == 200
        assert len([trip for trip in store.trips if any("FROM units" in one for one in trip)]) == 1
    with contextlib.closing(store.reader()) as reader:
        log = list(reader.log(reader.find_log("held", None)))
    uncounted = [read_details(event.body).uncounted for event in log if event.step]
    assert uncounted == [False] * 100 + [True] * 100


@pytest.mark.promise(108)
def test_calls_that_share_a_commit_share_its_round_trips(recorded: tuple[RecordingStore, Running, Client]) -> None:
    store, server, client = recorded
    begun, held = threading.Event(), threading.Event()
    loop = server.service.writer.requests.loop
    assert loop is not None

    def hold(work: object) -> None:
        begun.set()
        assert held.wait(PATIENCE)

    loop.call_soon_threadsafe(lambda: server.service.writer.submit(hold, alone=True))
    assert begun.wait(PATIENCE)
    store.trips.clear()
    callers = [
        threading.Thread(target=client.decide, args=(f"b{number % 8}", f"key {number}"), daemon=True)
        for number in range(24)
    ]
    for caller in callers:
        caller.start()
    wait_for(lambda: server.service.writer.admission.requests == 25)  # none can be served meanwhile
    held.set()
    for caller in callers:
        caller.join(PATIENCE)
    assert [len(trip) for trip in store.trips] == [1, 4, 2], "COMMIT of the one that was held, then one for all others"
    assert sum(client.state(f"b{number}").step for number in range(8)) == 24


@pytest.mark.promise(108)
def test_rewards_of_invented_ids_take_no_locks(recorded: tuple[RecordingStore, Running, Client]) -> None:
    store, _, client = recorded
    real = client.decide("b0").decision
    store.trips.clear()
    store.locks.clear()
    assert status_of(client.reward, f"{'0' * 12}-1", 1) == 404
    assert store.trips == []
    guessed = client.reward_many((f"{number:012}-1", 1) for number in range(10_000))
    assert ({one.status for one in guessed}, store.locks) == ({404}, [0])
    assert [len(trip) for trip in store.trips] == [3, 1], "ids without a signature are not even looked up"
    store.trips.clear()
    ids = store.decision_ids()
    erased = [ids.make(number, 1) for number in range(MAX_LOCKED_BANDITS - 1)]  # as after erasing their bandits
    statuses = [one.status for one in client.reward_many((one, 1) for one in [*erased, real])]
    assert statuses == [404] * len(erased) + [200]
    assert [len(trip) for trip in store.trips] == [1, 3, 2], "they are looked up at once"
    assert store.locks == [0, 1]


@pytest.mark.promise(78)
def test_a_commit_has_a_limited_number_of_bandits(recorded: tuple[RecordingStore, Running, Client]) -> None:
    store, _, client = recorded
    many = [(store.decision_ids().make(number, 1), 1.0) for number in range(MAX_LOCKED_BANDITS + 1)]
    with pytest.raises(Exception, match=r"422: rewards must belong to at most 1000 bandits per call, got 1001"):
        client.reward_many(many)
    small, large = WriterRequest(lambda work: None), WriterRequest(lambda work: None, bandits=range(600))
    alone = WriterRequest(lambda work: None, alone=True)
    asked = [small, small, large, large, small, alone, alone, small]
    assert list(commits(asked)) == [[small, small, large], [large, small], [alone], [alone], [small]]
    assert list(commits([])) == []


@pytest.mark.promise(68)
def test_two_processes_lock_bandits_in_the_same_order(postgres_url: str) -> None:
    """Each locks the same bandits again and again, given in opposite orders; a deadlock would fail one of them."""
    problems: list[BaseException] = []

    def lock(numbers: Sequence[int]) -> None:
        try:
            with contextlib.closing(PostgresStore(postgres_url)) as store:
                for _ in range(30):
                    store.begin(dict.fromkeys(numbers, 0))
                    store.commit(())
        except BaseException as error:
            problems.append(error)

    with contextlib.closing(PostgresStore(postgres_url)) as store:
        store.prepare()
    threads = [threading.Thread(target=lock, args=(numbers,)) for numbers in (range(50), range(49, -1, -1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert problems == []


def test_replicas_with_their_own_bandits_cost_no_more_than_one(
    recorded: tuple[RecordingStore, Running, Client],
) -> None:
    """As behind a load balancer that routes by the bandit: each commit takes two round trips and finds no news."""
    first, _, client = recorded
    second = RecordingStore(first.url)
    with running(second, maintenance_seconds=1e6) as server, talking(server.url) as (other, _):
        for number in range(8):
            (other if number % 2 else client).decide(f"b{number}")
        for store in (first, second):
            store.trips.clear()
        for turn in range(3):
            for number in range(8):
                replica = other if number % 2 else client
                decision = replica.decide(f"b{number}").decision
                assert replica.reward(decision, turn % 2, name=f"b{number}")
        for store in (first, second):
            assert [len(trip) for trip in store.trips] == [4, 2, 3, 2] * 12
            assert store.conflicts == 0
            assert store.news == 0


def test_one_replica_at_a_time_leads(postgres_url: str) -> None:
    """It keeps the histories of bandits that nobody looks at; when it ends, another one does."""
    one, two = PostgresStore(postgres_url), PostgresStore(postgres_url)
    with contextlib.closing(two):
        assert [one.is_leader(), two.is_leader(), one.is_leader()] == [True, False, True]
        one.close()
        wait_for(two.is_leader)
        assert two.is_leader()
        assert not one.is_leader()
        one.close()
