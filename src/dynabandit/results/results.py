"""All runs of an experiment, in memory and as data frames."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynabandit.extras import import_extra
from dynabandit.results import parquet_files
from dynabandit.results.runs import KEYS, Coverage, Run, SamplePath
from dynabandit.validation import check_parameter_names

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import xarray

CRITERIA = (*KEYS, "horizon", "seed", "replications")


class Results:
    """All runs of a spec, with the metadata that is needed to compute them again.

    ``len(results)`` is the number of runs, and ``for run in results`` yields them.

    Parameters
    ----------
    runs
        One run for each policy of each experiment.
    metadata
        What is needed to compute them again, such as the spec and the version of the library.
    paths
        Sample paths of the environments, for figures.
    coverage
        How often the confidence bounds of the paper held.

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
        """Return the runs that fit the criteria.

        Parameters
        ----------
        criteria
            The values of attributes of `Run`, such as ``experiment="two-arms", arms=2``.

        Returns
        -------
        Results
            The runs whose attributes have these values, with the metadata of all.
        """
        check_parameter_names("a run", criteria, CRITERIA)
        kept = (run for run in self.runs if all(getattr(run, key) == value for key, value in criteria.items()))
        return Results(kept, self.metadata, self.paths, self.coverage)

    def one(self, **criteria: Any) -> Run:
        """Return the only run that fits the criteria.

        Parameters
        ----------
        criteria
            The values of attributes of `Run`, as for `select`.

        Raises
        ------
        LookupError
            If no run fits them, or several do.
        """
        runs = self.select(**criteria).runs
        if len(runs) != 1:
            raise LookupError(
                f"criteria must fit exactly one run, got {criteria}, which fits {len(runs)} of {len(self.runs)}"
            )
        return runs[0]

    def to_arrow(self) -> "pyarrow.Table":
        """Return a table with one row per replication: keys, total regret and the regret at the recorded times."""
        return parquet_files.replications_table(self)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the table of `to_arrow` as a pandas data frame."""
        import_extra("pandas", "frames")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> "polars.DataFrame":
        """Return the table of `to_arrow` as a polars data frame."""
        return import_extra("polars", "frames").from_arrow(self.to_arrow())

    def to_xarray(self) -> "xarray.Dataset":
        """Return the regret as an xarray data set with the axes run, replication and step.

        All runs must have the same recorded steps and the same number of replications; use `select` otherwise.

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
        """Write the results into a folder: Parquet files and the metadata.

        Parameters
        ----------
        folder
            The folder, which is created if it does not exist.
        """
        parquet_files.save(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> "Results":
        """Return the results that `save` wrote.

        Parameters
        ----------
        folder
            The folder that was given to `save`, such as ``"out/paper/results"``.
        """
        return cls(*parquet_files.load(Path(folder)))
