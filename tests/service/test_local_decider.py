"""Local decisions: made in the caller's process, stored once, and made again by `verify`."""

import contextlib
import os
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

import dynabandit as db
from dynabandit.client import Client, ServiceError, early_rewards, local_decider
from dynabandit.client.local_log import HEADER
from dynabandit.service.api_types import DeciderState, Event
from dynabandit.service.command_line import app
from dynabandit.service.compaction import compact
from dynabandit.service.decider_contacts import DeciderContacts
from dynabandit.service.domain import local_decisions, local_replay
from dynabandit.service.domain.deciders import DeciderProgress, Deciders
from dynabandit.service.local_state_cache import MAX_AGE
from dynabandit.service.local_types import LocalBatch, LocalDecision
from dynabandit.service.metrics import ServiceMetrics
from dynabandit.service.stores import open_store
from dynabandit.service.verify import Verification, verify
from tools.harness import ARMS, ManualClock, Running, assert_replay_agrees, running, talking
from tools.proxy import Proxy, address
from tools.waiting import PATIENCE, wait_for

NEVER = 1e6  # seconds: tests exchange when they want to
Make = Callable[..., db.LocalDecider]


@pytest.fixture
def make(server: Running, tmp_path: Path) -> Iterator[Make]:
    """Makes deciders of the bandit "b" that do nothing in the background."""
    made: list[db.LocalDecider] = []

    def make(url: str = server.url, folder: Path = tmp_path / "local", **options: Any) -> db.LocalDecider:
        options = {"refresh_seconds": NEVER, "flush_seconds": NEVER, "timeout": PATIENCE, **options}
        made.append(db.LocalDecider(url, "b", folder, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def local_events(client: Client) -> list[Event]:
    return [event for event in client.events("b", kind="decision") if event.decider is not None]


def proof(decider: db.LocalDecider) -> dict[str, str]:
    """The headers of a batch of a decider."""
    return {"Content-Type": "application/json", "Decider-Secret": decider._sender.log.secret or ""}


def kill(decider: db.LocalDecider) -> None:
    """Let a decider end as a killed process does: nothing more is written or sent."""
    decider._closing.set()
    decider._client.close()
    for log in (*decider._sender.others, decider._sender.log):
        os.close(log._file)


def test_decisions_and_rewards_reach_the_service(client: Client, make: Make, server: Running) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    decider = make()
    made = [decider.decide() for _ in range(30)]
    for one in made[:20]:
        decider.reward(one.decision, one.arm == "blue")
    assert (decider.waiting, client.state("b").step) == (50, 0), "nothing was sent yet"
    decider.sync()
    assert (decider.waiting, decider.rejected, decider.problem) == (0, 0, None)
    events = local_events(client)
    assert [(one.arm, one.local_step, one.decider, one.base) for one in events] == [
        (one.arm, one.step, decider.id, 1) for one in made
    ]
    rewarded = {event.step: event.reward for event in client.events("b", kind="reward")}
    assert rewarded == {step: float(made[step - 1].arm == "blue") for step in range(1, 21)}
    later = [decider.decide() for _ in range(5)]
    decider.sync()
    assert {one.base for one in local_events(client)[30:]} == {51}, "the state after the rewards"
    assert [one.step for one in later] == list(range(31, 36))
    assert_replay_agrees(server.store.url)


@pytest.fixture
def server(sqlite_server: Running) -> Running:
    return sqlite_server


def verified(url: str) -> Verification:
    with contextlib.closing(open_store(url)) as store:
        [found] = verify(store)
    return found


@pytest.mark.promise(181)
def test_a_batch_that_is_sent_again_changes_nothing(client: Client, http: httpx.Client, make: Make) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    decider = make()
    for one in decider.decide_many(4):
        decider.reward(one.decision, 1)
    decider.flush()
    batch = decider._sender.log.first()
    answers = [http.post("/v1/bandits/b/local-decisions", content=batch, headers=proof(decider)) for _ in range(2)]
    assert [one.status_code for one in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    decider.sync()
    assert (client.state("b").sequence, client.state("b").step) == (9, 4)


@pytest.mark.promise(181, 191)
def test_deciders_that_the_state_has_forgotten_are_found_in_the_log(
    client: Client, http: httpx.Client, make: Make, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynabandit.service.domain.deciders.MAX_DECIDERS", 1)
    client.create("b", ARMS, "ucb", seed=3)
    batches = []
    for decider in (make(), make()):
        made = decider.decide_many(3)
        decider.reward(made[1].decision, 1)
        decider.flush()
        batches.append((decider._sender.log.first(), proof(decider)))
    for batch, headers in batches * 2:
        answer = http.post("/v1/bandits/b/local-decisions", content=batch, headers=headers)
        assert [one["status"] for one in answer.json()["results"]] == [200]
    state = client.state("b")
    assert (state.step, state.sequence) == (6, 9)
    assert len([one for one in state.deciders if one.step]) == 1
    assert_replay_agrees(server.store.url)


@pytest.mark.promise(181)
def test_replicas_store_a_batch_once(postgres_url: str, make: Make) -> None:
    with running(open_store(postgres_url)) as first, running(open_store(postgres_url)) as second:
        with Client(first.url, timeout=PATIENCE) as client:
            client.create("b", ARMS, "ucb", seed=3)
            decider = make(first.url)
            for number in range(1, 6):
                for one in decider.decide_many(10):
                    decider.reward(one.decision, 1)
                decider.flush()
                batch = decider._sender.log.first()

                def send(url: str, batch: bytes | None = batch) -> int:
                    path, headers = f"{url}/v1/bandits/b/local-decisions", proof(decider)
                    return httpx.post(path, content=batch, headers=headers, timeout=PATIENCE, verify=False).status_code

                with ThreadPoolExecutor(4) as threads:
                    assert list(threads.map(send, [first.url, second.url] * 2)) == [200] * 4
                assert client.state("b").step == 10 * number
                decider.sync()
            assert [one.local_step for one in local_events(client)] == list(range(1, 51))
            assert len(list(client.events("b", kind="reward"))) == 50
    assert_replay_agrees(postgres_url)


def test_batches_are_sent_in_the_background(client: Client, make: Make) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    decider = make(refresh_seconds=0.01, flush_seconds=0.01)
    decider.decide_many(3)
    wait_for(lambda: client.state("b").step == 3 and decider.waiting == 0)
    assert decider.problem is None


def test_threads_share_a_decider(client: Client, make: Make, server: Running) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    decider = make(refresh_seconds=0.01, flush_seconds=0.01)

    def decide(_: int) -> list[str]:
        made = decider.decide_many(50)
        for one in made:
            decider.reward(one.decision, one.arm == "blue")
        return [one.decision for one in made]

    with ThreadPoolExecutor(8) as threads:
        found = [decision for some in threads.map(decide, range(16)) for decision in some]
    assert len(set(found)) == 800
    decider.sync()
    assert (client.state("b").step, decider.rejected) == (800, 0)
    assert_replay_agrees(server.store.url)


def test_texts_that_cannot_be_sent_are_refused_in_the_call_that_has_them(
    client: Client, http: httpx.Client, make: Make
) -> None:
    asked = {"arms": ARMS, "policy": "lin-ucb", "features": {"page": "hashed"}}
    assert http.put("/v1/bandits/b", json=asked).status_code == 201
    decider, context = make(), {"page": {"path": "/"}}
    made = decider.decide(context)
    half = "\ud83d"  # of a surrogate pair
    wrong: dict[str, Any]
    for wrong in ({"page": {"path": half}}, {"page": {half: 1}}, {half: {}}):
        with pytest.raises(ValueError, match="context must have text that UTF-8 can hold"):
            decider.decide(wrong)
    with pytest.raises(ValueError, match="unit must be text that UTF-8 can hold"):
        decider.decide(context, unit=half)
    with pytest.raises(TypeError, match="unit must be a string"):
        decider.decide(context, unit=b"user-1")  # type: ignore[arg-type]
    for wrong_id in (f"{decider.id[:15]}\n-1", f"{decider.id[:15]}{half}-1", f"{decider.id}-\u0661"):
        with pytest.raises(ValueError, match="decision"):
            decider.reward(wrong_id, 1)
    decider.decide(context, unit=np.str_("user-1"))  # a text of another class, as data frames have
    decider.decide(context, unit="user-\U0001f600")
    decider.reward(made.decision, 1)
    decider.sync()
    assert [one.unit for one in local_events(client)] == [None, "user-1", "user-\U0001f600"]
    assert (decider.waiting, decider.rejected, decider.problem) == (0, 0, None)


def test_batches_stay_when_they_cannot_be_written_for_any_reason(
    client: Client, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    decider = make()
    decider.decide_many(3)
    with monkeypatch.context() as patched:
        patched.setattr("dynabandit.client.local_log.encoded", lambda batch: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            decider.flush()
    decider.sync()
    assert [one.local_step for one in local_events(client)] == [1, 2, 3]


def test_a_child_cannot_decide_under_the_ids_of_its_parent(client: Client, make: Make) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    decider = make()
    local_decider.close_in_child()
    with pytest.raises(ServiceError, match="before a fork"):
        decider.decide()
    kill(decider)


@pytest.mark.promise(180)
def test_the_state_is_returned_if_it_is_new(client: Client, http: httpx.Client) -> None:
    state = client.create("b", ARMS, "ucb", seed=3)
    first = http.get("/v1/bandits/b/local-state").json()
    assert (first["id"], first["sequence"], first["name"]) == (state.id, 1, "b")
    assert db.Bandit.from_json(first["bandit"]).names == ARMS
    assert http.get("/v1/bandits/b/local-state?after=1").json()["bandit"] is None
    client.decide("b")
    for after in (1, 3):  # 3: a decider that knows a state that was lost with the store
        second = http.get(f"/v1/bandits/b/local-state?after={after}&at_least=2").json()
        assert db.Bandit.from_json(second["bandit"]).step == 1
    assert http.get("/v1/bandits/b/local-state?after=2").json()["bandit"] is None


def test_steps_that_are_known_and_new_ones_in_one_batch(client: Client, http: httpx.Client) -> None:
    state = client.create("b", ARMS, "ucb", seed=3)
    for first, count, step in ((1, 2, 2), (2, 3, 4), (1, 4, 4), (9, 1, 9)):
        sent = {**batch_of(state.id), "first": first, "decisions": [{"arm": 1}] * count}
        answer = http.post("/v1/bandits/b/local-decisions", json=sent).json()
        assert (answer["step"], answer["results"]) == (step, [])
    assert [one.local_step for one in local_events(client)] == [1, 2, 3, 4, 9]


@pytest.mark.promise(192)
def test_nobody_can_send_decisions_under_the_id_of_another_decider(
    client: Client, http: httpx.Client, make: Make, server: Running
) -> None:
    identity = client.create("b", ARMS, "ucb", seed=3).id
    decider, other = make(), make()
    decider.decide_many(5)
    decider.sync()
    before, [listed] = client.state("b").sequence, [one for one in client.state("b").deciders if one.step]
    forged = {**batch_of(identity), "decider": listed.id, "first": 2**48 - 1, "decisions": [{"arm": 1}]}
    foreign = other._sender.log.secret or ""
    for secret in (None, foreign, "x" * 256, "\xe9"):
        headers = httpx.Headers({} if secret is None else {"Decider-Secret": secret}, encoding="latin-1")
        for first in (1, 6, 2**48 - 1):
            answer = http.post("/v1/bandits/b/local-decisions", json={**forged, "first": first}, headers=headers)
            assert (answer.status_code, foreign in answer.text) == (422, False), answer.text
            assert answer.json()["problem"].startswith("Decider-Secret must ")
    assert client.state("b").sequence == before
    decider.decide_many(100)
    decider.sync()
    assert [one.local_step for one in local_events(client)] == list(range(1, 106))
    kill(decider)  # its secret is in its file, so that the next decider can send what is left
    assert (decider._sender.log.secret or "") not in (decider._folder / "state.json").read_text()
    assert_replay_agrees(server.store.url)


@pytest.mark.promise(192)
def test_the_files_of_deciders_of_release_0_2_0_are_sent(client: Client, make: Make, tmp_path: Path) -> None:
    identity = client.create("b", ARMS, "ucb", seed=3).id
    content = msgspec.json.encode(batch_of(identity))
    folder = tmp_path / "local"
    folder.mkdir()
    record = HEADER.pack(len(content), zlib.crc32(content)) + content
    (folder / f"{identity}-{DECIDER}.batches").write_bytes(record)
    decider = make()
    decider.sync()
    assert (decider.waiting, decider.problem) == (0, None)
    assert [(one.decider, one.arm) for one in local_events(client)] == [(DECIDER, "green"), (DECIDER, "blue")]
    assert not list(folder.glob("*.batches"))


@pytest.mark.promise(193)
def test_a_decider_can_leave_out_a_limited_number_of_decisions(
    client: Client, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = client.create("b", ARMS, "ucb", seed=3).id
    monkeypatch.setattr(local_decisions, "MAX_MISSING", 10)
    for first, status in ((1, 200), (14, 422), (2**48 - 1, 422), (13, 200), (15, 200), (28, 422)):
        before = client.state("b").sequence
        sent = {**batch_of(identity), "first": first}
        answer = http.post("/v1/bandits/b/local-decisions", json=sent)
        assert answer.status_code == status, (first, answer.text)
        assert client.state("b").sequence == before + (2 if status == 200 else 0)
    assert answer.json()["problem"] == (
        f"first must be at most 27: the latest stored decision of decider '{DECIDER}' is 16, and at most 10 may be "
        "missing after it, got 28; a decider that starts again has a new id"
    )
    assert [one.local_step for one in local_events(client)] == [1, 2, 13, 14, 15, 16]
    reward = {"decider": DECIDER, "step": 2, "reward": 1}
    rewards_only = {**batch_of(identity), "first": 2**48 - 1, "decisions": [], "rewards": [reward]}
    answer = http.post("/v1/bandits/b/local-decisions", json=rewards_only)
    assert [one["status"] for one in answer.json()["results"]] == [200], "without decisions nothing is left out"


DECIDER = "0123456789abcdef"


def batch_of(identity: str) -> dict[str, Any]:
    return {"id": identity, "decider": DECIDER, "first": 1, "base": 1, "decisions": [{"arm": 1}, {"arm": 2}]}


@pytest.mark.promise(186, 191)
def test_an_invalid_batch_is_refused_as_a_whole(client: Client, http: httpx.Client) -> None:
    identity = client.create("b", ARMS, "ucb", seed=3).id
    reward = {"decider": DECIDER, "step": 1, "reward": 1}
    for change, status, words in (
        ({"decisions": [{"arm": 1}, {"arm": 3}]}, 422, "decisions[1].arm must be a whole number from 0 to 2"),
        ({"decisions": [{"arm": 1, "context": {"hour": 1}}]}, 422, "decisions[0].context must be None"),
        ({"decisions": [{"arm": 1, "unit": ""}]}, 422, "decisions[0].unit"),
        ({"decisions": [{"arm": 1}] * 1001}, 422, "decisions must"),
        ({"rewards": [reward] * 1001}, 422, "rewards must"),
        ({"decider": "me"}, 422, "decider"),
        ({"first": 0}, 422, "first must be"),
        ({"base": 0}, 422, "base must be"),
        ({"id": "000000000000"}, 409, f"id must be '{identity}'"),
    ):
        answer = http.post("/v1/bandits/b/local-decisions", json={**batch_of(identity), **change})
        assert (answer.status_code, words in answer.json()["problem"]) == (status, True), answer.text
    assert client.state("b").sequence == 1
    assert http.post("/v1/bandits/c/local-decisions", json=batch_of(identity)).status_code == 404
    assert http.get("/v1/bandits/c/local-state").status_code == 404


@pytest.mark.promise(186)
def test_a_batch_that_the_service_refuses_keeps_no_other_from_being_stored(
    client: Client, make: Make, tmp_path: Path
) -> None:
    identity = client.create("b", ARMS, "ucb", seed=3).id
    decider = make()
    unknown_arm = LocalBatch(id=identity, decider=DECIDER, first=1, base=1, decisions=[LocalDecision(7)])
    decider._sender.log.append([unknown_arm])
    decider.decide()
    decider.sync()
    assert (client.state("b").step, decider.waiting) == (1, 0)
    assert "the service refused a batch" in (decider.problem or "")
    [refused] = decider._folder.glob("*.refused")
    assert msgspec.json.decode(refused.read_bytes(), type=LocalBatch) == unknown_arm
    decider.close()
    assert refused.exists()


@pytest.mark.promise(185)
def test_each_reward_has_its_status(
    client: Client, http: httpx.Client, make: Make, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create("b", ARMS, "ucb", seed=3, reward_window=60)
    decider = make()
    made = decider.decide_many(3)
    clock.seconds += 100  # the window begins when the service stores the decision
    decider.reward(made[0].decision, 1)
    decider.sync()
    assert decider.rejected == 0
    decider.reward(made[0].decision, 1)  # again
    decider.reward(made[0].decision, 0)  # another one
    decider.reward(f"{DECIDER}-1", 1)  # of nobody
    clock.seconds += 61
    decider.reward(made[1].decision, 1)  # late
    decider.flush()
    batch, headers = decider._sender.log.first(), proof(decider)
    answer = http.post("/v1/bandits/b/local-decisions", content=batch, headers=headers).json()
    assert [one["status"] for one in answer["results"]] == [200, 409, 404, 410]
    too_large = {"decider": decider.id, "step": 3, "reward": 2}  # valid before the policy was changed, perhaps
    late = {**too_large, "reward": 1}
    sent = {**batch_of(client.state("b").id), "decisions": [], "rewards": [too_large, late]}
    answer = http.post("/v1/bandits/b/local-decisions", json=sent).json()
    assert [one["status"] for one in answer["results"]] == [422, 410], "it keeps no other reward from being stored"
    assert "reward must be a number in [0, 1], got 2" in answer["results"][0]["problem"]
    decider.sync()
    assert (decider.rejected, decider.waiting) == (2, 1), "that of nobody is sent again"
    monkeypatch.setattr(early_rewards, "RETRY_SECONDS", 0.0)
    decider.sync()
    assert (decider.rejected, decider.waiting) == (3, 0)
    assert len(list(decider._folder.glob("*.unsent"))) == 1
    for wrong in ("17", f"{DECIDER}-x", f"{DECIDER}-0", "abc-1"):
        with pytest.raises(ValueError, match="decision"):
            decider.reward(wrong, 1)
    with pytest.raises(ValueError, match=r"reward must be a number in \[0, 1\]"):
        decider.reward(made[2].decision, 2)


@pytest.mark.promise(182)
@pytest.mark.parametrize("policy", ["ucb", "ts"])
def test_verify_makes_local_decisions_again(client: Client, make: Make, sqlite_url: str, policy: str) -> None:
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        client.create("b", ARMS, policy, seed=3)
        deciders = [make(server.url), make(server.url)]
        for turn in range(4):  # several deciders and the service itself decide, from several states
            for number, decider in enumerate(deciders):
                for one in decider.decide_many(20):
                    decider.reward(one.decision, one.arm == "blue")
                if (turn + number) % 2:
                    decider.sync()
            for decision in client.decide_many("b", 5):
                client.reward(decision.decision, 1)
        for decider in deciders:
            decider.sync()
            decider.close()
        events = local_events(client)
        assert len({one.arm for one in events}) > 1
        assert len({one.base for one in events}) > 3
        arms = [[one.arm for one in events if one.decider == decider.id] for decider in deciders]
        assert arms[0] != arms[1] or policy == "ucb", "each decider has a random stream of its own"
    found = verified(sqlite_url)
    assert (found.problem, found.local, found.local_taken) == (None, 160, 0)


@pytest.mark.promise(182, 190)
@pytest.mark.parametrize("place", [0, 7, 9])
def test_local_decisions_that_the_replay_does_not_make_change_nothing_for_others(
    client: Client, http: httpx.Client, make: Make, server: Running, place: int
) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    honest, wrong = make(), make()
    for decider in (honest, wrong):
        decider.decide_many(10)
        decider.flush()
    batch = msgspec.json.decode(wrong._sender.log.first() or b"")
    batch["decisions"][place]["arm"] = (batch["decisions"][place]["arm"] + 1) % 3
    assert http.post("/v1/bandits/b/local-decisions", json=batch, headers=proof(wrong)).status_code == 200
    wrong.sync()
    honest.sync()
    for _ in range(2):
        for decider in (wrong, honest):
            decider.decide_many(10)
            decider.sync()
    after = 9 - place  # decisions of the same decider from the same state
    found = verified(server.store.url)
    assert (found.problem, found.first_different) == (None, 2 + place)
    assert (found.local, found.local_taken, found.local_different) == (59 - after, after, 1)
    said = CliRunner().invoke(app, ["verify", "--store", server.store.url])
    words = f"1 local decisions that their states do not make (the first is event {2 + place})"
    assert (said.exit_code, words in said.output) == (0, True), said.output
    exported = list(client.export("b"))
    assert [one.replayed for one in exported] == [not place <= at <= 9 for at in range(60)]


@pytest.mark.promise(194)
def test_forged_states_take_limited_memory_and_keep_no_others_from_being_replayed(
    client: Client, http: httpx.Client, make: Make, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = client.create("b", ARMS, "ucb", seed=3).id
    decider = make()
    decider.decide_many(20)  # from state 1
    client.decide_many("b", 100)
    for first in (1, 2):
        for number in range(100):  # tiny batches of as many deciders from as many states
            named = {**batch_of(identity), "decider": f"{number:016x}", "base": number + 1}
            sent = {**named, "first": first, "decisions": [{"arm": 1}]}
            assert http.post("/v1/bandits/b/local-decisions", json=sent).status_code == 200
    decider.sync()
    size = decider._local.bandit.nbytes
    monkeypatch.setattr(local_replay, "MAX_COPIES", 10 * size)
    kept, check = [], local_replay.LocalReplay.check

    def counting(self: local_replay.LocalReplay, *given: Any) -> bool:
        found = check(self, *given)
        kept.append(len(self._bases) + sum(run.bandit is not None for run in self._runs.values()))
        return found

    monkeypatch.setattr(local_replay.LocalReplay, "check", counting)
    replayed = {one.step: one.replayed for one in client.export("b")}
    assert 5 <= max(kept) <= 10
    assert all(replayed[one.step or 0] for one in local_events(client) if one.decider == decider.id)
    found = verified(server.store.url)
    assert (found.problem, found.local + found.local_taken + found.local_different) == (None, 220)


@pytest.mark.promise(182, 194)
def test_a_replay_knows_few_runs_ahead_and_takes_only_decisions_that_are_far_behind_their_state_from_the_log(
    client: Client, http: httpx.Client, make: Make, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    late, parted, steady, *others = (make() for _ in range(8))  # from state 1
    for decider in (late, parted, *others):
        decider.decide_many(3 if decider in (late, parted) else 1)
        decider.flush()
    batch = msgspec.json.decode(parted._sender.log.first() or b"")
    beginning = {**batch, "decisions": batch["decisions"][:1]}
    assert http.post("/v1/bandits/b/local-decisions", json=beginning, headers=proof(parted)).status_code == 200
    for decider in (*others, parted):
        decider.sync()
    for _ in range(10):
        steady.decide_many(2)
        steady.sync()
        other = make()
        other.decide_many(2)
        other.sync()
    late.sync()
    assert len({(one.decider, one.base) for one in local_events(client)}) == 27
    exported = list(client.export("b"))
    found = verified(server.store.url)
    assert (found.local, found.local_taken, found.local_different, found.problem) == (51, 0, 0, None)
    monkeypatch.setattr(local_replay, "MAX_RUNS", 4)
    known, check = [], local_replay.LocalReplay.check

    def counting(self: local_replay.LocalReplay, *given: Any) -> bool:
        known.append(len(self._left) + len(self._runs))
        return check(self, *given)

    monkeypatch.setattr(local_replay.LocalReplay, "check", counting)
    found = verified(server.store.url)
    assert (found.local, found.local_taken, found.local_different, found.problem) == (46, 5, 0, None)
    assert max(known) == 4
    again = list(client.export("b"))
    assert [one.step for one in again if not one.replayed] == [7, 8, 49, 50, 51]
    for one, before in zip(again, exported, strict=True):
        assert msgspec.structs.replace(one, replayed=True, propensity=before.propensity) == before


def test_deciders_have_random_streams_of_their_own(client: Client, make: Make) -> None:
    client.create("b", ARMS, "ts", seed=3)
    first, second = make(), make()
    assert [one.arm for one in first.decide_many(40)] != [one.arm for one in second.decide_many(40)]


@pytest.mark.promise(182)
def test_decisions_after_a_gap_are_taken_until_the_next_state(
    client: Client, http: httpx.Client, make: Make, server: Running
) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    decider = make()
    decider.decide_many(5)
    decider.flush()
    batch = msgspec.json.decode(decider._sender.log.first() or b"")
    batch["first"], batch["decisions"] = 3, batch["decisions"][2:]  # the service was restored to an earlier state
    assert http.post("/v1/bandits/b/local-decisions", json=batch, headers=proof(decider)).status_code == 200
    decider.sync()
    decider.decide_many(4)
    decider.sync()
    found = verified(server.store.url)
    assert (found.problem, found.local, found.local_taken) == (None, 4, 3)


@pytest.mark.promise(181, 185, 187)
def test_a_reward_that_comes_before_its_decision_is_sent_again(client: Client, make: Make) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    deciding, rewarding = make(), make()
    made = deciding.decide_many(3)
    for one in made:
        rewarding.reward(one.decision, 1)
        rewarding.sync()
    assert (rewarding.rejected, rewarding.waiting, client.state("b").step) == (0, 3, 0)
    kill(rewarding)
    third = make()
    third.sync()
    assert (third.rejected, third.waiting) == (0, 3), "a killed decider keeps them, too"
    deciding.sync()
    third.sync()
    assert (third.rejected, third.waiting) == (0, 0)
    assert [one.reward for one in client.events("b", kind="reward")] == [1, 1, 1]


@pytest.fixture
def known() -> Iterator[Proxy]:
    with address() as proxy:
        yield proxy


@pytest.mark.promise(183)
def test_decisions_go_on_without_the_service(sqlite_url: str, make: Make, known: Proxy) -> None:
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        client.create("b", ARMS, "ucb", seed=3)
        known.lead_to(server.url)
        first = make(known.url)
    known.lead_to(None)
    made = first.decide_many(10)
    with pytest.raises(ServiceError, match="no answer"):
        first.sync()
    first.flush()
    kill(first)
    second = make(known.url)  # it starts without the service, too
    assert second.staleness == float("inf")
    assert "no answer" in str(second.problem)
    later = second.decide_many(10)
    for one in made + later:
        second.reward(one.decision, 1)
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        known.lead_to(server.url)
        second.sync()
        assert (second.waiting, second.rejected) == (0, 0), "the batches of the first decider were sent first"
        assert second.staleness < float("inf")
        assert [one.arm for one in local_events(client)] == [one.arm for one in made + later]
        second.close()
    found = verified(sqlite_url)
    assert (found.problem, found.local) == (None, 20)


def test_without_the_service_and_a_saved_state_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="no answer"):
        db.LocalDecider("http://127.0.0.1:9", "b", tmp_path)


@pytest.mark.promise(184)
def test_a_pause_takes_effect_with_the_next_state(client: Client, make: Make) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    decider = make(refresh_seconds=0.01)
    for arm in ARMS[:2]:
        client.change_arm("b", arm, paused=True)
    wait_for(lambda: {one.arm for one in decider.decide_many(10)} == {"blue"})
    client.change_arm("b", "blue", paused=True)

    def is_paused() -> bool:
        try:
            decider.decide()
        except ServiceError as error:
            return error.status == 409
        return False

    wait_for(is_paused)


@pytest.mark.promise(184)
def test_a_pause_takes_effect_under_overload(
    client: Client, http: httpx.Client, make: Make, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    decider = make()
    admission = server.service.writer.admission
    monkeypatch.setattr(admission, "is_full", lambda events=1, priority=False: not priority)
    assert http.post("/v1/bandits/b/decisions", json={}).status_code == 429
    client.change_arm("b", "red", paused=True)
    decider._refresh()
    assert {one.arm for one in decider.decide_many(10)} == {"green", "blue"}


@pytest.mark.promise(184)
def test_a_state_that_is_too_old_is_not_used(client: Client, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    now = [1000.0]
    monkeypatch.setattr(local_decider, "time", SimpleNamespace(monotonic=lambda: now[0]))
    decider = make(max_staleness=5.0)
    now[0] += 4.0
    decider.decide()
    now[0] += 2.0
    assert decider.staleness == pytest.approx(6.0 + MAX_AGE)
    with pytest.raises(ServiceError, match=r"is 6\.1 seconds old, and max_staleness is 5"):
        decider.decide()
    decider.sync()
    decider.decide()


def test_changes_of_the_bandit(client: Client, make: Make, server: Running) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    decider = make()
    decider.decide_many(5)
    client.add_arm("b", "new")
    client.set_policy("b", "ts")
    decider.decide_many(5)  # from the state before the changes
    decider.sync()
    assert "new" in {one.arm for one in decider.decide_many(40)}
    decider.sync()
    found = verified(server.store.url)
    assert (found.problem, found.local) == (None, 50)
    client.delete("b", erase=True)
    client.create("b", ARMS, "ucb", seed=3)
    decider.decide()
    with pytest.raises(ServiceError, match="409"):
        decider.sync()
    assert client.state("b").sequence == 1
    assert decider.waiting == 1


@pytest.mark.promise(187)
def test_a_full_disk_loses_nothing(client: Client, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    decider = make()

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        decider.decide_many(3)
        with pytest.raises(OSError, match="No space"):
            decider.flush()
        decider.decide_many(2)
    decider.sync()
    assert [one.local_step for one in local_events(client)] == [1, 2, 3, 4, 5]


@pytest.mark.promise(187)
def test_deciders_share_a_folder_and_send_what_killed_ones_left(client: Client, make: Make, tmp_path: Path) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    running_one, killed, unwritten = make(), make(), make()
    for decider in (running_one, killed):
        decider.decide_many(3)
        decider.flush()
    unwritten.decide_many(3)  # not flushed, so not durable
    kill(killed)
    kill(unwritten)
    heir = make()
    heir.sync()
    assert {one.decider for one in local_events(client)} == {killed.id}
    running_one.sync()
    assert len(local_events(client)) == 6
    for decider in (heir, running_one):
        decider.close()
    assert [path.name for path in (tmp_path / "local").iterdir()] == ["state.json"]


@pytest.mark.promise(188)
def test_units_and_the_holdout(client: Client, http: httpx.Client, make: Make, server: Running) -> None:
    client.create("b", ARMS, "ucb", seed=3, sticky_for=PATIENCE, holdout={"share": 0.5, "control": "red"})
    decider = make()
    units = [f"user-{number}" for number in range(40)]
    first = [decider.decide(unit=unit) for unit in units]
    again = [decider.decide(unit=unit) for unit in units]
    assert again == [msgspec.structs.replace(one, repeated=True) for one in first]
    held = [one.holdout for one in first]
    assert 0 < sum(held) < 40
    assert {one.arm for one in first if one.holdout} == {"red"}
    other = make(folder=decider._folder / "other")
    assert [other.decide(unit=unit).holdout for unit in units] == held, "the same units in every process"
    without_unit = decider.decide_many(10)  # by a hash of the id
    decider.sync()
    counted = client.state("b").holdout
    assert counted is not None
    assert counted.holdout.decisions == sum(one.holdout for one in first + without_unit)
    for unit, before in zip(units, first, strict=True):
        [served] = http.post("/v1/bandits/b/decisions", json={"unit": unit}).json()["decisions"]
        assert (served["arm"], served["repeated"], served["holdout"]) == (before.arm, True, before.holdout)
    other.sync()
    for number in range(40):  # units that the service decides for first
        [served] = http.post("/v1/bandits/b/decisions", json={"unit": f"new-{number}"}).json()["decisions"]
        assert decider.decide(unit=f"new-{number}").holdout == served["holdout"]
    client.change_arm("b", first[0].arm, paused=True)
    decider.sync()
    assert not decider.decide(unit=units[0]).repeated, "the arm of this unit was paused"
    decider.sync()
    assert_replay_agrees(server.store.url)


def test_contexts(client: Client, http: httpx.Client, make: Make, server: Running) -> None:
    features = {"hour": "number", "new": "boolean"}
    asked = {"arms": ARMS, "policy": "lin-ucb", "seed": 3, "features": features}
    assert http.put("/v1/bandits/b", json=asked).status_code == 201
    decider = make()
    for turn in range(60):
        one = decider.decide({"hour": turn % 24, "new": turn % 3 == 0})
        decider.reward(one.decision, (one.arm == "red") == (turn % 3 == 0))
        if turn % 10 == 9:
            decider.sync()
    assert local_events(client)[7].context == {"hour": 7, "new": False}
    for wrong in (None, {"hours": 1}, {"hour": "x"}, {"hour": object()}, {f"{n}": [0.5] * 1000 for n in range(200)}):
        with pytest.raises((TypeError, ValueError), match=r"context|feature"):
            decider.decide(wrong)
    with pytest.raises(ValueError, match="unit must have"):
        decider.decide({"hour": 1}, unit="")
    assert decider.waiting == 0
    found = verified(server.store.url)
    assert (found.problem, found.local) == (None, 60)


@pytest.mark.promise(190)
def test_the_export_has_the_propensities_of_the_states_behind_the_decisions(client: Client, make: Make) -> None:
    client.create("b", ["red", "green"], "ts", seed=3)
    decider = make()
    local = decider._local.bandit.copy()  # of the first state
    for decision in client.decide_many("b", 50):
        client.reward(decision.decision, decision.arm == "green")
    made = decider.decide_many(3)
    expected = []
    for one in made:
        expected.append(local.propensities()[one.arm])
        local.play_column(local.names.index(one.arm))
    decider.sync()
    exported = list(client.export("b"))[50:]
    assert [one.propensity for one in exported] == expected
    assert all(one.replayed for one in exported)
    # The first state prefers an arm only by its pending plays, whatever the decider's id lets it choose
    assert 0.25 < min(expected) <= max(expected) < 0.8


@pytest.mark.promise(182, 190)
def test_after_compaction_decisions_from_removed_states_are_taken(store_url: str, make: Make) -> None:
    with running(open_store(store_url)) as server, talking(server.url) as (client, _):
        client.create("b", ARMS, "ts", seed=3)
        decider = make(server.url)
        early = decider.decide_many(10)
        for one in early[:5]:
            decider.reward(one.decision, 1)
        decider.sync()
        late = decider.decide_many(10)  # from a state that compaction removes
        for _ in range(2):
            client.decide("b")
        wall = list(client.events("b"))[-1].wall
        with contextlib.closing(open_store(store_url)) as store:
            [done] = compact(store, before=wall, now=wall)
        assert done.problem is None
        for one in early[5:] + late:
            decider.reward(one.decision, 1)
        decider.sync()
        assert decider.rejected == 0, "rewards still find the decisions that stayed in the log"
        decider.decide_many(10)
        decider.sync()
        decider.close()
        replayed = {one.step: one.replayed for one in client.export("b")}
        assert [replayed[one.step or 0] for one in local_events(client)[-20:]] == [False] * 10 + [True] * 10
    found = verified(store_url)
    assert (found.problem, found.local, found.local_taken) == (None, 10, 10)
    said = CliRunner().invoke(app, ["verify", "--store", store_url]).output
    assert "10 local decisions and 10 taken from the log" in said


@pytest.mark.promise(189)
def test_deciders_are_visible(
    client: Client, http: httpx.Client, make: Make, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create("b", ARMS, "ucb", seed=3)
    monkeypatch.setattr(server.service, "decider_contacts", DeciderContacts(lambda: 7.0))
    first, second = make(), make()
    first.decide_many(3)
    first.sync()
    second.decide_many(2)
    second._refresh()  # without sending
    listed = client.state("b").deciders
    assert [(one.id, one.step, one.base, one.waiting) for one in listed] == [(second.id, 0, 1, 2), (first.id, 3, 1, 0)]
    assert [one.seen for one in listed] == [0.0, 0.0]
    monkeypatch.setattr(server.service, "decider_contacts", DeciderContacts(lambda: 0.0))  # as after a restart
    assert [(one.id, one.step, one.seen) for one in client.state("b").deciders] == [(first.id, 3, None)]


@pytest.mark.promise(189)
def test_contacts_are_counted_for_ten_minutes() -> None:
    now, stored = [0.0], Deciders(first=DeciderProgress(5, 9, 0.0))
    contacts = DeciderContacts(lambda: now[0])
    contacts.note(1, "b", "first", 7, 30)
    now[0] = 400.0
    contacts.note(1, "b", "second", 8, 10)
    contacts.note(2, "other", "third", 1, 0)
    listed = contacts.listed(1, stored)
    assert listed == [DeciderState("second", 0, 8, 0.0, 10), DeciderState("first", 5, 9, 400.0, 30)]
    page = ServiceMetrics(contacts).page().decode()
    for name, value in (("deciders", 2), ("decider_silence_seconds", 400), ("decider_waiting", 40)):
        assert f'dynabandit_{name}{{bandit="b"}} {value}.0' in page
    assert 'bandit="other"' not in ServiceMetrics(contacts).page("b").decode()
    now[0] = 601.0
    assert contacts.listed(1, stored) == [DeciderState("second", 0, 8, 201.0, 10), DeciderState("first", 5, 9)]
