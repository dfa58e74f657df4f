"""Open Bandit logs, read unchanged, give the tables of the docs."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dynabandit import offline
from dynabandit.cli.commands import app
from tools.obp_wheel import obp

__all__ = ["obp"]

DOCS = (Path(__file__).parents[2] / "docs" / "offline.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ dynabandit (replay obp/.*)$", DOCS, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS, ids=["random", "bts"])
def test_the_tables_of_the_docs_are_what_the_commands_print(command: str, obp: Path) -> None:
    arguments = shlex.split(command.replace("obp/", f"{obp}/", 1))
    done = CliRunner().invoke(app, arguments, prog_name="dynabandit")
    assert done.exit_code == 0, done.output
    printed = [line.split() for line in done.stdout.splitlines() if line.startswith(("  ts", "  aff", "  as"))]
    written = DOCS.split(command)[1].split("|---|---|---|---|---|---|\n")[1].split("\n\n")[0]
    assert [line.replace("|", " ").split() for line in written.splitlines()] == printed


@pytest.mark.parametrize("kind", ["random", "bts"])
@pytest.mark.parametrize("campaign", ["all", "men", "women"])
def test_all_six_logs_are_sorted_whole_and_have_propensities(kind: str, campaign: str, obp: Path) -> None:
    log = offline.read(
        obp / "dataset" / "obd" / kind / campaign / f"{campaign}.csv",
        arm="item_id", reward="click", time="timestamp", propensity="propensity_score",
        features=[f"user_feature_{number}" for number in range(4)],
    )  # fmt: skip
    assert log.rows == 10_000
    assert log.context == (1 + 4 * (16 + 1), False)
    assert log.arms[:3] == ("0", "1", "2")
    assert 20 < log.rewards.sum() < 80
    if kind == "random":
        assert np.allclose(log.least_propensity, 1.0 / len(log.arms), rtol=1e-3)
        assert log.doubts == []
