"""`python -m tools.compiled_sweep KIND NAME` tries all parameters of one algorithm in compiled code, over their ranges.

Each value is tried alone, with both ends of every other parameter, and in random combinations. Every case is printed
before it begins, because a loop without end in compiled code can only be ended from outside: the last line then is the
cause. It compiles the functions of NAME once; parameters are arguments, so that cases take milliseconds.
"""

import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

os.environ["DYNABANDIT_INTERPRETED_FIRST"] = "0"  # before the import

import numpy as np

import dynabandit as db
from dynabandit.bandit.live_policies import accepted_rewards
from dynabandit.core.compilation import compiled
from dynabandit.core.streams import LARGEST_STEP, stream
from dynabandit.environments import REWARD_LAWS, RewardStep
from dynabandit.environments.base import compiled_write_paths
from dynabandit.environments.delays import DELAYS, WINDOW_RULES, draw_delay
from tools.parameter_ranges import (
    ALL_POLICIES,
    ESTIMATORS,
    LARGEST_SIZE,
    MADE,
    SMALL,
    combinations,
    extremes,
    parameters_of_estimator,
    range_of,
    ready,
    rewards,
    values_of_environment,
    values_of_policy,
    with_values,
)

FEW_ARMS, MORE_ARMS = 3, 12  # with more than eight, draws are pruned
DIMENSION = 5  # from which estimators are compiled
AT_RANDOM = 60  # combinations of all parameters of a policy
LATE = 4  # steps after its decision a reward comes, in the second half of a case
PROPENSITIES_EVERY = 9  # steps, because a quadrature takes longer than a decision
Case = tuple[str, Callable[[], None]]


def policy_cases(name: str) -> Iterator[Case]:
    """Yield the cases of a policy: bandits that decide, learn, and say how likely each choice is."""
    kind, base = ALL_POLICIES[name], ready(name)
    values = values_of_policy(name)
    for number, given in enumerate([{}, *combinations(values, AT_RANDOM)]):
        for arms in (FEW_ARMS, MORE_ARMS):
            policy = with_values(kind, base, given, arms)
            if policy is None:
                continue
            usual = rewards(12 if number else 60)
            found = extremes(accepted_rewards(policy, None))
            yield (
                f"{policy.label}, {arms} arms",
                partial(play, policy, arms, usual),
            )
            extreme = [0.0, found[-1], found[0], *found]
            yield (
                f"{policy.label}, {arms} arms, extreme rewards",
                partial(play, policy, arms, extreme),
            )
    for changes in (1, LARGEST_STEP):
        for horizon in (1, 2, LARGEST_STEP):
            if "horizon" in base:
                policy = with_values(kind, {}, {"changes": changes, "horizon": horizon})
                if policy is not None:
                    yield f"{policy.label}", partial(play, policy, FEW_ARMS, rewards(12))


def play(policy: Any, arms: int, values: list[float]) -> None:
    """Let a policy decide and learn, first at once and then with late rewards."""
    if policy.informed:
        db.simulate(policy, db.environment("case-3", arms=arms), horizon=40, seed=1, threads=1)
        return
    context = {"x": {"kind": "vector", "size": 2, "required": True}} if policy.functions.contextual else None
    names, generator = [str(arm) for arm in range(arms)], Numbers()
    is_shared = getattr(policy, "model", "separate") in ("shared", "hybrid")
    of_arms = {name: {"y": generator.pair()} for name in names} if is_shared else None
    bandit = db.Bandit(policy, names, seed=1, features=context, arm_features=of_arms)
    waiting: list[tuple[str, float, int]] = []
    for number, value in enumerate(values):
        shown = {"x": generator.pair()} if context else None
        if number % PROPENSITIES_EVERY == 0:
            found = bandit.exact_propensities(shown)
            assert found is None or abs(sum(found.values()) - 1.0) < 1e-5, f"step {number + 1}: {found}"
        waiting.append((bandit.choose(shown), value, bandit.step))
        if number >= policy.burn_in * arms:
            assert not np.isnan(bandit._space.scratch[0, :arms]).any(), f"step {number + 1}: scores are not numbers"
        if len(waiting) > (LATE if number > len(values) / 2 else 0):
            arm, late, step = waiting.pop(0)
            bandit.reward(arm, late, step=step)
    for part in (bandit._memory, bandit._shared, bandit._models):
        assert part is None or not np.isnan(part).any(), "the state has numbers that are none"
    for column in range(arms):
        assert not np.isinf(bandit.belief(column)).any(), f"{bandit.belief(column)}"
    assert db.Bandit.from_json(bandit.to_json()).choose(shown) == bandit.choose(shown)


class Numbers:
    """Features that are the same in each case."""

    def __init__(self) -> None:
        self._generator = np.random.default_rng(1)

    def pair(self) -> list[float]:
        """Return two numbers."""
        return self._generator.standard_normal(2).tolist()


def environment_cases(name: str) -> Iterator[Case]:
    """Yield the cases of an environment: its first steps, and its last ones."""
    kind, base = MADE[name], SMALL.get(name, {})
    for given in [{}, *combinations(values_of_environment(name), AT_RANDOM)]:
        made = with_values(kind, base, given)
        if made is not None and made.state_size() * made.arms <= LARGEST_SIZE:
            yield f"{name} {made.parameters}", partial(walk, made)


