"""Experiments: a spec in, results out; the paper is one of them."""

from dynabandit.experiments.backends import check
from dynabandit.experiments.dask_executor import ClusterError
from dynabandit.experiments.progress import Watcher
from dynabandit.experiments.runner import RESULTS, STORE, run
from dynabandit.experiments.spec import CoverageSpec, Experiment, Named, PathSpec, Spec
from dynabandit.experiments.store import StorageError
from dynabandit.experiments.toml import SpecError, dumps, load, loads
from dynabandit.simulation import BackendError

__all__ = [
    "RESULTS", "STORE", "BackendError", "ClusterError", "CoverageSpec", "Experiment", "Named", "PathSpec", "Spec",
    "SpecError", "StorageError", "Watcher", "check", "dumps", "load", "loads", "run",
]  # fmt: skip
