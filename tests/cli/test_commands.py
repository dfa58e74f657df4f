"""The commands that run experiments, as a user meets them."""

import contextlib
import functools
import os
import pty
import re
import resource
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest
import typer
from rich.progress import Progress
from typer.testing import CliRunner

import dynabandit as db
from dynabandit.cli import commands
from dynabandit.cli.commands import app
from dynabandit.environments import CONTEXTUAL_ENVIRONMENTS, ENVIRONMENTS
from dynabandit.experiments import ProgressReporter, SpecError, dask_executor, executors, loads
from dynabandit.paper.specs import FIGURES
from dynabandit.policies import POLICIES
from tools.command_line import COMMAND, call_main, invoke, without
from tools.held_command import WORKER
from tools.waiting import PATIENCE, wait_for

DOCS = Path(__file__).parents[2] / "docs"
PARQUET = ("replications.parquet", "runs.parquet", "paths.parquet", "correct.parquet")
SPEC = """
title = "Mine"
[[experiments]]
id = "mine"
environment = { name = "case-1", arms = 3 }
policies = ["ucb", { name = "ts", grid.prior = [[1, 1], [1, 3]] }]
horizon = 50
replications = 2
"""
LONG = """
[[experiments]]
id = "long"
environment = { name = "case-1", arms = 3 }
policies = [{ name = "ucb", grid.burn_in = [1, 2] }, { name = "ts", grid.burn_in = [1, 2] }]
horizon = 5000
replications = 250
"""
LACKING = """
[[experiments]]
id = "mine"
environment = {}
policies = ["ucb"]
horizon = 2
"""
COMPARE = ["compare", "--env", "case-1", "--horizon", "50", "--replications", "2", "ucb"]


def parquet(out: Path) -> dict[str, bytes]:
    return {name: (out / "results" / name).read_bytes() for name in PARQUET}


def stored(out: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (out / "store").glob("*.result")}


