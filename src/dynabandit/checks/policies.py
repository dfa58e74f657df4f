"""Checks of policies."""

from typing import Any

import numpy as np

from dynabandit.bandit import Bandit
from dynabandit.checks.estimators import require
from dynabandit.core.records import to_row
from dynabandit.environments import Bernoulli, Counts, Environment, Normal, Revenue, RewardLaw
from dynabandit.environments.drifting_models import LinDrift
from dynabandit.environments.scheduled import Fixed, Piecewise
from dynabandit.features import FeatureEncoder
from dynabandit.policies import Policy
from dynabandit.policies.base import PolicyState
from dynabandit.simulation import Simulation, compare, simulate
from dynabandit.simulation.step_by_step import StepByStep

ARMS = 12  # more than `choose_arm.FEW_ARMS`, so that Thompson sampling policies prune draws
MEANS = tuple(0.2 + 0.05 * arm for arm in range(ARMS))
STEPS = 120
DIMENSION = 3  # of the features that contextual policies see
SEED = 5
# The reward laws that policies are checked with: the first one whose rewards they can learn from
LAWS = (Normal(low=-10.0, high=10.0, deviation=5.0), Revenue(conversion=0.5), Counts(), Bernoulli())


def declares_its_parts(policy: Policy) -> None:
    """The class has a name, slots, and parameters that make an equal policy."""
    kind = type(policy)
    require(isinstance(getattr(kind, "name", None), str) and kind.name, "the class must have a name")
    require(len(set(kind.slots)) == len(kind.slots), "slots must be different names")
    require(policy.functions.in_python or len(kind.slots) > 0, "a policy needs at least one slot")
    require(kind(**policy.parameters) == policy, "the parameters must make an equal policy")
    tuned = policy.tuned(1, 100)
    require(not tuned.needs_tuning and not tuned.needs_horizon, "a tuned policy must need no more tuning")
    require(tuned.memory_size() >= len(kind.slots), "memory_size must be at least the number of slots")
    params, functions = tuned.params(ARMS), policy.functions
    require(type(params) is functions.params, f"params must be a {functions.params}, got {params!r}")
    require(np.isfinite(to_row(params)).all(), f"params must be finite numbers, got {params!r}")
    _law(policy)
    drawn = functions.posterior is not None
    require(not (functions.static_index and drawn), "scores drawn from a posterior are not a static index")


def starts_all_arms_alike(policy: Policy) -> None:
    """`start` writes the same state for every arm."""
    policy = policy.tuned(1, STEPS)
    params = policy.params(ARMS)
    memory, shared = np.zeros((policy.memory_size(), ARMS)), np.zeros(policy.shared_size())
    state = PolicyState(memory, shared, np.zeros(ARMS, dtype=np.int64))
    policy.functions.start(state, 0, params)
    first = shared.copy()
    for arm in range(1, ARMS):
        policy.functions.start(state, arm, params)
        alike = np.array_equal(memory[:, arm], memory[:, 0], equal_nan=True)
        require(
            alike,
            f"start must write the same for every arm, but wrote {memory[:, arm]} for arm {arm}, not {memory[:, 0]}",
        )
    require(np.array_equal(shared, first, equal_nan=True), f"start must not add up in shared: {first} became {shared}")


