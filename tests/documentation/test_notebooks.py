"""The notebooks run from their first cell to the last, and print what they are shown with."""

import subprocess
import sys
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"


def test_the_notebooks_run_and_print_what_they_did():
    done = subprocess.run([sys.executable, str(NOTEBOOKS / "execute.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
