"""Record all that every policy does, in order: `compare_policies.py` runs this file with two versions of the sources.

    PYTHONPATH=src NUMBA_DISABLE_JIT=1 python scripts/record_policies.py interpreted FOLDER [--part 0/4] [--only ucb]

writes FOLDER/<policy>.pickle for each policy: from cases to what was recorded of them, as plain values and arrays.

The file must run unchanged before and after a restructuring. It therefore uses the public API, the fields of
`PolicyFunctions` and `PolicyState`, and otherwise only what `Watch` names.
"""

import argparse
import base64
import dataclasses
import importlib
import inspect
import json
import pickle
import time
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynabandit as db
from dynabandit.core.records import vector_reader
from dynabandit.core.streams import stream
from dynabandit.environments import REWARD_LAWS
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES, PolicyState, Step

SEED = 5
MODES = ("interpreted", "compiled", "gpu")
ARMS = (2, 10, 1500)
STEPS = {  # by mode and number of arms; horizons that double do so after 128, 256, ... steps
    "interpreted": {2: 300, 10: 300, 1500: 12},
    "compiled": {2: 600, 10: 600, 1500: 300},
    "gpu": {2: 20, 10: 12, 1500: 1},
}
# In these modes every delay and, for most policies, every number of arms is compiled anew, or steps take very long
DELAYS = {
    "interpreted": {2: (False, True), 10: (False, True), 1500: (False, True)},
    "compiled": {2: (True,), 10: (False, True), 1500: (False,)},
    "gpu": {2: (True,), 10: (False,), 1500: (False,)},
}
SAMPLES = 6  # per case: after so many blocks of steps the state and the scores are recorded
LAWS_IN_FULL = 2  # of a policy that accepts more reward laws, the others are played for fewer steps
FEW_STEPS = 100
LATE = {"mean": 4, "lost": 0.1}
LIVE_STEPS, MANY_LIVE_STEPS = 150, 10
SOON: dict[str, dict[str, Any]] = {  # parameters with which policies forget and restart within so few steps
    "glr-kl-ucb": {"every": 2, "spacing": 3, "capacity": 8},
    "glr-kl-ucb-diminishing": {"delta": 0.1, "every": 2, "spacing": 3, "capacity": 8, "restart": "global"},
    "cusum-ucb": {"reference_plays": 5},
    "cusum-kl-ucb": {"reference_plays": 5},
    "m-ucb": {"window": 10, "threshold": 2.0},
    "m-kl-ucb": {"window": 10, "threshold": 2.0},
    "r-bocpd-ucb": {"rate": 0.1, "particles": 8},
    "master-ucb": {"scale": 0.003},
    "ad-switch": {"constant": 0.1, "scale": 10.0, "every": 1, "capacity": 8},
    "f-dsw-ts": {"discount": 0.9, "window": 5},
    "changepoint-ts": {"particles": 5},
    "borl": {"block": 10, "exploration": 0.2},
    "sw-lin-ucb": {"window": 30},
    "restart-lin-ucb": {"period": 40},
}

# Parameters that select other parts of the kernels; each policy that accepts one of them is played with it, interpreted
VARIANTS: tuple[dict[str, Any], ...] = (
    {"loss": "bernoulli", "step_size": 0.1, "floor": 0.5},
    {"step_size": "variance-scaled"},
    {"discount": 0.9},
    {"discount": 0.3},  # what is stored in units of the discount is rescaled within 200 steps
    {"restart": "local"},
    {"restart": "global"},
    {"schedule": "constant"},
    {"index": "ucb"},
    {"combine": "min"},
    {"combine": "mean"},
    {"rate": 0.05},
    {"drift": 0.01},
    {"persistence": 0.9},
    {"threshold": 0.5},
    {"variance_floor": 0.02},
    {"loglog": 3.0},
    {"nu": 0.5},
    {"tolerance": 0.2},
    {"capacity": 8},
    {"window": 20},
    {"memory": 12.0, "step_size": 0.5},
)
VARIANT_STEPS, VARIANT_ARMS = 210, 4
DIMENSION, VARIANT_DIMENSION = 3, 8  # of features; with many, several coordinates get their prior back at a time

