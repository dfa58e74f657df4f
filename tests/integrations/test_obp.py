"""Our policies in Open Bandit Pipeline's simulator, whose source is taken from its wheel."""

import abc
import ast
import dataclasses
import enum
import typing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.integrations.obp import ContextualPolicy, Policy
from tools.obp_wheel import functions, obp

__all__ = ["obp"]


@pytest.fixture
def simulator(obp: Path) -> dict[str, Any]:
    """The simulator's function; importing the package itself would need PyTorch."""
    scope: dict[str, Any] = {"np": np, "enum": enum, "tqdm": lambda rows, total: rows}
    scope.update({"BanditFeedback": Any, "BanditPolicy": Any, "Optional": typing.Optional})
    functions(obp / "policy" / "policy_type.py", {"PolicyType"}, scope)
    helpers = {"check_array", "check_bandit_feedback_inputs", "convert_to_action_dist"}
    functions(obp / "utils.py", _defined(obp / "utils.py", helpers), scope)
    return functions(obp / "simulator" / "simulator.py", {"run_bandit_simulation"}, scope)


def _defined(file: Path, names: set[str]) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} & names


def feedback(rounds: int, arms: int, positions: int) -> dict[str, Any]:
    generator = np.random.default_rng(1)
    action = generator.integers(arms, size=rounds)
    return {
        "n_rounds": rounds,
        "n_actions": arms,
        "action": action,
        "reward": (generator.random(rounds) < np.where(action == arms - 1, 0.9, 0.1)).astype(int),
        "position": generator.integers(positions, size=rounds),
        "pscore": np.full(rounds, 1.0 / arms),
        "context": np.zeros((rounds, 1)),
    }


def test_its_simulator_replays_a_log_with_our_policy(simulator: dict[str, Any]) -> None:
    policy = Policy(n_actions=4, policy="aff-ots", random_state=1)
    chosen = simulator["run_bandit_simulation"](feedback(2000, 4, 1), policy)
    assert chosen.shape == (2000, 4, 1)
    assert (chosen.sum(axis=1) == 1.0).all()
    assert chosen[1000:, 3, 0].mean() > 0.7
    assert policy.n_trial == policy.action_counts.sum() > 300


def test_its_simulator_shows_lists_of_different_arms(simulator: dict[str, Any]) -> None:
    policy = Policy(n_actions=5, len_list=3, policy="ts", random_state=1)
    chosen = simulator["run_bandit_simulation"](feedback(300, 5, 3), policy)
    assert (chosen.sum(axis=1) == 1.0).all()
    assert (chosen.sum(axis=2) <= 1.0).all()


@pytest.mark.parametrize(
    ("name", "policy", "arguments"),
    [
        ("BaseContextFreePolicy", Policy(n_actions=3), ["self", "action", "reward"]),
        ("BaseContextualPolicy", ContextualPolicy(dim=2, n_actions=3), ["self", "action", "reward", "context"]),
    ],
)
def test_it_has_the_interface_of_the_base_class(obp: Path, name: str, policy: Any, arguments: list[str]) -> None:
    tree = ast.parse((obp / "policy" / "base.py").read_text(encoding="utf-8"))
    (base,) = (node for node in tree.body if getattr(node, "name", "") == name)
    assert isinstance(base, ast.ClassDef)
    methods = {node.name: node for node in base.body if isinstance(node, ast.FunctionDef)}
    attributes = {node.target.id for node in base.body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
    for name in (methods.keys() | attributes) - {"__post_init__"}:
        assert hasattr(policy, name), name
    assert [argument.arg for argument in methods["update_params"].args.args] == arguments


def test_a_batch_is_learned_together() -> None:
    policy = Policy(n_actions=2, policy="ucb", batch_size=3, random_state=1)
    for _ in range(2):
        policy.update_params(action=0, reward=1.0)
        assert np.isnan(policy._adapter.means()[0])
    policy.update_params(action=0, reward=1.0)
    assert policy._adapter.means()[0] == 1.0
    policy.initialize()
    assert policy.n_trial == 0
    assert np.isnan(policy._adapter.means()[0])


@pytest.mark.parametrize(
    "wrong", [{"n_actions": 1}, {"n_actions": 3, "len_list": 4}, {"n_actions": 3, "batch_size": 0}]
)
def test_wrong_arguments_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{list(wrong)[-1]} must be a whole number"):
        Policy(**wrong)


def test_a_wrong_reward_is_refused_and_changes_nothing() -> None:
    policy = Policy(n_actions=3, policy="ucb", batch_size=2)
    policy.update_params(0, 1.0)
    with pytest.raises(ValueError, match="reward"):
        policy.update_params(1, 5.0)
    assert policy.n_trial == 1
    policy.update_params(1, 0.0)
    assert policy.n_trial == 2


@pytest.fixture
def their_lin_ucb(obp: Path, simulator: dict[str, Any]) -> Any:
    """LinUCB of the pipeline, in the scope of its simulator."""
    scope = simulator
    scope.update(abc=abc, ABCMeta=abc.ABCMeta, abstractmethod=abc.abstractmethod, dataclass=dataclasses.dataclass)
    scope["check_random_state"] = np.random.RandomState
    functions(obp / "policy" / "base.py", {"BaseContextualPolicy"}, scope)
    functions(obp / "policy" / "linear.py", {"BaseLinPolicy", "LinUCB"}, scope)
    return scope["LinUCB"]


def test_in_its_simulator_we_choose_as_its_own_lin_ucb(simulator: dict[str, Any], their_lin_ucb: Any) -> None:
    log, generator = feedback(400, 4, 1), np.random.default_rng(3)
    log["context"] = np.hstack([np.ones((400, 1)), generator.normal(size=(400, 2))])
    own = ContextualPolicy(dim=3, n_actions=4, policy=db.policy("lin-ucb", width=0.5), random_state=1)
    other = their_lin_ucb(dim=3, n_actions=4, epsilon=0.5, random_state=1)
    for arm in range(4):  # so that there are no ties, which the two libraries break differently
        for policy in (own, other):
            policy.update_params(action=arm, reward=0.1 * arm, context=log["context"][arm : arm + 1])
    ours, theirs = (simulator["run_bandit_simulation"](log, policy) for policy in (own, other))
    assert np.array_equal(ours, theirs)
    assert own.action_counts.tolist() == other.action_counts.tolist()
    assert own.n_trial == other.n_trial > 50
    own.initialize()
    assert own.n_trial == 0


def test_lists_with_a_context_and_batches() -> None:
    policy = ContextualPolicy(dim=2, n_actions=5, policy="lin-ucb", len_list=3, batch_size=2, random_state=1)
    context = np.array([[1.0, 0.5]])
    assert len(set(policy.select_action(context).tolist())) == 3
    before = policy._adapter.bandit.state_hash()
    policy.update_params(0, 1.0, context)
    assert policy._adapter.bandit.state_hash() == before
    for wrong in (context[0], np.array([[1.0, 0.5, 0.0]]), np.array([[1.0, np.nan]])):
        with pytest.raises(ValueError, match=r"context must have shape \(1, 2\), got|finite numbers"):
            policy.update_params(0, 1.0, wrong)
        with pytest.raises(ValueError, match=r"context must have shape \(1, 2\), got|finite numbers"):
            policy.select_action(wrong)
    assert policy.n_trial == 1
    policy.update_params(1, 1.0, context)
    assert policy._adapter.bandit.state_hash() != before
    with pytest.raises(ValueError, match="dim must be a whole number of at least 1, got 0"):
        ContextualPolicy(dim=0, n_actions=2)
