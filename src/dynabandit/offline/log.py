"""Logs of past decisions: which arm was chosen at each row, and its reward."""

import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.context import Context, empty_features
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.environments import RewardLaw, reward_law
from dynabandit.features import FeatureEncoder
from dynabandit.offline.contexts import fixed_by_first_row, read_contexts, with_values_of_contexts
from dynabandit.offline.propensity_checks import doubt_of_equal_chances, doubt_of_propensities
from dynabandit.offline.readers import Memory, Source, open_file
from dynabandit.offline.rows import CONTEXT, BadRows, Columns, Parsed, parse
from dynabandit.policies import Policy, resolved
from dynabandit.validation import RewardDomain, integer

MOST_ARMS = 10_000
PROPENSITY = "propensity"  # the column that the service exports
EQUAL = 1.001  # propensities whose ratio is below this are equal but for rounding

Features = FeatureEncoder | Mapping[str, Any] | Iterable[str] | None


class Logged(NamedTuple):
    """Some rows of a log: the column of each arm in `Log.arms`, its reward, its propensity and its features."""

    arms: np.ndarray
    rewards: np.ndarray
    propensities: np.ndarray
    features: np.ndarray  # (rows, 1, dimension), or one number without features


class Log:
    """A log in time order, which is read once to check it and again for each replay, in batches.

    `read` returns one from a file, `from_columns` from memory.

    Examples
    --------
    >>> from dynabandit import offline
    >>> log = offline.from_columns({"arm": ["a", "b", "a"], "reward": [1, 0, 0]})
    >>> log.rows, log.arms, log.plays.tolist(), log.rewards.tolist()
    (3, ('a', 'b'), [2, 1], [1.0, 0.0])
    """

    def __init__(
        self, source: Source, columns: Columns, *, skip_bad: bool = False, features: FeatureEncoder | None = None
    ) -> None:
        named = [name for _, name in columns.named()]
        if columns.propensity is None and PROPENSITY not in named and PROPENSITY in source.header():
            columns = dataclasses.replace(columns, propensity=PROPENSITY)
        self._source, self._columns = source, columns
        self.features = features
        """How the features of a row are encoded; None without features."""
        self.bad = BadRows()
        """The skipped rows: their count, and the first few."""
        self.rows = 0
        """Number of usable rows."""
        self._survey()
        total = self.rows + self.bad.count
        if self.bad.count and not skip_bad:
            raise ValueError(
                f"{source.name}: {self.bad.count} of {total} rows cannot be used "
                f"(--skip-bad or skip_bad=True leaves them out):\n{self.bad}"
            )
        if total == 0:
            raise ValueError(f"{source.name} must have rows below the names of its columns, got none")
        if len(self.arms) < 2:
            raise ValueError(
                f"{source.name}, column {columns.arm!r}: a log must have at least 2 different arms, "
                f"got {', '.join(map(repr, self.arms)) or 'none'} in {self.rows} usable rows"
            )
        integer("the number of rows", self.rows, 1, LARGEST_STEP)

    def _survey(self) -> None:
        found: dict[str, int] = {}
        counts, totals = np.zeros(MOST_ARMS, dtype=np.int64), np.zeros(MOST_ARMS)
        self.least_propensity, self.largest_propensity, self.inverse_propensities = math.inf, 0.0, 0.0
        self.first_time, self.last_time = math.nan, -math.inf
        for parsed in self._parsed(self.bad):
            codes = self._coded(parsed.arm, found)
            counts += np.bincount(codes, minlength=MOST_ARMS)
            totals += np.bincount(codes, parsed.reward, minlength=MOST_ARMS)
            if parsed.propensity is not None:
                self.least_propensity = min(self.least_propensity, float(parsed.propensity.min()))
                self.largest_propensity = max(self.largest_propensity, float(parsed.propensity.max()))
                self.inverse_propensities += float((1.0 / parsed.propensity).sum())
            if parsed.time is not None:
                self.first_time = float(parsed.time[0]) if self.rows == 0 else self.first_time
                self.last_time = float(parsed.time[-1])
            self.rows += len(codes)
        names = sorted(found, key=_natural)
        order = np.array([found[name] for name in names], dtype=np.int64)
        self.arms: tuple[str, ...] = tuple(names)
        """Names of the arms, sorted."""
        self.plays = counts[order]
        """Number of rows of each arm."""
        self.rewards = totals[order]
        """Sum of the rewards of each arm."""
        if self._columns.propensity is None:
            self.least_propensity = self.largest_propensity = 1.0 / max(len(names), 1)

    def _coded(self, names: list[str], found: dict[str, int]) -> np.ndarray:
        for name in names:
            if name not in found and len(found) == MOST_ARMS:
                raise ValueError(
                    f"{self.name}, column {self._columns.arm!r}: a log must have at most {MOST_ARMS} different arms, "
                    f"got {name!r} as one more; is it the right column?"
                )
            found.setdefault(name, len(found))
        return np.array([found[name] for name in names], dtype=np.int64)

    def _parsed(self, bad: BadRows) -> Iterator[Parsed]:
        latest, read = -math.inf, None
        for rows in self._source.read(self._columns):
            raw = with_values_of_contexts(rows, self._columns.features_in_contexts, self.name)
            if self.features is not None:
                self.features = fixed_by_first_row(self.features, raw)
                read = functools.partial(read_contexts, self.features)
            parsed, wrong = parse(raw, self._columns, latest, read)
            bad.add(wrong)
            if len(parsed.arm):
                latest = latest if parsed.time is None else float(parsed.time[-1])
                yield parsed

    def chunks(self) -> Iterator[Logged]:
        """Yield all usable rows in batches, encoded for a replay."""
        columns = {name: column for column, name in enumerate(self.arms)}
        encoder = None if self.features is None else self.features.copy()
        for parsed in self.parsed():
            arms = np.array([columns[name] for name in parsed.arm], dtype=np.int64)
            propensities = np.full(len(arms), 1.0 / len(self.arms))
            if parsed.propensity is not None:
                propensities = parsed.propensity
            features = empty_features(None, 1, 1) if encoder is None else _encoded(encoder, parsed.contexts)
            yield Logged(arms, parsed.reward, propensities, features)

    def parsed(self) -> Iterator[Parsed]:
        """Yield all usable rows in batches, with the names of arms and the contexts of the file."""
        known, left = set(self.arms), self.rows
        for found in self._parsed(BadRows()):
            rows = found.first_rows(left)
            for name in rows.arm:
                if name not in known:
                    raise ValueError(f"{self.name} changed while it was read: it has a new arm {name!r}")
            yield rows
            left -= len(rows.arm)
            if left == 0:  # the file may have grown since
                return
        raise ValueError(f"{self.name} changed while it was read: it lost {left} of {self.rows} rows")

    @property
    def name(self) -> str:
        """The file that the log was read from."""
        return self._source.name

    @property
    def domain(self) -> RewardDomain:
        """Which rewards are valid."""
        return self._columns.rewards

    @property
    def context(self) -> Context | None:
        """The shape of the features of a row; None without features."""
        return None if self.features is None else Context(self.features.dimension, per_arm=False)

    def resolved(self, policy: Policy | str) -> Policy | str:
        """Return the recommended policy for such a log in place of ``"auto"``."""
        return resolved(policy, self.domain, contextual=self.features is not None)

    @property
    def has_propensities(self) -> bool:
        """Whether the log has propensities; if not, all arms are assumed to be equally likely."""
        return self._columns.propensity is not None

    @property
    def is_uniform(self) -> bool:
        """Whether all propensities are equal, as in a log of random decisions; those of a policy that learns differ."""
        return self.largest_propensity <= EQUAL * self.least_propensity

    @property
    def doubts(self) -> list[str]:
        """Reasons to doubt the propensities, which every estimate from this log relies on."""
        if self.has_propensities:
            doubt = doubt_of_propensities(self.inverse_propensities / self.rows, len(self.arms))
        else:
            doubt = doubt_of_equal_chances(self.plays, self.arms)
        return [] if doubt is None else [doubt]

    def __repr__(self) -> str:
        left_out = f", {self.bad.count} left out" if self.bad.count else ""
        mean = self.rewards.sum() / self.rows
        return f"Log({self.name}: {self.rows} rows{left_out}, {len(self.arms)} arms, mean reward {mean:.4g})"


