import os
import subprocess
import sys

import numpy as np
import pytest

import dynabandit as db
from dynabandit.environments.exponential_clock import Case1
from dynabandit.policies import DUCB, UCB
from dynabandit.simulation import code_version, code_versions, path_version

WORLD = db.environment("case-1", arms=3)


@pytest.fixture(autouse=True)
def _clear():
    yield
    for cached in (code_versions._engine_version, code_versions._policy_version, code_versions._environment_version):
        cached.cache_clear()


def of(policy, world=WORLD, horizon=100):
    return code_version(db.policy(policy), world, horizon)


def test_every_policy_and_environment_has_a_version_of_its_own():
    worlds = [db.environment(name) for name in ("case-1", "case-2", "case-3", "case-4", "small-changes")]
    versions = [of(name, world) for name in db.policies.POLICIES for world in worlds]
    assert len(set(versions)) == len(versions)


def test_the_paths_of_an_environment_do_not_depend_on_the_policies():
    assert path_version(WORLD) == path_version(db.environment("case-1", arms=3))
    assert path_version(WORLD) != path_version(db.environment("case-2", arms=3))


def test_an_edit_of_a_score_changes_the_version_of_that_policy_only(monkeypatch):
    before = of("ucb"), of("ts")

    def score(state, arm, step, params):
        return 1.0

    monkeypatch.setattr(UCB, "functions", UCB.functions._replace(score=score))
    assert of("ucb") != before[0]
    assert of("ts") == before[1]


def test_an_edit_of_the_start_or_the_table_changes_the_version(monkeypatch):
    before = of("ucb")

    def start(state, arm, params):
        state.memory[:, arm] = 0.5

    original = UCB.functions
    monkeypatch.setattr(UCB, "functions", original._replace(start=start))
    assert of("ucb") != before
    monkeypatch.setattr(UCB, "functions", original._replace(table=lambda arms, horizon: np.ones(3)))
    assert of("ucb") != before


def test_an_edit_of_the_tuning_changes_the_version(monkeypatch):
    before, fixed = of("d-ucb"), of(db.policy("d-ucb", discount=0.9))
    monkeypatch.setattr(DUCB, "tuned", lambda self, switches, horizon: db.policy("d-ucb", discount=0.9))
    assert of("d-ucb") != before
    monkeypatch.setattr(DUCB, "tuned", lambda self, switches, horizon: self)
    assert of(db.policy("d-ucb", discount=0.9)) == fixed


def test_a_number_that_is_no_parameter_counts_too(monkeypatch):
    before = of("ucb")
    monkeypatch.setattr(Case1, "params", lambda self: np.ones((3, 3)))
    assert of("ucb") != before


def test_an_edit_of_the_simulator_changes_every_version(monkeypatch):
    before = of("ucb"), of("ts")
    monkeypatch.setattr(code_versions, "run_task", lambda request: None)
    code_versions._engine_version.cache_clear()
    assert of("ucb") != before[0]
    assert of("ts") != before[1]


def test_what_a_simulation_does_not_use_changes_nothing(monkeypatch):
    before = of("ucb")
    monkeypatch.setattr(UCB, "belief", lambda self, column, shared: None)
    monkeypatch.setattr(UCB, "__doc__", "Another text.")
    assert of("ucb") == before


EVERY = """
import dynabandit as db
from dynabandit.simulation import code_version
for name in db.policies.POLICIES:
    print(code_version(db.policy(name), db.environment("case-3"), 100))
"""


def test_a_version_is_the_same_in_every_process():
    def versions(seed):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.check_output([sys.executable, "-c", EVERY], env=environment)

    assert versions("1") == versions("2")
