"""Uniform: a random arm at every step."""

from dataclasses import dataclass
from typing import ClassVar

from dynabandit.policies import sample_mean_policy
from dynabandit.policies.base import PolicyFunctions
from dynabandit.policies.sample_mean_policy import SampleMeanPolicy

__all__ = ["Uniform"]


@dataclass(frozen=True, kw_only=True)
class Uniform(SampleMeanPolicy):
    """Play any arm, each with the same chance.

    Parameters
    ----------
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("uniform").parameters
    {'burn_in': 0}

    Notes
    -----
    Cost of a step: O(log K).

    References
    ----------
    The lower yardstick: a policy that does worse has not learnt but been misled.
    """

    name: ClassVar[str] = "uniform"
    slots: ClassVar[tuple[str, ...]] = sample_mean_policy.SLOTS
    functions: ClassVar[PolicyFunctions] = PolicyFunctions(
        start=sample_mean_policy.start, learn=sample_mean_policy.learn, static_index=True
    )
