"""The engine: runs a simulation whose options are checked, on the CPU or on GPUs."""

from dynabandit.simulation import cpu
from dynabandit.simulation.backends import needs_cpu, takes_gpu
from dynabandit.simulation.request import SimulationRequest
from dynabandit.simulation.stepper import Record, empty_record


def run(request: SimulationRequest) -> dict[str, Record]:
    """Return what was recorded of each policy, by its label."""
    environment, policies, replications = request.environment, request.policies, request.replications
    kept_steps, dtype = request.horizon if request.keeps_steps else 0, environment.reward_functions.dtype
    records = {label: empty_record(request.times, replications, kept_steps, dtype) for label in policies}
    backend = "cpu" if needs_cpu(policies.values()) else request.backend
    if takes_gpu(backend, replications * request.horizon * environment.arms * len(policies)):
        from dynabandit.simulation.cuda import launch

        launch.run(request, records)
    else:
        cpu.run(request, records)
    return records
