"""Policy advice: compares candidate policies on one log."""

import dataclasses
import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from dynabandit.extras import import_extra
from dynabandit.offline.log import Log
from dynabandit.offline.off_policy_estimators import LEAST_EFFECTIVE_ROWS, doubly_robust
from dynabandit.offline.replay import player
from dynabandit.offline.reward_model import RewardModel
from dynabandit.policies import AUTO, CONTEXTUAL_POLICIES, Policy, policy as make_policy
from dynabandit.policies.horizons.practical_forms import practical_forms
from dynabandit.simulation.backends import cores
from dynabandit.simulation.request import Progress
from dynabandit.stats.intervals import Estimate, Z, t_quantile
from dynabandit.stats.ratio_estimator import RatioEstimator
from dynabandit.validation import BOUNDED, RewardDomain, number

BLOCKS = 20  # of time, for the standard errors of differences
VARIANTS: tuple[tuple[str, str, float], ...] = (  # candidates besides the practical forms
    *(("aff-ts", "step_size", value) for value in (0.01, 0.1)),
    *(("aff-ots", "step_size", value) for value in (0.0001, 0.01, 0.1)),
    *(("aff-normal-ts", "step_size", value) for value in (0.0001, 0.001, 0.01)),
    *(("dts", "memory", value) for value in (100, 1000)),
    *(("d-ucb", "discount", value) for value in (0.9, 0.99, 0.999)),
    *(("sw-ucb", "window", value) for value in (30, 300, 3000)),
)


def candidates(rewards: RewardDomain = BOUNDED, *, contextual: bool = False) -> list[Policy]:
    """Return the policies that are compared by default.

    These are all policies of the leaderboard, as a user can run them without knowing the future, and some of them at
    further values of step size, memory, discount or window. `rewards` are those of the log; only policies that are made
    for them are returned. `contextual` is true for a log with features, and adds the policies that use them.

    Examples
    --------
    >>> [policy.label for policy in candidates()][:3]
    ['eps-greedy', 'ucb', 'ts']
    """
    forms = practical_forms(rewards)
    names = [form.name for form in forms]
    forms += [make_policy(name, **{key: value}) for name, key, value in VARIANTS if name in names]
    if contextual:
        fitting = [name for name, kind in CONTEXTUAL_POLICIES.items() if rewards.is_within(kind.rewards)]
        forms += [make_policy(name).practical() for name in fitting]
    return list({form.label: form for form in forms}.values())


@dataclass(frozen=True)
class Candidate:
    """One policy, compared with the leader: the policy with the largest estimate.

    Examples
    --------
    >>> from dynabandit import offline
    >>> log = offline.from_columns({"arm": [0, 1] * 50, "reward": [0, 1] * 50})
    >>> first, second = offline.advise(log, ["uniform", "ts"]).candidates
    >>> first.behind.value, first.value.value >= second.value.value
    (0.0, True)
    """

    policy: Policy
    value: Estimate
    """Its doubly robust mean reward per decision with a 95 % interval."""
    behind: Estimate
    """How much less it earns than the leader, with an interval that is valid for all pairs of candidates at once."""
    may_be_best: bool
    """Whether no other candidate is significantly better."""


