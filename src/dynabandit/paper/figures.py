"""The paper's figures in its order, and those of two variants that the paper does not have."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from dynabandit.paper import lookup
from dynabandit.paper.lookup import FIELD, FLOORED, case, key, name, present, title
from dynabandit.report import panels
from dynabandit.report.figures import Block, Figure, coverage, stacked
from dynabandit.report.panels import Intervals, Row, Series
from dynabandit.report.style import style, variant
from dynabandit.results import Results, Run
from dynabandit.stats import bootstrap

__all__ = ["IDS", "make_figures"]

ORDER = (
    "eps-greedy", "aff-d-greedy", "ucb", "aff-ucb1", "aff-ucb2", "d-ucb", "sw-ucb",
    "ts", "aff-ts", "ots", "aff-ots",
)  # fmt: skip
CHANGES = (3000.0, 5000.0)
ABRUPT = (1, 2)
IDS = (
    "small-changes", "sample-paths-case-1", "sample-paths-case-2", "two-arms-abrupt", "sample-paths-case-3",
    "sample-paths-case-4", "two-arms-drift", "many-arms-case-1", "many-arms-case-2", "many-arms-case-3",
    "many-arms-case-4", "step-size-greedy", "step-size-ucb", "step-size-thompson", "discount-window", "memory",
    "bounds", "aff-ucb2-growing", "aff-ucb1-floor",
)  # fmt: skip
"""A figure keeps its number when only some are drawn."""
SYMBOLS = {"step_size": "η", "discount": "λ", "window": "W", "memory": "C"}


def make_figures(results: Results) -> list[Figure]:
    """Return the paper's figures and those of the variants, as far as their experiments were run."""
    makers: tuple[Callable[[Results], Iterator[Figure]], ...] = (
        small_changes, sample_paths_abrupt, two_arms_abrupt, sample_paths_drift, two_arms_drift, many_arms,
        step_size, discount_window, memory, bounds, growing, floor,
    )  # fmt: skip
    found = (figure for make in makers for figure in _complete(make, results) if figure.blocks)
    return [replace(figure, number=IDS.index(figure.id) + 1) for figure in found]


def _complete(make: Callable[[Results], Iterator[Figure]], results: Results) -> list[Figure]:
    try:
        return list(make(results))
    except lookup.Missing:
        return []  # the report says for each claim what is missing


def field(results: Results, experiment: str, policies: Sequence[str] = ORDER) -> list[Series]:
    """Return the paper's policies; the legend says that the epsilon of eps-greedy was chosen with hindsight."""
    runs = lookup.series(results, experiment)
    return [named(runs[policy], policy) for policy in policies if policy in runs]


def named(run: Run, policy: str) -> Series:
    if policy != "eps-greedy":
        return Series(run, name(policy), style(policy))
    epsilon = f"ε = {run.parameters['epsilon']:g}"
    whole = f"{name(policy)} (best {epsilon}, by hindsight)"
    return Series(run, whole, style(policy), short=f"{name(policy)} ({epsilon})")


def compared(results: Results, experiment: str, heading: str) -> Block:
    """Return the paper's policies in one experiment."""
    return stacked(heading, field(results, experiment))


def replications(results: Results, *experiments: str) -> str:
    counts = {run.replications for run in results if run.experiment in experiments}
    return f"{max(counts, default=0):,} replication{'' if counts == {1} else 's'}"


def caption(results: Results, *experiments: str) -> str:
    return (
        f"Mean cumulative regret over {replications(results, *experiments)} with 95 % bands, and total regret: "
        "box from quartile to quartile with the median, whiskers to the last point within 1.5 quartile ranges, "
        "the mean as a diamond or a dashed line. Dashed and hollow: standard; solid and filled: adaptive."
    )


