"""Decisions: what they are, and that a key gives the same ones again."""

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import httpx
import pytest

from dynabandit.client import Client
from dynabandit.service.domain.decision_ids import DecisionIds
from tools.harness import ARMS, Running, status_of
from tools.waiting import wait_for


@pytest.mark.promise(25, 118)
def test_state_shows_what_the_bandit_of_the_library_would_know(client: Client) -> None:
    import dynabandit as db

    client.create("b", ARMS, seed=7)
    twin = db.Bandit(arms=ARMS, seed=7)
    for _ in range(60):
        decision = client.decide("b")
        assert decision.arm == twin.choose()
        reward = float(decision.arm == "blue")
        client.reward(decision.decision, reward)
        twin.reward(decision.arm, reward)
    state = client.state("b")
    assert state.step == 60
    for arm in state.arms:
        known = twin.arms[arm.arm]
        assert (arm.mean, arm.variance, arm.forgetting, arm.effective_size) == known[:4]
        assert (arm.idle, arm.plays, arm.share) == (known.idle, known.plays, known.plays / 60)


@pytest.mark.promise(25, 26)
def test_a_late_reward_updates_its_arm_when_it_arrives_and_leaves_steps_and_idle_time_alone(client: Client) -> None:
    client.create("b", ["a", "b"], "ucb")
    first, _, _ = (client.decide("b") for _ in range(3))
    before = client.state("b")
    assert (
        before.step,
        sum(arm.plays for arm in before.arms),
        sum(arm.effective_size or 0.0 for arm in before.arms),
    ) == (
        3,
        3,
        0,
    )
    client.reward(first.decision, 1)
    after = client.state("b")
    assert (after.step, [arm.idle for arm in after.arms]) == (3, [arm.idle for arm in before.arms])
    assert {arm.arm: arm.effective_size for arm in after.arms}[first.arm] == 1


@pytest.mark.promise(79)
def test_the_id_of_a_decision_has_a_step_below_2_to_the_48() -> None:
    ids = DecisionIds(b"secret", {})
    for step in (1, 2**32, 2**48 - 1):
        assert ids.read(ids.make(33, step)) == (33, step)
    assert ids.read(ids.make(33, 10**15)) is None


@pytest.mark.promise(107)
def test_the_id_of_a_decision_cannot_be_guessed_from_others(
    server: Running, client: Client, http: httpx.Client
) -> None:
    """Who has seen one id cannot reward other decisions: without its signature an id is unknown."""
    for name in ("mine", "theirs"):
        client.create(name, ARMS)
    mine, theirs = client.decide_many("mine", 3)[0].decision, client.decide_many("theirs", 3)[0].decision
    bandit, _, signature = mine.split("-")
    other = theirs.split("-")[0]
    wrong = f"{signature[:-1]}{'1' if signature[-1] == '0' else '0'}"
    guesses = [f"{bandit}-2", f"{bandit}-2-{signature}", f"{other}-1", f"{other}-1-{signature}", f"{bandit}-1",
               f"{bandit}-1-{wrong}", f"{bandit}-1-{signature}0", f"{bandit}-1-{signature.upper()}", f"{mine}\n",
               f"{bandit}-1-é"]  # fmt: skip
    for guess in guesses:
        answer = http.put(f"/v1/decisions/{quote(guess, safe='')}/reward", json={"reward": 1})
        assert (answer.status_code, signature in answer.text) == (404, signature in guess), guess
    assert {one.status for one in client.reward_many((guess, 1) for guess in guesses)} == {404}
    assert [client.state(name).sequence for name in ("mine", "theirs")] == [4, 4], "nothing was rewarded"
    assert {one.status for one in client.reward_many([(mine, 1), (theirs, 0)])} == {200}


@pytest.mark.promise(5)
def test_the_same_key_gives_the_same_decisions(client: Client) -> None:
    client.create("b", ARMS)
    first = client.decide_many("b", 3, key="one")
    assert client.decide_many("b", 3, key="one") == first
    assert client.decide_many("b", 3, key="two") != first
    assert client.state("b").step == 6
    assert status_of(client.decide_many, "b", 2, key="one") == 409


@pytest.mark.promise(5)
def test_concurrent_calls_with_one_key_make_one_decision(server: Running, client: Client) -> None:
    client.create("b", ARMS)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: client.decide("b", key="same"), range(24)))
    assert len({decision.decision for decision in made}) == 1
    assert client.state("b").step == 1


@pytest.mark.promise(5, 24)
def test_a_lost_answer_and_a_retry_give_the_same_decision(server: Running, client: Client) -> None:
    """The request arrives, the response does not."""
    import socket
    from urllib.parse import urlsplit

    client.create("b", ARMS)
    address = urlsplit(server.url)
    body = b'{"count": 2}'
    head = (
        "POST /v1/bandits/b/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Idempotency-Key: lost\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(head.encode() + body)
        wait_for(lambda: client.state("b").step == 2)  # a caller that leaves earlier may not be served
    logged = [event.decision for event in client.events("b") if event.kind == "decision"]
    assert [one.decision for one in client.decide_many("b", 2, key="lost")] == logged
    assert client.state("b").step == 2


@pytest.mark.promise(5, 34)
def test_with_every_arm_paused_a_decision_is_refused_and_rewards_still_count(client: Client) -> None:
    client.create("b", ARMS)
    decision = client.decide("b").decision
    for arm in ARMS:
        client.change_arm("b", arm, paused=True)
    assert status_of(client.decide, "b") == 409
    assert status_of(client.reward, decision, 1) == 200
