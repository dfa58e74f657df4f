"""Advice: which policy and which step size suit a log, and how sure one can be."""

import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from dynabandit.errors import extra, number
from dynabandit.offline.log import Log
from dynabandit.offline.replay import doubly_robust, player
from dynabandit.policies import Policy, policy as make_policy
from dynabandit.simulation.work import Progress, cores
from dynabandit.stats.intervals import Estimate, Z, t_quantile

__all__ = ["Advice", "Candidate", "advise", "candidates"]

BLOCKS = 20  # of time


def candidates() -> list[Policy]:
    """Return what is compared by default: each kind of policy, over its step size, memory, discount or window.

    Examples
    --------
    >>> [policy.label for policy in candidates()][:3]
    ['uniform', 'eps-greedy', 'ucb']
    """
    return [
        *(make_policy(name) for name in ("uniform", "eps-greedy", "ucb", "ts", "ots", "aff-ucb2", "aff-dts2")),
        *(make_policy("aff-ts", step_size=step_size) for step_size in (0.001, 0.01, 0.1)),
        *(make_policy("aff-ots", step_size=step_size) for step_size in (0.0001, 0.001, 0.01, 0.1)),
        *(make_policy("dts", memory=memory) for memory in (10, 100, 1000)),
        *(make_policy("d-ucb", discount=discount) for discount in (0.9, 0.99, 0.999)),
        *(make_policy("sw-ucb", window=window) for window in (30, 300, 3000)),
    ]


@dataclass(frozen=True)
class Candidate:
    """One policy, beside the one with the largest estimate.

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
    """Its doubly robust mean reward per decision, with a 95 % interval of its own."""
    behind: Estimate
    """How much less it earns than the leader, with an interval that holds for all pairs of candidates at once."""
    may_be_best: bool
    """Whether no other is better by more than chance explains."""


@dataclass(frozen=True, eq=False)
class Advice:
    """What a log says about a choice of policy.

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
    """The largest estimate first."""
    logged: Estimate
    """The mean reward of the log itself."""
    gain: Estimate
    """How much more the leader earns than the log did."""
    rows_needed: float
    """About how many rows it would take to tell the leader from the next one; infinity where they decide alike."""
    accepted: float = field(repr=False)
    """How many rows the leader learned from."""

    @property
    def leader(self) -> Policy:
        """The policy with the largest estimate."""
        return self.candidates[0].policy

    @property
    def sure(self) -> bool:
        """Whether the leader is the only one that may be the best."""
        return sum(one.may_be_best for one in self.candidates) == 1

    def __str__(self) -> str:
        return "\n".join(self.verdict())

    def verdict(self) -> list[str]:
        """Return the advice in sentences."""
        rivals = [one.policy.label for one in self.candidates[1:] if one.may_be_best]
        lines = [f"The largest estimate is that of {self.leader.label}."]
        if self.sure:
            lines.append("It is better than every other candidate by more than chance explains.")
        else:
            shown = ", ".join(rivals[:6]) + (f" and {len(rivals) - 6} more" if len(rivals) > 6 else "")
            lines.append(f"The log cannot tell it from {len(rivals)} of {len(self.candidates) - 1} others: {shown}.")
            if math.isfinite(self.rows_needed):
                lines.append(
                    f"To tell it from the next one would take some {float(f'{self.rows_needed:.2g}'):,.0f} rows."
                )
        lines.append(self._against_the_log())
        share = self.log.rows / max(self.accepted, 1.0)
        lines.append(
            f"It learned from 1 row in {share:.3g}. With all rewards, changes come {share:.3g} times as slowly for "
            "each reward: rather a longer memory than a shorter one."
        )
        return lines

    def _against_the_log(self) -> str:
        if math.isnan(self.gain.low):
            return "Against what was done in the log, nothing can be said."
        if self.gain.low > 0.0:
            return f"It earns more than what was done in the log, by {self.gain}."
        if self.gain.high < 0.0:
            return f"It earns less than what was done in the log, by {self.gain}."
        return f"Whether it earns more than what was done in the log is open: {self.gain}."


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
    """Compare policies on the same rows of a log, and say which of them the log can tell apart.

    The estimates are doubly robust, on the clock of the log; see `replay` for the arguments. A difference between two
    policies is taken on the same rows. Its error comes from how it varies between 20 blocks of time, since a policy
    that took a wrong turn stays on it for a while: single rows would make it look better known than it is. The
    intervals hold for all pairs at once (Bonferroni), since the leader was picked for leading.

    Parameters
    ----------
    log
        From `read` or `from_columns`.
    policies
        At least two; by default `candidates()`.
    replications, draws, clip, seed, progress
        As for `replay`.

    Examples
    --------
    >>> import numpy as np
    >>> from dynabandit import offline
    >>> generator = np.random.default_rng(1)
    >>> arms = generator.integers(2, size=4000)
    >>> rewards = generator.random(4000) < np.array([0.2, 0.8])[arms]
    >>> advice = offline.advise(offline.from_columns({"arm": arms, "reward": rewards}), ["uniform", "ts"])
    >>> advice.leader.label, advice.sure
    ('ts', True)
    """
    chosen = [make_policy(one) for one in (candidates() if policies is None else policies)]
    labels = [one.label for one in chosen]
    if len(set(labels)) < max(len(labels), 2):
        raise ValueError(f"policies must hold at least 2 different ones, got {labels}")
    clip = number("clip", clip, 0.0, 1.0)
    if log.rows < BLOCKS:
        raise ValueError(f"{log.name} must have at least {BLOCKS} rows for advice, got {log.rows}")
    extra("scipy.stats", "lab")  # judges the differences: now, rather than after all replays
    players = [player(log, one, replications, draws, "log", clip, seed) for one in chosen]
    blocks = np.zeros((len(chosen) + 1, BLOCKS))  # the last row is the log itself
    squares, accepted, rows = np.zeros(len(chosen) + 1), np.zeros(len(chosen)), 0
    with ThreadPoolExecutor(cores()) as pool:
        for logged in log.chunks():
            played = list(pool.map(lambda one, logged=logged: one.play(logged), players))
            terms = np.stack([*(doubly_robust(logged, one) for one in played), logged.rewards])
            block = np.arange(rows, rows + terms.shape[1]) * BLOCKS // log.rows
            for row, values in enumerate(terms):
                blocks[row] += np.bincount(block, values, minlength=BLOCKS)
            squares += (terms * terms).sum(axis=1)
            accepted += [one.accepted.sum() for one in played]
            rows += terms.shape[1]
            if progress is not None:
                progress(rows, log.rows)
    return _compared(log, chosen, blocks, squares, accepted)


