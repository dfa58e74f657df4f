"""Results that a change of the code must not change; `record.py` makes them anew where a change is intended."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dynabandit.service.domain.bandit_state import RULES
from golden.cases import (
    HERE,
    PART_OF_PAPER,
    environment_cases,
    paper_hashes,
    path_hash,
    policy_names,
    restored_store,
    simulate_case,
)
from tools.cudasim import cudasim
from tools.ready import EACH_SHAPE

CASES = [f"{name}/{arms}" for name, arms in environment_cases()]
DECISIONS = json.loads((HERE / "decisions.json").read_text())
PATHS = json.loads((HERE / "paths.json").read_text())
CHECK = str(HERE / "check.py")
TAKEN = "decisions made by 0.1.0, rewards agree"
OTHER_STATE = ("aff-d-greedy", "glr-kl-ucb", "m-ucb")  # these keep steps of arrival since rewards can be late
FEW = ("case-3/2", "piecewise/10", "case-1/50")  # all policies, without compiled code; `make golden` takes all cases


def test_every_policy_and_environment_is_recorded() -> None:
    missing = {name for recorded in DECISIONS.values() for name in set(policy_names()) - set(recorded)}
    assert (set(CASES) - set(DECISIONS), missing) == (set(), set()), "run tests/golden/record.py decisions paths"
    assert set(DECISIONS) == set(CASES) == set(PATHS)


@pytest.mark.parametrize("case", CASES)
def test_compiled_policies_and_environments_do_as_recorded(case: str) -> None:
    name, arms = case.split("/")
    expected = {policy: found for policy, found in DECISIONS[case].items() if policy in EACH_SHAPE}
    assert simulate_case(name, int(arms), list(expected)) == expected
    assert path_hash(name, int(arms)) == PATHS[case]


def test_recorded_decisions_change_only_with_the_rules_of_the_service() -> None:
    recorded = hashlib.sha256((HERE / "decisions.json").read_bytes()).hexdigest()
    assert (RULES, recorded[:16]) == (4, "735daa096994e18a"), (
        "if policies decide otherwise than in the latest release, append that release to EARLIER_RELEASES in "
        "service/domain/bandit_state.py, so that its logs stay valid; then, or if only new policies and environments "
        "were recorded, write the new hash here"
    )


def test_interpreted_policies_decide_as_recorded() -> None:
    command = [sys.executable, CHECK, *FEW]
    done = subprocess.run(command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_policies_on_the_simulated_gpu_decide_as_recorded() -> None:
    done = cudasim(CHECK, "case-3/10", "eps-greedy", "ots", "aff-ucb2", NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_log_of_a_0_1_0_service_leads_to_the_same_states() -> None:
    """Without compiled code: the log has the decisions of all policies."""
    store = restored_store()
    command = [sys.executable, "-m", "dynabandit", "verify", "--store", f"sqlite:///{store}"]
    done = subprocess.run(command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True)
    shutil.rmtree(store.parent)
    recorded = json.loads((HERE / "service-0.1.0.json").read_text())
    found, expected = done.stdout.splitlines(), [f"{line}, 340 {TAKEN}" for line in recorded]
    assert len(found) == len(expected), done.stderr
    for line, before in zip(found, expected, strict=True):
        if any(f"'with-{name}'" in before for name in OTHER_STATE):
            assert re.sub("state [0-9a-f]+", "", line) == re.sub("state [0-9a-f]+", "", before)
        else:
            assert line == before


def test_the_tables_of_a_part_of_the_paper_are_the_same_bytes(tmp_path: Path) -> None:
    assert paper_hashes(tmp_path, *PART_OF_PAPER) == json.loads((HERE / "paper-part.json").read_text())
    assert (tmp_path / "report.html").exists()
