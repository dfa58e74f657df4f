"""The command line, as a user meets it: real processes, real files, real signals."""

import os
import pty
import re
import resource
import shlex
import signal
import socket
import subprocess
import sys
import unicodedata
from pathlib import Path

import psutil
import pytest
import typer
from typer.testing import CliRunner

import dynabandit as db
from dynabandit.cli.commands import app
from dynabandit.experiments import SpecError, dask_executor, loads

COMMAND = [sys.executable, "-m", "dynabandit"]
DOCS = Path(__file__).parents[1] / "docs"
PARQUET = ("replications.parquet", "runs.parquet", "paths.parquet")
# The whole paper, as short as 100 arms with a burn-in of 10 plays each allow
WHOLE = ["paper", "--horizon", "1000", "--replications", "2"]
# A figure with four algorithms, in a moment
MEMORY = ["paper", "--only", "memory", "--horizon", "50", "--replications", "2"]
SPEC = """
title = "Mine"
[[experiments]]
id = "mine"
environment = { name = "case-1", arms = 3 }
policies = ["ucb", { name = "dts", grid.memory = [5, 50] }]
horizon = 50
replications = 2
"""
# Some forty pieces of work, of which each takes long enough to be killed in
LONG = """
[[experiments]]
id = "long"
environment = { name = "case-3", arms = 20 }
policies = ["ucb", { name = "dts", grid.memory = [5, 50, 500] }]
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


def command(*arguments, **options):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, **options)


def inside(*arguments):
    """Run a command in this process, which is faster."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="dynabandit")


def parquet(out):
    return {name: (out / "results" / name).read_bytes() for name in PARQUET}


def stored(out):
    return {path.name: path.stat().st_mtime_ns for path in (out / "store").glob("*.result")}


