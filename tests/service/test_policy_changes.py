"""Another policy: what it would do, and the change to it while decisions go on."""

import pytest

import dynabandit as db
from dynabandit.client import ServiceError
from service.harness import talking

ARMS = ["red", "green", "blue"]


@pytest.fixture
def client(server):
    with talking(server.url) as (one, _):
        yield one


def learn(client, name: str, steps: int) -> None:
    for decision in client.decide_many(name, steps):
        client.reward(decision.decision, decision.arm == "blue")


def beliefs(arms) -> list[tuple]:
    return [(arm.arm, arm.mean, arm.variance, arm.forgetting, arm.effective_size) for arm in arms]


@pytest.mark.parametrize(("policy", "parameters"), [("aff-ots", {}), ("sw-ucb", {"window": 20}), ("ts", {})])
def test_a_preview_shows_what_the_swap_then_gives_and_changes_nothing(client, policy, parameters):
    client.create("b", ARMS, policy="eps-greedy", parameters={"epsilon": 0.5}, seed=2)
    learn(client, "b", 60)
    client.decide("b")
    before = client.state("b")
    preview = client.preview_policy("b", policy, draws=300, **parameters)
    assert client.state("b") == before
    assert (preview.policy, preview.current_policy, preview.rewards) == (policy, "eps-greedy", 60)
    assert (preview.step, preview.sequence) == (before.step, before.sequence)
    client.set_policy("b", policy, **parameters)
    assert beliefs(preview.arms) == beliefs(client.state("b").arms)
    after = client.preview_policy("b", "ucb", draws=300)
    assert [arm.current_propensity for arm in after.arms] == [arm.propensity for arm in preview.arms]
    assert sum(arm.propensity for arm in preview.arms) == pytest.approx(1.0)


def test_a_preview_knows_pauses_shares_and_arms_that_were_never_rewarded(client):
    client.create("b", ARMS, seed=2)
    preview = client.preview_policy("b", "ots")
    assert [arm.mean for arm in preview.arms] == [None] * 3
    learn(client, "b", 30)
    client.change_arm("b", "blue", paused=True)
    client.change_arm("b", "red", min_share=0.5)
    shares = {arm.arm: arm.propensity for arm in client.preview_policy("b", "ots").arms}
    assert shares["blue"] == 0.0
    assert shares["red"] >= 0.5
    for arm in ARMS:
        client.change_arm("b", arm, paused=True)
    assert [arm.propensity for arm in client.preview_policy("b", "ots").arms] == [0.0] * 3


def test_a_preview_of_what_is_not_there_or_not_valid_is_refused(client):
    client.create("b", ARMS)
    for name, policy, status in (("c", "ots", 404), ("b", "nonsense", 422), ("b", "best-arm", 422)):
        with pytest.raises(ServiceError) as refused:
            client.preview_policy(name, policy)
        assert refused.value.status == status
    with pytest.raises(ServiceError, match="422"):
        client.preview_policy("b", "ots", draws=0)


@pytest.mark.parametrize("policy", ["aff-ots", "aff-ucb1", "d-ucb", "ts"])
def test_many_rewards_at_once_are_bit_for_bit_the_same_rewards_one_by_one(policy):
    parameters = {"discount": 0.99} if policy == "d-ucb" else {}
    one, many = (db.Bandit(policy, ARMS, seed=1, **parameters) for _ in range(2))
    rewards = [(step % 3, float(step % 7 < 3)) for step in range(5000)]
    for reward in rewards:
        one.reward_column(*reward)
    many.reward_columns(rewards)
    assert one.state_hash() == many.state_hash()
