"""Policies in plain Python: they run in the simulator and in a `Bandit`, without compilation, like all others."""

import copy
import pickle
from typing import Any, ClassVar

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.compilation import kernel
from dynabandit.core.streams import Stream, stream
from dynabandit.policies import ArmNumbers, PythonPolicy, PythonStep
from dynabandit.policies.base import compiled_for, new_state
from dynabandit.policies.belief import Belief
from dynabandit.simulation.code_versions import code_version

ENVIRONMENT = db.environment("piecewise", starts=(1, 60), means=((0.2, 0.5, 0.8), (0.8, 0.5, 0.2)))


class PythonUCB(PythonPolicy):
    """UCB, as in `policies/rules/ucb.py`."""

    name = "python-ucb"
    burn_in: int = 1

    def choose(self, arms: Any, step: PythonStep) -> int:
        width = np.sqrt(2.0 * np.log(max(step.number - 1, 1))) * (1.0 / np.sqrt(arms.count))
        return step.argmax(arms.total / arms.count + width)


class Recent(PythonPolicy):
    """Epsilon-greedy on the mean of the latest rewards."""

    name = "recent"
    slots = ("recent", "plays")
    window: int = 5
    prior: tuple[float, ...] = (0.5,)

    def sizes(self) -> dict[str, int]:
        return {"recent": self.window}

    def start(self, arms: Any) -> None:
        arms.recent = self.prior[0]

    def choose(self, arms: Any, step: PythonStep) -> int:
        if step.random.random() < 0.2:
            return int(step.random.integers(len(arms)))
        return step.argmax(arms.recent.mean(axis=0))

    def update(self, arms: Any, arm: int, reward: float) -> None:
        arms.recent[int(arms.plays[arm]) % self.window, arm] = reward
        arms.plays[arm] += 1


class OutOfRange(PythonPolicy):
    """Always the arm after the last one."""

    name = "out-of-range"

    def choose(self, arms: Any, step: PythonStep) -> int:
        return len(arms)


class Before(OutOfRange):
    """Always the arm before the first one."""

    name = "before"

    def choose(self, arms: Any, step: PythonStep) -> int:
        return -1


@pytest.mark.parametrize("delay", [None, db.delay("fixed", steps=3)])
def test_a_policy_in_python_makes_the_choices_of_the_same_compiled_one(delay: db.Delay | None) -> None:
    policies = [PythonUCB(burn_in=2), db.policy("ucb", burn_in=2)]
    if delay is not None:  # the compiled one also counts plays without rewards in its bonus
        policies = [PythonUCB(burn_in=2)]
    runs = db.compare(policies, ENVIRONMENT, horizon=150, replications=3, seed=4, keep="arms", delay=delay)
    arms = [np.asarray(run.arms) for run in runs.values()]
    assert all(np.array_equal(one, arms[0]) for one in arms)
    assert set(np.unique(arms[0])) == {0, 1, 2}


def test_it_passes_all_checks_with_advice_on_its_documentation() -> None:
    with pytest.warns(db.checks.DocumentationAdvice, match="Recent passed all checks; its docstring has no section"):
        db.checks.check_policy(Recent())


def test_it_decides_in_a_bandit_that_can_be_saved_and_whose_arms_change() -> None:
    bandit = db.Bandit(Recent(), arms=["a", "b", "c"], seed=3)
    for _ in range(60):
        arm = bandit.choose()
        bandit.reward(arm, arm == "b")
    assert bandit.arms["b"].plays > 40
    assert bandit.arms["b"].mean == 1.0
    assert bandit.propensities()["b"] == pytest.approx(0.8 + 0.2 / 3, abs=0.1)  # of 200 draws: 5 standard deviations
    assert bandit.exact_propensities() is None
    restored = db.Bandit.from_json(bandit.to_json(), policy=Recent())
    bandit.add_arm("d")
    restored.add_arm("d")
    bandit.remove_arm("b")
    restored.remove_arm("b")
    assert [bandit.choose() for _ in range(20)] == [restored.choose() for _ in range(20)]
    assert restored.belief(restored.column("d")).effective_size == 0.0


