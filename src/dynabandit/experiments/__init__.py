"""Experiments: a spec is planned, computed by an executor, stored, and becomes results."""

from dynabandit.extras import import_extra

import_extra("msgspec", "lab")
from dynabandit.experiments.dask_executor import ClusterError  # noqa: E402 - after the message above
from dynabandit.experiments.earlier_results import RESULTS  # noqa: E402
from dynabandit.experiments.progress import ProgressReporter  # noqa: E402
from dynabandit.experiments.result_store import StorageError  # noqa: E402
from dynabandit.experiments.run_options import RunOptions  # noqa: E402
from dynabandit.experiments.runner import STORE, compute, run  # noqa: E402
from dynabandit.experiments.spec import CoverageSpec, Experiment, PathSpec, Spec  # noqa: E402
from dynabandit.experiments.spec_reader import SpecError, dumps, load, loads  # noqa: E402
from dynabandit.simulation import BackendError  # noqa: E402

__all__ = [
    "RESULTS", "STORE", "BackendError", "ClusterError", "CoverageSpec", "Experiment", "PathSpec", "ProgressReporter",
    "RunOptions", "Spec", "SpecError", "StorageError", "compute", "dumps", "load", "loads", "run",
]  # fmt: skip
