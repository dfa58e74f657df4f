"""The paper's experiments, as the text of the paper has them."""

from importlib.resources import files

from dynabandit.experiments import dumps, loads
from dynabandit.paper.specs import FIGURES, paper

STANDARD = [
    *(f"eps-greedy(epsilon={n / 10})" for n in range(2, 10)),
    "ucb", "ts", "ots", "d-ucb", "sw-ucb", "aff-d-greedy", "aff-ucb1", "aff-ucb2", "aff-ts", "aff-ots",
    "aff-ucb2-growing", "aff-ucb1(variance_floor=0.05)",
]  # fmt: skip
ETAS = ("(step_size=0.0001)", "", "(step_size=0.01)", "(step_size=variance-scaled)")
EXPERIMENTS = {experiment.id: experiment for experiment in paper().experiments}


def labels(identifier: str) -> list[str]:
    return [policy.label for policy in EXPERIMENTS[identifier].policies]


def test_every_file_is_a_figure_and_every_figure_a_file() -> None:
    names = {entry.name for entry in files("dynabandit.paper.specs").iterdir() if entry.name.endswith(".toml")}
    assert names == {f"{figure}.toml" for figure in FIGURES}
    assert set(paper().figures) == set(FIGURES)


def test_the_experiments_are_those_of_the_paper() -> None:
    cases = [f"case-{case}-arms-{arms}" for case in (1, 2, 3, 4) for arms in (2, 50, 100)]
    tuning = [f"{name}-arms-{arms}" for name in ("step-size", "discount-window") for arms in (2, 50, 100)]
    assert set(EXPERIMENTS) == {"small-changes", *cases, *tuning, "memory"}
    for experiment in EXPERIMENTS.values():
        assert (experiment.horizon, experiment.replications, experiment.seed) == (10_000, 100, 1)
        every = 10 if experiment.id == "small-changes" else 100
        assert experiment.recorded_times().tolist() == list(range(every, 10_001, every))


def test_cases_and_small_changes_run_all_policies_on_their_environment() -> None:
    for case in (1, 2, 3, 4):
        for arms in (2, 50, 100):
            name = f"case-{case}-arms-{arms}"
            env = EXPERIMENTS[name].environment
            assert (env.name, env.arms) == (f"case-{case}", arms)
            assert labels(name) == ["eps-greedy", *STANDARD]
    assert labels("small-changes") == ["eps-greedy", *STANDARD]


def test_robustness_is_tried_on_case_3_with_four_values_each() -> None:
    for arms in (2, 50, 100):
        for name in ("step-size", "discount-window"):
            env = EXPERIMENTS[f"{name}-arms-{arms}"].environment
            assert (env.name, env.arms) == ("case-3", arms)
        adaptive = ("aff-d-greedy", "aff-ucb1", "aff-ucb2", "aff-ts", "aff-ots")
        assert labels(f"step-size-arms-{arms}") == [policy + eta for policy in adaptive for eta in ETAS]
        assert labels(f"discount-window-arms-{arms}") == [
            "d-ucb", "d-ucb(discount=0.99)", "d-ucb(discount=0.8)", "d-ucb(discount=0.5)",
            "sw-ucb", "sw-ucb(window=10)", "sw-ucb(window=100)", "sw-ucb(window=1000)",
        ]  # fmt: skip


def test_the_memory_of_dynamic_thompson_sampling_is_tried_on_case_1() -> None:
    env = EXPERIMENTS["memory"].environment
    assert (env.name, env.arms) == ("case-1", 2)
    sizes = ("(memory=5)", "", "(memory=100)", "(memory=1000)")  # 10 is the default
    assert labels("memory") == [name + c for name in ("dts", "aff-dts1", "aff-dts2") for c in sizes] + ["aff-ots"]


def test_sample_paths_and_coverage_are_there() -> None:
    paths = [(one.environment.name, one.replications) for one in paper().sample_paths]
    assert sorted(paths) == [*((f"case-{case}", 3) for case in (1, 2, 3, 4)), ("small-changes", 1)]
    (coverage,) = paper().coverage
    assert coverage.means == (0.1, 0.3, 0.5, 0.7, 0.9)
    assert coverage.step_sizes == (0.001, 0.01)
    assert (coverage.observations, coverage.streams) == ((10, 100, 1000), 20_000)


def test_the_paper_survives_toml() -> None:
    assert loads(dumps(paper())) == paper()
