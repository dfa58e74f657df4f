"""Replays agree with a slow, literal transcription.

`make interpreted` runs all kinds of policies here without compiled code; otherwise one is compiled.
"""

import numpy as np
import pytest

import dynabandit as db
from dynabandit import offline
from dynabandit.core.streams import REPLAY, TIE, pick, stream, uniform
from tools.laws import INTERPRETED
from tools.true_log import ARMS, TrueLog, make_log

# One policy of each kind: randomised, index, idle time, posterior, shared state
KINDS: dict[str, dict[str, object]] = {
    "eps-greedy": {},
    "ucb": {},
    "aff-ucb2": {"step_size": 0.1},
    "aff-ots": {"step_size": 0.1},  # forgets fast, so that one step of idle time matters
    "dts": {},
    "d-ucb": {"discount": 0.9},
    "sw-ucb": {"window": 20},
}
NAMES = tuple(KINDS) if INTERPRETED else ("aff-ots",)


def one_of_the_least_played(bandit: db.Bandit, burn_in: int, seed: int, row: int) -> tuple[np.ndarray, str] | None:
    """Return the choice of the burn-in that learns from every row, and its law, or None after the burn-in."""
    plays = np.array([each.plays for each in bandit.arms.values()])
    if plays.min() >= burn_in:
        return None
    least = np.flatnonzero(plays == plays.min())
    chances = np.zeros(len(ARMS))
    chances[least] = 1.0 / len(least)
    return chances, ARMS[least[pick(stream(seed), TIE, row, 0, len(least))]]


def literal(one: TrueLog, policy: db.Policy, seed: int, least: float, learn: str) -> dict[str, np.ndarray]:
    """Replay with a Bandit, from the definitions: a row that is not learned from is a step without a play."""
    draws = 20
    bandit = db.Bandit(policy, ARMS, seed=seed)
    bandit._choice_law = None  # a replay draws for every policy
    model = [db.estimators.AdaptiveForgetting() for _ in ARMS]
    accepted_rewards, ips, dr = [], [], []
    for row, (arm, reward, p) in enumerate(zip(one.arms, one.rewards, one.propensities, strict=True), start=1):
        least_played = one_of_the_least_played(bandit, policy.burn_in, seed, row) if learn == "all" else None
        if least_played is None:
            chances = np.array([bandit.propensities(draws)[name] for name in ARMS])
            choice = bandit.copy().choose()
        else:
            chances, choice = least_played
        overall = one.rewards[: row - 1].mean() if row > 1 else 0.0
        expected = np.array([overall if np.isnan(each.mean) else each.mean for each in model])
        ips.append(chances[arm] / p * reward)
        dr.append(chances @ expected + chances[arm] / p * (reward - expected[arm]))
        accepted = choice == ARMS[arm] and uniform(stream(seed), REPLAY, row, 0) < least / p
        if accepted:
            accepted_rewards.append(reward)
        bandit._step += 1
        if accepted or learn == "all":
            bandit._arms.play(arm, bandit._step)
            bandit.reward(ARMS[arm], reward)
        model[arm].update(reward)
    return {"replay": np.array(accepted_rewards), "ips": np.array(ips), "dr": np.array(dr)}


@pytest.mark.parametrize("learn", ["accepted", "all"])
@pytest.mark.parametrize("name", NAMES)
def test_a_replay_is_a_bandit_that_plays_the_accepted_rows_or_all_rows(name: str, learn: str) -> None:
    one = make_log(seed=1, rows=200)
    log = one.log()
    policy = db.policy(name, **KINDS[name], **({"burn_in": 3} if learn == "all" else {}))
    found = offline.replay(log, policy, replications=1, draws=20, seed=3, learn=learn)
    slow = literal(one, policy, 3, log.least_propensity, learn)
    assert found.accepted == len(slow["replay"])
    for estimate in ("replay", "ips", "dr"):
        assert getattr(found, estimate).value == pytest.approx(slow[estimate].mean(), abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_with_the_clock_of_accepted_rows_it_is_a_bandit_that_waits_for_a_row_with_its_choice(name: str) -> None:
    one = make_log(seed=1, rows=200)
    policy = db.policy(name, **KINDS[name])
    found = offline.replay(
        one.log(), policy, replications=1, draws=1, clock="accepted", clip=1.0, seed=3, learn="accepted"
    )
    bandit, accepted_rewards = db.Bandit(policy, ARMS, seed=3), []
    choice = bandit.choose()
    for arm, reward in zip(one.arms, one.rewards, strict=True):
        if ARMS[arm] == choice:  # clipped at 1, all propensities are equal and every such row is accepted
            accepted_rewards.append(reward)
            bandit.reward(choice, reward)
            choice = bandit.choose()
    assert found.accepted == len(accepted_rewards)
    assert found.replay.value == pytest.approx(np.mean(accepted_rewards))