def scores_change_only_with_plays(policy: Policy) -> None:
    """Only a play changes a static index, and only that of the played arm."""
    run = StepByStep(policy.tuned(1, STEPS), ARMS, STEPS, SEED)
    generator = np.random.default_rng(SEED)
    for number in range(1, STEPS + 1):
        before = run.scores.copy()
        run.reveal(MEANS if number < STEPS // 2 else MEANS[::-1])
        run.choose(number)
        moved = np.flatnonzero((run.scores != before) & (run.state.last_played != number - 1) & (number > 1))
        problem = f"at step {number} the scores of {moved} changed"
        require(not len(moved), f"static_index means that only a play changes a score, but {problem}")
        played = int(generator.integers(ARMS) ** 2 / ARMS)  # some arms often, some rarely
        run.learn(played, number, float(generator.random() < 0.5))


def _law(policy: Policy) -> RewardLaw:
    accepted = policy.live_rewards or policy.rewards
    fitting = [law for law in LAWS if law.domain.is_within(accepted)]
    require(fitting, f"rewards must include 0 and 1 or all rewards of another reward law, got {accepted}")
    return fitting[0]


def _environment(policy: Policy) -> Environment:
    if policy.functions.contextual:
        return LinDrift(arms=ARMS, dimension=DIMENSION, period=60, rewards=_law(policy))
    return Piecewise(starts=(1, 60), means=(MEANS, MEANS[::-1]), rewards=_law(policy))


def _horizon(policy: Policy) -> int:
    return max(STEPS, 3 * policy.burn_in * ARMS)


def _simulate(policy: Policy, environment: Environment, threads: int = 1, block: int | None = None) -> Simulation:
    return simulate(
        policy, environment, horizon=_horizon(policy), replications=3, seed=SEED, keep=("arms", "rewards"),
        threads=threads, block=block,
    )  # fmt: skip


def plays_valid_arms(policy: Policy) -> None:
    """Chosen arms exist, the burn-in plays them in turn, and the regret does not decrease."""
    run = _simulate(policy, _environment(policy))
    assert run.arms is not None
    require(((run.arms >= 0) & (run.arms < ARMS)).all(), "every chosen arm must exist")
    burn_in = run.arms[:, : policy.burn_in * ARMS]
    round_robin = np.arange(policy.burn_in * ARMS) % ARMS
    require((burn_in == round_robin).all(), "the burn-in must play the arms in turn")
    require((np.diff(run.regret) >= 0.0).all(), "regret must not decrease")


def reproduces_its_choices(policy: Policy) -> None:
    """Choices do not depend on threads, blocks or other policies."""
    environment = _environment(policy)
    run, again = _simulate(policy, environment), _simulate(policy, environment, threads=2, block=7)
    assert run.arms is not None
    require((run.arms == np.asarray(again.arms)).all(), "choices must not depend on threads or the size of a block")
    together = {"a": "uniform", "b": policy}
    others = compare(together, environment, horizon=_horizon(policy), replications=3, seed=SEED, keep=("arms",))
    require((run.arms == np.asarray(others["b"].arms)).all(), "choices must not depend on which other policies run")


def reaches_every_arm(policy: Policy) -> None:
    """With equal arms, or features, each one is chosen at some step after the burn-in."""
    contextual = policy.functions.contextual
    equal = _environment(policy) if contextual else Fixed(means=(0.5,) * ARMS, rewards=_law(policy))
    start = policy.burn_in * ARMS
    for replications in (3, 100):  # few are enough for most policies
        run = simulate(policy, equal, horizon=start + STEPS, replications=replications, seed=9, keep=("arms",))
        assert run.arms is not None
        counts = np.bincount(run.arms[:, start:].ravel(), minlength=ARMS)
        if (counts > 0).all():
            break
    require((counts > 0).all(), f"every one of {ARMS} equal arms must be chosen at times, but the counts are {counts}")


def decides_alike_interpreted(policy: Policy) -> None:
    """The functions make the same choices without compilation."""
    environment = _environment(policy)
    simulation = _simulate(policy, environment)
    assert simulation.arms is not None
    assert simulation.rewards is not None
    means = environment.rewards.expected(environment.path(simulation.horizon, seed=SEED))
    features = None if environment.context is None else environment.features(simulation.horizon, SEED)
    switches = int((np.diff(means.argmax(axis=1)) != 0).sum())
    run = StepByStep(policy.tuned(switches, simulation.horizon), ARMS, simulation.horizon, SEED, environment.context)
    for number in range(1, simulation.horizon + 1):
        run.reveal(means[number - 1])
        if features is not None:
            run.show(features[number - 1])
        expected = int(simulation.arms[0, number - 1])
        if number > policy.burn_in * ARMS:
            arm = run.choose(number)
            require(arm == expected, f"interpreted, step {number} chooses arm {arm}; compiled, arm {expected}")
            require(not np.isnan(run.scores).any(), f"a score is NaN at step {number}: {run.scores}")
        run.learn(expected, number, float(simulation.rewards[0, number - 1]))


def decides_alike_in_a_bandit(policy: Policy) -> None:
    """A `Bandit` makes the choices of the simulator, also after a round trip through JSON."""
    policy = policy.tuned(1, _horizon(policy))
    environment = _environment(policy) if policy.functions.contextual else Fixed(means=MEANS, rewards=_law(policy))
    run = _simulate(policy, environment)
    assert run.arms is not None
    assert run.rewards is not None
    bandit, contexts = _bandit(policy, rewards=_law(policy)), _contexts(policy, environment)
    for step in range(run.horizon):
        name = bandit.choose(contexts[step])
        require(int(name) == run.arms[0, step], f"a Bandit must choose as the simulator does (step {step + 1})")
        bandit.reward(name, float(run.rewards[0, step]))
        if step == run.horizon // 2:
            bandit = Bandit.from_json(bandit.to_json(), policy=policy)
    for name, arm in bandit.arms.items():
        unknown = arm.plays == 0 or arm.effective_size == 0.0 or policy.functions.contextual
        low, high = policy.rewards.low, policy.rewards.high
        inside = f"belief must give arm {name} a mean in [{low:g}, {high:g}], got {arm}"
        require(low <= arm.mean <= high or unknown, inside)


def allows_changing_arms(policy: Policy) -> None:
    """In a `Bandit`, arms can be removed and added."""
    policy = policy.tuned(1, _horizon(policy))
    bandit, contexts = _bandit(policy), _contexts(policy, _environment(policy))
    for step in range(2 * ARMS):
        bandit.reward(bandit.choose(contexts[step]), float(step % 2))
    bandit.remove_arm("0")
    bandit.add_arm("new")
    names = [bandit.choose(context) for context in contexts]
    require("0" not in names, "a removed arm must not be chosen")


def _bandit(policy: Policy, rewards: RewardLaw | None = None) -> Bandit:
    """Return a bandit whose contexts, if the policy needs them, are vectors that are used as they are."""
    vector = {"x": {"kind": "vector", "size": DIMENSION, "required": True}}
    features = FeatureEncoder(vector, constant=False) if policy.functions.contextual else None
    return Bandit(policy, [str(arm) for arm in range(ARMS)], SEED, rewards, features=features)


def _contexts(policy: Policy, environment: Environment) -> list[dict[str, Any] | None]:
    """Return the context of each step; None for a policy without context."""
    if not policy.functions.contextual:
        return [None] * _horizon(policy)
    return [{"x": features[0]} for features in environment.features(_horizon(policy), SEED)]