def wait_until(process, event):
    """Wait for something that can be seen from outside, while the process runs."""
    while not event():
        try:
            process.wait(timeout=0.005)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail(f"the process ended early with {process.returncode}: {process.stderr.read()}")


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The paper, run without any trouble."""
    out = tmp_path_factory.mktemp("whole")
    return out, command(*WHOLE, "--out", out)


def test_the_whole_paper_runs_and_says_where_the_report_is(whole):
    out, done = whole
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"Report: {out / 'report.html'}"
    assert (out / "report.html").exists()
    assert "Mean total regret" in done.stdout
    results = db.Results.load(out / "results")
    assert len(results) == 370
    assert {run.replications for run in results} == {2}
    assert len(results.paths) == 13
    assert len(results.coverage) == 30


def test_output_that_is_no_terminal_is_a_line_for_each_figure_without_control_characters(whole):
    _, done = whole
    others = ("compiling ", "simulating ", "environment 'small-changes' cannot change before step 3000")
    lines = [line for line in done.stderr.splitlines() if not line.startswith(others)]
    assert len(lines) == 12
    assert all(re.fullmatch(r"[a-z0-9-]+: simulated \(\d+ of 12\)", line) for line in lines)
    control = [one for one in done.stdout + done.stderr if unicodedata.category(one) == "Cc" and one != "\n"]
    assert control == []


def test_without_a_terminal_each_stage_that_takes_long_is_a_line_when_it_begins(tmp_path):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cold")}
    ask = ["compare", "--env", "fixed:means=[0.2,0.8]", "--horizon", "9", "--replications", "2", "--out", tmp_path]
    lines = [command(*ask, "uniform", env=env).stderr.splitlines() for _ in range(2)]
    figure = "fixed-arms-2: simulated (1 of 1)"
    assert lines[0] == ["compiling 2 algorithms, which happens once", "simulating 1 unit of work", figure]
    assert lines[1] == [figure]  # all of it is kept
    more = command(*ask, "--fresh", "uniform", env=env)
    assert more.stderr.splitlines() == ["simulating 1 unit of work", figure]
    assert "simulating" not in more.stdout
    assert "compiling" not in more.stdout


def test_colours_are_for_terminals_even_where_the_environment_forces_them():
    done = command("list", env={**os.environ, "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "CI": "1"})
    assert "\x1b" not in done.stdout + done.stderr


def test_a_second_run_computes_nothing(tmp_path):
    assert command(*MEMORY, "--out", tmp_path).returncode == 0
    results, files = parquet(tmp_path), stored(tmp_path)
    assert command(*MEMORY, "--out", tmp_path).returncode == 0
    assert stored(tmp_path) == files
    assert parquet(tmp_path) == results


def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(tmp_path):
    (tmp_path / "long.toml").write_text(LONG)
    undisturbed, out = tmp_path / "undisturbed", tmp_path / "killed"
    assert command("run", tmp_path / "long.toml", "--out", undisturbed).returncode == 0
    for count in (1, 20):
        ask = [*COMMAND, "run", str(tmp_path / "long.toml"), "--out", str(out)]
        process = subprocess.Popen(ask, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(process, lambda count=count: len(stored(out)) >= count)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not (out / "results").exists()
    kept = stored(out)
    assert len(kept) < len(stored(undisturbed))
    done = command("run", tmp_path / "long.toml", "--out", out)
    assert done.returncode == 0, done.stderr
    assert parquet(out) == parquet(undisturbed)
    assert kept.items() <= stored(out).items()  # what was kept was not computed again
    assert not list((out / "store").glob("*.damaged"))


def test_fresh_forgets(tmp_path):
    assert inside(*MEMORY, "--out", tmp_path).exit_code == 0
    before = stored(tmp_path)
    assert inside(*MEMORY, "--out", tmp_path, "--fresh").exit_code == 0
    after = stored(tmp_path)
    assert before.keys() == after.keys()
    assert all(after[name] > before[name] for name in before)


def test_only_runs_the_named_figures(tmp_path):
    done = inside(*MEMORY, "--only", "sample-paths", "--out", tmp_path)
    assert done.exit_code == 0
    results = db.Results.load(tmp_path / "results")
    assert {run.experiment for run in results} == {"memory"}
    assert {path.environment for path in results.paths} == {"case-1", "case-2", "case-3", "case-4"}


def test_quick_is_ten_replications_and_seed_and_jobs_reach_the_run(tmp_path):
    arguments = ["paper", "--quick", "--only", "memory", "--horizon", "50", "--seed", "5", "--jobs", "1"]
    assert inside(*arguments, "--out", tmp_path).exit_code == 0
    results = db.Results.load(tmp_path / "results")
    assert {(run.replications, run.seed) for run in results} == {(10, 5)}
    assert results.metadata["jobs"] == 1


def test_a_spec_of_ones_own_runs_to_the_same_kind_of_report(tmp_path):
    (tmp_path / "mine.toml").write_text(SPEC, encoding="utf-8")
    done = command("run", "mine.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"Report: {Path('out/mine/report.html')}"
    results = db.Results.load(tmp_path / "out" / "mine" / "results")
    assert [run.label for run in results] == ["ucb", "dts(memory=5)", "dts(memory=50)"]
    for label in ("ucb", "dts(memory=5)", "dts(memory=50)"):
        assert label in done.stdout


@pytest.mark.parametrize(("place", "experiments", "drawn"), [(0, 2, 2), (1, 1, 2)])
def test_the_examples_of_the_docs_run(tmp_path, place, experiments, drawn):
    examples = re.findall(r"```toml\n(.*?)```", (DOCS / "specs.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 2
    example = examples[place]
    (tmp_path / "my.toml").write_text(example, encoding="utf-8")
    done = inside("run", tmp_path / "my.toml", "--out", tmp_path / "out", "--replications", "2", "--horizon", "100")
    assert done.exit_code == 0, done.output
    assert len(loads(example).experiments) == experiments
    assert len(list((tmp_path / "out" / "figures").glob("*.svg"))) == drawn  # sample paths, too


def test_compare_takes_names_with_parameters(tmp_path):
    arguments = ["--env", "reflected-walk:variance=0.01", "--arms", "4", "--horizon", "60", "--replications", "3"]
    policies = ["ucb", "aff-ots:step_size=0.01,prior=[1, 3]"]
    done = inside("compare", *arguments, "--seed", "2", "--out", tmp_path, *policies)
    assert done.exit_code == 0, done.output
    results = db.Results.load(tmp_path / "results")
    assert [run.label for run in results] == ["ucb", "aff-ots(step_size=0.01, prior=(1, 3))"]
    (first, _) = results
    assert (first.environment, first.arms, first.horizon, first.replications) == ("reflected-walk", 4, 60, 3)
    expected = db.simulate(
        "ucb", db.environment("reflected-walk", arms=4, variance=0.01), horizon=60, replications=3, seed=2
    )
    assert (first.total_regret == expected.total_regret).all()


def test_list_shows_every_policy_and_environment_with_defaults():
    done = command("list")
    assert done.returncode == 0
    for registry in (db.policies.POLICIES, db.environments.ENVIRONMENTS):
        for name in registry:
            assert re.search(rf"^  {re.escape(name)}  \S", done.stdout, re.MULTILINE), name
    assert "      prior = (2.0, 2.0): The Beta prior of every arm" in done.stdout
    assert "      means (needed): The mean reward of each arm" in done.stdout


def test_the_version_is_that_of_the_package():
    done = command("--version")
    assert (done.returncode, done.stdout) == (0, f"dynabandit {db.__version__}\n")


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
def test_bad_input_gets_a_message_exit_code_2_and_nothing_is_written(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.toml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "bad.toml").write_text(SPEC.replace('"ucb"', '"ucv"'), encoding="utf-8")
    (tmp_path / "lacking.toml").write_text(SPEC.replace('"case-1", arms = 3', '"fixed"'), encoding="utf-8")
    done = inside(*arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.toml", "good.toml", "lacking.toml"]


@pytest.mark.parametrize("name", db.environments.ENVIRONMENTS)
def test_the_example_that_is_given_for_what_is_missing_works_where_it_is_given(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = inside("compare", "--env", name, "--horizon", "0", "ucb")
    assert done.exit_code == 2
    if " needs " not in done.stderr:
        assert "horizon must be" in done.stderr
        return
    option, given = shlex.split(done.stderr.partition("such as ")[2].partition(";")[0])
    assert "horizon must be" in inside("compare", option, given, "--horizon", "0", "ucb").stderr
    with pytest.raises(SpecError) as caught:
        loads(LACKING.format(f'"{name}"'))
    table = str(caught.value).partition("such as ")[2].partition(";")[0]
    assert loads(LACKING.format(table)).experiments[0].environment.name == name


def test_a_gpu_that_is_not_there_gets_a_message_and_nothing_is_written(tmp_path):
    done = inside(*MEMORY, "--backend", "cuda", "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert done.stderr.startswith("dynabandit: backend 'cuda' needs an NVIDIA GPU and its driver")
    assert not (tmp_path / "out").exists()


def test_a_cluster_that_does_not_answer_gets_a_message_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_executor, "PATIENCE", 0.5)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = "tcp://{}:{}".format(*closed.getsockname())
        done = inside(*MEMORY, "--cluster", address, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert done.stderr.startswith(f"dynabandit: no Dask scheduler answers at {address} within 0.5 seconds")
    assert not (tmp_path / "out").exists()


def test_without_dask_it_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['distributed'] = None; from dynabandit.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *MEMORY, "--cluster", "local", "--out", tmp_path / "out"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "dynabandit: this needs distributed, which is not installed: pip install 'dynabandit[cluster]'\n"
    )
    assert not (tmp_path / "out").exists()


def interrupted(process):
    output, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert output == ""
    return errors.splitlines()[-1]


def hear_ctrl_c() -> None:
    """A process that a shell started in the background would be deaf to it, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(tmp_path):
    out = tmp_path / "my out"
    arguments = ["paper", "--only", "memory", "--replications", "5000", "--fresh", "--out", str(out)]
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_ctrl_c,
    )
    wait_until(process, lambda: stored(out))
    process.send_signal(signal.SIGINT)
    assert interrupted(process) == (
        f"dynabandit: stopped. What is done is kept in {out}/store; "
        f"go on with: dynabandit paper --only memory --replications 5000 --out '{out}'"
    )
    assert not list((out / "store").glob("*.partial"))
    assert not (out / "results").exists()


