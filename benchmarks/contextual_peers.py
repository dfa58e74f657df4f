"""Compare contextual policies with other libraries: time per decision and update, and regret while rewards change.

    python benchmarks/contextual_peers.py speed [--write]     also writes docs/measured/contextual-speed.json, README.md
    python benchmarks/contextual_peers.py regret [--write]    also writes docs/measured/contextual-peers.json

`speed` needs an otherwise idle machine: one core, 10 arms, 10 features, one context for all arms, so one model per arm.
Every library gets the same contexts and rewards. The time of our simulator has that of its paths subtracted.
`regret` plays bayesianbandits with each of its forgetting rules in environments of the evaluation set whose arms have
separate models, on the features, means and rewards that our simulator uses.
"""

import argparse
import json
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

import contextual_design
import dynabandit as db
import readme_speed
from dynabandit.core.streams import stream
from dynabandit.environments import RewardStep
from report import DOCS, Contestant, in_turns, machine, table

ARMS, DIMENSION, STEPS = 10, 10, 500
OURS = ("lin-ucb", "lin-ts", "aff-lin-ucb", "aff-lin-ts", "mix-lin-ucb")
LARGE = (10, 25, 50, 100)  # dimensions for the growth of the time
RATES = (0.99, 0.998)
RULES = ("ExponentialForgetting", "StabilizedForgetting", "SiftForgetting", "FeatureWiseForgetting")
COMPARED = (
    "jump-4x5",
    "walk-5x4",
    "breakpoints-3x3",
    "noisy-still-6x8",
    "logistic-jump-3x4",
    "moving-jump-5x7",
    "bananas",
)
HORIZON, REPLICATIONS = 2000, 3

Choose, Learn = Callable[[np.ndarray], int], Callable[[np.ndarray, int, float], object]


def in_numpy() -> tuple[Choose, Learn]:
    """Return LinUCB in NumPy: an inverse matrix per arm, updated by the Sherman-Morrison formula."""
    inverse, sums = np.tile(np.eye(DIMENSION), (ARMS, 1, 1)), np.zeros((ARMS, DIMENSION))

    def choose(x: np.ndarray) -> int:
        products = inverse @ x
        return int(np.argmax(np.einsum("ad,ad->a", products, sums) + np.sqrt(products @ x)))

    def learn(x: np.ndarray, arm: int, reward: float) -> None:
        product = inverse[arm] @ x
        inverse[arm] -= np.outer(product, product) / (1.0 + x @ product)
        sums[arm] += reward * x

    return choose, learn


def in_river() -> tuple[Choose, Learn]:
    """Return river's LinUCB."""
    from river import bandit

    policy, arms = bandit.LinUCBDisjoint(alpha=1.0, seed=1), list(range(ARMS))

    def named(x: np.ndarray) -> dict[int, float]:
        return dict(enumerate(x.tolist()))

    return (
        lambda x: int(policy.pull(arms, context=named(x))),
        lambda x, arm, reward: policy.update(arm, named(x), reward),
    )


def in_mabwiser() -> tuple[Choose, Learn]:
    """Return MABWiser's LinUCB."""
    from mabwiser.mab import MAB, LearningPolicy

    bandit = MAB(list(range(ARMS)), LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0), seed=1)
    bandit.fit(np.arange(ARMS), np.zeros(ARMS), np.zeros((ARMS, DIMENSION)))
    return (
        lambda x: int(bandit.predict(x[np.newaxis])),
        lambda x, arm, reward: bandit.partial_fit(np.array([arm]), np.array([reward]), x[np.newaxis]),
    )


def in_vowpal_wabbit() -> tuple[Choose, Learn]:
    """Return Vowpal Wabbit's contextual bandit with epsilon-greedy exploration."""
    import vowpalwabbit

    space, random = vowpalwabbit.Workspace(f"--cb_explore {ARMS} --epsilon 0.1 --quiet"), np.random.default_rng(1)
    chances: list[float] = []

    def text(x: np.ndarray) -> str:
        return "| " + " ".join(f"{i}:{value:.6f}" for i, value in enumerate(x.tolist()))

    def choose(x: np.ndarray) -> int:
        chances[:] = space.predict(text(x))
        return int(np.searchsorted(np.cumsum(chances), random.random() * sum(chances)))

    return choose, lambda x, arm, reward: space.learn(f"{arm + 1}:{-reward}:{chances[arm]} {text(x)}")


def in_bayesianbandits(arms: int = ARMS, rule: Any = None, seed: int = 1) -> tuple[Choose, Learn]:
    """Return Thompson sampling of bayesianbandits with unknown noise and a forgetting rule."""
    import bayesianbandits as bb

    learners = [bb.NormalInverseGammaRegressor(forgetting=rule, random_state=seed + arm) for arm in range(arms)]
    agent = bb.ContextualAgent(
        [bb.Arm(arm, learner=one) for arm, one in enumerate(learners)], bb.ThompsonSampling(), random_seed=seed
    )
    return (
        lambda x: int(agent.pull(x[np.newaxis])[0]),
        lambda x, arm, reward: agent.update(x[np.newaxis], np.array([reward])),
    )


