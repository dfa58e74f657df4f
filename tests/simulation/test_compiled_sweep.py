"""Every parameter over its whole range in compiled code, where a loop without end cannot be interrupted.

`make sweep` tries everything; otherwise only what other tests compile, too. tests/policies/test_parameter_ranges.py
does the same interpreted.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.compiled_sweep import KINDS
from tools.laws import INTERPRETED
from tools.ready import COMPILED
from tools.waiting import PATIENCE

EVERYTHING = [(kind, name) for kind, (known, _) in KINDS.items() for name in known]
FEW = [*(("policy", name) for name in COMPILED), ("environment", "case-3"), ("delay", "uniform")]
TESTS = Path(__file__).parents[1]


@pytest.mark.skipif(INTERPRETED, reason="NUMBA_DISABLE_JIT=1: there is no compiled code")
@pytest.mark.parametrize(("kind", "name"), EVERYTHING if os.environ.get("DYNABANDIT_SWEEP") else FEW)
def test_compiled_code_ends_and_computes_numbers_with_every_parameter(kind: str, name: str) -> None:
    command = [sys.executable, "-m", "tools.compiled_sweep", kind, name]
    try:
        done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired as hanging:
        lines = (hanging.stdout or b"").decode().splitlines()
        pytest.fail(f"it did not end: {lines[-1] if lines else 'no case began'}")
    problems = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert done.returncode == 0, "\n".join([*problems[:20], *done.stderr.splitlines()[-5:]])
