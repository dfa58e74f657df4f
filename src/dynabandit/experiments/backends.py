"""Which experiment runs on which backend, and what stands in the way, before anything runs."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dynabandit.experiments.spec import Experiment, Spec
from dynabandit.simulation import BackendError, check_backend, is_large
from dynabandit.simulation.backends import check_names, gpu_missing

__all__ = ["Gpu", "check", "look_for_gpu", "place"]

LOCAL = "local"
ADDRESS = re.compile(r"[a-z]+://[^\s/]+:\d+")
KEPT = 17  # bytes that a GPU writes down for each recorded step and policy: regret, total, a yes or no


class Gpu(NamedTuple):
    """What a machine says of its GPU."""

    missing: str  # what keeps it from being used; empty where nothing does
    free: int = 0  # bytes
    where: str = ""  # the worker of a cluster; empty for this machine


def look_for_gpu() -> Gpu:
    """Return what this machine says of its GPU."""
    missing = gpu_missing()
    if missing:
        return Gpu(missing)
    from dynabandit.simulation.cuda.launch import free_bytes

    return Gpu("", free_bytes())


def check(spec: Spec, backend: str, precision: str, cluster: str | None = None, jobs: int | None = None) -> None:
    """Raise an error where no machine could run the spec this way.

    Examples
    --------
    >>> from dynabandit.paper.specs import paper
    >>> check(paper(), "cuda", "half")
    Traceback (most recent call last):
    ...
    ValueError: unknown precision 'half'. Known: double, mixed, single
    """
    check_names(backend, precision)
    for experiment in spec.experiments:
        policies = {one.label: one for one in (named.make_policy() for named in experiment.policies)}
        world = experiment.environment.make_environment()
        try:
            check_backend(backend, precision, world, policies, experiment.horizon)
        except ValueError as error:
            raise ValueError(f"{experiment.id}: {error}") from None
    if cluster not in (None, LOCAL) and not ADDRESS.fullmatch(cluster or ""):
        raise ValueError(f"cluster must be 'local' or an address such as tcp://scheduler:8786, got {cluster!r}")
    if cluster not in (None, LOCAL) and jobs is not None:
        raise ValueError(
            f"jobs must be left out with cluster {cluster}, whose workers have threads of their own, got {jobs}"
        )
    if cluster == LOCAL and backend != "cpu":
        raise ValueError(f"cluster 'local' needs backend='cpu', got backend={backend!r}: a GPU needs no cluster here")


def place(spec: Spec, backend: str, precision: str, gpus: Callable[[], Sequence[Gpu]]) -> dict[str, str]:
    """Return the backend of each experiment by its id, ``"cpu"`` or ``"cuda"``; `gpus` is asked only where it matters.

    ``"auto"`` takes the GPU for an experiment that is large, where every machine has one with room for it.
    """
    places = dict.fromkeys((one.id for one in spec.experiments), "cpu")
    wanting = [one for one in spec.experiments if backend == "cuda" or (backend == "auto" and _is_large(one))]
    found = gpus() if wanting else []
    for gpu in found:
        if gpu.missing:
            if backend == "auto":
                return places
            raise BackendError(f"{_prefix(gpu)}backend 'cuda' {gpu.missing}")
    for experiment in wanting:
        try:
            _check_room(experiment, spec, found)
        except MemoryError:
            if backend == "auto":
                continue
            raise
        places[experiment.id] = "cuda"
    return places


def _is_large(experiment: Experiment) -> bool:
    arms = experiment.environment.make_environment().arms
    return is_large(experiment.replications * experiment.horizon * arms * len(experiment.policies))


def _check_room(experiment: Experiment, spec: Spec, gpus: Sequence[Gpu]) -> None:
    """Raise an error where not even one replication fits, with all policies that could share its path."""
    from dynabandit.simulation.cuda.launch import fitting

    world = experiment.environment.make_environment()
    beside = [one for one in spec.experiments if one.environment == experiment.environment]
    policies = {named.make_policy().label: named.make_policy() for one in beside for named in one.policies}
    for gpu in gpus:
        try:
            fitting(world, policies, experiment.horizon, KEPT * len(experiment.recorded_times()), gpu.free)
        except MemoryError as error:
            raise MemoryError(f"{_prefix(gpu)}{experiment.id}: {error}") from None


def _prefix(gpu: Gpu) -> str:
    return f"worker {gpu.where}: " if gpu.where else ""
