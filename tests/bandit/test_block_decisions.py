"""Decisions in blocks are those that are made one by one."""

import pytest

from dynabandit import Bandit
from dynabandit.bandit.block_decisions import choose_columns, compile_blocks


def played(policy: str, arms: int) -> Bandit:
    bandit = Bandit(policy, arms=[f"arm {number}" for number in range(arms)], seed=7)
    for turn in range(40):
        arm = bandit.choose()
        bandit.reward(arm, turn % 3 == 0)
    return bandit


@pytest.mark.parametrize("change", ["nothing", "paused", "limited", "new arm"])
@pytest.mark.parametrize(("policy", "arms"), [("ucb", 3), ("ts", 12), ("mix-ts", 3)])
def test_blocks_are_single_decisions(policy: str, arms: int, change: str) -> None:
    bandit = played(policy, arms)
    if change == "paused":
        bandit.pause_arm("arm 1")
    elif change == "limited":
        bandit.limit_arm("arm 1", max_share=0.2)
    elif change == "new arm":  # with its burn-in
        bandit.add_arm("new")
    other = bandit.copy()
    compile_blocks(bandit)  # changes nothing
    blocks = [column for count in (1, 2, 30) for column in choose_columns(bandit, count)]
    assert blocks == [other.choose_column() for _ in range(33)]
    assert bandit.state_hash() == other.state_hash()
    bandit.reward_column(blocks[0], 1.0, bandit.step)
    other.reward_column(blocks[0], 1.0, other.step)
    assert bandit.choose_column() == other.choose_column()


def test_a_block_without_arms_is_an_error() -> None:
    bandit = played("ucb", 2)
    for arm in list(bandit.arms):
        bandit.pause_arm(arm)
    compile_blocks(bandit)
    with pytest.raises(ValueError, match="every arm is paused"):
        choose_columns(bandit, 3)
