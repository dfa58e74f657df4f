"""Which parts fit together."""

from typing import Any

from dynabandit.policies.memories.models import COEFFICIENTS, ModelMemory
from dynabandit.validation import RewardDomain

PREDICTED = ("common normal", COEFFICIENTS)  # families of rules that draw from what a model predicts


def misfit(memory: Any, rule: Any, detector: Any = None) -> str | None:
    """Return why parts do not fit together; None if they do."""
    family = rule.kernels.family
    kernels, models = rule.kernels, issubclass(memory, ModelMemory)
    predicts = kernels.predicted is not None or kernels.compare is not None or family in PREDICTED
    if models and not predicts:
        return f"rule {rule.name!r} does not compare predictions from features, which memory {memory.name!r} makes"
    if not models and predicts and kernels.score is None:
        return f"rule {rule.name!r} compares predictions from features, and memory {memory.name!r} makes none"
    if models and family == COEFFICIENTS and memory.kernels.draws is None:
        return f"rule {rule.name!r} draws coefficients, and those of memory {memory.name!r} cannot be drawn"
    if models and detector is not None:
        return f"memory {memory.name!r} makes predictions from features, and no detector watches these"
    if models:
        return None
    if family is not None and family not in dict(memory.kernels_for(family).laws):
        return f"rule {rule.name!r} draws from {family} laws, and memory {memory.name!r} has none"
    try:
        common_domain([part for part in (memory, rule, detector) if part is not None])
    except ValueError as error:
        return str(error)
    return None


def common_domain(parts: list[Any]) -> RewardDomain:
    """Return the rewards that all parts can learn from, or raise an error if there are none."""
    domain: RewardDomain = parts[0].rewards
    for part in parts[1:]:
        if part.rewards.is_within(domain):
            domain = part.rewards
        elif not domain.is_within(part.rewards):
            before = next(one for one in parts if one.rewards == domain)
            raise ValueError(
                f"{before.name!r} learns from rewards that are {domain.description}, but {part.name!r} from rewards "
                f"that are {part.rewards.description}"
            )
    return domain
