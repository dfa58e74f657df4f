import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import dynabandit as db
from dynabandit.experiments import CoverageSpec, Experiment, PathSpec, Spec, SpecError, dumps, load, loads

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,10}", fullmatch=True)
TITLES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SEEDS = st.integers(0, 2**63 - 1)
UNIT = st.floats(0.0, 1.0)
POSITIVE = st.floats(0.01, 1e6) | st.integers(1, 10**6)

POLICIES = st.one_of(
    st.just(db.policy("ucb")),
    st.builds(lambda value: db.policy("eps-greedy", epsilon=value), UNIT),
    st.builds(lambda a, b: db.policy("ts", prior=[a, b]), POSITIVE, POSITIVE),
    st.builds(lambda value: db.policy("d-ucb", discount=value), st.none() | st.floats(0.1, 1.0)),
    st.builds(
        lambda value, c: db.policy("aff-dts2", step_size=value, memory=c),
        UNIT | st.just("variance-scaled"),
        POSITIVE,
    ),
)
ENVIRONMENTS = st.one_of(
    st.builds(lambda arms: db.environment("case-3", arms=arms), st.integers(2, 100)),
    st.builds(lambda means: db.environment("fixed", means=means), st.lists(UNIT, min_size=2, max_size=4)),
)


@st.composite
def experiments(draw: st.DrawFn) -> Experiment:
    horizon = draw(st.integers(1000, 10**6))
    times = st.lists(st.integers(1, horizon - 1), unique=True, max_size=5).map(lambda some: (*sorted(some), horizon))
    return Experiment(
        id=draw(NAMES),
        title=draw(TITLES),
        figure=draw(NAMES),
        environment=draw(ENVIRONMENTS),
        policies=tuple(draw(st.lists(POLICIES, min_size=1, max_size=4, unique_by=lambda one: one.label))),
        horizon=horizon,
        replications=draw(st.integers(1, 10**6)),
        seed=draw(SEEDS),
        times=draw(st.integers(1, 500) | times),
        delay=draw(st.none() | st.sampled_from(DELAYS)),
    )


DELAYS = [
    db.delay("fixed", steps=3),
    db.delay("geometric", mean=2.5, lost=0.25),
    db.delay("uniform", low=1, high=9, window=20, rule="held"),
    db.delay("recorded", delays=[0, 4, 4]),
    db.delay("batch", every=100),
]
PATHS = st.builds(PathSpec, environment=ENVIRONMENTS, figure=NAMES, seed=SEEDS, points=st.integers(1, 2000))
COVERAGE = st.builds(
    CoverageSpec,
    figure=NAMES,
    means=st.lists(UNIT, min_size=1, max_size=3),
    step_sizes=st.lists(UNIT, min_size=1, max_size=3),
    observations=st.lists(st.integers(1, 10**4), min_size=1, max_size=3, unique=True).map(sorted),
    seed=SEEDS,
)


@given(
    title=TITLES,
    experiments=st.lists(experiments(), min_size=1, max_size=3, unique_by=lambda one: one.id),
    paths=st.lists(PATHS, max_size=2),
    coverage=st.lists(COVERAGE, max_size=1),
)
def test_a_spec_comes_back_from_toml_equal(
    title: str, experiments: list[Experiment], paths: list[PathSpec], coverage: list[CoverageSpec]
) -> None:
    spec = Spec(
        title=title,
        experiments=tuple(experiments),
        sample_paths=tuple(paths),
        coverage=tuple(coverage),
    )
    assert loads(dumps(spec)) == spec


def labels(text: str) -> list[str]:
    header = '[[experiments]]\nid = "a"\nenvironment = "case-1"\n'
    (experiment,) = loads(f"{header}policies = {text}").experiments
    return [policy.label for policy in experiment.policies]


def test_a_grid_expands_into_every_combination_with_the_last_list_fastest() -> None:
    assert labels('[{ name = "dts", grid.memory = [5, 50], grid.burn_in = [1, 2] }]') == [
        "dts(burn_in=1, memory=5)", "dts(burn_in=2, memory=5)",
        "dts(burn_in=1, memory=50)", "dts(burn_in=2, memory=50)",
    ]  # fmt: skip


def test_a_pair_is_a_value_and_a_grid_of_pairs_is_a_grid() -> None:
    assert labels('[{ name = "ts", prior = [1, 3] }]') == ["ts(prior=(1, 3))"]
    assert labels('[{ name = "ts", grid.prior = [[1, 3], [3, 1]] }]') == ["ts(prior=(1, 3))", "ts(prior=(3, 1))"]


