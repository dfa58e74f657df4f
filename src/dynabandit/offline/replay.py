"""Replay: estimates from a log what a policy would have earned."""

from dataclasses import dataclass, field
from typing import Any

from dynabandit.core.streams import LARGEST_REPLICATION, LARGEST_SEED
from dynabandit.offline.log import Log
from dynabandit.offline.off_policy_estimators import LEAST_EFFECTIVE_ROWS, Estimates, OffPolicyEstimators
from dynabandit.offline.replay_loop import Player
from dynabandit.offline.reward_model import RewardModel
from dynabandit.policies import Policy, check_fit, policy as make_policy
from dynabandit.simulation.request import Progress
from dynabandit.stats.intervals import Estimate
from dynabandit.validation import integer, number, unknown

CLOCKS = ("log", "accepted")
LEARN = (ACCEPTED, ALL) = ("accepted", "all")
LONG_BURN_IN = 0.1  # of the rows


@dataclass(frozen=True, eq=False)
class Replay:
    """Estimates of what a policy would have earned: mean rewards per decision with 95 % intervals.

    All four estimate the mean, over the rows of the log, of the value of the policy's decision, where the policy has
    learned from the accepted rows or from all rows before (`learn`). They require propensities that are correct and
    positive for every arm, and choices that do not affect later rewards. They do not require stationarity.

    Examples
    --------
    >>> from dynabandit import offline
    >>> log = offline.from_columns({"arm": [0, 1] * 50, "reward": [0, 1] * 50})
    >>> found = offline.replay(log, "ts", replications=2, draws=5)
    >>> found.policy.label, found.logged.value, sorted(found.shares)
    ('ts', 0.5, ['0', '1'])
    """

    policy: Policy
    """The policy that was replayed."""
    log: Log
    """The log."""
    replay: Estimate
    """The mean reward of the accepted rows (Li et al., 2011)."""
    ips: Estimate
    """Inverse propensity scoring: each reward, weighted by the probability of its arm over its propensity."""
    snips: Estimate
    """Self-normalised: the same divided by the sum of the weights, with a small bias and much less variance."""
    dr: Estimate
    """Doubly robust: a model of each arm's mean, from earlier rows, corrected by the weighted errors of the model.

    With features, the model of an arm is a logistic or linear regression."""
    logged: Estimate
    """The mean reward of the log."""
    accepted: float
    """Number of accepted rows, mean over replications."""
    burning: float
    """Number of rows that passed during the burn-in, mean over replications."""
    effective_rows: float
    """Effective sample size of the weighted rows."""
    shares: dict[str, float] = field(repr=False)
    """How often the policy would choose each arm."""
    replications: int
    """Number of replays."""
    draws: int
    """Number of draws at each row."""
    clock: str
    """Which rows are steps: ``"log"`` or ``"accepted"``."""
    learn: str
    """Which rows the policy learned from: ``"accepted"`` or ``"all"``."""
    clip: float
    """The value that replaced smaller propensities."""
    seed: int
    """The seed of the random numbers."""

    @property
    def is_refused(self) -> bool:
        """Whether policy and log overlap too little for the weighted estimates, which are NaN then."""
        return self.effective_rows < LEAST_EFFECTIVE_ROWS

    @property
    def doubts(self) -> list[str]:
        """Reasons to doubt these estimates, in addition to those of the log."""
        found = []
        if self.is_refused:
            found.append(
                f"{self.policy.label} rarely chooses what the log chose: its weighted rows are worth only "
                f"{self.effective_rows:.1f} of {self.log.rows} rows, so IPS, SNIPS and doubly robust are not estimated "
                f"(at least {LEAST_EFFECTIVE_ROWS} are needed); use a longer log, or one with more random decisions"
            )
        if self.burning > LONG_BURN_IN * self.log.rows:
            found.append(
                f"{self.policy.label} spent {self.burning:.0f} of {self.log.rows} rows in its burn-in, waiting for "
                "each arm in turn: try burn_in=0, or for rare arms a larger clip"
            )
        return found

    def __str__(self) -> str:
        lines = [f"{self.policy.label} on {self.log!r}"]
        lines += [f"  {name:7} {getattr(self, name)}" for name in Estimates._fields]
        return "\n".join([*lines, f"  accepted {self.accepted:.1f} rows of {self.log.rows}"])