def test_ctrl_c_during_compilation_leaves_no_process_behind(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, *MEMORY, "--jobs", "2", "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cold")},
        preexec_fn=hear_ctrl_c,
    )
    workers = []
    wait_until(process, lambda: workers.extend(psutil.Process(process.pid).children()) or workers)
    process.send_signal(signal.SIGINT)
    assert interrupted(process).startswith("dynabandit: stopped.")
    _, left = psutil.wait_procs(workers, timeout=60)
    assert all(worker.status() == psutil.STATUS_ZOMBIE for worker in left)  # where nobody collects orphans


def test_a_terminal_shows_what_is_running(tmp_path):
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*COMMAND, *MEMORY, "--out", str(tmp_path)], stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(ours)
    process.communicate()
    assert process.returncode == 0
    assert b"case-1, 2 arms, replications 1 to 2" in shown
    assert b"memory: simulated (1 of 1)" in shown
    assert b"\x1b[" in shown
    plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown)
    assert not re.search(rb"(?<!\d:\d\d:\d\d) left,", plain)  # no "left" without the time that is left


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    done = inside(*MEMORY, "--out", tmp_path / "file" / "out")
    assert done.exit_code == 1
    assert f"cannot write into {tmp_path}/file/out/store: Not a directory" in done.stderr
    assert "Traceback" not in done.stderr


