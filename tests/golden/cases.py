"""What the golden results are made of: decisions, saved bandits, a service's log and the paper's tables.

Everything goes through the public API, so that the recorded results outlive any change behind it.
"""

import hashlib
import lzma
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynabandit as db
from dynabandit import validation
from dynabandit.core.context import Context
from dynabandit.core.lanes import SINGLE_LANE
from dynabandit.core.streams import stream
from dynabandit.environments import RewardStep
from dynabandit.environments.base import PathArrays, make_write_path
from dynabandit.policies import Reward, Step
from dynabandit.policies.base import row_of
from dynabandit.policies.pending_plays import begin_play, end_play
from dynabandit.simulation.step_by_step import StepByStep

__all__ = [
    "ARMS", "CONTEXTUAL", "HERE", "HORIZON", "PART_OF_PAPER", "SHORT_HORIZON",
    "bandit_policies", "bandit_text", "context_hash", "contextual_hash", "decision_hash",
    "environment_cases", "make_environment", "next_choices", "paper_hashes", "path_hash", "policy_names",
    "restored_store", "short_cases", "simulate_case", "state_cases", "state_numbers",
]  # fmt: skip

HERE = Path(__file__).parent
ARMS = (2, 10, 50)
HORIZON = 150  # longer than the burn-in of 50 arms
SHORT_HORIZON = 25
CONTEXTUAL_STEPS = 300
CONTEXTUAL_PARAMETERS = {"sw-lin-ucb": {"window": 30}, "restart-lin-ucb": {"period": 40}}  # so that they forget
SEED = 11
PART_OF_PAPER = ("memory", "sample-paths")  # `make golden` takes all figures
NEEDED: dict[str, dict[str, Any]] = {
    # What a simulation tells these policies, and a live bandit has to be given
    "d-ucb": {"discount": 0.99},
    "sw-ucb": {"window": 60},
    "d-ts": {"discount": 0.99},
    "sw-ts": {"window": 60},
    "d-kl-ucb": {"discount": 0.99},
    "sw-kl-ucb": {"window": 60},
    "f-dsw-ts": {},
    "exp3-s": {"changes": 3, "horizon": 1000},
    "rexp3": {"changes": 3, "horizon": 1000},
    "glr-kl-ucb": {"horizon": 1000, "scale": 1.0},
    "glr-kl-ucb-diminishing": {"horizon": 1000},
    "cusum-ucb": {"changes": 3, "horizon": 1000},
    "m-ucb": {"changes": 3, "horizon": 1000, "window": 20},
    "cusum-kl-ucb": {"changes": 3, "horizon": 1000},
    "m-kl-ucb": {"changes": 3, "horizon": 1000, "window": 20},
}
# Every policy would be compiled again for rested arms; tests/environments has the formulas of all of them
NOT_RECORDED = ("rested-rotting", "rested-drops", "rested-rising")
CONTEXTUAL: dict[str, dict[str, Any]] = {  # without real data, which belong to other packages
    "lin-abrupt": {"arms": 3, "segment": 30},
    "lin-slow": {"arms": 3, "turning": 100},
    "lin-drift": {"change": "jump", "period": 30},
    "logistic-drift": {"change": "turn", "models": "shared"},
    "moving-contexts": {"change": "walk", "period": 50},
    "recorded-contexts": {"contexts": [[1.0, 0.5], [1.0, 2.0]], "means": [[0.1, 0.9], [0.7, 0.4]], "rotation": 40},
}
INFORMED = ("oracle-restart", "best-arm")
AS_RECORDED: dict[str, dict[str, Any]] = {
    # Their own burn-in is longer than the horizon
    "aff-ucb1": {"burn_in": 2},
    "aff-dts1": {"burn_in": 2},
    "normal-ts": {"burn_in": 2},
    # What was the default when the decisions were recorded
    "glr-kl-ucb": {"scale": 1.0},
    "m-ucb": {"exploration": 1.0},
}


def policy_names() -> list[str]:
    """Return all policies of the registry."""
    return list(db.policies.POLICIES)


