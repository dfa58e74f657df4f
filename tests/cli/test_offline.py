"""The commands for logs, as a user meets them."""

import json
from pathlib import Path
from unittest import mock

import numpy as np
import pandas
import pytest

from dynabandit import offline
from dynabandit.offline import replay_loop, reward_model
from dynabandit.policies.auto import RECOMMENDED_WITH_FEATURES
from tools.command_line import invoke


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of three arms, of which the last is the best."""
    generator = np.random.default_rng(1)
    arms = generator.integers(3, size=1500)
    rewards = generator.random(1500) < np.array([0.2, 0.3, 0.8])[arms]
    file = tmp_path_factory.mktemp("logs") / "log.csv"
    rows = (f"{n};{'xyz'[arm]};{int(reward)}\n" for n, (arm, reward) in enumerate(zip(arms, rewards, strict=True)))
    file.write_text("at;shown;clicked\n" + "".join(rows), encoding="utf-8")
    return file


COLUMNS = ["--arm", "shown", "--reward", "clicked", "--time", "at", "--separator", ";"]


def test_replay_prints_every_estimate_of_every_policy(path: Path) -> None:
    done = invoke("replay", path, "--policy", "ts", "--policy", "ts:prior=[1,3]", *COLUMNS)
    assert done.exit_code == 0, done.output
    for word in ("replay", "IPS", "SNIPS", "doubly robust", "ts", "ts(prior=(1, 3))", "as logged", "1500 rows, 3 arms"):
        assert word in done.stdout
    assert done.stderr == ""


def test_replay_as_json_is_what_the_library_finds(path: Path) -> None:
    done = invoke("replay", path, "--policy", "ts", *COLUMNS, "--json", "--seed", "3", "--replications", "2")
    (found,) = json.loads(done.stdout)
    log = offline.read(path, arm="shown", reward="clicked", time="at", separator=";")
    expected = offline.replay(log, "ts", seed=3, replications=2)
    assert found["dr"] == expected.dr._asdict()
    assert found["shares"] == expected.shares
    assert found["shares"]["z"] > 0.8
    assert found["log"]["rows"] == 1500


def test_bad_rows_are_shown_and_skipped_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("arm,reward\n" + "a,1\nb,0\n" * 50 + "a,2\n", encoding="utf-8")
    arguments = ["replay", tmp_path / "log.csv", "--policy", "ts"]
    done = invoke(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "row 101 (line 102), column 'reward': must be a number in [0, 1], got '2'" in done.stderr
    assert "--skip-bad" in done.stderr
    done = invoke(*arguments, "--skip-bad")
    assert done.exit_code == 0
    assert "left out 1 of 101 rows:\n  row 101 (line 102)" in done.stderr


@pytest.mark.parametrize(
    "options", [["hour", "returning"], ["hour:kind=number,required=true", "returning:kind=boolean"]]
)
def test_columns_of_features_let_contextual_policies_decide(tmp_path: Path, options: list[str]) -> None:
    rows = [f"{'ab'[n % 2]},{int((n % 2 == 0) == (n % 3 == 0))},{n % 24},{n % 3 == 0}\n" for n in range(120)]
    (tmp_path / "log.csv").write_text("arm,reward,hour,returning\n" + "".join(rows), encoding="utf-8")
    features = [word for option in options for word in ("--feature", option)]
    policies = ["--policy", "lin-ucb", "--policy", "auto", "--replications", "1", "--draws", "1", "--json"]
    with (
        mock.patch("dynabandit.offline.replay_loop._compiled_play", replay_loop.make_play),
        mock.patch("dynabandit.offline.reward_model._compiled_predict", reward_model.make_predict),
    ):
        done = invoke("replay", tmp_path / "log.csv", *features, *policies)
        assert done.exit_code == 0, done.output
        assert [one["policy"] for one in json.loads(done.stdout)] == ["lin-ucb", RECOMMENDED_WITH_FEATURES]
        done = invoke("replay", tmp_path / "log.csv", "--feature", "hours", *policies)
        assert done.exit_code == 2
        assert "has no column 'hours' for the feature 'hours'. Did you mean 'hour'?" in done.stderr
        done = invoke(
            "replay", tmp_path / "log.csv", "--feature", "hour", "--feature", "returning:kind=bool", *policies
        )
        assert done.exit_code == 2
        assert "unknown kind of feature 'hour': None" in done.stderr


def test_a_doubtful_log_gets_a_warning(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("arm,reward\n" + "a,1\n" * 90 + "b,0\n" * 10, encoding="utf-8")
    done = invoke("replay", tmp_path / "log.csv", "--policy", "ts")
    assert "warning: without propensities all arms count as equally likely, but 'a' has 90.0%" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv", "--policy", "ts"], "there is no file none.csv"),
        (["none.csv", "--policy", "tz"], "tz: unknown policy 'tz'"),
        (["none.csv"], "--policy"),
    ],
)
def test_bad_input_gets_a_message_and_exit_code_2(arguments: list[str], message: str) -> None:
    done = invoke("replay", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_advise_prints_the_candidates_and_a_verdict(path: Path) -> None:
    arguments = ["advise", path, *COLUMNS, "--policy", "ts", "--policy", "uniform"]
    done = invoke(*arguments)
    assert done.exit_code == 0, done.output
    for words in ("behind the leader by", "may be the best", "ts has the largest estimate.", "as logged"):
        assert words in done.stdout
    found = json.loads(invoke(*arguments, "--json").stdout)
    assert (found["leader"], found["sure"]) == ("ts", True)
    assert [one["may_be_best"] for one in found["candidates"]] == [True, False]


def test_advise_takes_parquet(path: Path, tmp_path: Path) -> None:
    pandas.read_csv(path, sep=";").to_parquet(tmp_path / "log.parquet")
    columns = ["--arm", "shown", "--reward", "clicked", "--policy", "ts", "--policy", "uniform", "--json"]
    there, here = (
        invoke("advise", *file, *columns) for file in ((path, "--separator", ";"), (tmp_path / "log.parquet",))
    )
    assert here.exit_code == 0, here.output
    assert json.loads(here.stdout)["candidates"] == json.loads(there.stdout)["candidates"]


def test_a_long_burn_in_gets_a_warning(path: Path) -> None:
    done = invoke("replay", path, *COLUMNS, "--policy", "ts:burn_in=100")
    assert "warning: ts(burn_in=100) spent" in done.stderr
    assert "rows in its burn-in" in done.stderr
