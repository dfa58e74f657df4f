"""Policies: choose an arm from the state of all arms."""

import sys
from dataclasses import fields
from typing import Any

from dynabandit import plugins
from dynabandit.core.one_line_syntax import with_written
from dynabandit.policies import compositions
from dynabandit.policies.auto import AUTO, resolved
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.compositions import is_part
from dynabandit.policies.detectors import DETECTORS
from dynabandit.policies.horizons import tuning_rules
from dynabandit.policies.memories import MEMORIES
from dynabandit.policies.part import Part
from dynabandit.policies.presets.adaptive import (
    DTS,
    AffDTS1,
    AffDTS2,
    AffKLUCB,
    AffOTS,
    AffTS,
    AffUCB2,
    AffUCB2Growing,
    OptimisticDTS,
)
from dynabandit.policies.presets.any_unit import AffNormalTS, AffNormalUCB, AffPoissonTS, NormalTS
from dynabandit.policies.presets.constant import KLUCB, OTS, TS, UCB, EpsGreedy
from dynabandit.policies.presets.discounted import DKLUCB, DUCB, DiscountedOTS, DiscountedTS
from dynabandit.policies.presets.linear import (
    AffLinTS,
    AffLinUCB,
    AffLogisticTS,
    AffLogLinearTS,
    DLinUCB,
    LinEpsGreedy,
    LinTS,
    LinUCB,
    LogisticTS,
    LogLinearTS,
    MixLinUCB,
    RestartLinUCB,
    SquareCB,
    SWLinUCB,
    WeightUCB,
)
from dynabandit.policies.presets.mixtures import MixNormalTS, MixPoissonTS, MixTS
from dynabandit.policies.presets.restarting import GLRKLUCB, MKLUCB, MUCB, CusumKLUCB, CusumUCB, GLRKLUCBDiminishing
from dynabandit.policies.presets.windowed import SWKLUCB, SWTS, SWUCB, SWUCBSharp
from dynabandit.policies.python_policy import ArmNumbers, PythonPolicy, PythonStep
from dynabandit.policies.rules import RULES, score_laws
from dynabandit.policies.whole import learned_draws
from dynabandit.policies.whole.ad_switch import AdSwitch
from dynabandit.policies.whole.adaptive import AffDGreedy, AffUCB1
from dynabandit.policies.whole.aff_revenue_ts import AffRevenueTS
from dynabandit.policies.whole.borl import Borl
from dynabandit.policies.whole.changepoint_thompson import ChangepointTS
from dynabandit.policies.whole.exp3 import Exp3S, Rexp3
from dynabandit.policies.whole.f_dsw_thompson import FDSWTS
from dynabandit.policies.whole.kalman_thompson import KalmanTS, PredictiveSampling
from dynabandit.policies.whole.lm_dsee import LMDSEE
from dynabandit.policies.whole.master_ucb import MasterUCB
from dynabandit.policies.whole.mix_revenue_ts import MixRevenueTS
from dynabandit.policies.whole.oracle_best_arm import BestArm
from dynabandit.policies.whole.oracle_restart import OracleRestart
from dynabandit.policies.whole.r_bocpd_ucb import RBocpdUCB
from dynabandit.policies.whole.r_ed_ucb import REdUCB
from dynabandit.policies.whole.robust_ucb import RobustUCB
from dynabandit.policies.whole.rotting import Fewa, RawUCB
from dynabandit.policies.whole.uniform import Uniform
from dynabandit.policies.whole.w_swa import WSWA
from dynabandit.validation import RewardDomain, check_parameter_names, unknown

# The paths of modules that release 0.2.0 documents, for algorithms of other packages
for _module in (learned_draws, score_laws, tuning_rules):
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module

__all__ = [
    "DTS", "DUCB", "OTS", "SWUCB", "TS", "UCB",
    "AffDGreedy", "AffDTS1", "AffDTS2", "AffOTS", "AffTS", "AffUCB1", "AffUCB2", "AffUCB2Growing",
    "BestArm", "EpsGreedy", "POLICIES", "Policy", "PolicyFunctions", "PolicyState", "Reward", "Step",
    "ArmNumbers", "PythonPolicy", "PythonStep", "policy_class", "register",
    "is_contextual", "registered_name",
    "Uniform", "policy", "AUTO", "resolved", "MixTS",
    "DKLUCB", "GLRKLUCB", "KLUCB", "MKLUCB", "MUCB", "SWKLUCB",
    "AdSwitch", "AffKLUCB", "CusumKLUCB", "CusumUCB", "GLRKLUCBDiminishing", "MasterUCB", "OracleRestart", "RBocpdUCB",
    "AffNormalTS", "AffNormalUCB", "AffPoissonTS", "AffRevenueTS", "NormalTS", "RobustUCB",
    "ChangepointTS", "DiscountedOTS", "DiscountedTS", "Exp3S", "FDSWTS", "Rexp3", "SWTS",
    "Borl", "LMDSEE", "KalmanTS", "OptimisticDTS", "PredictiveSampling", "SWUCBSharp",
    "DETECTORS", "MEMORIES", "RULES",
    "CONTEXTUAL_POLICIES", "LinUCB", "LinTS", "DLinUCB", "SWLinUCB", "WeightUCB", "RestartLinUCB", "LinEpsGreedy",
    "SquareCB", "LogisticTS", "LogLinearTS", "AffLinUCB", "AffLinTS", "AffLogisticTS", "AffLogLinearTS",
    "MixLinUCB",
    "WSWA", "Fewa", "REdUCB", "RawUCB", "MixNormalTS", "MixPoissonTS", "MixRevenueTS",
]  # fmt: skip