def _path(arms: int) -> np.ndarray:
    steps, arm = np.arange(HORIZON)[:, None], np.arange(arms)[None, :]
    return 0.5 + 0.4 * np.sin(0.05 * steps * (1 + arm % 3) + arm)


def make_environment(name: str, arms: int) -> "db.Environment":
    """Return an environment with this many arms, where it lets its number of arms be chosen."""
    means = np.round(np.linspace(0.1, 0.9, arms), 3).tolist()
    given: dict[str, Any] = {"arms": arms}
    if name == "fixed":
        given = {"means": means}
    elif name == "piecewise":
        given = {"starts": [1, 61, 101], "means": [means, means[::-1], means[1:] + means[:1]]}
    elif name == "path":
        given = {"means": _path(arms).tolist()}
    elif name == "recorded":
        given = {"rates": _path(arms)[::10].tolist(), "period": 10}
    elif name == "exponential-clock":
        given = {"rates": [0.02] * arms, "low": [0.1] * arms, "high": [0.9] * arms}
    elif name in ("small-changes", "pb-1", "pb-2", "pb-3", "pb-4"):
        given = {}
    return db.environment(name, **given)


def environment_cases() -> Iterator[tuple[str, int]]:
    """Yield the name of each environment with each number of arms that it can have."""
    for name in db.environments.ENVIRONMENTS:
        if name in NOT_RECORDED:
            continue
        seen: set[int] = set()
        for arms in ARMS:
            actual = make_environment(name, arms).arms
            if actual not in seen:
                seen.add(actual)
                yield name, actual


def decision_hash(arms: np.ndarray, rewards: np.ndarray) -> str:
    """Return a short hash of the chosen arms and their rewards."""
    content = np.asarray(arms, dtype="<i4").tobytes() + np.asarray(rewards, dtype="u1").tobytes()
    return hashlib.sha256(content).hexdigest()[:12]


def path_hash(environment: str, arms: int) -> str:
    """Return a short hash of one path of an environment."""
    path = make_environment(environment, arms).path(HORIZON, SEED, replication=2)
    return hashlib.sha256(np.ascontiguousarray(path, dtype="<f8").tobytes()).hexdigest()[:12]


def context_hash(name: str) -> str:
    """Return a short hash of the features and means of an environment with features, written without compilation."""
    world = db.environment(name, **CONTEXTUAL[name])
    path = PathArrays(*(part[0] for part in world.empty_paths(1, HORIZON)))
    state = np.zeros((world.state_size(), world.arms))
    write = make_write_path(world.functions, SINGLE_LANE)
    write(state, np.array(world.params()), world.table(), path, 1, HORIZON, stream(SEED, 2))
    content = [np.ascontiguousarray(part, dtype="<f8").tobytes() for part in (path.features, path.means)]
    return hashlib.sha256(b"".join(content)).hexdigest()[:12]


def contextual_hash(name: str) -> str:
    """Return a short hash of the choices of a contextual policy, with a model for each arm and with one for all.

    It plays without compilation, so that nothing is compiled for it.
    """
    digest, domain = hashlib.sha256(), db.policies.CONTEXTUAL_POLICIES[name].rewards
    law = {"name": "counts", "scale": 3.0} if domain is validation.COUNTS else {"name": "bernoulli"}
    for models in ("separate", "shared"):
        world = db.environment("lin-drift", arms=3, dimension=4, period=20, models=models, rewards=law)
        path = PathArrays(*(part[0] for part in world.empty_paths(1, CONTEXTUAL_STEPS)))
        write = make_write_path(world.functions, SINGLE_LANE)
        state = np.zeros((world.state_size(), world.arms))
        write(state, np.array(world.params()), world.table(), path, 1, CONTEXTUAL_STEPS, stream(SEED))
        digest.update(bytes(chosen_arms(db.policy(name, **CONTEXTUAL_PARAMETERS.get(name, {})), world, path)))
    return digest.hexdigest()[:12]