def test_every_slot_has_its_own_numbers_and_an_arm_is_started_alone() -> None:
    shapes: list[list[tuple[int, ...]]] = []

    class Slots(PythonPolicy):
        name = "slots"
        slots = ("first", "several", "second")

        def sizes(self) -> dict[str, int]:
            return {"several": 2}

        def start(self, arms: Any) -> None:
            shapes.append([one.shape for one in (arms.count, arms.total, arms.last_played, arms.first, arms.several)])
            arms.first, arms.several, arms.second = 3.0, 4.0, 5.0

    state = new_state(Slots(), 3, Slots().params(3))
    assert state.memory.tolist() == [[0.0] * 3, [0.0] * 3, [3.0] * 3, [4.0] * 3, [4.0] * 3, [5.0] * 3]
    assert shapes == [[(1,), (1,), (1,), (1,), (2, 1)]]


def test_its_parameters_are_the_annotated_attributes() -> None:
    policy = Recent(window=9, prior=[0.25])  # type: ignore[arg-type]
    assert policy.label == "recent(window=9, prior=(0.25))"
    assert policy.memory_size() == 2 + 9 + 1
    assert hash(policy) == hash(Recent(window=9, prior=(0.25,)))
    assert pickle.loads(pickle.dumps(policy)) == policy
    with pytest.raises(TypeError, match="windoww"):
        Recent(windoww=9)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Recent(9)  # type: ignore[call-arg]


def test_an_edit_of_any_method_or_constant_is_a_new_version_of_its_code() -> None:
    def helping(**edit: float) -> PythonPolicy:
        numbers = {"method": 1.0, "static": 1.0, "from_class": 1.0, "read": 1.0, "limit": 1.0, **edit}
        method, static, from_class, read, limit = numbers.values()

        class Helped(Recent):
            limits: ClassVar[tuple[float, ...]] = (limit,)

            def start(self, arms: Any) -> None:
                arms.recent = self.help() + self.static_help() + self.class_help() + self.shown + self.limits[0]

            def help(self) -> float:
                return method

            @staticmethod
            def static_help() -> float:
                return static

            @classmethod
            def class_help(cls) -> float:
                return from_class

            @property
            def shown(self) -> float:
                return read

        return Helped()

    edits = ["method", "static", "from_class", "read", "limit"]
    policies = [helping(), helping(), *(helping(**{edit: 2.0}) for edit in edits)]
    versions = [code_version(one, ENVIRONMENT, 10) for one in policies]
    assert versions[0] == versions[1]
    assert len(set(versions)) == 1 + len(edits)


def test_mistakes_in_a_class_are_errors_that_name_them() -> None:
    with pytest.raises(ValueError, match=r"slots of Counted must have other names than count, .*, got 'count'"):
        type("Counted", (PythonPolicy,), {"name": "counted", "slots": ("count",)})

    class Sized(Recent):
        def sizes(self) -> dict[str, int]:
            return {"resent": 3}

    with pytest.raises(ValueError, match=r"unknown slot in sizes\(\) 'resent'. Did you mean 'recent'"):
        db.simulate(Sized(), ENVIRONMENT, horizon=3)
    with pytest.raises(TypeError, match=r"prior must be a number, .* or another hashable value, got a dict"):
        Recent(prior={})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["count", "total", "last_played"])
def test_the_numbers_that_are_kept_for_every_policy_cannot_be_changed(name: str) -> None:
    class Changing(Recent):
        def update(self, arms: Any, arm: int, reward: float) -> None:
            getattr(arms, name)[arm] = 1

    with pytest.raises(ValueError, match="read-only"):
        db.simulate(Changing(), ENVIRONMENT, horizon=3)


def test_arms_start_with_the_numbers_that_start_writes() -> None:
    policy = Recent(prior=(0.25,), window=2)
    assert new_state(policy, 3, policy.params(3)).memory[:, 2].tolist() == [0.0, 0.0, 0.25, 0.25, 0.0]