def in_process(name: str) -> tuple[Choose, Learn]:
    """Return our `Bandit` with a feature that is a vector."""
    arms = [str(arm) for arm in range(ARMS)]
    bandit = db.Bandit(name, arms=arms, features={"x": {"kind": "vector", "size": DIMENSION}}, seed=1)
    return (
        lambda x: int(bandit.choose({"x": x})),
        lambda x, arm, reward: bandit.reward(str(arm), reward),
    )


def one_by_one(start: Callable[[], tuple[Choose, Learn]]) -> Contestant:
    """Return a loop of decisions and updates."""
    random = np.random.default_rng(1)
    contexts, rewards = random.normal(size=(STEPS, DIMENSION)), random.normal(size=(STEPS, ARMS))

    def play() -> None:
        choose, learn = start()
        for x, values in zip(contexts, rewards, strict=True):
            arm = choose(x)
            learn(x, arm, float(values[arm]))

    return Contestant(STEPS, play)


def simulated(name: str, dimension: int = DIMENSION) -> Contestant:
    """Return a simulation on one core."""
    environment = db.environment("lin-drift", arms=ARMS, dimension=dimension, change="flip")
    steps = 20 * STEPS
    db.simulate(name, environment, horizon=20, threads=1)  # compiles
    return Contestant(steps, lambda: db.simulate(name, environment, horizon=steps, seed=1, threads=1, times=1))


def speed() -> dict[str, Any]:
    """Return the microseconds per decision and update."""
    ours = in_turns({name: simulated(name) for name in ("uniform", *OURS)}, most=9)
    growth = in_turns(
        {(name, d): simulated(name, d) for name in ("uniform", "lin-ucb", "mix-lin-ucb") for d in LARGE}, 5
    )
    others = {
        "Bandit lin-ucb": lambda: in_process("lin-ucb"),
        "Bandit mix-lin-ucb": lambda: in_process("mix-lin-ucb"),
        "NumPy": in_numpy,
        "river": in_river,
        "MABWiser": in_mabwiser,
        "Vowpal Wabbit": in_vowpal_wabbit,
        "bayesianbandits": in_bayesianbandits,
    }
    return {
        "machine": machine(),
        "simulator": {name: ours[name] - ours["uniform"] for name in OURS},
        "by dimension": {
            name: {str(d): growth[name, d] - growth["uniform", d] for d in LARGE} for name in ("lin-ucb", "mix-lin-ucb")
        },
        "one by one": in_turns({name: one_by_one(start) for name, start in others.items()}, most=5),
        "versions": {name: version(name) for name in ("river", "mabwiser", "vowpalwabbit", "bayesianbandits")},
    }


def played(environment: db.Environment, replication: int, agent: tuple[Choose, Learn]) -> float:
    """Return the regret of a library in one replication of our simulator."""
    seed, law = contextual_design.SEED, environment.rewards
    features = environment.features(HORIZON, seed, replication)[:, 0]
    means = environment.path(HORIZON, seed, replication)
    params, random, (choose, learn), regret = law.params(), stream(seed, replication), agent, 0.0
    for step in range(HORIZON):
        arm = choose(features[step])
        expected = law.expected(means[step])
        regret += float(expected.max() - expected[arm])
        learn(
            features[step], arm, float(law.functions.draw(means[step, arm], arm, RewardStep(step + 1, random), params))
        )
    return regret


def regret() -> dict[str, Any]:
    """Return the mean regrets by environment and policy, ours first."""
    import bayesianbandits as bb

    found: dict[str, dict[str, list[float]]] = {}
    for name in COMPARED:
        environment = contextual_design.evaluation()[name].make()
        runs = db.compare(
            ["mix-lin-ucb", "lin-ucb"], environment, horizon=HORIZON, replications=REPLICATIONS,
            seed=contextual_design.SEED, times=1,
        )  # fmt: skip
        found[name] = {label: run.total_regret.tolist() for label, run in runs.items()}
        for rule in ("none", *(f"{kind} {rate}" for kind in RULES for rate in RATES)):
            kind, _, rate = rule.partition(" ")
            began = time.perf_counter()
            found[name][f"bayesianbandits {rule}"] = [
                played(
                    environment,
                    replication,
                    in_bayesianbandits(environment.arms, getattr(bb, kind)(float(rate)) if rate else None, replication),
                )
                for replication in range(REPLICATIONS)
            ]
            print(
                name,
                rule,
                np.mean(found[name][f"bayesianbandits {rule}"]),
                f"{time.perf_counter() - began:.0f} s",
                flush=True,
            )
    return {"horizon": HORIZON, "replications": REPLICATIONS, "version": version("bayesianbandits"), "regret": found}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "regret"))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    numbers = speed() if options.what == "speed" else regret()
    if options.what == "speed":
        rows = [[name, f"{value:.2f}"] for part in ("simulator", "one by one") for name, value in numbers[part].items()]
        print(table(["policy or library", "us per decision and update"], rows))
        print(json.dumps(numbers["by dimension"], indent=1))
    else:
        labels = next(iter(numbers["regret"].values()))
        rows = [[label, *(f"{np.mean(one[label]):.1f}" for one in numbers["regret"].values())] for label in labels]
        print(table(["policy", *numbers["regret"]], rows))
    if options.write:
        path = DOCS / "measured" / ("contextual-speed.json" if options.what == "speed" else "contextual-peers.json")
        path.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
        readme_speed.write()


if __name__ == "__main__":
    main()