def _compared(
    log: Log, policies: list[Policy], blocks: np.ndarray, squares: np.ndarray, accepted: np.ndarray
) -> Advice:
    """Turn sums over blocks of rows into estimates; the last of them is the log itself."""
    count = len(policies)
    means = blocks.sum(axis=1) / log.rows
    errors = np.sqrt(np.maximum(squares / log.rows - means * means, 0.0) / log.rows)
    apart = blocks[:, None, :] - blocks[None, :, :]
    apart_errors = apart.std(axis=2, ddof=1) * math.sqrt(BLOCKS) / log.rows
    order = sorted(range(count), key=lambda place: -means[place])
    leader, second = order[:2]
    one, all_pairs = t_quantile(BLOCKS - 1), t_quantile(BLOCKS - 1, count * (count - 1) // 2)
    beaten = means[:, None] - means[None, :] < -all_pairs * apart_errors - 1e-12
    found = tuple(
        Candidate(
            policies[place],
            _interval(means[place], errors[place], Z),
            _interval(means[leader] - means[place], apart_errors[leader, place], all_pairs),
            not bool(beaten[place, :count].any()),
        )
        for place in order
    )
    lead = means[leader] - means[second]
    return Advice(
        log=log,
        candidates=found,
        logged=_interval(means[count], errors[count], Z),
        gain=_interval(means[leader] - means[count], apart_errors[leader, count], one),
        rows_needed=log.rows * (all_pairs * apart_errors[leader, second] / lead) ** 2 if lead > 0.0 else math.inf,
        accepted=float(accepted[leader]),
    )


def _interval(value: float, error: float, reach: float) -> Estimate:
    return Estimate(float(value), float(value - reach * error), float(value + reach * error))
