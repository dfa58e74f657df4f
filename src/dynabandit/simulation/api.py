"""The public functions `simulate` and `compare`, and their result."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dynabandit.core.streams import LARGEST_REPLICATION, LARGEST_SEED, stream
from dynabandit.environments import CONTEXTUAL_ENVIRONMENTS, Environment, environment as make_environment
from dynabandit.environments.delays import Delay, delay as make_delay
from dynabandit.policies import Policy, check_fit, policy as make_policy, resolved
from dynabandit.results import Simulation
from dynabandit.simulation.backends import check_backend, cores
from dynabandit.simulation.engine import run
from dynabandit.simulation.request import Progress, SimulationRequest
from dynabandit.validation import integer, unknown

Policies = Policy | str | Iterable[Policy | str] | Mapping[str, Policy | str]

KEPT = ("arms", "rewards")
DEFAULT_HORIZON = 10_000


def simulate(
    policy: Policy | str,
    environment: Environment | str,
    *,
    horizon: int | None = None,
    replications: int = 1,
    seed: int = 1,
    times: int | Sequence[int] | np.ndarray = 200,
    keep: str | Sequence[str] = (),
    first_replication: int = 0,
    threads: int | None = None,
    block: int | None = None,
    backend: str = "cpu",
    precision: str = "double",
    delay: Delay | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Run one policy on one environment.

    Parameters
    ----------
    policy
        A policy or its name.

    The other parameters are those of `compare`.

    Returns
    -------
    Simulation
        The regret of each replication at the recorded steps, and whatever `keep` asks for.

    Examples
    --------
    >>> import dynabandit as db
    >>> sim = db.simulate("aff-ots", "small-changes", horizon=2000, replications=4, seed=1)
    >>> sim.regret.shape
    (4, 200)
    """
    (simulation,) = compare(
        [policy], environment, horizon=horizon, replications=replications, seed=seed, times=times, keep=keep,
        first_replication=first_replication, threads=threads, block=block, backend=backend, precision=precision,
        delay=delay, progress=progress,
    ).values()  # fmt: skip
    return simulation


def compare(
    policies: Policies,
    environment: Environment | str,
    *,
    horizon: int | None = None,
    replications: int = 1,
    seed: int = 1,
    times: int | Sequence[int] | np.ndarray = 200,
    keep: str | Sequence[str] = (),
    first_replication: int = 0,
    threads: int | None = None,
    block: int | None = None,
    backend: str = "cpu",
    precision: str = "double",
    delay: Delay | None = None,
    progress: Progress | None = None,
) -> dict[str, Simulation]:
    """Run several policies on the same paths of one environment.

    Each path is generated once for all policies. The result of a policy is identical to that of a separate `simulate`
    call, whatever the other policies, the number of threads and the size of a block.

    Parameters
    ----------
    policies
        Policies or their names, or a mapping from your own labels to them.
    environment
        An environment or its name.
    horizon
        How many steps; by default 10,000, or as many as the environment has if it ends before.
    replications
        How many independent replications.
    seed
        The seed of all randomness, a whole number of at least 0.
    times
        The steps after which the regret is recorded: an increasing list that ends at the horizon, or their number,
        evenly spaced.
    keep
        ``"arms"`` and ``"rewards"`` keep the chosen arms and the rewards of every step.
    first_replication
        The number of the first replication, so that a long run can be divided.
    threads
        How many threads, by default one per core.
    block
        How many steps at a time, by default as many as suit the CPU's cache.
    backend
        ``"cpu"``; ``"cuda"`` for an NVIDIA GPU, which makes the same choices; or ``"auto"`` for the GPU if there is one
        and the simulation is large.
    precision
        ``"double"``; on a GPU also ``"single"``, several times faster, with choices of the same distribution, or
        ``"mixed"``: single for all policies except those that need double.
    delay
        When rewards arrive, see `delay`; by default at the step of their decision.
    progress
        Called regularly, by one thread at a time, as ``progress(done, total)`` with numbers of steps. An exception that
        it raises stops the simulation.

    Returns
    -------
    dict
        From label to `Simulation`, in the order of `policies`.

    Examples
    --------
    >>> import dynabandit as db
    >>> runs = db.compare(["ucb", "aff-ucb1"], "small-changes", horizon=1000, replications=4, seed=1)
    >>> list(runs)
    ['ucb', 'aff-ucb1']
    """
    env = make_environment(environment)
    named = _labelled(policies, env)
    horizon = check_simulation(named, env, min(DEFAULT_HORIZON, env.longest) if horizon is None else horizon, delay)
    keep = _checked_keep(keep)
    replications = integer("replications", replications, 1, LARGEST_REPLICATION)
    first_replication = integer("first_replication", first_replication, 0, LARGEST_REPLICATION + 1 - replications)
    marks = recorded_times(times, horizon)
    seed = integer("seed", seed, 0, LARGEST_SEED)
    check_backend(backend, precision, env, named, horizon)
    records = run(
        SimulationRequest(
            environment=env,
            policies=named,
            horizon=horizon,
            replications=replications,
            random=stream(seed, first_replication),
            times=marks,
            delay=delay,
            keeps_steps=bool(keep),
            backend=backend,
            precision=precision,
            threads=cores() if threads is None else integer("threads", threads, 1),
            block=None if block is None else integer("block", block, 1),
            progress=_progress(progress),
        )
    )
    return {
        label: Simulation(
            policy=policy,
            environment=env,
            horizon=horizon,
            seed=seed,
            times=marks,
            regret=records[label].regret,
            correct=records[label].correct.mean(axis=0),
            correct_by_replication=records[label].correct.astype(bool),
            arms=records[label].arms if "arms" in keep else None,
            rewards=records[label].rewards if "rewards" in keep else None,
            first_replication=first_replication,
            delay=delay,
        )
        for label, policy in named.items()
    }