# The policy, where it decides, reward law, delay, horizon and arms; and what was recorded of it, in order
Case = tuple[str, ...]
Recorded = dict[tuple[int, str], Any]  # by step and name


class Watch:
    """The arrays of a running simulation, which the simulator changes in place."""

    def __init__(self) -> None:
        self.states: Any = None
        self.space: Any = None
        self.trees: Any = None
        self.player: Any = None
        self.kind = importlib.import_module("dynabandit.simulation.stepper").Replications
        cpu = importlib.import_module("dynabandit.simulation.cpu")
        for name in ("initial_states", "new_workspace", "new_trees"):
            setattr(cpu, name, self._keeping(name, getattr(cpu, name)))

    def _keeping(self, name: str, function: Any) -> Any:
        attribute = {"initial_states": "states", "new_workspace": "space", "new_trees": "trees"}[name]

        def keep(*arguments: Any, **named: Any) -> Any:
            made = function(*arguments, **named)
            setattr(self, attribute, made)
            return made

        return keep

    def watch_gpu(self) -> None:
        """Keep the player of a simulated GPU, which has the arrays there."""
        launch = importlib.import_module("dynabandit.simulation.cuda.launch")
        watch, kind = self, launch._Player

        class Player(kind):  # type: ignore[misc, valid-type]
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                watch.player = self

        launch._Player = Player

    def read_gpu(self) -> Any:
        """Return the states on the simulated GPU in the form that those on the CPU have."""
        host = [part.copy_to_host() for part in self.player.state]
        return self.kind(*host)


def laws_of(policy: Any) -> list[str]:
    """Return the reward laws whose rewards a policy can learn from."""
    return [name for name, law in REWARD_LAWS.items() if law.domain.is_within(policy.rewards)]