# Under a limit of 1000 bytes no file of the store fits; just above those, the Parquet files do not
@pytest.mark.parametrize("folder", ["store", "."])
def test_no_room_for_a_file_is_said_and_earlier_results_stay(tmp_path, folder):
    assert command(*MEMORY, "--out", tmp_path).returncode == 0
    results, files = parquet(tmp_path), stored(tmp_path)
    largest = max((tmp_path / "store" / name).stat().st_size for name in files)
    limit = 1000 if folder == "store" else largest + 100
    assert limit < len(results["replications.parquet"])
    done = command(
        *MEMORY, "--seed", "2", "--out", tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    assert done.returncode == 1
    assert f"dynabandit: cannot write into {tmp_path / folder}: " in done.stderr
    assert "Earlier results are intact" in done.stderr
    assert "Traceback" not in done.stderr
    assert parquet(tmp_path) == results
    assert files.items() <= stored(tmp_path).items()
    assert not list((tmp_path / "store").glob("*.partial"))


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 48 kB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small file system, and not everywhere")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_disk_that_fills_up_is_said_and_a_larger_one_goes_on_from_there(small_disk):
    done = command(*MEMORY, "--out", small_disk)
    assert done.returncode == 1
    assert f"cannot write into {small_disk}" in done.stderr
    assert "No space left on device" in done.stderr
    kept = stored(small_disk)
    assert kept
    subprocess.run(["mount", "-o", "remount,size=100m", str(small_disk)], check=True)
    assert command(*MEMORY, "--out", small_disk).returncode == 0
    assert kept.items() <= stored(small_disk).items()


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_without_the_extra_it_says_what_to_install(module):
    code = f"import sys; sys.modules[{module!r}] = None; from dynabandit.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "list"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"dynabandit: this needs {module}, which is not installed: pip install 'dynabandit[lab]'\n"


def test_without_pyarrow_it_says_so_before_it_runs(tmp_path):
    code = "import sys; sys.modules['pyarrow'] = None; from dynabandit.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *MEMORY, "--out", tmp_path / "out"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "needs pyarrow, which is not installed: pip install 'dynabandit[lab]'" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("group", [[], ["keys"]])
def test_the_summary_of_every_command_fits_on_its_line(group):
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*group, "--help"], prog_name="dynabandit")
    lines = done.stdout.partition("Commands:\n")[2].splitlines()
    assert len(lines) == (3 if group else 10)
    assert [line for line in lines if not line.endswith(".") or line.endswith(("...", "…"))] == []
    assert max(map(len, lines)) <= 80


def test_every_command_and_option_is_documented():
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    group = typer.main.get_command(app)
    sections = dict(re.findall(r"^## dynabandit (\S+)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    assert set(sections) == set(group.commands)
    for name, one in group.commands.items():
        section = sections[name]
        if "takes the options of `dynabandit paper`" in " ".join(section.split()):
            section += sections["paper"]
        for parameter in one.params:
            for option in parameter.opts if not getattr(parameter, "hidden", False) else ():
                if option.startswith("--"):
                    assert f"`{option}" in section, f"{option} of {name} is not documented"
    for parameter in group.params:
        assert all(option in text for option in parameter.opts)


def test_every_figure_is_documented():
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    from dynabandit.paper.specs import FIGURES

    assert all(f"`{figure}`" in text for figure in FIGURES)
