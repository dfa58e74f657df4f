"""The standings of the leaderboard: regret relative to the best policy, and ranks, over families of environments."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynabandit.extras import import_extra
from dynabandit.leaderboard.board import ORACLE, PRACTICAL, TUNED, Board, BoardEntry, least_regret
from dynabandit.stats.bootstrap import RESAMPLES, SEED
from dynabandit.stats.intervals import LEVEL, UNKNOWN, Estimate

LEAST = 1e-9  # regret; smaller numbers count as this
HEADINGS = (
    "policy", "regret, times the best", "95 % interval", "worst", "worst environment", "mean rank", "95 % interval",
    "steps to detect a change", "µs per step", "replications", "settings",
)  # fmt: skip


@dataclass(frozen=True)
class Standing:
    """The row of one policy."""

    policy: str
    form: str
    settings: str
    ratio: Estimate
    """Its regret divided by the least of any practical policy: a geometric mean, each family counted once."""
    worst: float
    """The largest of these ratios over all environments."""
    worst_in: str
    """The environment of the largest ratio."""
    rank: Estimate
    """Mean rank over families, 1 for the least regret; NaN if it is not ranked."""
    replications: int
    """The least number of replications in an environment."""
    delay: float | None = None
    """Steps until half of the plays go to an arm that has become the best; None if never, NaN if not measured."""
    microseconds: float = math.nan
    """Time per step on one core with ten arms; NaN if it was not measured."""


Rows = dict[tuple[str, str], dict[str, BoardEntry]]  # the entries of a policy and form, by environment


@dataclass(frozen=True)
class _Grid:
    """The mean regret of groups of replications."""

    keys: list[tuple[str, str]]
    blocks: np.ndarray  # (rows, environments, groups)
    best: np.ndarray  # the row of the best practical policy in each environment
    family: np.ndarray  # the number of the family of each environment
    ranked: np.ndarray  # the rows that are ranked

    @property
    def families(self) -> int:
        return int(self.family.max()) + 1


def standings(board: Board) -> list[Standing]:
    """Return the rows of all policies that ran in all environments of the board, the smallest ratio first.

    Oracle policies come last; they are not ranked, and the other rows do not depend on them.
    """
    practical, oracles = _complete(board, PRACTICAL), _complete(board, ORACLE)
    rows = _rows(board, practical | oracles, practical) if practical else []
    return sorted(rows, key=lambda row: (row.form == ORACLE, row.ratio.value))


def tuned_standings(board: Board) -> list[Standing]:
    """Return the rows of policies tuned with the truth: in each environment the best form in hindsight.

    The regret is divided by that of the best practical policy, as in the main table; a ratio may be less than 1.
    """
    practical = _complete(board, PRACTICAL)
    forms = [
        entry
        for entry in sorted(board.entries, key=lambda entry: entry.key)
        if entry.form != ORACLE and entry.trial in practical.get((entry.policy, PRACTICAL), {})
    ]
    policies = {entry.policy for entry in forms if entry.form == TUNED}
    tuned: Rows = {}
    for (policy, trial), entry in least_regret(entry for entry in forms if entry.policy in policies).items():
        tuned.setdefault((policy, TUNED), {})[trial] = entry
    rows = _rows(board, practical | tuned, practical) if tuned else []
    return sorted((row for row in rows if row.form == TUNED), key=lambda row: row.ratio.value)


def common_trials(board: Board) -> list[str]:
    """Return the environments in which most policies ran; others, of an interrupted run, do not count."""
    counts = Counter(entry.trial for entry in board.entries if entry.form == PRACTICAL)
    most = max(counts.values(), default=0)
    return [trial for trial in board.trials if 2 * counts[trial] > most]


def incomplete(board: Board) -> list[str]:
    """Return the policies that did not run in all of the common environments: they have no row."""
    known = {entry.policy for entry in board.entries if entry.form != TUNED}
    return sorted(known - {policy for form in (PRACTICAL, ORACLE) for policy, _ in _complete(board, form)})


def _complete(board: Board, form: str) -> Rows:
    """Return the entries of one form of the policies that ran in all common environments."""
    rows: Rows = {}
    trials = set(common_trials(board))
    for entry in sorted(board.entries, key=lambda entry: entry.key):  # the bootstrap depends on the order
        if entry.form == form and entry.trial in trials:
            rows.setdefault((entry.policy, form), {})[entry.trial] = entry
    return {key: by_trial for key, by_trial in rows.items() if by_trial.keys() == trials}


def _grid(board: Board, entries: Rows, ranked: Rows, trials: Sequence[str]) -> _Grid:
    groups = max(len(entry.blocks) for by_trial in entries.values() for entry in by_trial.values())
    keys = list(entries)
    rows = np.array([keys.index(key) for key in ranked])
    means = np.array([[by_trial[trial].mean for trial in trials] for by_trial in entries.values()])
    families = [board.trials[trial]["family"] for trial in trials]
    return _Grid(
        keys=keys,
        blocks=np.array([[_regrouped(by_trial[trial], groups) for trial in trials] for by_trial in entries.values()]),
        best=rows[means[rows].argmin(axis=0)],
        family=np.unique(families, return_inverse=True)[1],
        ranked=rows,
    )


def _regrouped(entry: BoardEntry, groups: int) -> np.ndarray:
    """Return the means of `groups` groups of replications, some of them twice if there are fewer.

    They are scaled so that their mean is that of all replications, whatever the sizes of the groups.
    """
    means = np.resize(np.array(entry.blocks), groups)
    return means * (entry.mean / means.mean()) if means.mean() > LEAST else np.full(groups, entry.mean)


def _rows(board: Board, entries: Rows, ranked: Rows) -> list[Standing]:
    trials = list(next(iter(ranked.values())))
    grid = _grid(board, entries, ranked, trials)
    logs = _log_ratios(grid.blocks.mean(axis=2), grid.best)
    ratios, ranks = _with_intervals(grid, logs)
    rows = []
    for index, ((policy, form), by_trial) in enumerate(entries.items()):
        place = int(logs[index].argmax())
        rows.append(
            Standing(
                policy=policy, form=form, settings="" if form == TUNED else by_trial[trials[0]].settings,
                ratio=ratios[index], worst=math.exp(logs[index, place]), worst_in=trials[place],
                rank=ranks.get((policy, form), UNKNOWN),
                replications=min(entry.replications for entry in by_trial.values()),
                delay=board.delays.get(policy, math.nan), microseconds=board.microseconds.get(policy, math.nan),
            )
        )  # fmt: skip
    return rows


def _log_ratios(regret: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Return the logarithm of the ratio to the best policy, for an array (rows, environments)."""
    logs = np.log(np.maximum(regret, LEAST))
    return np.asarray(logs - logs[best, np.arange(len(best))])


