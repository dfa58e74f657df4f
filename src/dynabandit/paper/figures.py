"""The figures of two variants that the paper does not have, and the paper's figures in its order."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dynabandit.paper import lookup
from dynabandit.paper.lookup import FLOORED, case_id, experiment_title, policy_key, policy_name, was_run
from dynabandit.paper.variants import compare_variants
from dynabandit.report import panels
from dynabandit.report.figures import Figure, PanelBlock, coverage, stacked
from dynabandit.report.panels import CurveGroup, Intervals, Row, Series
from dynabandit.report.style import other_style, style
from dynabandit.results import Results, Run

GROUPS = {
    "Greedy and Thompson sampling": ("eps-greedy", "aff-d-greedy", "ts", "aff-ts", "ots", "aff-ots"),
    "UCB": ("ucb", "aff-ucb1", "aff-ucb2", "d-ucb", "sw-ucb"),
}
"""The policies whose curves are shown together; the paper discusses those of UCB among themselves."""
ORDER = tuple(policy for policies in GROUPS.values() for policy in policies)
CHANGES = (3000.0, 5000.0)
ABRUPT, DRIFT = (1, 2), (3, 4)
SYMBOLS = {"step_size": "η", "discount": "λ", "window": "W", "memory": "C"}


def make_figures(results: Results) -> list[Figure]:
    """Return the figures of the report in its order, as far as their experiments were run."""
    figures = []
    for number, (identity, make) in enumerate(FIGURES.items(), start=1):
        try:
            figure = make(results)
        except lookup.MissingResultError:
            continue  # the report says for each claim what is missing
        if figure.blocks:
            figures.append(replace(figure, id=identity, number=number))
    return figures


def _compared(results: Results, experiment: str, policies: Sequence[str] = ORDER) -> list[Series]:
    runs = lookup.runs_by_policy(results, experiment)
    return [_named(runs[policy], policy) for policy in policies if policy in runs]


def _groups(results: Results, experiment: str) -> tuple[CurveGroup, ...]:
    groups = (
        CurveGroup(title, tuple(series.name for series in _compared(results, experiment, policies)))
        for title, policies in GROUPS.items()
    )
    return tuple(group for group in groups if group.names)


def _named(run: Run, policy: str) -> Series:
    if policy != "eps-greedy":
        return Series(run, policy_name(policy), style(policy))
    epsilon = f"ε = {run.parameters['epsilon']:g}"
    legend = f"{policy_name(policy)} (best {epsilon}, in hindsight)"
    return Series(run, legend, style(policy), short=f"{policy_name(policy)} ({epsilon})")


def _replications(results: Results, *experiments: str) -> str:
    counts = {run.replications for run in results if run.experiment in experiments}
    return f"{max(counts, default=0):,} replication{'' if counts == {1} else 's'}"


def _caption(results: Results, *experiments: str) -> str:
    return (
        f"Mean cumulative regret over {_replications(results, *experiments)} with 95 % bands, and total regret: "
        "boxes from the first to the third quartile with the median, whiskers to the last point within 1.5 quartile "
        "ranges, the mean as a diamond or a dashed line. Dashed and hollow: standard; solid and filled: adaptive."
    )


def small_changes(results: Results) -> Figure:
    """Regret, total regret and share of correct selections with two changes."""
    experiment = "small-changes"
    series = _compared(results, experiment)
    groups = _groups(results, experiment)
    share = panels.shares("Share of correct selections", series, groups, CHANGES)
    blocks = [stacked("Few changes", series, groups), PanelBlock("Share of correct selections", (share,))]
    means = [path for path in results.paths if path.environment == experiment]
    if means:
        blocks.insert(0, PanelBlock("Mean rewards", (panels.paths("Mean rewards", means[0], steps=True),)))
    text = _caption(results, experiment) + " The shares, with 95 % bands, are averages over 50 steps."
    title = "A small number of changes"
    return Figure("", title, text, tuple(blocks), columns=1, by_row=True, experiments=(experiment,))


def sample_paths(results: Results, number: int) -> Figure:
    """Mean rewards of a case in a few replications."""
    paths = [path for path in results.paths if path.environment == f"case-{number}"]
    blocks = tuple(
        PanelBlock(f"Path {index}", (panels.paths(f"Case {number}, path {index}", path, steps=number in ABRUPT),))
        for index, path in enumerate(paths, start=1)
    )
    text = f"Mean reward of both arms in the first {len(paths)} replications."
    return Figure("", f"Case {number}: sample paths", text, blocks, columns=3)


def comparison(results: Results, title: str, cases: dict[str, str]) -> Figure:
    """All policies in some experiments, given with the titles of their blocks."""
    shown = tuple(experiment for experiment in cases if was_run(results, experiment))
    blocks = tuple(
        stacked(cases[experiment], _compared(results, experiment), _groups(results, experiment)) for experiment in shown
    )
    return Figure("", title, _caption(results, *shown), blocks, by_row=True, experiments=shown)


def sensitivity(results: Results, title: str, stem: str, parameters: dict[str, tuple[str, Sequence[Any]]]) -> Figure:
    """Some policies over the values of a parameter, with 2, 50 and 100 arms."""
    experiments = [f"{stem}-arms-{arms}" for arms in lookup.ARMS]
    shown = [experiment for experiment in experiments if was_run(results, experiment)]
    blocks = tuple(
        _settings(results, experiment, policy, *choices)
        for policy, choices in parameters.items()
        for experiment in shown
    )
    text = f"Case 3, {_replications(results, *shown)}; cumulative regret with 95 % bands, and boxes of total regret."
    return Figure("", title, text, blocks, columns=len(shown) or 1)


def _settings(results: Results, experiment: str, policy: str, parameter: str, values: Sequence[Any]) -> PanelBlock:
    series = []
    for index, value in enumerate(values):
        run = lookup.run_at(results, experiment, policy, parameter, value)
        series.append(Series(run, _setting_name(parameter, value), other_style(index)))
    return stacked(f"{policy_name(policy)}, {run.arms} arms", series)


def _setting_name(parameter: str, value: object) -> str:
    symbol = SYMBOLS[parameter]
    if value == "variance-scaled":
        return f"{symbol} = 0.0001 / s²"
    return f"{symbol} tuned to the path" if value is None else f"{symbol} = {value}"


def step_sizes(results: Results, *policies: str) -> Figure:
    """Some policies over their step sizes."""
    title = f"Step sizes: {' and '.join(policy_name(policy) for policy in policies)}"
    return sensitivity(results, title, "step-size", dict.fromkeys(policies, ("step_size", lookup.STEP_SIZES)))


def memory(results: Results) -> Figure:
    """Dynamic Thompson sampling over its memory."""
    series = []
    for policy in ("dts", "aff-dts1", "aff-dts2"):
        for value in lookup.MEMORIES:
            run = lookup.run_at(results, "memory", policy, "memory", value)
            series.append(Series(run, f"{policy_name(policy)}, C = {value}", style(policy)))
    series += [_named(run, policy_key(run)) for run in results.select(experiment="memory", policy="aff-ots")]
    text = f"Case 1 with two arms, {_replications(results, 'memory')}; AFF-OTS, which has no C, for comparison."
    block = PanelBlock("Total regret", (panels.totals("Case 1, 2 arms: total regret", series),))
    return Figure("", "Dynamic Thompson sampling and its memory C", text, (block,), columns=1)


def bounds(results: Results) -> Figure:
    """How often the bound of the appendix is exceeded."""
    return replace(coverage(results), title="The bounds of the appendix")


def variants(results: Results, title: str, text: str, pair: tuple[str, str], experiments: Sequence[str]) -> Figure:
    """The regret of a policy and its variant in some experiments, and the ratio of their regrets in all."""
    before, after = pair
    blocks = []
    for experiment in experiments:
        if was_run(results, experiment) and after in lookup.runs_by_policy(results, experiment):
            heading = experiment_title(experiment).capitalize()
            series = _compared(results, experiment, ("ucb", before, after))
            blocks.append(PanelBlock(heading, (panels.regret(heading, series),)))
    rows = tuple(
        Row(effect.experiment.capitalize(), style(after), effect.ratio)
        for effect in compare_variants(results, before, after)
    )
    heading = f"{policy_name(after)} over {policy_name(before)}"
    blocks.append(PanelBlock(heading, (Intervals(heading, "ratio of mean total regret", rows),)))
    return Figure("", title, text, tuple(blocks) if rows else ())


FIGURES: dict[str, Callable[[Results], Figure]] = {
    "aff-ucb2-growing": partial(
        variants,
        title="AFF-UCB2 as printed and with a bonus that grows",
        text="Left of 1 the growing bonus has less regret than the printed one; paired over replications, 95 %.",
        pair=("aff-ucb2", "aff-ucb2-growing"),
        experiments=("small-changes", case_id(1, 2), case_id(1, 50)),
    ),
    "aff-ucb1-floor": partial(
        variants,
        title="AFF-UCB1 as printed and with a variance floor",
        text="Left of 1 the variance floor of 0.05 reduces regret; paired over replications, 95 %.",
        pair=("aff-ucb1", FLOORED),
        experiments=(case_id(1, 2), case_id(3, 2), case_id(1, 50)),
    ),
    "small-changes": small_changes,
    "sample-paths-case-1": partial(sample_paths, number=1),
    "sample-paths-case-2": partial(sample_paths, number=2),
    "two-arms-abrupt": partial(
        comparison, title="Two arms, abrupt changes", cases={case_id(case, 2): f"Case {case}" for case in ABRUPT}
    ),
    "sample-paths-case-3": partial(sample_paths, number=3),
    "sample-paths-case-4": partial(sample_paths, number=4),
    "two-arms-drift": partial(
        comparison, title="Two arms, drift", cases={case_id(case, 2): f"Case {case}" for case in DRIFT}
    ),
    **{
        f"many-arms-case-{number}": partial(
            comparison,
            title=f"Case {number} with many arms",
            cases={case_id(number, arms): f"{arms} arms" for arms in lookup.MANY},
        )
        for number in lookup.CASES
    },
    "step-size-greedy": lambda results: step_sizes(results, "aff-d-greedy"),
    "step-size-ucb": lambda results: step_sizes(results, "aff-ucb1", "aff-ucb2"),
    "step-size-thompson": lambda results: step_sizes(results, "aff-ts", "aff-ots"),
    "discount-window": partial(
        sensitivity,
        title="D-UCB and SW-UCB",
        stem="discount-window",
        parameters={"d-ucb": ("discount", lookup.DISCOUNTS), "sw-ucb": ("window", lookup.WINDOWS)},
    ),
    "memory": memory,
    "bounds": bounds,
}
"""A figure keeps its number when only some are drawn."""