@dataclass(frozen=True, eq=False)
class Advice:
    """The result of comparing policies on a log.

    Examples
    --------
    >>> from dynabandit import offline
    >>> log = offline.from_columns({"arm": [0, 1] * 50, "reward": [0, 1] * 50})
    >>> advice = offline.advise(log, ["uniform", "ts"])
    >>> advice.logged.value, sorted(one.policy.label for one in advice.candidates)
    (0.5, ['ts', 'uniform'])
    """

    log: Log
    candidates: tuple[Candidate, ...]
    """The candidates, largest estimate first."""
    logged: Estimate
    """The mean reward of the log."""
    gain: Estimate
    """How much more the leader earns than the log."""
    rows_needed: float
    """About how many rows would separate the leader from the second; infinity where they make the same choices."""
    accepted: float = field(repr=False)
    """Number of rows with the leader's own choice."""
    left_out: tuple[Policy, ...] = ()
    """Policies that rarely choose what the log chose: their weighted rows are worth fewer than 30 rows."""

    @property
    def leader(self) -> Policy:
        """The policy with the largest estimate."""
        return self.candidates[0].policy

    @property
    def sure(self) -> bool:
        """Whether the leader is the only candidate that may be the best."""
        return sum(one.may_be_best for one in self.candidates) == 1

    def __str__(self) -> str:
        return "\n".join(self.verdict())

    def verdict(self) -> list[str]:
        """Return the advice as sentences."""
        others = [one.policy.label for one in self.candidates[1:] if one.may_be_best]
        lines = [f"{self.leader.label} has the largest estimate."]
        if self.sure:
            lines.append("It is significantly better than every other candidate.")
        else:
            shown = ", ".join(others[:6]) + (f" and {len(others) - 6} more" if len(others) > 6 else "")
            count = f"{len(others)} of {len(self.candidates) - 1} others"
            lines.append(f"This log cannot distinguish it from {count}: {shown}.")
            recommended = str(self.log.resolved(AUTO))
            if recommended in others:
                lines.append(f"Without other reasons use {recommended}, the recommended policy, which is among them.")
            if math.isfinite(self.rows_needed):
                lines.append(
                    f"To distinguish it from the second takes about {float(f'{self.rows_needed:.2g}'):,.0f} rows."
                )
        if self.left_out:
            names = ", ".join(one.label for one in self.left_out)
            lines.append(f"Left out, because they rarely choose what the log chose: {names}.")
        lines.append(self._against_the_log())
        if not self.log.is_uniform:
            return [*lines, "It learned from every row of the log, as if it took over from the logging policy."]
        share = self.log.rows / max(self.accepted, 1.0)
        lines.append(
            f"It learned from 1 row in {share:.3g}. In use it would learn from every row, so changes would be "
            f"{share:.3g} times slower per reward: prefer a longer memory to a shorter one."
        )
        return lines

    def _against_the_log(self) -> str:
        if math.isnan(self.gain.low):
            return "The log is too short to compare it with the logged decisions."
        if self.gain.low > 0.0:
            return f"It earns more than the logged decisions, by {self.gain}."
        if self.gain.high < 0.0:
            return f"It earns less than the logged decisions, by {self.gain}."
        return f"It is open whether it earns more than the logged decisions: {self.gain}."


