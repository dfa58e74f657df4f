"""Compiled code that several processes have kept on disk works in one process together."""

import json
import os
import subprocess
import sys

POLICIES = ["aff-ucb1", "aff-ucb2", "aff-dts2"]
CODE = """
import json, sys
import dynabandit as db
runs = [db.simulate(name, "case-1", horizon=300, seed=5, keep=("arms",)).arms.tolist() for name in sys.argv[1:]]
print(json.dumps(runs))
"""


def choices(folder, *policies: str) -> list:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", CODE, *policies]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)


def test_policies_compiled_by_different_processes_do_not_run_each_others_code(tmp_path):
    alone = [choices(tmp_path, policy)[0] for policy in POLICIES]
    assert choices(tmp_path, *POLICIES) == alone
    assert choices(tmp_path, *reversed(POLICIES)) == alone[::-1]