def environment_of(policy: Any, law: str, arms: int, steps: int, models: str) -> Any:
    """Return an environment whose best arm changes twice, with features if the policy needs them."""
    if policy.functions.contextual:
        return db.environment(
            "lin-drift", arms=arms, dimension=VARIANT_DIMENSION if arms == VARIANT_ARMS else DIMENSION,
            change="redraw", period=max(1, steps // 3), models=models, rewards=law,
        )  # fmt: skip
    means = np.linspace(0.1, 0.9, arms)
    starts = sorted({1, 1 + steps // 3, 1 + 2 * steps // 3})
    each = [means, means[::-1], np.roll(means, arms // 2)]
    return db.environment("piecewise", starts=starts, means=[one.tolist() for one in each[: len(starts)]], rewards=law)


def forms_of(name: str, *, soon: bool) -> Iterator[tuple[str, Any]]:
    """Yield a policy for a given horizon and, if it needs one, for a horizon that doubles."""
    policy = db.policy(name, **(SOON.get(name, {}) if soon else {}))
    yield "given", policy
    if policy.left_open:
        yield "doubling", policy.practical()


def with_burn_in(policy: Any, most: int) -> Any:
    return dataclasses.replace(policy, burn_in=min(policy.burn_in, most))


def models_of(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the kinds of models that a policy can have, each with the parameters and the features of a simulation."""
    if name not in CONTEXTUAL_POLICIES:
        return [("separate", {})]
    found: list[tuple[str, dict[str, Any]]] = [("separate", {}), ("shared", {})]
    try:
        db.policy(name, model="hybrid")
    except (TypeError, ValueError):
        return found
    return [*found, ("shared", {"model": "hybrid"})]


def variants_of(name: str) -> Iterator[tuple[str, Any]]:
    """Yield a policy with each of the variants that it accepts."""
    usual = SOON.get(name, {})
    for parameters in VARIANTS:
        if set(parameters) <= set(db.policy(name).parameters):
            try:
                policy = db.policy(name, **{**usual, **parameters})
            except (TypeError, ValueError):
                continue
            yield ", ".join(f"{key}={value}" for key, value in parameters.items()), policy


def described(domain: Any) -> dict[str, Any]:
    """Return the fields of a reward domain that are not at their defaults; earlier releases have fewer fields."""
    defaults = domain._field_defaults
    return {name: value for name, value in domain._asdict().items() if name not in defaults or value != defaults[name]}


def declared(name: str) -> Recorded:
    """Return what a policy says about itself."""
    policy = db.policy(name)
    functions = policy.functions
    defaults = {field.name: field.default for field in dataclasses.fields(policy)}
    facts = {
        "name": policy.name,
        "label": policy.label,
        "parameters": policy.parameters,
        "defaults": {key: repr(value) for key, value in defaults.items()},
        "left_open": policy.left_open,
        "reward domain": described(policy.rewards),
        "reward domain of a Bandit": policy.live_rewards and described(policy.live_rewards),
        "reward laws": laws_of(policy),
        "informed": getattr(policy, "informed", None) or getattr(policy, "is_oracle", False),
        "needs_double": policy.needs_double,
        "slots": sorted(policy.slots),
        "static_index": functions.static_index,
        "idle_posterior": functions.idle_posterior,
        "optimistic": functions.optimistic,
        "contextual": functions.contextual,
        "has a posterior": functions.posterior is not None,
        "family of the law": None if functions.law is None else functions.law.family,
        "has an exploration": functions.exploration is not None,
    }
    for form, one in forms_of(name, soon=False):
        facts |= {f"label, {form} horizon": one.label, f"parameters, {form} horizon": one.parameters}
        whole = one.tuned(2, 1000)
        facts |= {f"label, {form} horizon, tuned": whole.label, f"parameters, {form} horizon, tuned": whole.parameters}
        facts |= {f"rows, {form} horizon": whole.memory_size(), f"shared numbers, {form} horizon": whole.shared_size()}
    return {(0, what): value for what, value in facts.items()}


def field(parts: Any, *names: str) -> np.ndarray:
    """Return an array of the first replication, by the first of these names that there is."""
    return np.array(next(getattr(parts, name) for name in names if hasattr(parts, name))[0])


def snapshot(policy: Any, states: Any, delayed: bool) -> dict[str, Any]:
    """Return the state of a simulation by the names of its slots."""
    rows, slots = field(states, "memory", "rows"), policy.slots
    found: dict[str, Any] = {f"slot {name!r}": rows[place] for place, name in enumerate(slots) if place < len(rows)}
    found |= {"rows after the slots": rows[len(slots) :], "shared": field(states, "shared")}
    found["last_played"] = field(states, "last_played")
    if delayed:
        found["pending"] = field(states, "pending")
    if policy.functions.contextual:
        found["models"] = field(states, "models")
    return found


def numbers_of_scores(
    policy: Any, states: Any, table: np.ndarray, number: int, features: np.ndarray, delayed: bool
) -> dict[str, Any]:
    """Return what the functions of a policy compute for all arms at a step."""
    functions, contextual = policy.functions, policy.functions.contextual
    pending = field(states, "pending") if delayed else None
    models = field(states, "models") if contextual else None
    last_played = field(states, "last_played")
    state = PolicyState(field(states, "memory", "rows"), field(states, "shared"), last_played, pending, models)
    params, arms = vector_reader(functions.params)(field(states, "params")), len(last_played)
    found: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        common = functions.common(state, number, params)
        step = Step(number, arms, common, features, table, stream(SEED))
        functions.prepare(state, step, params)
        found["common"] = float(common)
        kernels = {"posterior": functions.posterior, "score": functions.posterior is None and functions.score}
        kernels["number of the law"] = None if functions.law is None else functions.law.numbers
        for what, kernel in kernels.items():
            if kernel:
                each = [kernel(state, arm, step, params) for arm in range(arms)]
                found[what] = np.array(each, dtype=float)
        found["explore"] = bool(functions.explore(state, 0, step, params))
        if functions.exploration is not None:
            found["exploration"] = float(functions.exploration(state, 0, step, params))
    return found


def simulated(
    policy: Any, law: str, delayed: bool, arms: int, steps: int, models: str, mode: str, watch: Watch
) -> Recorded:
    """Return what a policy does in a simulation, and its states and scores after some steps of it."""
    world = environment_of(policy, law, arms, steps, models)
    features = world.features(steps, SEED) if policy.functions.contextual else np.zeros((1, 1, 1))
    found: Recorded = {}

    def record(done: int, total: int) -> None:
        states, number = watch.states, done + 1
        of_step = features[min(number, len(features)) - 1] if policy.functions.contextual else np.zeros(0)
        numbers = numbers_of_scores(policy, states, watch.space.table, number, of_step, delayed)
        parts = snapshot(policy, states, delayed) | {f"{what} of the next step": it for what, it in numbers.items()}
        parts["scores of the simulator"] = np.array(watch.space.scratch)
        parts["tree of the simulator"] = np.array(watch.trees)
        found.update({(done, what): value for what, value in parts.items()})

    options: dict[str, Any] = {"backend": "cuda"} if mode == "gpu" else {"progress": record, "threads": 1}
    run = db.simulate(
        policy, world, horizon=steps, seed=SEED, keep=("arms", "rewards"), times=min(steps, SAMPLES),
        block=-(-steps // (1 if arms > 100 else SAMPLES)), delay=db.delay("geometric", **LATE) if delayed else None,
        **options,
    )  # fmt: skip
    if mode == "gpu":
        found |= {(steps, what): value for what, value in snapshot(policy, watch.read_gpu(), delayed).items()}
    for what, values in (("chosen arm", run.arms), ("reward", run.rewards)):
        assert values is not None
        found |= {(step, what): value for step, value in enumerate(values[0].tolist(), start=1)}
    return found | {(int(step), "regret"): float(value) for step, value in zip(run.times, run.regret[0], strict=True)}


def given_reward(law: str, step: int, column: int) -> float:
    """Return a reward of such a law; the better arms change at step 70."""
    value = 0.5 + 0.5 * float(np.sin(step * step + column))
    value *= 0.3 + 0.6 * ((column + step // 70) % 3) / 2
    if law == "bernoulli":
        return float(value > 0.25)
    if law == "normal":
        return 3.0 * value - 1.0
    if law == "counts":
        return float(round(8.0 * value))
    return 0.0 if law == "revenue" and value < 0.2 else value * (9.7 if law == "revenue" else 1.0)


def given_context(step: int) -> dict[str, float]:
    return {"height": float(np.cos(1.3 * step)), "width": float(step % 7)}


def live(policy: Any, law: str, arms: int, steps: int, *, per_arm: bool, delayed: bool) -> Recorded:
    """Return what a policy does in a `Bandit` whose rewards come late or never, and whose arms change."""
    names = [f"arm {number}" for number in range(arms)]
    contextual, options = policy.functions.contextual, {}
    if contextual:
        options["features"] = ["height", "width"]
    if per_arm:
        options["arm_features"] = {name: {"size": float(place % 5), "new": 1.0} for place, name in enumerate(names)}
    bandit = db.Bandit(policy, arms=names, seed=SEED, rewards=law, **options)
    open_decisions: list[tuple[int, int, str]] = []  # when the reward comes, the step of the decision, the arm
    found: Recorded = {}
    with np.errstate(all="ignore"):
        for step in range(1, steps + 1):
            if arms < 100:
                change_arms(bandit, step, {"size": 2.0, "new": 0.0} if per_arm else None)
            context = given_context(step) if contextual else None
            if step % 50 == 1 or step == steps:
                exact = bandit.exact_propensities(context)
                known = exact is None or arms > 100
                found[step, "exact propensities"] = exact
                if exact is None and arms < 100:
                    found[step, "propensities"] = bandit.propensities(context, draws=20)
                found[step, "beliefs"] = None if known else {name: tuple(arm) for name, arm in bandit.arms.items()}
            if step % 40 == 3 and arms < 100:
                ranked = [tuple(place) for place in bandit.rank(2, context)]
                found[step, "ranking"], arm = ranked, ranked[0][0]
            else:
                arm = bandit.choose(context)
            found[step, "chosen arm"] = arm
            due = step + ((step * 7) % 5 if delayed else 0)
            if delayed and step % 9 == 0:
                if step % 2:
                    bandit.close(arm, step)
            else:
                open_decisions.append((due, step, arm))
            for decision in [one for one in open_decisions if one[0] <= step]:
                open_decisions.remove(decision)
                if decision[2] in bandit.active:
                    value = given_reward(law, decision[1], names_place(decision[2]))
                    bandit.reward(decision[2], value, step=decision[1])
            if step == steps or (step % 50 == 0 and arms < 100):
                text = bandit.to_json()
                found[step, "saved JSON"] = content_of(text)
                bandit = db.Bandit.from_json(text)
    return found


def names_place(name: str) -> int:
    return int(name.removeprefix("arm "))


def change_arms(bandit: Any, step: int, features: dict[str, float] | None) -> None:
    if step == 30:
        bandit.add_arm("arm 77", features) if features else bandit.add_arm("arm 77")
    if step == 55:
        bandit.pause_arm("arm 1")
    if step == 80:
        bandit.resume_arm("arm 1")
        bandit.remove_arm("arm 2")
    if step == 120:
        bandit.limit_arm("arm 0", min_share=0.1, max_share=0.6)


def content_of(text: str) -> Any:
    """Return the content of a saved bandit, arrays written as bytes as arrays."""

    def unpacked(content: dict[str, Any]) -> Any:
        if set(content) != {"shape", "type", "bytes"}:
            return content
        numbers = np.frombuffer(zlib.decompress(base64.b64decode(content["bytes"])), dtype=content["type"])
        return numbers.reshape(content["shape"])

    content = json.loads(text, object_hook=unpacked)
    del content["checksum"]  # of the rest
    return content


def cases_of(name: str, mode: str, watch: Watch) -> Iterator[tuple[Case, Any]]:
    """Yield the cases of a policy, each with a function that records it."""
    yield ("declarations",), lambda: declared(name)
    for models, parameters in models_of(name):
        for form, policy in forms_of(name, soon=True):
            chosen = dataclasses.replace(policy, **parameters)
            kind = f"{models} models" if name in CONTEXTUAL_POLICIES else ""
            kind = ", ".join([kind, *(f"{key}={value}" for key, value in parameters.items())])
            yield from simulations(chosen, form, mode, models, kind, watch)
    if mode == "interpreted":
        yield from variants(name, mode, watch)
    if mode != "gpu" and not getattr(db.policy(name), "informed", getattr(db.policy(name), "is_oracle", False)):
        yield from bandits(name, mode)


def simulations(policy: Any, form: str, mode: str, models: str, kind: str, watch: Watch) -> Iterator[tuple[Case, Any]]:
    laws = laws_of(policy)
    short = "hybrid" in kind  # it needs more time, and consists of the parts of the others
    in_tree = policy.functions.idle_posterior is not None  # else a GPU treats many arms as it treats few
    for arms in ARMS[:2] if short or (mode == "gpu" and not in_tree) else ARMS:
        steps = STEPS[mode][arms]
        for delayed in DELAYS[mode][arms]:
            # Otherwise there is one law for each kind of delay
            some = laws if mode == "interpreted" and arms < 100 and not short else [laws[delayed % len(laws)]]
            for place, law in enumerate(some):
                played = steps if place < LAWS_IN_FULL and not short else min(steps, FEW_STEPS)
                own = with_burn_in(policy, played // (2 * arms))
                case = (
                    "simulation", *filter(None, [kind]), f"rewards {law}", "late rewards" if delayed else "no delay",
                    f"{form} horizon, {played} steps", f"{arms} arms",
                )  # fmt: skip
                yield case, lambda a=(own, law, delayed, arms, played, models, mode, watch): simulated(*a)


def variants(name: str, mode: str, watch: Watch) -> Iterator[tuple[Case, Any]]:
    for kind, policy in variants_of(name):
        law, steps, arms = laws_of(policy)[1], VARIANT_STEPS, VARIANT_ARMS  # fractional rewards, or counts
        for delayed in (False, True):
            when = "late rewards" if delayed else "no delay"
            case = ("simulation", kind, f"rewards {law}", when, f"given horizon, {steps} steps", f"{arms} arms")
            yield case, lambda a=(policy, law, delayed, arms, steps, "separate", mode, watch): simulated(*a)


def bandits(name: str, mode: str) -> Iterator[tuple[Case, Any]]:
    for form, policy in forms_of(name, soon=False):
        if policy.left_open:
            policy = policy.tuned(2, 1000)
        if policy.left_open or (mode == "compiled" and form == "doubling"):
            continue
        laws = laws_of(policy)
        for law in laws if mode == "interpreted" else laws[:1]:
            for per_arm in (False, True) if policy.functions.contextual and law == laws[0] else (False,):
                kind = (["features of each arm"] if per_arm else []) + [f"rewards {law}", "late rewards"]
                case = ("Bandit", *kind, f"{form} horizon, {LIVE_STEPS} steps", "4 arms")
                options = {"per_arm": per_arm, "delayed": True}
                yield case, lambda a=(policy, law, 4, LIVE_STEPS), o=options: live(*a, **o)
        own, options = with_burn_in(policy, 0), {"per_arm": False, "delayed": False}
        case = ("Bandit", f"rewards {laws[-1]}", "no delay", f"{form} horizon, {MANY_LIVE_STEPS} steps", "1500 arms")
        yield case, lambda a=(own, laws[-1], 1500, MANY_LIVE_STEPS), o=options: live(*a, **o)


def record(name: str, mode: str, watch: Watch) -> dict[Case, Any]:
    """Return what was recorded of each case of a policy; of a case that fails, the error."""
    found: dict[Case, Any] = {}
    try:
        for case, run in cases_of(name, mode, watch):
            began = time.process_time()
            try:
                found[case] = dict(sorted(run().items(), key=lambda entry: entry[0][0]))  # by step
            except Exception as error:
                found[case] = {(0, "error"): "".join(traceback.format_exception(error, limit=-3))}
            print(f"  {time.process_time() - began:.2f} s: {', '.join(case)}", flush=True)
    except Exception as error:
        found["cases",] = {(0, "error"): "".join(traceback.format_exception(error, limit=-3))}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Record all that every policy does.")
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", default="0/1", help="i/n: only every n-th policy, from the i-th on")
    parser.add_argument("--only", action="append", help="only policies whose names contain this")
    parser.add_argument("--sources", type=Path, help="the folder that the package must have been imported from")
    asked = parser.parse_args()
    imported = Path(inspect.getfile(db)).resolve()
    if asked.sources and not imported.is_relative_to(asked.sources.resolve()):
        parser.error(f"dynabandit was imported from {imported}, not from {asked.sources}")
    watch = Watch()
    if asked.mode == "gpu":
        watch.watch_gpu()
    asked_for = asked.only or [""]
    names = [name for name in sorted({**POLICIES, **CONTEXTUAL_POLICIES}) if any(part in name for part in asked_for)]
    first, each = map(int, asked.part.split("/"))
    for name in names[first::each]:
        began = time.process_time()
        found = record(name, asked.mode, watch)
        (asked.folder / f"{name}.pickle").write_bytes(pickle.dumps(found))
        print(f"{name}: {len(found)} cases, {time.process_time() - began:.1f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