POLICIES: dict[str, type[Policy]] = {
    "eps-greedy": EpsGreedy,
    "ucb": UCB,
    "ts": TS,
    "ots": OTS,
    "d-ucb": DUCB,
    "sw-ucb": SWUCB,
    "dts": DTS,
    "odts": OptimisticDTS,
    "aff-d-greedy": AffDGreedy,
    "aff-ucb1": AffUCB1,
    "aff-ucb2": AffUCB2,
    "aff-ucb2-growing": AffUCB2Growing,
    "aff-ts": AffTS,
    "aff-ots": AffOTS,
    "aff-dts1": AffDTS1,
    "aff-dts2": AffDTS2,
    "mix-ts": MixTS,
    "d-ts": DiscountedTS,
    "d-ots": DiscountedOTS,
    "sw-ts": SWTS,
    "f-dsw-ts": FDSWTS,
    "changepoint-ts": ChangepointTS,
    "kalman-ts": KalmanTS,
    "predictive-sampling": PredictiveSampling,
    "sw-ucb-sharp": SWUCBSharp,
    "lm-dsee": LMDSEE,
    "borl": Borl,
    "exp3-s": Exp3S,
    "rexp3": Rexp3,
    "kl-ucb": KLUCB,
    "d-kl-ucb": DKLUCB,
    "sw-kl-ucb": SWKLUCB,
    "glr-kl-ucb": GLRKLUCB,
    "glr-kl-ucb-diminishing": GLRKLUCBDiminishing,
    "cusum-ucb": CusumUCB,
    "cusum-kl-ucb": CusumKLUCB,
    "m-ucb": MUCB,
    "m-kl-ucb": MKLUCB,
    "r-bocpd-ucb": RBocpdUCB,
    "master-ucb": MasterUCB,
    "ad-switch": AdSwitch,
    "aff-kl-ucb": AffKLUCB,
    "raw-ucb": RawUCB,
    "fewa": Fewa,
    "w-swa": WSWA,
    "r-ed-ucb": REdUCB,
    "mix-normal-ts": MixNormalTS,
    "mix-poisson-ts": MixPoissonTS,
    "mix-revenue-ts": MixRevenueTS,
    "normal-ts": NormalTS,
    "aff-normal-ts": AffNormalTS,
    "aff-normal-ucb": AffNormalUCB,
    "aff-poisson-ts": AffPoissonTS,
    "aff-revenue-ts": AffRevenueTS,
    "robust-ucb": RobustUCB,
    "oracle-restart": OracleRestart,
    "uniform": Uniform,
    "best-arm": BestArm,
}

CONTEXTUAL_POLICIES: dict[str, type[Policy]] = {
    "lin-ucb": LinUCB,
    "lin-ts": LinTS,
    "d-lin-ucb": DLinUCB,
    "sw-lin-ucb": SWLinUCB,
    "weight-ucb": WeightUCB,
    "restart-lin-ucb": RestartLinUCB,
    "lin-eps-greedy": LinEpsGreedy,
    "square-cb": SquareCB,
    "logistic-ts": LogisticTS,
    "log-linear-ts": LogLinearTS,
    "aff-lin-ucb": AffLinUCB,
    "aff-lin-ts": AffLinTS,
    "aff-logistic-ts": AffLogisticTS,
    "aff-log-linear-ts": AffLogLinearTS,
    "mix-lin-ucb": MixLinUCB,
}


def check_fit(policy: Policy, domain: RewardDomain, source: str) -> None:
    """Raise an error if a policy cannot learn from all rewards of a domain; `source` says where they come from."""
    if not domain.is_within(policy.rewards):
        fitting = [name for name, kind in POLICIES.items() if domain.is_within(kind.rewards)]
        raise ValueError(
            f"policy {policy.label!r} needs rewards that are {policy.rewards.description}, but those of {source} are "
            f"{domain.description}. Policies for them: {', '.join(fitting)}"
        )