def _encoded(encoder: FeatureEncoder, contexts: list[dict[str, Any]]) -> np.ndarray:
    """Return the features of some rows; each row changes the means and variances for the rows after it."""
    found = np.empty((len(contexts), 1, encoder.dimension))
    for row, context in enumerate(contexts):
        found[row, 0] = encoder.encode(context)
        encoder.learn(context)
    return found


def _natural(name: str) -> tuple[int, int, str]:
    """Sort whole numbers by value, before all other names."""
    return (0, int(name), name) if name.isascii() and name.isdigit() else (1, 0, name)


def read(
    path: str | Path,
    *,
    arm: str = "arm",
    reward: str = "reward",
    time: str | None = None,
    propensity: str | None = None,
    rewards: RewardLaw | str = "bounded",
    features: Features = None,
    skip_bad: bool = False,
    encoding: str = "utf-8",
    separator: str = ",",
) -> Log:
    r"""Return the log in a file, after checking every row.

    Parameters
    ----------
    path
        A CSV file whose first line names the columns, or a Parquet file (.parquet or .pq).
    arm, reward, time, propensity
        Names of the columns. Times are numbers or ISO dates and must not decrease; without
        them, the rows are assumed to be in time order. A propensity is the probability in (0, 1] with which the arm of
        the row was chosen; by default the column ``propensity`` is used, which the service exports. Without
        propensities, all arms are assumed to be equally likely.
    rewards
        The reward law, which says which rewards are valid; by default numbers in [0, 1].
    features
        The columns with the features of the context of each row, as for `Bandit`: a mapping from their names to kinds,
        or only names, whose kinds the first row decides. Features without a column are taken from the column
        ``context``, which the service exports, with objects or their JSON. By default, the features that a Parquet file
        of the service declares.
    skip_bad
        Skip rows that cannot be used, instead of raising an error that names them.
    encoding, separator
        Encoding and column separator of a CSV file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from dynabandit import offline
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("shown,clicked\nred,1\nblue,0\n")
    >>> log = offline.read(path, arm="shown", reward="clicked")
    >>> log.rows, log.arms
    (2, ('blue', 'red'))
    """
    source = open_file(path, encoding, separator)
    return from_source(
        source, features, skip_bad, arm=arm, reward=reward, time=time, propensity=propensity, rewards=rewards
    )


