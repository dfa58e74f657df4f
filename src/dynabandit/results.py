"""Results: what an experiment found, in memory and as Parquet."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynabandit.extras import import_extra
from dynabandit.validation import check_parameter_names

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import xarray

__all__ = ["Coverage", "Results", "Run", "SamplePath"]

REPLICATIONS = "replications.parquet"
RUNS = "runs.parquet"
PATHS = "paths.parquet"
CORRECT = "correct.parquet"
METADATA = "metadata.json"
KEYS = ("experiment", "environment", "arms", "environment_parameters", "label", "policy", "parameters")
CRITERIA = (*KEYS, "horizon", "seed", "replications")


@dataclass(frozen=True, eq=False)
class Run:
    """One policy on one environment, over all replications.

    Examples
    --------
    >>> import dynabandit as db
    >>> run = db.Run(
    ...     experiment="mine", environment="case-1", arms=2, environment_parameters={}, label="ucb", policy="ucb",
    ...     parameters={}, horizon=2, seed=1, times=np.array([1, 2]), regret=np.array([[0.0, 0.5], [0.5, 1.0]]),
    ...     correct=np.array([0.5, 0.0]),
    ... )
    >>> run.replications, run.total_regret.tolist()
    (2, [0.5, 1.0])
    """

    experiment: str
    environment: str
    arms: int
    environment_parameters: dict[str, Any]
    label: str
    policy: str
    parameters: dict[str, Any]
    horizon: int
    seed: int
    times: np.ndarray = field(repr=False)
    """The recorded steps; the last one is the horizon."""
    regret: np.ndarray = field(repr=False)
    """Cumulative regret, replications x times."""
    correct: np.ndarray = field(repr=False)
    """Share of replications that played a best arm, at each of the times."""
    correct_by_replication: np.ndarray | None = field(default=None, repr=False)
    """Whether a best arm was played, replications x times; None where only the shares were kept."""

    @property
    def total_regret(self) -> np.ndarray:
        """The regret at the horizon, one number per replication; paired between runs on the same paths."""
        return self.regret[:, -1]

    @property
    def replications(self) -> int:
        """How many replications there are."""
        return len(self.regret)

    def keys(self) -> dict[str, Any]:
        """Return what tells this run from the others; parameters as JSON, which sorts and compares."""
        values = {key: getattr(self, key) for key in KEYS}
        return {
            key: json.dumps(value, sort_keys=True) if isinstance(value, dict) else value
            for key, value in values.items()
        }


@dataclass(frozen=True, eq=False)
class SamplePath:
    """A trajectory of an environment's means, thinned for a figure."""

    environment: str
    arms: int
    replication: int
    times: np.ndarray = field(repr=False)
    means: np.ndarray = field(repr=False)
    """Mean rewards, times x arms."""


@dataclass(frozen=True)
class Coverage:
    """How often a mean reward lay above the adaptive mean plus the bonus of the appendix."""

    mean: float
    step_size: float
    observations: int
    streams: int
    exceeded: int


