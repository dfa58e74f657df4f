"""Measure the regret of combinations of memories, rules and detectors in the environments of the leaderboard.

    python benchmarks/combinations.py run FOLDER [--jobs 2] [--replications 20] [--seconds 540]
    python benchmarks/combinations.py join FOLDER    # writes docs/measured/combinations.json

All run in the form of a user who knows neither the changes nor the horizon. Each combination is computed in its own
process and stored in the folder, so that the same command goes on where an earlier one stopped. About a quarter of an
hour on 16 cores.
"""

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import dynabandit as db
from dynabandit.leaderboard.environments import make_trials
from dynabandit.policies import Policy

MEMORIES = (
    "sample-mean", "window", "growing-window", "discount", "adaptive", "bounded", "bounded-by-variance",
    "bounded-by-weight", "mixture",
)  # fmt: skip
RULES = ("eps-greedy", "ucb", "kl-ucb", "hoeffding", "kl-bound", "ts", "ots")
DETECTORS = (None, "cusum", "adwin", "glr")
SEED = 1
DATA = Path(__file__).parents[1] / "docs" / "measured" / "combinations.json"


def combinations() -> dict[str, Policy]:
    """Return the practical form of each combination that fits, those that take longest first.

    The keys are the names of rule, memory and detector, also if the combination has a name of its own.
    """
    found = {}
    for detector in reversed(DETECTORS):
        for rule in RULES:
            for memory in MEMORIES:
                fitting = db.grid([memory], [rule], [detector])
                if fitting:
                    found[" + ".join(filter(None, (rule, memory, detector)))] = fitting[0].practical()
    return found


def regrets(key: str, replications: int) -> dict[str, tuple[float, float]]:
    """Return the mean regret of a combination in each environment, and its standard error."""
    policy, found = combinations()[key], {}
    for trial in make_trials().values():
        run = db.simulate(
            policy, trial.environment, horizon=trial.horizon, replications=replications, seed=SEED,
            delay=trial.delay, times=1, threads=1,
        )  # fmt: skip
        total = run.total_regret
        error = total.std(ddof=1) / replications**0.5 if replications > 1 else float("nan")
        found[trial.id] = (float(total.mean()), float(error))
    return found


def measure(folder: Path, jobs: int, replications: int, seconds: float) -> None:
    """Compute what is missing in the folder; nothing new is begun after some seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [key for key in combinations() if not (folder / f"{key}.json").exists()]
    end = time.monotonic() + seconds
    with ProcessPoolExecutor(jobs, max_tasks_per_child=4) as pool:
        waiting = iter(missing)
        running = {pool.submit(regrets, key, replications): key for key, _ in zip(waiting, range(jobs), strict=False)}
        while running:
            done = next(as_completed(running))
            key = running.pop(done)
            (folder / f"{key}.json").write_text(json.dumps(done.result()))
            print(f"{end - time.monotonic():6.0f} s left, {key}", flush=True)
            following = next(waiting, None) if time.monotonic() < end else None
            if following is not None:
                running[pool.submit(regrets, following, replications)] = following
    print(f"{len(list(folder.glob('*.json')))} of {len(combinations())} combinations")


def join(folder: Path) -> None:
    """Write one file with the results of a folder."""
    trials = make_trials()
    found = {key: json.loads((folder / f"{key}.json").read_text()) for key in combinations()}
    data = {
        "version": db.__version__,
        "environments": {trial.id: trial.family for trial in trials.values()},
        "labels": {key: policy.label for key, policy in combinations().items()},
        "regret": {key: [float(f"{values[trial][0]:.4g}") for trial in trials] for key, values in found.items()},
        "largest_standard_errors": {  # in units of the regret, the worst of all combinations
            trial: float(f"{max(values[trial][1] / values[trial][0] for values in found.values()):.2g}")
            for trial in trials
        },
    }
    lines = [f'  "{name}": {json.dumps(value)}' for name, value in data.items() if not isinstance(value, dict)]
    for name, value in data.items():
        if isinstance(value, dict):
            inner = ",\n".join(f'    "{key}": {json.dumps(row)}' for key, row in value.items())
            lines.append(f'  "{name}": {{\n{inner}\n  }}')
    DATA.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["run", "join"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--replications", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3600.0)
    asked = parser.parse_args()
    if asked.action == "run":
        measure(asked.folder, asked.jobs, asked.replications, asked.seconds)
    else:
        join(asked.folder)


if __name__ == "__main__":
    main()