def test_an_arm_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"the arm that choose of out-of-range returns must be .* at most 2, got 3"):
        db.simulate(OutOfRange(), ENVIRONMENT, horizon=3)
    with pytest.raises(ValueError, match=r"the arm that choose of before returns must be .* at least 0 .*, got -1"):
        db.simulate(Before(), ENVIRONMENT, horizon=3)


def test_a_gpu_is_refused_and_automatic_means_the_cpu() -> None:
    with pytest.raises(ValueError, match="policy 'recent' is in plain Python, which needs backend='cpu'"):
        db.simulate(Recent(), ENVIRONMENT, horizon=3, backend="cuda")
    assert db.simulate(Recent(), ENVIRONMENT, horizon=3, backend="auto").horizon == 3


def test_numbers_of_arms_can_be_changed_as_a_whole_and_a_typo_is_an_error() -> None:
    arms = ArmNumbers({"mean": np.ones(2)})
    arms.mean *= 0.5
    arms.mean[1] = 2.0
    assert arms.mean.tolist() == [0.5, 2.0]
    assert len(ArmNumbers({"recent": np.zeros((5, 3))})) == 3  # (numbers, arms)
    assert copy.deepcopy(arms).mean.tolist() == [0.5, 2.0]
    for attempt in (lambda: arms.meen, lambda: setattr(arms, "meen", 1.0)):
        with pytest.raises(AttributeError, match=r"arms have no numbers 'meen'. Did you mean 'mean'"):
            attempt()


def test_random_numbers_depend_on_seed_replication_and_step_only() -> None:
    steps = [(1, stream(1)), (2, stream(1)), (1, stream(2)), (1, stream(1, 1)), (1, stream(2**40))]
    assert len({PythonStep(number, random).random.random() for number, random in steps}) == 5
    assert PythonStep(1, stream(1)).random.random() == PythonStep(1, stream(1)).random.random()


def test_random_numbers_are_those_that_recorded_results_have() -> None:
    bits = np.random.Philox(key=[5 + 9 * 2**32, 3], counter=[0, 0, 7, 0])
    expected = np.random.Generator(bits).random(4)
    assert PythonStep(7, Stream(5, 9, 3)).random.random(4).tolist() == expected.tolist()


def test_what_it_believes_is_the_sample_mean() -> None:
    policy, shared = Recent(window=2), np.zeros(0)
    before = policy.belief(np.array([0.0, 0.0, 0.5, 0.5, 0.0]), shared)
    assert np.isnan(before.mean)
    assert before[1:] == (0.0, 1.0, 0.0)
    assert policy.belief(np.array([4.0, 1.0, 0.5, 0.5, 0.0]), shared) == Belief(0.25, 0.1875, 1.0, 4.0)
    assert policy.belief(np.array([2.0, 6.0, 0.5, 0.5, 0.0]), shared) == Belief(3.0, 0.0, 1.0, 2.0)


def test_it_is_never_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    @kernel
    def function(x: float) -> float:
        return x

    monkeypatch.setattr("dynabandit.policies.base.compiled", lambda one: len)
    assert compiled_for(Recent().functions, function) is function
    used: Any = compiled_for(db.policy("ts").functions, function)
    assert used is len


def test_a_name_is_registered_once_and_never_that_of_the_recommended_policy() -> None:
    named = type("Named", (Recent,), {"name": "named-once"})
    try:
        assert db.policies.register(named) is named
        assert db.policies.register(named) is named
        assert db.policy("named-once") == named()
        with pytest.raises(ValueError, match=r"Another\.name must not be that of another policy, got 'named-once'"):
            db.policies.register(type("Another", (Recent,), {"name": "named-once"}))
    finally:
        del db.policies.POLICIES["named-once"]
    for taken in ("auto", "lin-ucb"):
        with pytest.raises(ValueError, match="must not be that of another policy"):
            db.policies.register(type("Taken", (Recent,), {"name": taken}))
