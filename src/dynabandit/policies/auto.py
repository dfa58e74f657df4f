"""Which policy ``"auto"`` stands for: the recommended one for the rewards, and for decisions with features."""

from dynabandit.policies.base import Policy
from dynabandit.policies.presets.linear import MixLinUCB
from dynabandit.policies.presets.mixtures import MixNormalTS, MixPoissonTS, MixTS
from dynabandit.policies.whole.mix_revenue_ts import MixRevenueTS
from dynabandit.validation import BOUNDED, RewardDomain

AUTO = "auto"
RECOMMENDED: tuple[type[Policy], ...] = (MixTS, MixPoissonTS, MixRevenueTS, MixNormalTS)  # the first that fits
RECOMMENDED_WITH_FEATURES = MixLinUCB.name


def resolved(name: str | Policy, rewards: RewardDomain = BOUNDED, *, contextual: bool = False) -> str | Policy:
    """Return the recommended policy for such rewards in place of ``"auto"``; everything else is returned unchanged.

    `contextual` is true if decisions have features.

    Examples
    --------
    >>> from dynabandit.validation import COUNTS
    >>> resolved("auto"), resolved("auto", COUNTS), resolved("auto", contextual=True), resolved("ucb")
    ('mix-ts', 'mix-poisson-ts', 'mix-lin-ucb', 'ucb')
    """
    if name != AUTO:
        return name
    if contextual:
        return RECOMMENDED_WITH_FEATURES
    return next(kind.name for kind in RECOMMENDED if rewards.is_within(kind.rewards))
