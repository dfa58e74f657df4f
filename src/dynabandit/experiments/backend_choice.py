"""Chooses the backend of each experiment, and checks before anything runs that a GPU has memory for it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dynabandit.experiments.spec import Experiment, Spec
from dynabandit.simulation import BackendError, is_large
from dynabandit.simulation.backends import needs_cpu
from dynabandit.simulation.cuda.launch import missing as gpu_missing

RECORD_BYTES = 17  # that a GPU writes for each recorded step and policy: regret, total regret, correct or not


class Gpu(NamedTuple):
    """The GPU of a machine; if it has several, the one with the least free memory."""

    missing: str  # why it cannot be used; empty if it can
    free: int = 0  # bytes
    worker: str = ""  # of a cluster; empty for this machine


def find_gpu() -> Gpu:
    """Return the GPU of this machine, or why there is none to use."""
    missing = gpu_missing()
    if missing:
        return Gpu(missing)
    from dynabandit.simulation.cuda.devices import least_free_bytes

    return Gpu("", least_free_bytes())


def choose_backends(spec: Spec, backend: str, precision: str, find_gpus: Callable[[], Sequence[Gpu]]) -> dict[str, str]:
    """Return the backend of each experiment by its id, ``"cpu"`` or ``"cuda"``.

    ``"auto"`` takes the GPU for an experiment that is large, if every machine has a GPU with enough memory for it.
    `find_gpus` is called only if an experiment may need a GPU.
    """
    backends = dict.fromkeys((experiment.id for experiment in spec.experiments), "cpu")
    candidates = [
        experiment
        for experiment in spec.experiments
        if backend == "cuda" or (backend == "auto" and _is_large(experiment))
    ]
    gpus = find_gpus() if candidates else []
    for gpu in gpus:
        if gpu.missing:
            if backend == "auto":
                return backends
            raise BackendError(f"{_prefix(gpu)}backend 'cuda' {gpu.missing}")
    for experiment in candidates:
        try:
            _check_memory(experiment, spec, gpus)
        except MemoryError:
            if backend == "auto":
                continue
            raise
        backends[experiment.id] = "cuda"
    return backends


def _is_large(experiment: Experiment) -> bool:
    """Whether ``"auto"`` would use a GPU."""
    arm_steps = experiment.replications * experiment.horizon * experiment.environment.arms * len(experiment.policies)
    return is_large(arm_steps) and not needs_cpu(experiment.policies)


def _check_memory(experiment: Experiment, spec: Spec, gpus: Sequence[Gpu]) -> None:
    """Raise an error if not even one replication fits, with all policies that could share its path."""
    from dynabandit.simulation.cuda.launch import fitting

    sharing = [other for other in spec.experiments if other.environment == experiment.environment]
    policies = {label: policy for other in sharing for label, policy in other.policies_by_label.items()}
    recorded = RECORD_BYTES * len(experiment.recorded_times())
    for gpu in gpus:
        try:
            fitting(experiment.environment, policies, experiment.horizon, recorded, gpu.free)
        except MemoryError as error:
            raise MemoryError(f"{_prefix(gpu)}{experiment.id}: {error}") from None


def _prefix(gpu: Gpu) -> str:
    return f"worker {gpu.worker}: " if gpu.worker else ""