def small_changes(results: Results) -> Iterator[Figure]:
    experiment = "small-changes"
    if not present(results, experiment):
        return
    block = compared(results, experiment, "Few changes")
    share = panels.shares("Share of correct selections", field(results, experiment), CHANGES)
    blocks = [block, Block("Share of correct selections", (share,))]
    truth = [path for path in results.paths if path.environment == experiment]
    if truth:
        blocks.insert(0, Block("Mean rewards", (panels.paths("Mean rewards", truth[0], steps=True),)))
    text = caption(results, experiment) + " The shares are averaged over 50 steps."
    wide = (0, 2) if truth else (1,)
    yield Figure(experiment, "A small number of changes", text, tuple(blocks), wide=wide, experiments=(experiment,))


def sample_paths(results: Results, number: int) -> Iterator[Figure]:
    found = [path for path in results.paths if path.environment == f"case-{number}"]
    blocks = tuple(
        Block(f"Path {index}", (panels.paths(f"Case {number}, path {index}", path, steps=number in ABRUPT),))
        for index, path in enumerate(found, start=1)
    )
    text = f"Mean reward of both arms on the paths of the first {len(found)} replications."
    yield Figure(f"sample-paths-case-{number}", f"Case {number}: sample paths", text, blocks, columns=3)


def sample_paths_abrupt(results: Results) -> Iterator[Figure]:
    for number in ABRUPT:
        yield from sample_paths(results, number)


def sample_paths_drift(results: Results) -> Iterator[Figure]:
    for number in (3, 4):
        yield from sample_paths(results, number)


def two_arms(results: Results, identity: str, heading: str, numbers: Sequence[int]) -> Iterator[Figure]:
    found = [number for number in numbers if present(results, case(number, 2))]
    blocks = tuple(compared(results, case(number, 2), f"Case {number}") for number in found)
    experiments = tuple(case(number, 2) for number in found)
    yield Figure(identity, heading, caption(results, *experiments), blocks, experiments=experiments)


def two_arms_abrupt(results: Results) -> Iterator[Figure]:
    yield from two_arms(results, "two-arms-abrupt", "Two arms, abrupt changes", ABRUPT)


def two_arms_drift(results: Results) -> Iterator[Figure]:
    yield from two_arms(results, "two-arms-drift", "Two arms, drift", (3, 4))


def many_arms(results: Results) -> Iterator[Figure]:
    for number in lookup.CASES:
        found = [arms for arms in lookup.MANY if present(results, case(number, arms))]
        blocks = tuple(compared(results, case(number, arms), f"{arms} arms") for arms in found)
        experiments = tuple(case(number, arms) for arms in found)
        text = caption(results, *experiments)
        heading = f"Case {number} with many arms"
        yield Figure(f"many-arms-case-{number}", heading, text, blocks, experiments=experiments)


def settings(results: Results, experiment: str, policy: str, parameter: str, values: Sequence[Any]) -> Block:
    """Return one policy at several values of a parameter."""
    series = []
    for index, value in enumerate(values):
        run = lookup.setting(results, experiment, policy, parameter, value)
        series.append(Series(run, setting_name(parameter, value), variant(policy, index, len(values))))
    return stacked(f"{name(policy)}, {run.arms} arms", series)


def setting_name(parameter: str, value: object) -> str:
    symbol = SYMBOLS[parameter]
    if value == "variance-scaled":
        return f"{symbol} = 0.0001 / s²"
    return f"{symbol} tuned to the path" if value is None else f"{symbol} = {value}"


def sensitivity(
    results: Results, stem: str, policies: Sequence[tuple[str, str, Sequence[Any]]], identity: str, heading: str
) -> Iterator[Figure]:
    """Return a figure of some policies over the values of their parameters, with 2, 50 and 100 arms."""
    experiments = [f"{stem}-arms-{arms}" for arms in lookup.ARMS]
    found = [experiment for experiment in experiments if present(results, experiment)]
    blocks = tuple(settings(results, one, *policy) for policy in policies for one in found)
    count = replications(results, *found)
    text = f"Case 3, {count}; cumulative regret with 95 % bands, and boxes of total regret."
    yield Figure(identity, heading, text, blocks, columns=len(found) or 1)