def test_defaults_fill_in_what_an_experiment_leaves_out() -> None:
    spec = loads(
        """
        figure = "both"
        [defaults]
        horizon = 50
        seed = 7
        policies = ["ucb"]
        [[experiments]]
        id = "a"
        environment = "case-1"
        [[experiments]]
        id = "b"
        environment = "case-2"
        horizon = 60
        policies = ["ts"]
        figure = "own"
        """
    )
    a, b = spec.experiments
    assert (a.horizon, a.seed, a.policies, a.figure) == (50, 7, (db.policy("ucb"),), "both")
    assert (b.horizon, b.seed, b.policies, b.figure) == (60, 7, (db.policy("ts"),), "own")
    assert (a.title, spec.title) == ("a", "spec")


def test_an_override_reaches_every_part_it_concerns_and_cuts_recorded_times() -> None:
    spec = Spec(
        title="t",
        experiments=(
            Experiment(
                id="a", environment=db.environment("case-1"), policies=(db.policy("ucb"),), times=(10, 100, 10_000)
            ),
        ),
        sample_paths=(PathSpec(environment=db.environment("case-1"), figure="f"),),
        coverage=(CoverageSpec(figure="f", means=(0.5,), step_sizes=(0.1,), observations=(3,)),),
    ).override(replications=5, horizon=100, seed=9)
    (experiment,) = spec.experiments
    assert (experiment.replications, experiment.horizon, experiment.seed) == (5, 100, 9)
    assert experiment.times == (10, 100)
    assert (spec.sample_paths[0].replications, spec.sample_paths[0].horizon, spec.sample_paths[0].seed) == (
        3,
        100,
        9,
    )
    assert spec.coverage[0].seed == 9


def test_names_are_resolved_and_lists_become_tuples() -> None:
    trial = Experiment(id="a", environment="case-1", policies=["ucb"], times=np.array([5, 10]), horizon=10)  # type: ignore[arg-type]
    assert (trial.environment, trial.policies) == (db.environment("case-1"), (db.policy("ucb"),))
    assert trial.times == (5, 10)


def test_arrays_are_written_as_lists() -> None:
    environment = db.environment("path", means=np.array([[0.1, 0.2], [0.2, 0.1]]))
    trial = Experiment(id="a", environment=environment, policies=(db.policy("ucb"),), horizon=2)
    assert "0.1" in dumps(Spec(title="t", experiments=(trial,)))
    assert loads(dumps(Spec(title="t", experiments=(trial,)))).experiments == (trial,)


def test_policies_on_one_line_may_stand_in_a_file() -> None:
    assert labels('["dts:memory=5", "aff-ots:step_size=variance-scaled,prior=[1, 3]"]') == [
        "dts(memory=5)", "aff-ots(step_size=variance-scaled, prior=(1, 3))",
    ]  # fmt: skip