def start(*arguments: object, **environment: str) -> "subprocess.Popen[str]":
    """Start a command in a process that a test can stop, and that does not end before."""
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-m", "tools.held_command", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=accept_ctrl_c,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def accept_ctrl_c() -> None:
    """Undo that a shell lets background processes ignore Ctrl-C, which their children inherit."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_until(process: "subprocess.Popen[str]", event: Callable[[], object]) -> None:
    """Wait for something that can be seen from outside, while the process runs."""

    def has_happened() -> object:
        assert process.poll() is None, process.communicate()
        return event()

    wait_for(has_happened)


def test_the_paper_runs_some_figures_with_other_numbers_of_replications_and_steps(tmp_path: Path) -> None:
    options = ["--quick", "--horizon", "50", "--seed", "5", "--jobs", "1", "--out", tmp_path]
    done = invoke("paper", "--only", "memory", "--only", "sample-paths", *options)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == f"Report: {tmp_path / 'report.html'}"
    assert (tmp_path / "claims.json").exists()
    results = db.Results.load(tmp_path / "results")
    assert {run.experiment for run in results} == {"memory"}
    assert {(run.replications, run.seed) for run in results} == {(10, 5)}
    assert {path.environment for path in results.paths} == {"case-1", "case-2", "case-3", "case-4"}
    assert results.metadata["jobs"] == 1
    figures = [line for line in done.stderr.splitlines() if line.endswith(" of 2)")]
    assert all(re.fullmatch(r"[a-z0-9-]+: simulated \(\d of 2\)", line) for line in figures)
    assert len(figures) == 2


def test_a_spec_file_runs_to_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(SPEC, encoding="utf-8")
    done = invoke("run", "mine.toml")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == f"Report: {Path('out/mine/report.html')}"
    assert "Mean total regret" in done.stdout
    results = db.Results.load(tmp_path / "out" / "mine" / "results")
    labels = ["ucb", "ts(prior=(1, 1))", "ts(prior=(1, 3))"]
    assert [run.label for run in results] == labels
    assert all(label in done.stdout for label in labels)


@pytest.mark.parametrize(("place", "experiments", "drawn"), [(0, 2, 2), (1, 1, 2)])
def test_the_examples_of_the_docs_run(tmp_path: Path, place: int, experiments: int, drawn: int) -> None:
    examples = re.findall(r"```toml\n(.*?)```", (DOCS / "specs.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 2
    example = examples[place]
    (tmp_path / "my.toml").write_text(example, encoding="utf-8")
    done = invoke("run", tmp_path / "my.toml", "--out", tmp_path / "out", "--replications", "2", "--horizon", "100")
    assert done.exit_code == 0, done.output
    assert len(loads(example).experiments) == experiments
    assert len(list((tmp_path / "out" / "figures").glob("*.svg"))) == drawn  # sample paths, too


def test_compare_takes_names_with_parameters(tmp_path: Path) -> None:
    arguments = ["--env", "case-1", "--arms", "4", "--horizon", "60", "--replications", "3"]
    done = invoke("compare", *arguments, "--seed", "2", "--out", tmp_path, "ucb", "ts:burn_in=1,prior=[1, 3]")
    assert done.exit_code == 0, done.output
    results = db.Results.load(tmp_path / "results")
    assert [run.label for run in results] == ["ucb", "ts(burn_in=1, prior=(1, 3))"]
    (first, _) = results
    assert (first.environment, first.arms, first.horizon, first.replications) == ("case-1", 4, 60, 3)
    expected = db.simulate("ucb", db.environment("case-1", arms=4), horizon=60, replications=3, seed=2)
    assert (first.total_regret == expected.total_regret).all()


def test_compare_keeps_the_report_of_an_earlier_comparison(tmp_path: Path) -> None:
    first = [*COMPARE, "ts", "--out", tmp_path]
    done = invoke(*first)
    assert "difference to ucb" in done.stdout
    assert "earlier" not in invoke(*first).stderr  # the same comparison replaces its own report
    assert not (tmp_path / "earlier-1").exists()
    other = invoke(*COMPARE, "--out", tmp_path)
    assert f"the earlier report is now in {tmp_path / 'earlier-1'}" in other.stderr
    assert (tmp_path / "earlier-1" / "report.html").exists()
    assert len(db.Results.load(tmp_path / "earlier-1" / "results")) == 2
    assert len(db.Results.load(tmp_path / "results")) == 1
    assert "difference" not in other.stdout
    assert f"{tmp_path / 'earlier-2'}" in invoke(*first).stderr


def test_without_a_browser_a_pdf_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "find_browser", lambda: None)
    done = invoke(*COMPARE, "--pdf", "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "a PDF needs Chrome or Chromium, but none of chromium" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_pdf_is_printed_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "find_browser", lambda: "chromium")
    monkeypatch.setattr(commands, "print_pdf", lambda report: report.with_suffix(".pdf"))
    done = invoke(*COMPARE, "--pdf", "--out", tmp_path)
    assert done.stdout.splitlines()[-2:] == [f"PDF: {tmp_path / 'report.pdf'}", f"Report: {tmp_path / 'report.html'}"]


def test_without_a_terminal_each_stage_and_each_figure_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_ahead(policies: list[Any], *_: Any) -> None:
        reporter: ProgressReporter = _[-1]
        if policies:
            reporter.stage(f"compiling {len(policies)} algorithms")

    monkeypatch.setattr(executors, "compile_ahead", compile_ahead)
    arguments = [*COMPARE, "ts", "--out", tmp_path]
    figure = "case-1-arms-2: simulated (1 of 1)"
    first = invoke(*arguments)
    assert first.stderr.splitlines() == ["compiling 2 algorithms", "simulating 1 task", figure]
    assert not re.search(r"simulating|compiling|[\x00-\x09\x0b-\x1f]", first.stdout)
    assert invoke(*arguments).stderr.splitlines() == [figure]  # everything is stored
    before = stored(tmp_path)
    again = invoke(*arguments, "--fresh")
    assert again.stderr.splitlines() == first.stderr.splitlines()
    assert before.keys() == stored(tmp_path).keys()
    assert all(stored(tmp_path)[name] > before[name] for name in before)


def test_a_terminal_shows_what_is_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    shown = bytearray()

    def read() -> None:
        try:
            while piece := os.read(ours, 4096):
                shown.extend(piece)
        except OSError:  # on Linux, when the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    with open(os.devnull, "w", encoding="utf-8") as nothing, open(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        update = functools.partialmethod(Progress.update, refresh=True)  # at once, and not ten times per second
        monkeypatch.setattr(Progress, "update", update)
        assert call_main(monkeypatch, [*COMPARE, "--replications", "50", "--out", str(tmp_path)], nothing) == 0
        monkeypatch.undo()
    reader.join()
    os.close(ours)
    assert b"case-1, 2 arms, replications 1 to 25" in shown
    assert b"case-1-arms-2: simulated (1 of 1)" in shown
    assert b"\x1b[" in shown
    plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", bytes(shown))
    assert not re.search(rb"(?<!\d:\d\d:\d\d) left,", plain)  # no "left" without the time that is left


def test_list_shows_every_policy_and_environment_with_defaults_and_without_colours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "CI"):
        monkeypatch.setenv(name, "1")
    done = invoke("list")
    assert done.exit_code == 0
    for name in (*POLICIES, *ENVIRONMENTS, *CONTEXTUAL_ENVIRONMENTS):
        assert re.search(rf"^  {re.escape(name)}  \S", done.stdout, re.MULTILINE), name
    assert "      prior = (2.0, 2.0): The Beta prior of each arm" in done.stdout
    assert "      means (needed): The mean reward of each arm" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_the_version_is_that_of_the_package() -> None:
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"dynabandit {db.__version__}\n"


def test_a_run_that_is_killed_twice_ends_with_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG, encoding="utf-8")
    undisturbed, out = tmp_path / "undisturbed", tmp_path / "killed"
    assert invoke("run", tmp_path / "long.toml", "--out", undisturbed).exit_code == 0
    for count in (1, 20):
        process = start("run", tmp_path / "long.toml", "--out", out)
        wait_until(process, lambda count=count: len(stored(out)) >= count)  # type: ignore[misc]
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not (out / "results").exists()
    before = stored(out)
    assert len(before) < len(stored(undisturbed))
    assert invoke("run", tmp_path / "long.toml", "--out", out).exit_code == 0
    assert parquet(out) == parquet(undisturbed)
    assert before.items() <= stored(out).items()  # stored results were not computed again
    assert not list((out / "store").glob("*.damaged"))


def interrupted(process: "subprocess.Popen[str]") -> str:
    output, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert output == ""
    return str(errors.splitlines()[-1])


def test_ctrl_c_ends_cleanly_and_says_how_to_continue(tmp_path: Path) -> None:
    out = tmp_path / "my out"
    process = start("compare", "--env", "case-1", "--replications", "50000", "--fresh", "ucb", "--out", out)
    wait_until(process, lambda: stored(out))
    process.send_signal(signal.SIGINT)
    assert interrupted(process) == (
        f"dynabandit: stopped. Finished results are stored in {out}/store; "
        f"continue with: dynabandit compare --env case-1 --replications 50000 ucb --out '{out}'"
    )
    assert not list((out / "store").glob("*.partial"))
    assert not (out / "results").exists()


def test_ctrl_c_during_compilation_leaves_no_process_behind(tmp_path: Path) -> None:
    process = start(
        "compare", "--env", "fixed:means=[0.2,0.8]", "uniform", "--jobs", "2", "--out", tmp_path / "out",
        NUMBA_CACHE_DIR=str(tmp_path / "cold"),
    )  # fmt: skip
    workers: list[psutil.Process] = []

    def has_workers() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):  # other children, which end soon
            workers.extend(one for one in psutil.Process(process.pid).children() if WORKER in one.cmdline())
        return bool(workers)

    wait_until(process, has_workers)
    process.send_signal(signal.SIGINT)
    assert interrupted(process).startswith("dynabandit: stopped.")
    _, left = psutil.wait_procs(workers, timeout=PATIENCE)
    assert all(worker.status() == psutil.STATUS_ZOMBIE for worker in left)  # if nothing collects orphans


BAD = {
    "figure": (["paper", "--only", "memry"], "--only: unknown figure 'memry'. Did you mean 'memory'?"),
    "replications": (
        ["paper", "--replications", "0"],
        "small-changes: replications must be a whole number of at least 1",
    ),
    "text for a number": (["paper", "--replications", "many"], "--replications"),
    "seed": (["paper", "--seed", "-1"], "seed must be a whole number of at least 0"),
    "jobs": (["paper", "--jobs", "0"], "--jobs must be a whole number of at least 1, got 0"),
    "jobs of compare": (["compare", "--env", "case-1", "--jobs", "0", "ucb"], "--jobs must be a whole number"),
    "backend": (["paper", "--backend", "gpu"], "unknown backend 'gpu'. Did you mean 'cpu'?"),
    "precision": (["paper", "--precision", "single"], "precision 'single' needs backend='cuda', got backend='cpu'"),
    "single precision": (
        ["compare", "--env", "case-1", "--backend", "cuda", "--precision", "single", "d-ucb"],
        "case-1-arms-2: policy 'd-ucb' needs precision='double'",
    ),
    "too many arms": (
        ["compare", "--env", "case-1", "--arms", "3000000000", "--horizon", "5", "ts"],
        "case-1-arms-3000000000: arms must be at most 2147483647, got 3000000000",
    ),
    "cluster": (
        ["paper", "--cluster", "scheduler"],
        "cluster must be 'local' or an address such as tcp://scheduler:8786",
    ),
    "jobs of a cluster": (
        ["paper", "--cluster", "tcp://scheduler:8786", "--jobs", "2"],
        "jobs must be left out with cluster tcp://scheduler:8786, whose workers have threads of their own, got 2",
    ),
    "quick and replications": (["paper", "--quick", "--replications", "5"], "leave out --replications or --quick"),
    "horizon": (
        ["paper", "--horizon", "5"],
        "small-changes: horizon must be at least 30, the burn-in of 'aff-ucb1'",
    ),
    "option": (["paper", "--fast"], "--fast"),
    "command": (["papr"], "papr"),
    "missing file": (["run", "none.toml"], "cannot read none.toml: No such file or directory"),
    "policy in a file": (
        ["run", "bad.toml"],
        "bad.toml: experiments[0].policies[0]: unknown policy 'ucv'. Did you mean 'ucb'?",
    ),
    "figure of a file": (
        ["run", "good.toml", "--only", "god"],
        "good.toml: --only: unknown figure 'god'. Did you mean 'good'?",
    ),
    "policy": (
        ["compare", "--env", "case-1", "aff-otz"],
        "aff-otz: unknown policy 'aff-otz'. Did you mean 'aff-ots'?",
    ),
    "parameter": (
        ["compare", "--env", "case-1", "dts:memroy=3"],
        "dts:memroy=3: policy 'dts' has no parameter 'memroy'. Did you mean 'memory'?",
    ),
    "no parameter": (["compare", "--env", "case-1", "dts:memory"], "must be name:parameter=value"),
    "parameter twice": (
        ["compare", "--env", "case-1", "dts:memory=3,memory=4"],
        "must be given once, got 'memory' twice",
    ),
    "policy twice": (["compare", "--env", "case-1", "ucb", "ucb"], "policies must be different, got 'ucb' twice"),
    "environment": (
        ["compare", "--env", "case-11", "ucb"],
        "--env: unknown environment 'case-11'. Did you mean 'case-1'?",
    ),
    "arms": (
        ["compare", "--env", "case-1", "--arms", "1", "ucb"],
        "--env: arms must be a whole number of at least 2, got 1",
    ),
    "an environment without what it needs": (
        ["compare", "--env", "exponential-clock:rates=[0.1,0.1]", "ucb"],
        (
            "--env: environment 'exponential-clock' needs low, high, such as --env "
            "'exponential-clock:rates=[0.0,0.1],low=[0.5,0.0],high=[0.5,1.0]'; dynabandit list shows all parameters"
        ),
    ),
    "an environment of a file without what it needs": (
        ["run", "lacking.toml"],
        (
            "lacking.toml: experiments[0].environment: environment 'fixed' needs means, such as "
            '{ name = "fixed", means = [0.2, 0.8] }; dynabandit list shows all parameters'
        ),
    ),
    "arms where there are none to choose": (
        ["compare", "--env", "fixed:means=[0.1, 0.2]", "--arms", "3", "ucb"],
        "--env: environment 'fixed' has no parameter 'arms'",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_gets_a_message_exit_code_2_and_nothing_is_written(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.toml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "bad.toml").write_text(SPEC.replace('"ucb"', '"ucv"'), encoding="utf-8")
    (tmp_path / "lacking.toml").write_text(SPEC.replace('"case-1", arms = 3', '"fixed"'), encoding="utf-8")
    done = invoke(*arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.toml", "good.toml", "lacking.toml"]


@pytest.mark.parametrize("name", [*ENVIRONMENTS, *CONTEXTUAL_ENVIRONMENTS])
def test_the_example_of_missing_parameters_works_where_it_is_given(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke("compare", "--env", name, "--horizon", "0", "ucb")
    assert done.exit_code == 2
    if " needs " not in done.stderr:
        assert "horizon must be" in done.stderr
        return
    option, given = shlex.split(done.stderr.partition("such as ")[2].partition(";")[0])
    assert "horizon must be" in invoke("compare", option, given, "--horizon", "0", "ucb").stderr
    with pytest.raises(SpecError) as caught:
        loads(LACKING.format(f'"{name}"'))
    table = str(caught.value).partition("such as ")[2].partition(";")[0]
    assert loads(LACKING.format(table)).experiments[0].environment.name == name


def test_a_gpu_that_is_not_there_gets_a_message_and_nothing_is_written(tmp_path: Path) -> None:
    done = invoke(*COMPARE, "--backend", "cuda", "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert done.stderr.startswith("dynabandit: backend 'cuda' needs an NVIDIA GPU and its driver")
    assert not (tmp_path / "out").exists()


def test_a_cluster_that_does_not_answer_gets_a_message_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "CONNECT_SECONDS", 0.5)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = "tcp://{}:{}".format(*closed.getsockname())
        done = invoke(*COMPARE, "--cluster", address, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert done.stderr.startswith(f"dynabandit: no Dask scheduler answers at {address} within 0.5 seconds")
    assert not (tmp_path / "out").exists()


def test_without_dask_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = invoke(*COMPARE, "--cluster", "local", "--out", tmp_path / "out")
    message = "dynabandit: this needs distributed, which is not installed: pip install 'dynabandit[cluster]'\n"
    assert (done.exit_code, done.stderr) == (1, message)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("module", ["typer", "msgspec"])
def test_without_the_extra_it_says_what_to_install(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    status = without(monkeypatch, module)(["list"])
    assert status == f"dynabandit: this needs {module}, which is not installed: pip install 'dynabandit[lab]'"


def test_modules_that_were_imported_anew_are_gone_after_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        without(patch, "nothing")(["list"])
    assert db.experiments is sys.modules["dynabandit.experiments"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    done = invoke(*COMPARE, "--out", tmp_path / "file" / "out")
    assert done.exit_code == 1
    assert f"cannot write into {tmp_path}/file/out/store: Not a directory" in done.stderr
    assert "Traceback" not in done.stderr


# Under a limit of 1000 bytes no file of the store fits; just above those, the Parquet files do not
@pytest.mark.parametrize("folder", ["store", "."])
def test_no_room_for_a_file_is_reported_and_earlier_results_stay(tmp_path: Path, folder: str) -> None:
    assert invoke(*COMPARE, "--out", tmp_path).exit_code == 0
    results, files = parquet(tmp_path), stored(tmp_path)
    largest = max((tmp_path / "store" / name).stat().st_size for name in files)
    limit = 1000 if folder == "store" else largest + 100
    assert limit < len(results["replications.parquet"])
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, usual[1]))
    try:
        done = invoke(*COMPARE, "--seed", "2", "--out", tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert done.exit_code == 1
    assert f"dynabandit: cannot write into {tmp_path / folder}: " in done.stderr
    assert "Earlier results are intact" in done.stderr
    assert parquet(tmp_path) == results
    assert files.items() <= stored(tmp_path).items()
    assert not list((tmp_path / "store").glob("*.partial"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 48 kB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small file system, and not everywhere")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_full_disk_is_reported_and_the_run_continues_on_a_larger_one(small_disk: Path) -> None:
    arguments = [*COMPARE, "ts", "eps-greedy", "--replications", "200", "--out", small_disk]
    done = invoke(*arguments)
    assert done.exit_code == 1
    assert f"cannot write into {small_disk}" in done.stderr
    assert "No space left on device" in done.stderr
    before = stored(small_disk)
    assert before
    subprocess.run(["mount", "-o", "remount,size=100m", str(small_disk)], check=True)
    assert invoke(*arguments).exit_code == 0
    assert before.items() <= stored(small_disk).items()


@pytest.mark.parametrize("group", [[], ["keys"]])
def test_the_summary_of_every_command_fits_on_its_line(group: list[str]) -> None:
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*group, "--help"], prog_name="dynabandit")
    lines = done.stdout.partition("Commands:\n")[2].splitlines()
    assert len(lines) == (6 if group else 12)
    assert [line for line in lines if not line.endswith(".") or line.endswith(("...", "…"))] == []
    assert max(map(len, lines)) <= 80


def test_every_command_and_option_is_documented() -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    group: Any = typer.main.get_command(app)
    sections = dict(re.findall(r"^## dynabandit (\S+)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    assert set(sections) == set(group.commands)
    for name, one in group.commands.items():
        section = sections[name]
        if "has the same options as `dynabandit paper`" in " ".join(section.split()):
            section += sections["paper"]
        for parameter in one.params:
            for option in parameter.opts if not getattr(parameter, "hidden", False) else ():
                if option.startswith("--"):
                    assert f"`{option}" in section, f"{option} of {name} is not documented"
    for parameter in group.params:
        assert all(option in text for option in parameter.opts)


def test_every_figure_is_documented() -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert all(f"`{figure}`" in text for figure in FIGURES)
