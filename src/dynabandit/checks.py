"""The contract that every estimator, policy and environment keeps; run it on your own.

Each check raises an `AssertionError` whose message says what does not hold.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass

import numpy as np

from dynabandit.bandit import Bandit
from dynabandit.core.streams import stream
from dynabandit.environments import Environment
from dynabandit.environments.base import make_path_writer
from dynabandit.environments.scheduled import Fixed, Piecewise
from dynabandit.estimators import Estimator
from dynabandit.policies import Policy
from dynabandit.policies.choose_arm import SCRATCH_ROWS, make_choose
from dynabandit.simulation import Simulation, compare, simulate

__all__ = ["check_environment", "check_estimator", "check_policy"]

ARMS = 12  # more than `policies.decision.FEW`, so that Thompson policies hold their contest
MEANS = tuple(0.2 + 0.05 * arm for arm in range(ARMS))
STEPS = 120


def _hold(condition: object, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def check_estimator(make: Callable[[], Estimator]) -> None:
    """Check an estimator.

    Parameters
    ----------
    make
        Makes a fresh estimator, such as the class itself or a `lambda`.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.checks.check_estimator(lambda: db.estimators.SlidingWindow(window=10))
    """
    _hold(callable(make), f"make must make a fresh estimator, such as the class itself or a lambda, got {make!r}")
    fresh = make()
    _hold(math.isnan(fresh.mean), "mean must be NaN before the first reward")
    _hold(fresh.weight == 0.0, "weight must be 0 before the first reward")
    for constant in (0.0, 1.0):
        estimate = make()
        for _ in range(50):
            estimate.update(constant)
        _hold(abs(estimate.mean - constant) < 1e-9, f"mean of rewards that are all {constant} must be {constant}")
        _hold(abs(estimate.variance) < 1e-9, f"variance of rewards that are all {constant} must be 0")
    rewards = (np.arange(200) * 7919 % 5 < 2).astype(float)
    first, second = make(), make()
    for n, reward in enumerate(rewards, start=1):
        _hold(first.update(reward) is first, "update must return the estimator")
        second.update(reward)
        _hold(0.0 <= first.mean <= 1.0, f"mean must stay in [0, 1], got {first.mean} after {n} rewards")
        _hold(0.0 <= first.forgetting <= 1.0, f"forgetting must stay in [0, 1], got {first.forgetting}")
        _hold(first.variance >= 0.0, f"variance must not be negative, got {first.variance}")
        _hold(0.0 < first.weight <= n + 1e-9, f"weight must be in (0, {n}] after {n} rewards, got {first.weight}")
        size = first.effective_size
        _hold(1.0 - 1e-9 <= size <= n + 1e-9, f"effective_size must be in [1, {n}], got {size}")
    _hold(first.belief == second.belief, "two estimators fed the same rewards must agree")
    for wrong in (math.nan, -0.1, 1.1):
        before = first.belief
        _hold(_refuses(first, wrong), f"update must refuse the reward {wrong}")
        _hold(first.belief == before, f"a refused reward {wrong} must change nothing")


def _refuses(estimate: Estimator, reward: float) -> bool:
    try:
        estimate.update(reward)
    except (TypeError, ValueError):
        return True
    return False


def check_policy(policy: Policy) -> None:
    """Check a policy.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.checks.check_policy(db.policy("aff-ucb1", burn_in=2))
    """
    _check_declaration(policy)
    _check_start(policy.tuned(1, STEPS))
    if policy.kernels.still:
        _check_still(policy.tuned(1, STEPS))
    world = Piecewise(starts=(1, 60), means=(MEANS, MEANS[::-1]))
    horizon = max(STEPS, 3 * policy.burn_in * ARMS)
    run = _simulate(policy, world, horizon)
    assert run.arms is not None
    assert run.rewards is not None
    _hold(((run.arms >= 0) & (run.arms < ARMS)).all(), "every chosen arm must exist")
    burn_in = run.arms[:, : policy.burn_in * ARMS]
    round_robin = np.arange(policy.burn_in * ARMS) % ARMS
    _hold((burn_in == round_robin).all(), "the burn-in must play the arms in turn")
    _hold((np.diff(run.regret) >= 0.0).all(), "regret must not fall")
    again = _simulate(policy, world, horizon, threads=2, block=7)
    _hold((run.arms == again.arms).all(), "choices must not depend on threads or the size of a block")
    beside = compare({"a": "uniform", "b": policy}, world, horizon=horizon, replications=3, seed=5, keep=("arms",))
    _hold((run.arms == beside["b"].arms).all(), "choices must not depend on which other policies run")
    _check_reach(policy)
    _check_interpreted(policy, world, run)
    if not policy.informed:
        _check_bandit(policy.tuned(1, horizon), horizon)


def _simulate(
    policy: Policy, world: Environment, horizon: int, threads: int = 1, block: int | None = None
) -> Simulation:
    return simulate(
        policy,
        world,
        horizon=horizon,
        replications=3,
        seed=5,
        keep=("arms", "rewards"),
        threads=threads,
        block=block,
    )


def _check_declaration(policy: Policy) -> None:
    kind = type(policy)
    _hold(is_dataclass(policy) and isinstance(policy, Policy), "a policy must be a dataclass derived from Policy")
    _hold(isinstance(getattr(kind, "name", None), str) and kind.name, "the class must have a name")
    _hold(len(set(kind.slots)) == len(kind.slots) > 0, "slots must be different names")
    _hold(kind(**policy.parameters) == policy, "the parameters must make an equal policy again")
    _check_sections(kind)
    tuned = policy.tuned(1, 100)
    _hold(not tuned.needs_tuning and not tuned.needs_horizon, "a tuned policy must need no more tuning")
    _hold(tuned.memory_size() >= len(kind.slots), "memory_size must leave a row for each slot")
    numbers = tuned.numbers(ARMS)
    _hold(numbers.ndim == 1 and numbers.dtype == float, "numbers must be a vector of floats")
    _hold(np.isfinite(numbers).all(), "numbers must be finite")
    drawn = kind.kernels.posterior is not None
    _hold(not (kind.kernels.still and drawn), "scores drawn from a posterior cannot be still")


def _check_sections(kind: type) -> None:
    for part in ("Parameters", "Examples", "References"):
        _hold(part in (kind.__doc__ or ""), f"the docstring of {kind.__name__} must have a section {part}")


def _check_start(policy: Policy) -> None:
    """All arms must start alike, for an arm can be added at any time and in any place."""
    memory, shared = np.zeros((policy.memory_size(), ARMS)), np.zeros(policy.shared_size())
    numbers = policy.numbers(ARMS)
    policy.kernels.start(memory, shared, 0, numbers)
    first = shared.copy()
    for arm in range(1, ARMS):
        policy.kernels.start(memory, shared, arm, numbers)
        alike = np.array_equal(memory[:, arm], memory[:, 0], equal_nan=True)
        _hold(
            alike,
            f"start must write the same for every arm, but wrote {memory[:, arm]} for arm {arm}, not {memory[:, 0]}",
        )
    _hold(np.array_equal(shared, first, equal_nan=True), f"start must not add up in shared: {first} became {shared}")


class _Interpreted:
    """A policy without compilation, which is told what to play."""

    def __init__(self, policy: Policy, horizon: int) -> None:
        self.kernels, self.numbers = policy.kernels, policy.numbers(ARMS)
        self.memory, self.shared = np.zeros((policy.memory_size(), ARMS)), np.zeros(policy.shared_size())
        self.last, self.scratch = np.zeros(ARMS, dtype=np.int64), np.zeros((SCRATCH_ROWS, ARMS))
        self.scores = self.scratch[0]
        self._table, self._choose = policy.kernels.table(ARMS, horizon), make_choose(policy.kernels)
        for arm in range(ARMS):
            self.kernels.start(self.memory, self.shared, arm, self.numbers)

    def reveal(self, means: Sequence[float] | np.ndarray) -> None:
        """Tell the true means."""
        for arm in range(ARMS):
            self.kernels.reveal(self.memory, arm, means[arm])

    def choose(self, step: int) -> int:
        """Return the choice, and leave the scores that led to it."""
        place = (self.memory, self.shared, self.last, self.scratch)
        return int(self._choose(*place, step, self.numbers, self._table, stream(5)))

    def learn(self, arm: int, step: int, reward: float) -> None:
        """Play an arm."""
        self.last[arm] = step
        self.kernels.learn(self.memory, self.shared, arm, reward, self.numbers)


def _check_still(policy: Policy) -> None:
    """Where scores are said to stand still, nothing but a play may move one, and only that of the arm played."""
    player = _Interpreted(policy, STEPS)
    any_number = np.random.default_rng(5)
    for step in range(1, STEPS + 1):
        before = player.scores.copy()
        player.reveal(MEANS if step < STEPS // 2 else MEANS[::-1])
        player.choose(step)
        moved = np.flatnonzero((player.scores != before) & (player.last != step - 1) & (step > 1))
        _hold(not len(moved), f"still says that only a play moves a score, but at step {step} those of {moved} moved")
        played = int(any_number.integers(ARMS) ** 2 / ARMS)  # some arms often, some seldom
        player.learn(played, step, float(any_number.random() < 0.5))


def _check_reach(policy: Policy) -> None:
    """No arm may be out of reach: with equal arms, each is chosen now and then after the burn-in."""
    equal = Fixed(means=(0.5,) * ARMS)
    start = policy.burn_in * ARMS
    run = simulate(policy, equal, horizon=start + STEPS, replications=100, seed=9, keep=("arms",))
    assert run.arms is not None
    counts = np.bincount(run.arms[:, start:].ravel(), minlength=ARMS)
    _hold((counts > 0).all(), f"every one of {ARMS} equal arms must be chosen at times, but the counts are {counts}")


def _check_interpreted(policy: Policy, world: Environment, run: Simulation) -> None:
    """The same functions, without compilation, must make the same choices."""
    assert run.arms is not None
    assert run.rewards is not None
    means = world.path(run.horizon, seed=5)
    best = means.argmax(axis=1)
    player = _Interpreted(policy.tuned(int((np.diff(best) != 0).sum()), run.horizon), run.horizon)
    for step in range(1, run.horizon + 1):
        player.reveal(means[step - 1])
        expected = int(run.arms[0, step - 1])
        if step > policy.burn_in * ARMS:
            arm = player.choose(step)
            _hold(arm == expected, f"interpreted, step {step} chooses arm {arm}; compiled, arm {expected}")
            _hold(not np.isnan(player.scores).any(), f"a score is NaN at step {step}: {player.scores}")
        player.learn(expected, step, float(run.rewards[0, step - 1]))


def _check_bandit(policy: Policy, horizon: int) -> None:
    """A `Bandit` must agree with the simulator, survive JSON, and cope with arms that come and go."""
    world = Fixed(means=MEANS)
    run = _simulate(policy, world, horizon)
    assert run.arms is not None
    assert run.rewards is not None
    bandit = Bandit(policy, arms=[str(arm) for arm in range(ARMS)], seed=5)
    for step in range(horizon):
        name = bandit.choose()
        _hold(int(name) == run.arms[0, step], f"a Bandit must choose as the simulator does (step {step + 1})")
        bandit.reward(name, float(run.rewards[0, step]))
        if step == horizon // 2:
            bandit = Bandit.from_json(bandit.to_json(), policy=policy)
    for name, arm in bandit.arms.items():
        unknown = arm.plays == 0 or arm.effective_size == 0.0
        _hold(0.0 <= arm.mean <= 1.0 or unknown, f"belief must give arm {name} a mean in [0, 1], got {arm}")
    bandit.remove_arm("0")
    bandit.add_arm("new")
    names = [bandit.choose() for _ in range(horizon)]
    _hold("0" not in names, "a removed arm must not be chosen")


def check_environment(environment: Environment) -> None:
    """Check an environment.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.checks.check_environment(db.environment("case-4", arms=3))
    """
    kind = type(environment)
    derived = is_dataclass(environment) and isinstance(environment, Environment)
    _hold(derived, "an environment must be a dataclass derived from Environment")
    arms = environment.arms
    _hold(isinstance(getattr(kind, "name", None), str) and kind.name, "the class must have a name")
    _check_sections(kind)
    remade = kind(**environment.parameters)
    horizon = min(STEPS, environment.longest)
    path = environment.path(horizon, seed=5)
    _hold(path.shape == (horizon, arms), f"a path must have shape {(horizon, arms)}, got {path.shape}")
    _hold(((path >= 0.0) & (path <= 1.0)).all(), "every mean must be in [0, 1]")
    _hold((path == remade.path(horizon, seed=5)).all(), "the parameters must make an equal environment again")
    short = max(1, horizon // 2)
    _hold((path[:short] == environment.path(short, seed=5)).all(), "a shorter path must be the same from the start")
    for step in range(1, horizon + 1):
        until = environment.still_until(step)
        _hold(until >= step, f"still_until({step}) must not be before that step, got {until}")
        _hold(
            (path[step - 1 : until] == path[step - 1]).all(),
            f"still_until({step}) is {until}, but the means change in between",
        )
    other = environment.path(horizon, seed=5, replication=1)
    # One thread takes both replications block by block, so that one could leak into the other
    run = simulate("best-arm", environment, horizon=horizon, replications=2, seed=5, threads=1, block=7, keep="arms")
    assert run.arms is not None
    for replication, one in enumerate((path, other)):
        played = one[np.arange(horizon), run.arms[replication]]
        _hold((played == one.max(axis=1)).all(), "the simulator must see the path that environment.path gives")
    interpreted = _interpreted_path(environment, horizon)
    _hold((interpreted == path).all(), "the path must be the same without compilation")


def _interpreted_path(environment: Environment, horizon: int) -> np.ndarray:
    means = np.empty((1, horizon, environment.arms))
    state = np.zeros((1, len(environment.slots), environment.arms))
    make_path_writer(environment.kernels)(
        state, environment.numbers(), environment.table(), means, np.empty((1, horizon)), 1, horizon, stream(5)
    )
    return means[0]
