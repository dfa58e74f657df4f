"""The design and the evaluation set of contextual policies do not overlap, and ratios are what they say."""

import importlib.util
import json
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dynabandit as db

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "contextual_design.py"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("contextual_design", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_sets_share_no_family_and_no_real_data(benchmark: ModuleType) -> None:
    design, evaluation = benchmark.design(), benchmark.evaluation()
    assert not design.keys() & evaluation.keys()
    assert not {one.family for one in design.values()} & {one.family for one in evaluation.values()}
    made = [{name: one.make() for name, one in trials.items()} for trials in (design, evaluation)]
    real = {"digits", "image-segments", "phishing", "bananas", "prompts", "flights"}
    used = [{world.name for world in worlds.values()} & real for worlds in made]
    assert not used[0] & used[1]
    assert used[0] | used[1] == real
    dimensions = [world.context.dimension for world in made[1].values()]
    assert (min(dimensions), max(dimensions)) == (2, 50)
    for trials, worlds in zip((design, evaluation), made, strict=True):
        for name, world in worlds.items():
            world.check_horizon(trials[name].horizon)


def test_regret_is_relative_to_the_best_fixed_discount_and_families_count_once(benchmark: ModuleType) -> None:
    trials = {"a": benchmark.Trial("one", None), "b": benchmark.Trial("one", None), "c": benchmark.Trial("two", None)}
    noise = np.tile([0.9, 1.1], 20)
    found = {
        "a": {"lin 0.97": 100 * noise, "lin 1": 200 * noise, "new": 50 * noise},
        "b": {"lin 0.97": 100 * noise, "lin 1": 50 * noise, "new": 100 * noise},
        "c": {"lin 0.97": 10 * noise, "lin 1": 20 * noise, "new": 40 * noise},
    }
    summary = benchmark.summarise(found, trials)
    mean, low, high = summary["new"]["mean"]
    assert mean == pytest.approx(math.sqrt(math.sqrt(0.5 * 2.0) * 4.0))
    assert low == pytest.approx(mean) == high  # the same replications are resampled for all policies
    assert summary["new"]["worst"][0] == pytest.approx(4.0)
    assert summary["lin 0.97"]["mean"][0] == pytest.approx(math.sqrt(math.sqrt(2.0) * 1.0))


def test_finished_environments_are_not_computed_again(
    benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def regrets(trial: Any, policies: dict[str, db.Policy], replications: int, backend: str) -> dict[str, np.ndarray]:
        calls.append(list(policies))
        return {label: np.full(replications, 3.0) for label in policies}

    monkeypatch.setattr(benchmark, "regrets", regrets)
    trials = {"a": benchmark.Trial("one", None), "b": benchmark.Trial("two", None)}
    policies = benchmark.base_policies("lin-ucb")
    assert [one.discount for one in policies.values()] == list(benchmark.DISCOUNTS)
    results = tmp_path / "results.json"
    benchmark.run(trials, policies, 5, results)
    benchmark.run(trials, {**policies, "uniform": db.policy("uniform")}, 5, results)
    assert calls == [list(policies)] * 2 + [["uniform"]] * 2
    assert json.loads(results.read_text())["b"]["uniform"] == [3.0] * 5
    benchmark.run(trials, {"lin-ucb 1": policies["lin-ucb 1"]}, 6, results)
    assert calls[4:] == [["lin-ucb 1"]] * 2
