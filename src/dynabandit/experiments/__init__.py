"""Experiments: a spec is planned, computed by an executor, stored, and becomes results."""

from dynabandit.experiments.backend_choice import check_options
from dynabandit.experiments.dask_executor import ClusterError
from dynabandit.experiments.progress import ProgressReporter
from dynabandit.experiments.runner import RESULTS, STORE, run
from dynabandit.experiments.spec import CoverageSpec, Experiment, PathSpec, Spec
from dynabandit.experiments.spec_reader import SpecError, dumps, load, loads
from dynabandit.experiments.store import StorageError
from dynabandit.simulation import BackendError

__all__ = [
    "RESULTS", "STORE", "BackendError", "ClusterError", "CoverageSpec", "Experiment", "PathSpec", "ProgressReporter",
    "Spec", "SpecError", "StorageError", "check_options", "dumps", "load", "loads", "run",
]  # fmt: skip