def advise(
    log: Log,
    policies: Iterable[Policy | str] | None = None,
    *,
    replications: int = 2,
    draws: int = 10,
    clip: float = 0.0,
    seed: int = 1,
    progress: Progress | None = None,
) -> Advice:
    """Compare policies on the same rows of a log, and report which of them the log can distinguish.

    The estimates are doubly robust, with every row of the log as a step. Two policies are compared on the same rows.
    The standard error of their difference is estimated from 20 blocks of time, because the errors of a learning policy
    are correlated over time, and single rows would give too small a value. The intervals are valid for all pairs at
    once (Bonferroni), because the leader is selected as the largest.

    Parameters
    ----------
    log
        From `read` or `from_columns`.
    policies
        At least two policies; by default `candidates()`.
    replications, draws, clip, seed, progress
        As for `replay`.

    Returns
    -------
    Advice
        The policies in the order of their estimates, and whether the leader is surely the best.

    Examples
    --------
    >>> import numpy as np
    >>> from dynabandit import offline
    >>> generator = np.random.default_rng(1)
    >>> arms = generator.integers(2, size=1000)
    >>> rewards = generator.random(1000) < np.array([0.2, 0.8])[arms]
    >>> advice = offline.advise(offline.from_columns({"arm": arms, "reward": rewards}), ["uniform", "ts"])
    >>> advice.leader.label, advice.sure
    ('ts', True)
    """
    if policies is None:
        policies = candidates(log.domain, contextual=log.features is not None)
    chosen = [make_policy(log.resolved(one)) for one in policies]
    labels = [one.label for one in chosen]
    if len(set(labels)) < max(len(labels), 2):
        raise ValueError(f"policies must hold at least 2 different ones, got {labels}")
    clip = number("clip", clip, 0.0, 1.0)
    if log.rows < BLOCKS:
        raise ValueError(f"{log.name} must have at least {BLOCKS} rows for advice, got {log.rows}")
    import_extra("scipy.stats", "lab")  # needed at the end; fail now rather than after all replays
    players = [player(log, one, replications, draws, "log", clip, seed, None) for one in chosen]
    blocks = np.zeros((len(chosen) + 1, BLOCKS))  # the last row is the log itself
    squares, accepted, rows = np.zeros(len(chosen) + 1), np.zeros(len(chosen)), 0
    weights = [RatioEstimator() for _ in chosen]
    model = RewardModel(len(log.arms), log.domain, log.context)
    with ThreadPoolExecutor(cores()) as pool:
        for logged in log.chunks():
            expected = model.predict(logged)
            played = list(pool.map(lambda one, rows=(logged, expected): one.play(*rows), players))
            terms = np.stack([*(doubly_robust(logged, one, expected) for one in played), logged.rewards])
            block = np.arange(rows, rows + terms.shape[1]) * BLOCKS // log.rows
            for row, values in enumerate(terms):
                blocks[row] += np.bincount(block, values, minlength=BLOCKS)
            squares += (terms * terms).sum(axis=1)
            accepted += [one.accepted.sum() for one in played]
            for weight, one in zip(weights, played, strict=True):
                weight.add(one.weight, one.weight)
            rows += terms.shape[1]
            if progress is not None:
                progress(rows, log.rows)
    kept = [index for index, weight in enumerate(weights) if weight.effective_rows >= LEAST_EFFECTIVE_ROWS]
    left_out = tuple(one for index, one in enumerate(chosen) if index not in kept)
    if len(kept) < 2:
        raise ValueError(
            f"{log.name} overlaps too little with the choices of {', '.join(one.label for one in left_out)}: their "
            f"weighted rows are worth fewer than {LEAST_EFFECTIVE_ROWS} rows, and fewer than 2 policies are left"
        )
    rows_kept = [*kept, len(chosen)]
    found = _compared(log, [chosen[index] for index in kept], blocks[rows_kept], squares[rows_kept], accepted[kept])
    return dataclasses.replace(found, left_out=left_out)


def _compared(
    log: Log, policies: list[Policy], blocks: np.ndarray, squares: np.ndarray, accepted: np.ndarray
) -> Advice:
    """Return the advice from sums over blocks of rows; the last row of sums is the log itself."""
    count = len(policies)
    means = blocks.sum(axis=1) / log.rows
    errors = np.sqrt(np.maximum(squares / log.rows - means * means, 0.0) / log.rows)
    differences = blocks[:, None, :] - blocks[None, :, :]
    difference_errors = differences.std(axis=2, ddof=1) * math.sqrt(BLOCKS) / log.rows
    order = sorted(range(count), key=lambda index: -means[index])
    leader, second = order[:2]
    single, all_pairs = t_quantile(BLOCKS - 1), t_quantile(BLOCKS - 1, count * (count - 1) // 2)
    beaten = means[:, None] - means[None, :] < -all_pairs * difference_errors - 1e-12
    found = tuple(
        Candidate(
            policies[index],
            _interval(means[index], errors[index], Z),
            _interval(means[leader] - means[index], difference_errors[leader, index], all_pairs),
            not bool(beaten[index, :count].any()),
        )
        for index in order
    )
    lead = means[leader] - means[second]
    return Advice(
        log=log,
        candidates=found,
        logged=_interval(means[count], errors[count], Z),
        gain=_interval(means[leader] - means[count], difference_errors[leader, count], single),
        rows_needed=log.rows * (all_pairs * difference_errors[leader, second] / lead) ** 2 if lead > 0.0 else math.inf,
        accepted=float(accepted[leader]),
    )


def _interval(value: float, error: float, quantile: float) -> Estimate:
    return Estimate(float(value), float(value - quantile * error), float(value + quantile * error))
