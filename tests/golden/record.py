"""Record golden results.

    python tests/golden/record.py decisions paths contexts states bandits paper service

Decisions and paths are recorded for what is new. To record others again, delete them from their file first: only where
a change of results is intended, and the changelog says so.
"""

import json
import lzma
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a script
import dynabandit as db
from dynabandit import Client
from golden.cases import (
    CONTEXTUAL,
    HERE,
    HORIZON,
    PART_OF_PAPER,
    SHORT_HORIZON,
    bandit_policies,
    bandit_text,
    context_hash,
    contextual_hash,
    environment_cases,
    next_choices,
    paper_hashes,
    path_hash,
    policy_names,
    short_cases,
    simulate_case,
    state_cases,
    state_numbers,
)

EVENTS = 20_000


def write(name: str, content: object) -> None:
    text = json.dumps(content, indent=1, sort_keys=True) + "\n"
    path = HERE / name
    path.write_bytes(lzma.compress(text.encode()) if name.endswith(".xz") else text.encode())


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((HERE / name).read_text())
    return content


def decisions() -> None:
    cases = {f"{name}/{arms}": policy_names() for name, arms in environment_cases()}
    for file, wanted, horizon in (
        ("decisions.json", cases, HORIZON),
        ("decisions-short.json", short_cases(), SHORT_HORIZON),
    ):
        known = read(file)
        for case, policies in wanted.items():
            name, arms = case.split("/")
            there = known.setdefault(case, {})
            if new := [policy for policy in policies if policy not in there]:
                there |= simulate_case(name, int(arms), new, horizon)
        write(file, known)


def paths() -> None:
    write(
        "paths.json",
        {f"{name}/{arms}": path_hash(name, arms) for name, arms in environment_cases()} | read("paths.json"),
    )


def contexts() -> None:
    write("contexts.json", {name: context_hash(name) for name in CONTEXTUAL})
    known = db.policies.CONTEXTUAL_POLICIES
    write(
        "contextual-decisions.json", {name: contextual_hash(name) for name in known} | read("contextual-decisions.json")
    )


def states() -> None:
    cases = state_cases().items()
    write("states.json", {case: state_numbers(case.partition(",")[0], **given) for case, given in cases})


def bandits() -> None:
    saved = {}
    for name in bandit_policies():
        text = bandit_text(name)
        saved[name] = {"text": text, "next": next_choices(text)}
    write("bandits-0.1.0.json.xz", saved)


def paper() -> None:
    for name, figures in (("paper-quick.json", ()), ("paper-part.json", PART_OF_PAPER)):
        with tempfile.TemporaryDirectory() as folder:
            write(name, paper_hashes(Path(folder), *figures))


def service() -> None:
    """Let a real service decide until its log has 20,000 events, and keep its store and its state hashes."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "service.db"
        command = [sys.executable, "-m", "dynabandit", "serve", "--port", "0", "--store", f"sqlite:///{store}"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        with Client(url, timeout=120) as client:
            fill(client)
        server.terminate()
        server.wait(60)
        packed = lzma.compress(store.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
        (HERE / "service-0.1.0.db.xz").write_bytes(packed)
        command = [sys.executable, "-m", "dynabandit", "verify", "--store", f"sqlite:///{store}"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        write("service-0.1.0.json", said.splitlines())


def fill(client: Client) -> None:
    luck = np.random.default_rng(3)
    policies = bandit_policies()
    each = EVENTS // (2 * len(policies))
    for name, parameters in policies.items():
        window = {"reward_window": 3600, "default_reward": 0} if name == "ts" else {}
        client.create(f"with-{name}", ["red", "green", "blue"], name, parameters=parameters, seed=7, **window)
    for part in range(10):
        for number, name in enumerate(policies):
            bandit = f"with-{name}"
            if part == 3:
                client.add_arm(bandit, "gold")
            if part == 5:
                client.change_arm(bandit, "green", paused=True)
            if part == 6:
                client.change_arm(bandit, "green", paused=False)
                client.change_arm(bandit, "red", min_share=0.1, max_share=0.7)
            if part == 7:
                client.change_arm(bandit, "blue", retired=True)
            if part == 8 and number % 5 == 0:
                client.set_policy(bandit, "aff-ots", step_size=0.01)
            made = client.decide_many(bandit, each // 10 + 1, key=f"{part}")
            late = [(one.decision, float(luck.random() < 0.5)) for one in made]
            luck.shuffle(late)
            client.reward_many(late[: len(late) - part % 2])
    client.delete("with-uniform")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        began = time.perf_counter()
        globals()[name]()
        print(f"{name}: {time.perf_counter() - began:.1f} s")
