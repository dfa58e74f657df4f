"""Policies: beliefs about the arms in, the chosen arm out."""

from dataclasses import fields
from typing import Any

from dynabandit.errors import arguments, unknown
from dynabandit.policies.aff_d_greedy import AffDGreedy
from dynabandit.policies.aff_thompson import AffOTS, AffTS
from dynabandit.policies.aff_ucb1 import AffUCB1
from dynabandit.policies.aff_ucb2 import AffUCB2, AffUCB2Growing
from dynabandit.policies.base import Kernels, Now, Policy
from dynabandit.policies.d_ucb import DUCB
from dynabandit.policies.dynamic_thompson import DTS, AffDTS1, AffDTS2
from dynabandit.policies.eps_greedy import EpsGreedy
from dynabandit.policies.sw_ucb import SWUCB
from dynabandit.policies.thompson import OTS, TS
from dynabandit.policies.ucb import UCB
from dynabandit.policies.yardsticks import BestArm, Uniform

__all__ = [
    "DTS", "DUCB", "OTS", "SWUCB", "TS", "UCB",
    "AffDGreedy", "AffDTS1", "AffDTS2", "AffOTS", "AffTS", "AffUCB1", "AffUCB2", "AffUCB2Growing",
    "BestArm", "EpsGreedy", "Kernels", "Now", "POLICIES", "Policy", "Uniform", "policy",
]  # fmt: skip

POLICIES: dict[str, type[Policy]] = {
    "eps-greedy": EpsGreedy,
    "ucb": UCB,
    "ts": TS,
    "ots": OTS,
    "d-ucb": DUCB,
    "sw-ucb": SWUCB,
    "dts": DTS,
    "aff-d-greedy": AffDGreedy,
    "aff-ucb1": AffUCB1,
    "aff-ucb2": AffUCB2,
    "aff-ucb2-growing": AffUCB2Growing,
    "aff-ts": AffTS,
    "aff-ots": AffOTS,
    "aff-dts1": AffDTS1,
    "aff-dts2": AffDTS2,
    "uniform": Uniform,
    "best-arm": BestArm,
}


def policy(name: str | Policy, /, **parameters: Any) -> Policy:
    """Return the policy with this name.

    Parameters
    ----------
    name
        A name of the registry, such as ``"aff-ots"``; a policy object comes back as it is.
    parameters
        What to change from the paper's defaults; `policies.POLICIES[name]` documents each.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-ots", step_size=0.01)
    AffOTS(burn_in=1, step_size=0.01, floor=0.0, loss='squared-error', prior=(2.0, 2.0))
    """
    if isinstance(name, Policy):
        if parameters:
            raise TypeError(f"parameters {sorted(parameters)} go with a policy's name, not with {name!r}")
        return name
    if not isinstance(name, str) or name not in POLICIES:
        raise unknown("policy", name, POLICIES)
    arguments(f"policy {name!r}", parameters, [field.name for field in fields(POLICIES[name])])
    return POLICIES[name](**parameters)