def from_columns(
    table: Mapping[str, Any] | Any,
    *,
    arm: str = "arm",
    reward: str = "reward",
    time: str | None = None,
    propensity: str | None = None,
    rewards: RewardLaw | str = "bounded",
    features: Features = None,
    skip_bad: bool = False,
) -> Log:
    """Return the log in a table, after checking every row.

    Parameters
    ----------
    table
        A mapping from the names of columns to lists or arrays, or a data frame.

    The other parameters are those of `read`.

    Examples
    --------
    >>> from dynabandit import offline
    >>> offline.from_columns({"arm": ["a", "b", "a"], "reward": [1, 0, 0]})
    Log(the log: 3 rows, 2 arms, mean reward 0.3333)
    """
    source = Memory(table)
    return from_source(
        source, features, skip_bad, arm=arm, reward=reward, time=time, propensity=propensity, rewards=rewards
    )


def from_source(source: Source, features: Features, skip_bad: bool, rewards: RewardLaw | str, **roles: Any) -> Log:
    """Return the log in a source; `roles` are the names of its columns.

    Features that the source declares itself are in its column of contexts; so are others that have no column.
    """
    declared = source.features() if features is None else features
    encoder = declared if isinstance(declared, FeatureEncoder | None) else FeatureEncoder(declared)
    names, header = () if encoder is None else encoder.names, source.header()
    inside = () if CONTEXT not in header else tuple(one for one in names if features is None or one not in header)
    columns = Columns(
        rewards=reward_law(rewards).domain,
        features=tuple(one for one in names if one not in inside),
        features_in_contexts=inside,
        **roles,
    )
    return Log(source, columns, skip_bad=skip_bad, features=encoder)