def _with_intervals(grid: _Grid, logs: np.ndarray) -> tuple[list[Estimate], dict[tuple[str, str], Estimate]]:
    """Return the ratio of every row and the mean rank of the ranked ones, with intervals.

    The bootstrap resamples families, and in each environment groups of replications, the same ones for all policies.
    The best policy of each environment is chosen once, before resampling.
    """
    rankdata = import_extra("scipy.stats", "lab").rankdata
    average = np.equal.outer(np.arange(grid.families), grid.family).astype(float)
    average /= average.sum(axis=1, keepdims=True)  # (families, environments)

    def over_families(of_environments: np.ndarray, picked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        by_family = of_environments @ average.T
        ranks = rankdata(by_family[grid.ranked].round(12), axis=0)  # equal up to rounding errors: a tie
        return np.exp(by_family[:, picked].mean(axis=1)), ranks[:, picked].mean(axis=1)

    random = np.random.default_rng(SEED)
    _, environments, groups = grid.blocks.shape
    one_draw = np.full(groups, 1.0 / groups)
    resampled = []
    for _ in range(RESAMPLES):
        weights = random.multinomial(groups, one_draw, size=environments) / groups
        regret = (grid.blocks * weights).sum(axis=2)
        picked = random.integers(grid.families, size=grid.families)
        resampled.append(over_families(_log_ratios(regret, grid.best), picked))
    limits = [
        _estimates(values, np.array(samples))
        for values, samples in zip(
            over_families(logs, np.arange(grid.families)), zip(*resampled, strict=True), strict=True
        )
    ]
    return limits[0], dict(zip((grid.keys[row] for row in grid.ranked), limits[1], strict=True))


def _estimates(values: np.ndarray, samples: np.ndarray) -> list[Estimate]:
    """Return values with the percentile intervals of their bootstrap samples."""
    low, high = np.quantile(samples, (0.5 - LEVEL / 2.0, 0.5 + LEVEL / 2.0), axis=0)
    return [Estimate(*map(float, numbers)) for numbers in zip(values, low, high, strict=True)]


def cells(row: Standing) -> list[str]:
    """Return a row as text, one cell for each of `HEADINGS`."""
    ranked = not math.isnan(row.rank.value)
    return [
        row.policy, _number(row.ratio.value), f"{row.ratio.low:.2f} to {row.ratio.high:.2f}", _number(row.worst),
        row.worst_in, f"{row.rank.value:.1f}" if ranked else row.form,
        f"{row.rank.low:.1f} to {row.rank.high:.1f}" if ranked else "",
        "never" if row.delay is None else _number(row.delay, 0), _number(row.microseconds), f"{row.replications:,}",
        row.settings,
    ]  # fmt: skip


def as_markdown(board: Board) -> str:
    """Return both tables as Markdown."""
    rows, tuned = standings(board), tuned_standings(board)
    if not rows:
        return "No policy has run in all environments yet.\n"
    practical = sum(row.form == PRACTICAL for row in rows)
    trials = common_trials(board)
    families = {board.trials[trial]["family"] for trial in trials}
    note = f"{practical} policies in {len(trials)} environments of {len(families)} families."
    if left_out := [trial for trial in board.trials if trial not in trials]:
        note += f" Left out, because few policies have run in them: {', '.join(left_out)}."
    if missing := incomplete(board):
        note += f" Without a row, because they have not run in all environments: {', '.join(missing)}."
    lines = [note, "", *_table(HEADINGS, [cells(row) for row in rows])]
    if tuned:
        shown = (0, 1, 2, 3, 4, 9)
        lines += ["", "Tuned with the truth, for comparison only:", ""]
        lines += _table([HEADINGS[i] for i in shown], [[cells(row)[i] for i in shown] for row in tuned])
    return "\n".join([*lines, ""])


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(headings)} |", f"|---|{'--:|' * (len(headings) - 1)}"]
    for policy, *others in rows:
        lines.append(f"| {' | '.join([f'`{policy}`', *others])} |")
    return lines


def _number(value: float, digits: int = 2) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"