def walk(environment: Any) -> None:
    """Write the first and the last steps of a path; its means must be in [0, 1]."""
    write, params = compiled_write_paths(environment.functions), np.array(environment.params())
    steps, state = min(environment.longest, 8), np.zeros((1, environment.state_size(), environment.arms))
    for first in (1, environment.longest - steps + 1):
        paths = environment.empty_paths(1, steps)
        write(state, params, environment.table(), paths, first, steps, stream(1))
        assert ((paths.means >= 0.0) & (paths.means <= 1.0)).all(), f"from step {first} on: {paths.means}"
        assert np.isfinite(paths.features).all(), f"from step {first} on"


def reward_law_cases(name: str) -> Iterator[Case]:
    """Yield the cases of a reward law: rewards and their means, given extreme values of the path."""
    kind: Any = REWARD_LAWS[name]
    draw, expected = compiled(kind.functions.draw), compiled(kind.functions.expected)
    known = [one for one in kind().parameters if one != "name"]
    values: dict[str, list[Any]] = {one: tried for one in known if (tried := range_of(kind, one))}

    def check(law: Any) -> None:
        for number in (1, 2, LARGEST_STEP):
            for value in (0.0, 5e-324, 1e-300, 0.25, 1.0 - 2.0**-53, 1.0):
                drawn = draw(value, 0, RewardStep(number, stream(1)), law.params())
                assert law.domain.contains(drawn), f"{drawn} at {value}"
                assert math.isfinite(expected(value, law.params())), f"the mean at {value}"

    for given in [{}, *combinations(values, AT_RANDOM)]:
        law = with_values(kind, {}, given)
        if law is not None:
            yield f"{law}", partial(check, law)


def delay_cases(name: str) -> Iterator[Case]:
    """Yield the cases of a kind of delay, with every rule of a window."""
    kind: Any = DELAYS[name]
    steps = [0, 1, 7, LARGEST_STEP]
    all_kinds: dict[str, list[dict[str, Any]]] = {
        "fixed": [{"steps": one} for one in steps],
        "geometric": [{"mean": one} for one in (0.0, 5e-324, 1e-300, 1e-12, 0.5, 7.0, 1e9)],
        "uniform": [{"low": low, "high": high} for low in steps for high in steps if low <= high],
        "recorded": [{"delays": [one, 0]} for one in steps],
        "batch": [{"every": one} for one in (1, 2, 7, LARGEST_STEP)],
    }
    world, drawn = db.environment("case-3", arms=FEW_ARMS), compiled(draw_delay)

    def check(delay: db.Delay) -> None:
        params = delay.params(FEW_ARMS)
        for number in (1, 2, LARGEST_STEP):
            assert -1 <= drawn(params, 0, number, stream(1)) <= LARGEST_STEP
        run = db.simulate("ucb", world, horizon=60, seed=1, threads=1, delay=delay)
        assert np.isfinite(run.total_regret).all()

    for one in all_kinds[name]:
        for lost in (0.0, 5e-324, 0.5, 1.0):
            for window in (None, 0, 1, 7, LARGEST_STEP):
                for rule in WINDOW_RULES if window is not None else ("settled",):
                    delay = kind(**one, lost=lost, window=window, rule=rule)
                    yield delay.label, partial(check, delay)


def estimator_cases(name: str) -> Iterator[Case]:
    """Yield the cases of an estimator; regressions are compiled from five features on."""
    kind = ESTIMATORS[name]
    functions = getattr(kind, "functions", None)
    compiled_functions = functions and functions._replace(
        observe=compiled(functions.observe), mean=compiled(functions.mean), retract=compiled(functions.retract)
    )

    def check(parameters: dict[str, Any]) -> None:
        estimator: Any = kind(**parameters)
        values, generator = [*rewards(20), *extremes(kind.rewards)], Numbers()
        if compiled_functions is not None:
            estimator.functions = compiled_functions
        for value in values:
            if "dimension" in parameters:
                x = [1.0, *generator.pair(), *generator.pair()]
                estimator.update(x, value)
                assert np.isfinite(estimator.predict(x)).all(), f"{estimator.predict(x)} after {value}"
            else:
                estimator.update(value)
                assert not np.isinf(estimator.belief).any(), f"{estimator.belief} after {value}"
                assert compiled_functions is None or math.isfinite(compiled_functions.mean(estimator.state))

    for parameters in parameters_of_estimator(name, DIMENSION):
        yield f"{name} {parameters}", partial(check, parameters)


KINDS: dict[str, tuple[Any, Callable[[str], Iterator[Case]]]] = {
    "policy": (ALL_POLICIES, policy_cases),
    "environment": (MADE, environment_cases),
    "reward-law": (REWARD_LAWS, reward_law_cases),
    "delay": (DELAYS, delay_cases),
    "estimator": (ESTIMATORS, estimator_cases),
}


def say(line: str) -> None:
    """Write a line at once, before the process may have to be killed."""
    sys.stdout.write(line.replace("\n", " ") + "\n")
    sys.stdout.flush()


def main(kind: str, name: str) -> int:
    """Try all cases, and return how many fail."""
    warnings.simplefilter("ignore", RuntimeWarning)  # of NumPy's scalars; what matters is the result
    tried = failed = 0
    for described, run in KINDS[kind][1](name):
        say(described)
        tried += 1
        try:
            run()
        except Exception as error:  # all cases are tried
            failed += 1
            say(f"FAILED: {described}: {type(error).__name__}: {error}")
    say(f"{tried} cases, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 1))