def step_size(results: Results) -> Iterator[Figure]:
    for identity, policies in (
        ("greedy", ("aff-d-greedy",)),
        ("ucb", ("aff-ucb1", "aff-ucb2")),
        ("thompson", ("aff-ts", "aff-ots")),
    ):
        chosen = [(policy, "step_size", lookup.STEP_SIZES) for policy in policies]
        heading = f"Step sizes: {' and '.join(name(policy) for policy in policies)}"
        yield from sensitivity(results, "step-size", chosen, f"step-size-{identity}", heading)


def discount_window(results: Results) -> Iterator[Figure]:
    chosen = [("d-ucb", "discount", lookup.DISCOUNTS), ("sw-ucb", "window", lookup.WINDOWS)]
    yield from sensitivity(results, "discount-window", chosen, "discount-window", "D-UCB and SW-UCB")


def memory(results: Results) -> Iterator[Figure]:
    if not present(results, "memory"):
        return
    series = []
    for policy in ("dts", "aff-dts1", "aff-dts2"):
        for value in lookup.MEMORIES:
            run = lookup.setting(results, "memory", policy, "memory", value)
            series.append(Series(run, f"{name(policy)}, C = {value}", style(policy)))
    series += [named(run, key(run)) for run in results.select(experiment="memory", policy="aff-ots")]
    text = f"Case 1 with two arms, {replications(results, 'memory')}; AFF-OTS, which has no C, for comparison."
    block = Block("Total regret", (panels.totals("Case 1, 2 arms: total regret", series),))
    yield Figure("memory", "Dynamic Thompson sampling and its memory C", text, (block,), columns=1)


def bounds(results: Results) -> Iterator[Figure]:
    if results.coverage:
        yield replace(coverage(results), title="The bounds of the appendix")


def ratios(results: Results, one: str, two: str) -> Block:
    """Return the paired ratios of two policies in every experiment that has both."""
    rows = []
    for experiment in FIELD:
        if present(results, experiment):
            runs = lookup.series(results, experiment)
            if one in runs and two in runs:
                estimate = bootstrap.ratio(runs[one].total_regret, runs[two].total_regret)
                rows.append(Row(title(experiment).capitalize(), style(one), estimate))
    heading = f"{name(one)} over {name(two)}"
    return Block(heading, (Intervals(heading, "ratio of mean total regret", tuple(rows)),) if rows else ())


def beyond(
    results: Results, one: str, two: str, policies: Sequence[str], experiments: Sequence[str]
) -> tuple[Block, ...]:
    """Return regret of a few policies in some experiments, and the ratio of two in all."""
    blocks = []
    for experiment in experiments:
        if present(results, experiment) and one in lookup.series(results, experiment):
            heading = title(experiment).capitalize()
            blocks.append(Block(heading, (panels.regret(heading, field(results, experiment, policies)),)))
    last = ratios(results, one, two)
    return (*blocks, last) if last.panels else ()


def growing(results: Results) -> Iterator[Figure]:
    policies = ("ucb", "aff-ucb2", "aff-ucb2-growing")
    blocks = beyond(results, "aff-ucb2-growing", "aff-ucb2", policies, ("small-changes", case(1, 2), case(1, 50)))
    text = "Left of 1 the growing bonus has less regret than the printed one; paired over replications, 95 %."
    yield Figure("aff-ucb2-growing", "AFF-UCB2 as printed and with a bonus that grows", text, blocks)


def floor(results: Results) -> Iterator[Figure]:
    policies = ("ucb", "aff-ucb1", FLOORED)
    blocks = beyond(results, FLOORED, "aff-ucb1", policies, (case(1, 2), case(3, 2), case(1, 50)))
    text = "Left of 1 the variance floor of 0.05 saves regret; paired over replications, 95 %."
    yield Figure("aff-ucb1-floor", "AFF-UCB1 as printed and with a variance floor", text, blocks)