class Results:
    """All runs of an experiment, with what it takes to make them again.

    Examples
    --------
    >>> import dynabandit as db
    >>> results = db.Results([], metadata={"seed": 1})
    >>> len(results)
    0
    """

    def __init__(
        self,
        runs: Iterable[Run],
        metadata: dict[str, Any] | None = None,
        paths: Iterable[SamplePath] = (),
        coverage: Iterable[Coverage] = (),
    ) -> None:
        self.runs = tuple(runs)
        self.metadata = dict(metadata or {})
        self.paths = tuple(paths)
        self.coverage = tuple(coverage)

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __repr__(self) -> str:
        experiments = len({run.experiment for run in self.runs})
        return f"Results({len(self.runs)} runs of {experiments} experiments)"

    def select(self, **criteria: Any) -> "Results":
        """Return the runs whose attributes equal the criteria, such as ``experiment="two-arms", arms=2``."""
        check_parameter_names("a run", criteria, CRITERIA)
        kept = (run for run in self.runs if all(getattr(run, key) == value for key, value in criteria.items()))
        return Results(kept, self.metadata, self.paths, self.coverage)

    def one(self, **criteria: Any) -> Run:
        """Return the only run that fits the criteria."""
        found = self.select(**criteria).runs
        if len(found) != 1:
            raise LookupError(
                f"criteria must fit exactly one run, got {criteria}, which fits {len(found)} of {len(self.runs)}"
            )
        return found[0]

    def to_arrow(self) -> "pyarrow.Table":
        """Return a table with one row a replication: keys, total regret and the regret at the recorded times."""
        pyarrow = import_extra("pyarrow", "lab")
        columns: dict[str, list[Any]] = {name: [] for name in (*KEYS, "horizon", "seed", "replication")}
        for run in self.runs:
            keys = {**run.keys(), "horizon": run.horizon, "seed": run.seed}
            for name, value in keys.items():
                columns[name] += [value] * run.replications
            columns["replication"] += range(run.replications)
        columns["total_regret"] = [float(value) for run in self.runs for value in run.total_regret]
        columns["regret"] = [row for run in self.runs for row in run.regret]
        return pyarrow.table(columns, schema=_schema(pyarrow, per_run=False))

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the table of `to_arrow` as a pandas data frame."""
        import_extra("pandas", "frames")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> "polars.DataFrame":
        """Return the table of `to_arrow` as a polars data frame."""
        return import_extra("polars", "frames").from_arrow(self.to_arrow())

    def to_xarray(self) -> "xarray.Dataset":
        """Return the regret as an xarray data set with the axes run, replication and step.

        All runs must have the same recorded steps and as many replications; `select` leaves out those that have not.

        Examples
        --------
        >>> import dynabandit as db
        >>> results = db.Results.load("out/paper/results")  # doctest: +SKIP
        >>> results.select(experiment="memory").to_xarray().regret.mean("replication")  # doctest: +SKIP
        """
        if not self.runs:
            raise ValueError("there must be runs to put into an array, got none")
        first = self.runs[0]
        for run in self.runs:
            if run.replications != first.replications or not np.array_equal(run.times, first.times):
                raise ValueError(
                    f"runs must have the same recorded steps and replications, but {run.label!r} of {run.experiment!r} "
                    f"differs from {first.label!r} of {first.experiment!r}: select those that agree"
                )
        coordinates: dict[str, Any] = {"replication": np.arange(first.replications), "step": first.times}
        coordinates.update({name: ("run", [run.keys()[name] for run in self.runs]) for name in KEYS})
        variables = {
            "regret": (("run", "replication", "step"), np.stack([run.regret for run in self.runs])),
            "correct": (("run", "step"), np.stack([run.correct for run in self.runs])),
        }
        return import_extra("xarray", "frames").Dataset(variables, coords=coordinates)

    def save(self, folder: str | Path) -> None:
        """Write the results into a folder: Parquet files and the metadata."""
        pyarrow, parquet = import_extra("pyarrow", "lab"), import_extra("pyarrow.parquet", "lab")
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        per_run: dict[str, list[Any]] = {
            **{name: [run.keys()[name] for run in self.runs] for name in KEYS},
            **{
                name: [getattr(run, name) for run in self.runs]
                for name in ("horizon", "seed", "replications", "times", "correct")
            },
        }
        runs = pyarrow.table(per_run, schema=_schema(pyarrow, per_run=True))
        parquet.write_table(self.to_arrow(), folder / REPLICATIONS, compression="zstd")
        parquet.write_table(runs, folder / RUNS, compression="zstd")
        paths = [{**vars(path), "times": path.times.tolist(), "means": path.means.tolist()} for path in self.paths]
        parquet.write_table(pyarrow.Table.from_pylist(paths, schema=_path_schema(pyarrow)), folder / PATHS)
        parquet.write_table(self._correct_table(pyarrow), folder / CORRECT, compression="zstd")
        metadata = {**self.metadata, "coverage": [asdict(one) for one in self.coverage]}
        text = json.dumps(metadata, indent=2, sort_keys=True) + "\n"
        (folder / METADATA).write_text(text, encoding="utf-8")

    def _correct_table(self, pyarrow: Any) -> Any:
        """Return a table with one row per replication: whether a best arm was played at the recorded times."""
        kept = [(run, run.correct_by_replication) for run in self.runs if run.correct_by_replication is not None]
        columns = {
            "experiment": [run.experiment for run, rows in kept for _ in rows],
            "label": [run.label for run, rows in kept for _ in rows],
            "replication": [number for _, rows in kept for number in range(len(rows))],
            "correct": [row for _, rows in kept for row in rows],
        }
        return pyarrow.table(columns, schema=_correct_schema(pyarrow))

    @classmethod
    def load(cls, folder: str | Path) -> "Results":
        """Read what `save` wrote."""
        parquet = import_extra("pyarrow.parquet", "lab")
        folder = Path(folder)
        if not (folder / RUNS).exists():
            raise FileNotFoundError(f"no results in {folder}: it has no {RUNS}")
        regrets = iter(parquet.read_table(folder / REPLICATIONS, columns=["regret"])["regret"].to_numpy())
        correct: dict[tuple[str, str], list[np.ndarray]] = {}
        if (folder / CORRECT).exists():  # version 0.1.0 kept only the shares
            kept = parquet.read_table(folder / CORRECT)
            rows = zip(
                kept["experiment"].to_pylist(), kept["label"].to_pylist(), kept["correct"].to_numpy(), strict=True
            )
            for experiment, label, played in rows:
                correct.setdefault((experiment, label), []).append(played)
        runs = []
        for row in parquet.read_table(folder / RUNS).to_pylist():
            count = row.pop("replications")
            row["environment_parameters"] = json.loads(row["environment_parameters"])
            row["parameters"] = json.loads(row["parameters"])
            row["times"] = np.array(row["times"], dtype=np.int64)
            row["correct"] = np.array(row["correct"], dtype=float)
            by_replication = correct.get((row["experiment"], row["label"]))
            runs.append(
                Run(
                    **row,
                    regret=np.stack([next(regrets) for _ in range(count)]),
                    correct_by_replication=None if by_replication is None else np.stack(by_replication),
                )
            )
        paths = [
            SamplePath(**{**row, "times": np.array(row["times"]), "means": np.array(row["means"])})
            for row in parquet.read_table(folder / PATHS).to_pylist()
        ]
        metadata = json.loads((folder / METADATA).read_text(encoding="utf-8"))
        coverage = [Coverage(**one) for one in metadata.pop("coverage")]
        return cls(runs, metadata, paths, coverage)


def _correct_schema(pyarrow: Any) -> Any:
    text, whole = pyarrow.string(), pyarrow.int64()
    flags = pyarrow.list_(pyarrow.bool_())
    return pyarrow.schema([("experiment", text), ("label", text), ("replication", whole), ("correct", flags)])


def _path_schema(pyarrow: Any) -> Any:
    text, whole, number = pyarrow.string(), pyarrow.int64(), pyarrow.float64()
    return pyarrow.schema(
        [
            ("environment", text),
            ("arms", whole),
            ("replication", whole),
            ("times", pyarrow.list_(whole)),
            ("means", pyarrow.list_(pyarrow.list_(number))),
        ]
    )


def _schema(pyarrow: Any, *, per_run: bool) -> Any:
    text, whole = pyarrow.string(), pyarrow.int64()
    fields = [(name, whole if name == "arms" else text) for name in KEYS]
    fields += [("horizon", whole), ("seed", pyarrow.uint64())]
    if per_run:
        fields += [
            ("replications", whole),
            ("times", pyarrow.list_(whole)),
            ("correct", pyarrow.list_(pyarrow.float64())),
        ]
    else:
        number = pyarrow.float64()
        fields += [("replication", whole), ("total_regret", number), ("regret", pyarrow.list_(number))]
    return pyarrow.schema(fields)