def chosen_arms(policy: "db.Policy", world: "db.Environment", path: PathArrays) -> list[int]:
    """Return the choices of a policy on a path with features."""
    run = StepByStep(policy, world.arms, CONTEXTUAL_STEPS, SEED, world.context)
    law, chosen = world.rewards, []
    for number, (features, means) in enumerate(zip(path.features, path.means, strict=True), start=1):
        run.show(features)
        arm = run.decide(number)
        value = float(law.functions.draw(means[arm], arm, RewardStep(number, stream(SEED)), law.params()))
        run.learn(arm, number, value)
        chosen.append(arm)
    return chosen


def state_numbers(name: str, *, per_arm: bool = False, **parameters: Any) -> list[float]:
    """Return numbers that change with any number in the state of a policy, its scores or its posteriors.

    Arms and rewards are given, so that the state does not depend on what the policy would choose. The sums are those of
    scores, memory and models, first with rewards that arrive at once, then with rewards that arrive three steps later.
    """
    given = {**NEEDED, **CONTEXTUAL_PARAMETERS, **AS_RECORDED}.get(name, {})
    policy = db.policy(name, **given, **parameters).tuned(3, 1000)
    context = Context(dimension=3, per_arm=per_arm)
    return [total for lag in (0, 3) for total in _state_totals(policy, context, lag)]


def state_cases() -> dict[str, dict[str, Any]]:
    """Return all policies, contextual ones also with features of each arm and with two models per arm."""
    contextual = db.policies.CONTEXTUAL_POLICIES
    cases: dict[str, dict[str, Any]] = {name: {} for name in [*db.policies.POLICIES, *contextual]}
    cases |= {f"{name}, per arm": {"per_arm": True} for name in contextual}
    hybrid = [name for name in contextual if "hybrid" in getattr(db.policy(name), "models", ())]
    return cases | {f"{name}, hybrid": {"per_arm": True, "model": "hybrid"} for name in hybrid}