def _checked_keep(keep: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of what is kept, or raise an error if one is not known."""
    names = (keep,) if isinstance(keep, str) else tuple(keep)
    for name in names:
        if name not in KEPT:
            raise unknown("thing to keep", name, KEPT)
    return names


def recommended_for(policy: Policy | str, environment: Environment) -> Policy | str:
    """Return the recommended policy for an environment in place of ``"auto"``."""
    return resolved(policy, environment.rewards.domain, contextual=environment.context is not None)


def _labelled(policies: Policies, environment: Environment) -> dict[str, Policy]:
    """Return the policies by label."""
    if isinstance(policies, Mapping):
        for label in policies:
            if not isinstance(label, str):
                raise TypeError(f"the labels of policies must be strings, got {label!r}")
        named = {label: make_policy(recommended_for(policy, environment)) for label, policy in policies.items()}
    else:
        several = [policies] if isinstance(policies, (str, Policy)) else policies
        if not isinstance(several, Iterable):
            raise TypeError(f"policies must be policies or their names, got {policies!r}")
        listed = [make_policy(recommended_for(policy, environment)) for policy in several]
        named = {policy.label: policy for policy in listed}
        if len(named) < len(listed):
            labels = [policy.label for policy in listed]
            twice = next(label for label in labels if labels.count(label) > 1)
            raise ValueError(f"policies must be different, got {twice!r} twice: give them labels, as a mapping")
    if not named:
        raise ValueError("policies must hold at least one policy, got none")
    return named


def check_simulation(
    policies: Mapping[str, Policy], environment: Environment, horizon: int, delay: Delay | None
) -> int:
    """Return the horizon, or raise an error if these policies cannot run on this environment for so many steps."""
    horizon, law = environment.check_horizon(horizon), environment.rewards
    for label, policy in policies.items():
        if horizon < policy.burn_in * environment.arms:
            raise ValueError(
                f"horizon must be at least {policy.burn_in * environment.arms}, the burn-in of {label!r} "
                f"({policy.burn_in} for each of {environment.arms} arms), got {horizon}"
            )
        check_fit(policy, law.domain, f"the reward law {law.name!r} of environment {environment.name!r}")
        if policy.functions.contextual and environment.context is None:
            known = ", ".join(CONTEXTUAL_ENVIRONMENTS)
            raise ValueError(
                f"policy {label!r} decides by features, but environment {environment.name!r} has none. "
                f"Environments with features: {known}"
            )
    if delay is not None:
        make_delay(delay).params(environment.arms)  # raises an error if it is for another number of arms
    return horizon


def recorded_times(times: int | Sequence[int] | np.ndarray, horizon: int) -> np.ndarray:
    """Return the steps after which the regret is recorded; `times` as for `compare`.

    Examples
    --------
    >>> recorded_times(4, horizon=10).tolist()
    [2, 5, 8, 10]
    """
    if np.ndim(times) == 0:
        count = min(integer("times", times, 1), horizon)
        return np.round(np.arange(1, count + 1) * (horizon / count)).astype(np.int64)
    marks = np.asarray(times)
    rises = (
        marks.ndim == 1
        and marks.size > 0
        and np.issubdtype(marks.dtype, np.integer)
        and bool(np.all(np.diff(marks) > 0))
    )
    if not rises or marks[0] < 1 or marks[-1] != horizon:
        raise ValueError(f"times must be whole numbers that rise from at least 1 to the horizon {horizon}, got {times}")
    return marks.astype(np.int64)


def _progress(report: Progress | None) -> Progress:
    if report is None:
        return lambda done, total: None
    if not callable(report):
        raise TypeError(f"progress must be a function of the steps done and their total, got {report!r}")
    return report
