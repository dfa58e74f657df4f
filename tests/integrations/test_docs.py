"""The example of a user's own test runs under pytest."""

import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_example_of_a_test_of_ones_own_passes_and_would_fail(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "integrations.md").read_text(encoding="utf-8"), re.DOTALL)
    for name, text, expected in (
        ("test_good.py", code, 0),
        ("test_bad.py", code.replace('db.policy("aff-ots")', "None"), 1),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == expected, done.stdout
    assert "a policy must be a dataclass derived from Policy" in done.stdout