def register(kind: type[Any]) -> type[Any]:
    """Add a policy, a memory, a rule or a detector of your own to the registry of this process, under its name.

    `policy` then returns a policy by name, as for a saved `Bandit`, and compositions by the names of their parts. It
    can be used as a decorator.

    Examples
    --------
    >>> import dynabandit as db
    >>> class AlwaysFirst(db.PythonPolicy):
    ...     name = "always-first"
    ...
    ...     def choose(self, arms, step):
    ...         return 0
    >>> db.policies.register(AlwaysFirst)().label, db.policy("always-first").label
    ('always-first', 'always-first')
    >>> del db.policies.POLICIES["always-first"]
    """
    if issubclass(kind, Part):
        return compositions.register_part(kind)
    registered = {**POLICIES, **CONTEXTUAL_POLICIES}.get(kind.name, kind)
    if registered is not kind or kind.name == AUTO:
        raise ValueError(f"{kind.__name__}.name must not be that of another policy, got {kind.name!r}")
    (CONTEXTUAL_POLICIES if _has_features(kind) else POLICIES)[kind.name] = kind
    return kind


def registered_name(text: str) -> str:
    """Return the name of a policy or a part given as a name or as ``module:Class``, and register the class.

    For trusted text only.

    Examples
    --------
    >>> registered_name("aff-ots")
    'aff-ots'
    """
    if "+" in text:  # a composition: each of its parts may be a class
        return compositions.PLUS.join(registered_name(part.strip()) for part in text.split("+"))
    if ":" not in text:
        return text
    return str(register(plugins.load(text, (Policy, Part))).name)


def use_plugin(text: str) -> None:
    """Register a policy of another package, given as the name of its entry point or as ``module:Class``.

    A class may also be a memory, a rule or a detector.
    """
    register(plugins.load(text, (Policy, Part)) if ":" in text else policy_class(text))


def used_plugins() -> list[str]:
    """Return the registered policies and parts of other packages, each as `use_plugin` takes it."""
    registered = [
        kind for known in (MEMORIES, RULES, DETECTORS, POLICIES, CONTEXTUAL_POLICIES) for kind in known.values()
    ]
    return [plugins.reference_to(plugins.POLICIES, kind) for kind in registered if not plugins.is_built_in(kind)]


def policy_class(name: Any) -> type[Policy]:
    """Return the class of the policy with this name: one of the registry, or of an installed plug-in.

    Examples
    --------
    >>> policy_class("aff-ots").__name__
    'AffOTS'
    """
    known = {**POLICIES, **CONTEXTUAL_POLICIES}
    if isinstance(name, str) and (chosen := compositions.named(name)) is not None:
        return compositions.class_of(chosen)
    kind = known.get(name) if isinstance(name, str) else None
    kind = kind or plugins.find(plugins.POLICIES, name, Policy)
    if kind is None:
        problem = unknown("policy", name, (AUTO, *known, *plugins.installed(plugins.POLICIES)))
        raise plugins.UnknownPolicyError(str(problem), name)
    return kind


def is_contextual(name: str) -> bool:
    """Return whether the policy with this name decides by features; ``"auto"`` is taken for one that does not.

    Examples
    --------
    >>> is_contextual("lin-ucb"), is_contextual("ucb"), is_contextual("auto")
    (True, False, False)
    """
    return name != AUTO and _has_features(policy_class(name))


def _has_features(kind: type[Policy]) -> bool:
    return isinstance(kind.functions, PolicyFunctions) and kind.functions.contextual  # not so for a `PythonPolicy`


def policy(name: str | Policy | type[Policy], /, **parameters: Any) -> Policy:
    """Return the policy with this name.

    Parameters
    ----------
    name
        A name of the registry, such as ``"aff-ots"``, or of an installed plug-in, or ``"auto"`` for the recommended
        policy, or a class; a policy object is returned unchanged. A name may be followed by parameters, as in
        ``"dts:memory=5"``, and ``"ots + adaptive + glr"`` means a rule with a memory and a detector.
    parameters
        Parameters that differ from the defaults; `policies.POLICIES[name]` documents them. With `memory`, `rule` or
        `detector`, an object, a class or a name, the policy has this part in place of its own.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-ots", step_size=0.01)
    AffOTS(burn_in=1, step_size=0.01, floor=0.0, loss='squared-error', prior=(2.0, 2.0))
    >>> db.policy("hoeffding + window:window=500").label
    'hoeffding + window(window=500)'
    >>> db.policy("kl-ucb", memory=db.memories.Window(window=500)).label
    'sw-kl-ucb(window=500)'
    """
    if isinstance(name, Policy):
        if parameters:
            raise TypeError(f"parameters {sorted(parameters)} go with a policy's name, not with {name!r}")
        return name
    if isinstance(name, str):
        name, parameters = with_written(name, parameters)
    chosen = compositions.named(name) if isinstance(name, str) else None
    if chosen is not None:
        return compositions.made(chosen.replaced(parameters), parameters)
    if isinstance(name, type) and issubclass(name, Policy):
        kind = name
    else:
        kind = policy_class(resolved(name) if isinstance(name, str) else name)
    given = [field.name for field in fields(kind)]
    if any(role in parameters and (role not in given or is_part(parameters[role])) for role in compositions.ROLES):
        return compositions.made(compositions.parts_of(kind).replaced(parameters), parameters)
    check_parameter_names(f"policy {kind.name!r}", parameters, given)
    return kind(**parameters)