def replay(
    log: Log,
    policy: Policy | str,
    *,
    replications: int = 10,
    draws: int = 20,
    clock: str = "log",
    learn: str | None = None,
    clip: float = 0.0,
    seed: int = 1,
    progress: Progress | None = None,
    **parameters: Any,
) -> Replay:
    """Let a policy choose at every row of a log, and estimate what it would have earned.

    Parameters
    ----------
    log
        From `read` or `from_columns`.
    policy
        A policy or its name.
    replications
        Number of replays, each with other random numbers of the policy.
    draws
        Number of draws from which the probability of each arm is estimated at each row. More draws reduce the
        variance; the estimates are unbiased with any number.
    clock
        ``"log"``: every row is a step, so idle times count rows of the log. ``"accepted"``: only accepted rows are
        steps; with K arms, time then passes about K times too slowly for the policy, and changes seem K times faster.
    learn
        ``"accepted"``: the policy learns only from rows with its own choice, for logs of random decisions. ``"all"``:
        it learns from every row, as if it took over from the logging policy at each row; a policy is then right about
        its own log, where ``"accepted"`` would leave it nearly nothing to learn from. The default is ``"accepted"`` if
        all propensities are equal, else ``"all"``.
    clip
        Smaller propensities are replaced by this value: less variance, but a bias against rarely chosen arms.
    seed
        Seed of the random numbers.
    progress
        Called from time to time as ``progress(done, total)`` with numbers of rows.
    parameters
        Parameters of the policy, if it is given by name.

    Returns
    -------
    Replay
        Four estimates of the mean reward per decision, each with a 95 % interval.

    Examples
    --------
    >>> import numpy as np
    >>> from dynabandit import offline
    >>> generator = np.random.default_rng(1)
    >>> arms = generator.integers(3, size=3000)
    >>> rewards = generator.random(3000) < np.array([0.2, 0.5, 0.8])[arms]
    >>> log = offline.from_columns({"arm": arms, "reward": rewards})
    >>> found = offline.replay(log, "ts", replications=1, seed=1)
    >>> found.dr.low < 0.78 < found.dr.high
    True

    References
    ----------
    Li, Chu, Langford & Wang (2011), Unbiased offline evaluation of contextual-bandit-based news article
    recommendation algorithms. WSDM.
    Dudik, Erhan, Langford & Li (2014), Doubly robust policy evaluation and optimization. Statistical Science.
    """
    clip = number("clip", clip, 0.0, 1.0)
    one = player(log, make_policy(log.resolved(policy), **parameters), replications, draws, clock, clip, seed, learn)
    estimators, model = OffPolicyEstimators(), RewardModel(len(log.arms), log.domain, log.context)
    for logged in log.chunks():
        expected = model.predict(logged)
        estimators.add(logged, one.play(logged, expected), expected)
        if progress is not None:
            progress(one.rows, log.rows)
    found = estimators.estimates(log.domain)
    return Replay(
        policy=one.policy,
        log=log,
        replay=found.replay,
        ips=found.ips,
        snips=found.snips,
        dr=found.dr,
        logged=found.logged,
        accepted=estimators.accepted,
        burning=float(one.burning[0]),
        effective_rows=estimators.effective_rows,
        shares=dict(zip(log.arms, (one.shares / log.rows).tolist(), strict=True)),
        replications=replications,
        draws=draws,
        clock=clock,
        learn=ALL if one.settings.learn_all else ACCEPTED,
        clip=clip,
        seed=seed,
    )


def player(
    log: Log, policy: Policy, replications: int, draws: int, clock: str, clip: float, seed: int, learn: str | None
) -> Player:
    """Return a policy at the start of a log, or raise an error that names the invalid argument."""
    if clock not in CLOCKS:
        raise unknown("clock", clock, CLOCKS)
    if learn is not None and learn not in LEARN:
        raise unknown("learn", learn, LEARN)
    replications = integer("replications", replications, 1, 10_000)
    draws = integer("draws", draws, 1, LARGEST_REPLICATION // 10_001)
    seed = integer("seed", seed, 0, LARGEST_SEED)
    check_fit(policy, log.domain, log.name)
    return Player(
        policy,
        log.arms,
        least=max(log.least_propensity, clip),
        replications=replications,
        draws=draws,
        log_clock=clock == "log",
        learn_all=not log.is_uniform if learn is None else learn == ALL,
        seed=seed,
        features=log.features,
    )