GOOD = """
[[experiments]]
id = "a"
environment = { name = "case-1", arms = 3 }
policies = ["ucb"]
"""
BAD = {
    "top-level key": ("titel = 'x'" + GOOD, "titel: unknown key 'titel'. Did you mean 'title'?"),
    "key of the defaults": (
        "[defaults]\nhorizn = 5" + GOOD,
        "defaults.horizn: unknown key 'horizn'. Did you mean 'horizon'?",
    ),
    "id in the defaults": ("[defaults]\nid = 'a'" + GOOD, "defaults.id: unknown key 'id'."),
    "key of an experiment": (GOOD + "sede = 3", "experiments[0].sede: unknown key 'sede'. Did you mean 'seed'?"),
    "key of sample paths": (
        "[[sample_paths]]\nenvironment = 'case-1'\npoint = 3",
        "sample_paths[0].point: unknown key 'point'. Did you mean 'points'?",
    ),
    "key of coverage": (
        "[[coverage]]\nmeans = [0.5]\nstep_sizes = [0.1]\nobservations = [1]\nstream = 2",
        "coverage[0].stream: unknown key 'stream'. Did you mean 'streams'?",
    ),
    "kind of delay": (
        GOOD + "delay = 'fix:steps=3'",
        "experiments[0].delay: unknown delay 'fix'. Did you mean 'fixed'?",
    ),
    "delay without a kind": (
        GOOD + "delay = { steps = 3 }",
        "experiments[0].delay: missing key 'kind', which delay is",
    ),
    "delay without its parameter": (
        GOOD + "delay = 'uniform:low=3'",
        "experiments[0].delay: delay 'uniform' needs high",
    ),
    "delay of other arms": (
        GOOD + "delay = { kind = 'fixed', steps = [1, 2] }",
        "experiments[0]: delay must have one number per arm, 3, or one for all, got 2: fixed(steps=[1, 2])",
    ),
    "policy": (
        GOOD.replace('["ucb"]', '["ucb", "aff-otts"]'),
        "experiments[0].policies[1]: unknown policy 'aff-otts'. Did you mean 'aff-ots'?",
    ),
    "environment": (
        GOOD.replace("case-1", "case1"),
        "experiments[0].environment: unknown environment 'case1'. Did you mean 'case-1'?",
    ),
    "parameter of a policy": (
        GOOD.replace('"ucb"', '{ name = "dts", memroy = 3 }'),
        "experiments[0].policies[0]: policy 'dts' has no parameter 'memroy'. Did you mean 'memory'?",
    ),
    "parameter of a grid": (
        GOOD.replace('"ucb"', '{ name = "dts", grid.memroy = [3] }'),
        "experiments[0].policies[0]: policy 'dts' has no parameter 'memroy'. Did you mean 'memory'?",
    ),
    "parameter of an environment": (
        GOOD.replace("arms", "arm"),
        "experiments[0].environment: environment 'case-1' has no parameter 'arm'. Did you mean 'arms'?",
    ),
    "value out of range": (
        GOOD.replace('"ucb"', '{ name = "eps-greedy", epsilon = 2 }'),
        "experiments[0].policies[0]: epsilon must be a number in [0, 1], got 2",
    ),
    "a parameter that is no table": (
        GOOD.replace('"ucb"', "3"),
        "experiments[0].policies[0]: must be a table, got 3",
    ),
    "a grid that is no table": (
        GOOD.replace('"ucb"', '{ name = "dts", grid = 3 }'),
        "experiments[0].policies[0].grid: must be a table, got 3",
    ),
    "an experiment that is no table": ("experiments = [3]", "experiments[0]: must be a table, got 3"),
    "a list that is no grid": (
        GOOD.replace('"ucb"', '{ name = "eps-greedy", epsilon = [0.1, 0.2] }'),
        "To try several values, write grid.epsilon = [...]",
    ),
    "a grid without a list": (
        GOOD.replace('"ucb"', '{ name = "dts", grid.memory = 3 }'),
        "experiments[0].policies[0].grid.memory: must be a list of at least one value, got 3",
    ),
    "a parameter in and outside a grid": (
        GOOD.replace('"ucb"', '{ name = "dts", memory = 3, grid.memory = [3] }'),
        "experiments[0].policies[0].grid.memory: 'memory' is set outside the grid as well",
    ),
    "the same policy twice": (
        GOOD.replace('["ucb"]', '["dts", { name = "dts", memory = 10 }]'),
        "experiments[0]: policies must be different, got 'dts' twice",
    ),
    "a policy that needs features": (
        GOOD.replace('"ucb"', '"lin-ucb"'),
        "experiments[0]: policy 'lin-ucb' decides by features, but environment",
    ),
    "no policies": (GOOD.replace('["ucb"]', "[]"), "experiments[0]: policies must hold at least one policy"),
    "policies that are no list": (GOOD.replace('["ucb"]', '"ucb"'), "experiments[0].policies: must be a list"),
    "a policy without a name": (
        GOOD.replace('"ucb"', "{ burn_in = 2 }"),
        "experiments[0].policies[0]: missing key 'name'",
    ),
    "a missing key": (GOOD.replace('id = "a"', ""), "experiments[0]: missing key 'id'"),
    "the same id twice": (GOOD + GOOD, "every experiment must have an id of its own, got 'a' twice"),
    "an id that is no file name": (GOOD.replace('"a"', '"a/b"'), "experiments[0]: id must be made of letters, digits"),
    "a short horizon": (
        GOOD.replace('"ucb"', '"aff-ucb1"') + "horizon = 20",
        "experiments[0]: horizon must be at least 30, the burn-in of 'aff-ucb1'",
    ),
    "replications": (
        GOOD + "replications = 0",
        "experiments[0]: replications must be a whole number of at least 1",
    ),
    "a number as text": (GOOD + "replications = '5'", "experiments[0]: replications must be a whole number"),
    "a seed": (GOOD + "seed = -1", "experiments[0]: seed must be a whole number of at least 0"),
    "times": (GOOD + "times = [3, 2]", "experiments[0]: times must be whole numbers that rise"),
    "a title": ("title = 3" + GOOD, "title must be text, got 3"),
    "experiments that are no tables": (
        "experiments = 3",
        "experiments: must be a list of tables, written [[experiments]]",
    ),
    "defaults that are no table": ("defaults = 3" + GOOD, "defaults: must be a table, got 3"),
    "coverage out of order": (
        "[[coverage]]\nmeans = [0.5]\nstep_sizes = [0.1]\nobservations = [3, 1]",
        "coverage[0]: observations must rise",
    ),
    "nothing to run": ("title = 'x'", "there must be something to run"),
    "no TOML": ("title = ", "Invalid value"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_a_wrong_spec_is_refused_with_the_file_the_key_and_the_nearest_name(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)) as caught:
        loads(text, file="folder/my.toml")
    assert str(caught.value).startswith("folder/my.toml: ")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"cannot read .*none\.toml: No such file"):
        load(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match=r"binary\.toml: must be TOML in UTF-8"):
        load(tmp_path / "binary.toml")


def test_the_figure_of_a_file_is_its_name_made_safe(tmp_path: Path) -> None:
    path = tmp_path / "my runs (2).toml"
    path.write_text(GOOD, encoding="utf-8")
    assert load(path).figures == ("my-runs-2",)