def _state_totals(policy: "db.Policy", context: Context, lag: int) -> list[float]:
    arms, steps, functions = 4, 400, policy.functions
    run = StepByStep(policy, arms, steps, SEED, context)
    totals, sent = [0.0, 0.0, 0.0], []
    for number in range(1, steps + 1):
        row = np.arange(context.rows(arms) * context.dimension).reshape(context.rows(arms), context.dimension)
        run.show(np.cos(1.3 * row + 0.37 * number))
        run.reveal(0.5 + 0.3 * np.sin(0.1 * number + np.arange(arms)))
        if number % 8 == 0:
            run.choose(number)
            totals[0] += _fingerprint(_scores(run, number), number)
        arm = (number * number // 7 + number // 60) % arms
        begin_play(run.state, arm, number)
        features = run.space.features[row_of(run.space.features, arm)] if functions.contextual else None
        sent.append((arm, Reward(_given_reward(number, arm, policy.rewards), number, number + lag, features)))
        if number > lag:
            rewarded, reward = sent[number - 1 - lag]
            end_play(run.state, rewarded, reward.decided_at)
            functions.learn(run.state, rewarded, reward, run.params)
        if number % 20 == 0:
            totals[1] += _fingerprint(run.state.memory, number) + _fingerprint(run.state.shared, number)
            totals[2] += 0.0 if run.state.models is None else _fingerprint(run.state.models, number)
    return totals


def _given_reward(number: int, arm: int, domain: validation.RewardDomain) -> float:
    """Return a reward that the policy can learn from; the means change after step 200."""
    value = (0.5 + 0.5 * float(np.sin(number * number))) * (1.0 if number <= 200 else 0.2 + 0.2 * arm)
    if domain is validation.COUNTS:
        return float(round(5.0 * value))
    if domain is validation.REVENUE:
        return 0.0 if value < 0.4 else 7.0 * value
    return value if number % 3 == 0 else float(value > 0.4)


def _scores(run: StepByStep, number: int) -> np.ndarray:
    """Return the scores of a step, or the shapes from which scores are drawn."""
    functions = run.policy.functions
    if functions.posterior is None:
        return run.scores[: run.arms]
    common = functions.common(run.state, number, run.params)
    step = Step(number, run.arms, common, run.space.features, run.space.table, run.random)
    return np.array([functions.posterior(run.state, arm, step, run.params) for arm in range(run.arms)])


def _fingerprint(numbers: np.ndarray, number: int) -> float:
    """Return a weighted sum; infinite numbers and NaN count as fixed numbers, large ones by their logarithm."""
    finite = np.nan_to_num(np.asarray(numbers, dtype=float).ravel(), nan=0.7, posinf=9.1, neginf=-9.3)
    weights = np.cos(np.arange(finite.size) + 0.1 * number) + 1.5
    return float(np.sum(weights * np.arcsinh(finite)))


def short_cases() -> dict[str, list[str]]:
    """Return what the simulated GPU, which is slow, plays: every policy, and every environment with one policy."""
    return {
        **{f"{name}/{arms}": ["best-arm"] for name, arms in environment_cases() if arms < SHORT_HORIZON},
        "case-3/2": policy_names(),
        "case-3/10": policy_names(),
    }


def simulate_case(
    environment: str, arms: int, policies: list[str], horizon: int = HORIZON, backend: str = "cpu"
) -> dict[str, str]:
    """Return the hash of each policy's decisions on one environment."""
    world = make_environment(environment, arms)
    players = {name: db.policy(name, **AS_RECORDED.get(name, {})) for name in policies}
    runs = db.compare(
        players, world, horizon=horizon, replications=1, seed=SEED, keep=("arms", "rewards"), backend=backend
    )
    hashes = {}
    for label, run in runs.items():
        assert run.arms is not None
        assert run.rewards is not None
        hashes[label] = decision_hash(run.arms[0], run.rewards[0])
    return hashes


def bandit_policies() -> dict[str, dict[str, Any]]:
    """Return the policies that a live bandit can have, with the parameters that it needs."""
    return {name: NEEDED.get(name, {}) for name in policy_names() if name not in INFORMED}


def bandit_text(name: str) -> str:
    """Return a bandit of this policy as JSON, after decisions, rewards and changes of its arms."""
    bandit = db.Bandit(name, arms=["red", "green", "blue", "gold"], seed=5, **bandit_policies()[name])
    for step in range(1, 201):
        if step == 40:
            bandit.add_arm("pink")
        if step == 80:
            bandit.pause_arm("green")
        if step == 120:
            bandit.resume_arm("green")
            bandit.remove_arm("blue")
        if step == 160:
            bandit.limit_arm("red", min_share=0.1, max_share=0.6)
        arm = bandit.choose()
        bandit.reward(arm, int((step * 7 + len(arm) * 13) % 10 < 4))
    return bandit.to_json()


def next_choices(text: str) -> list[str]:
    """Return what a saved bandit chooses next."""
    bandit = db.Bandit.from_json(text)
    chosen = []
    for step in range(30):
        arm = bandit.choose()
        bandit.reward(arm, step % 2)
        chosen.append(arm)
    return chosen


def paper_hashes(folder: Path, *figures: str) -> dict[str, str]:
    """Run `dynabandit paper --quick`, with all figures if none are given, and return the hash of each table."""
    command = [sys.executable, "-m", "dynabandit", "paper", "--quick", "--out", str(folder)]
    command += [word for figure in figures for word in ("--only", figure)]
    subprocess.run(command, check=True, capture_output=True)
    tables = sorted(folder.glob("**/*.parquet"))
    wanted = ("replications.parquet", "runs.parquet", "paths.parquet")
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in tables if one.name in wanted}


def restored_store() -> Path:
    """Return a copy of the store that version 0.1.0 wrote, in a folder of its own."""
    path = Path(tempfile.mkdtemp()) / "service.db"
    path.write_bytes(lzma.decompress((HERE / "service-0.1.0.db.xz").read_bytes()))
    return path
