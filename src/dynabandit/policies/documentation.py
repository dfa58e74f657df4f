"""The docstring of a policy that is made of parts: what its class says, and what follows from the parts."""

import inspect
import textwrap
from collections.abc import Iterator, Sequence

from dynabandit.core.docstrings import WIDTH, sections, with_sections, written
from dynabandit.policies.base import Policy, PolicyFunctions, own_example
from dynabandit.policies.part import Part

PENDING, COST, MEMORY = "Pending plays ", "Cost per step: ", "Memory: "  # paragraphs of parts begin with them


def documentation(cls: type[Policy], parts: Sequence[type[Part]], described: dict[str, str]) -> str:
    """Return the docstring of a policy with the sections that it leaves out, and notes on its memory and its detector.

    Parameters
    ----------
    cls
        The class of the policy. If it has no summary, those of the parts take its place, and if it has no notes, what
        the rule says about its scores. Classes of this package get an example; of others the name may be unknown.
    parts
        The classes of the rule, of the memory and, if there is one, of the detector.
    described
        The descriptions of the parameters.
    """
    own = {heading: section for heading, section in sections(inspect.cleandoc(cls.__doc__ or "")).items() if section}
    texts = [sections(inspect.cleandoc(part.__doc__ or part.name)) for part in parts]
    references = dict.fromkeys(one["References"] for one in texts if "References" in one)
    notes = [own["Notes"]] if "Notes" in own else _details(parts[0])
    for part in parts[1:]:
        notes += _details(part)
    notes += [PENDING + rest for rest in _said(parts, PENDING)]
    return with_sections(
        {
            "": "\n\n".join(one[""].partition("\n\n")[0] for one in texts),
            "Parameters": written(described),
            "Examples": own_example(cls),
            "References": "\n".join(references),
        }
        | own
        | {"Notes": "\n\n".join([*notes, _cost(cls.functions, parts)])}
    )


def _details(part: type[Part]) -> list[str]:
    """Return what a part, or the class it is derived from, says after its first paragraph."""
    for base in part.__mro__:
        if "name" in vars(base):  # a part, not a base class of parts
            _, *rest = sections(inspect.cleandoc(base.__doc__ or ""))[""].split("\n\n")
            if details := [one for one in rest if not one.startswith((PENDING, COST, MEMORY))]:
                return details
    return []


def _cost(functions: PolicyFunctions, parts: Sequence[type[Part]]) -> str:
    """Return the cost of a step, by the number K of arms and, of a policy with features, by the number d of these."""
    if functions.contextual:
        cost = "O(K d^2)"
    elif functions.static_index:
        cost = "O(log K), because a score changes only when its arm is played"
    elif functions.idle_posterior is not None:
        cost = 'O(K), O(log K) with more than 1,000 arms; see "Thompson sampling with many arms"'
    elif functions.posterior is not None:
        cost = "O(K), of many arms only those are drawn that can have the largest draw"
    else:
        cost = "O(K)"
    cost = ", and ".join([cost, *(rest.rstrip(".") for rest in _said(parts, COST))])
    cost = "; memory: ".join([COST + cost, *(rest.rstrip(".") for rest in _said(parts, MEMORY))])
    return textwrap.fill(f"{cost}.", WIDTH)


def _said(parts: Sequence[type[Part]], beginning: str) -> Iterator[str]:
    """Yield the rest of the paragraph with this beginning from each part that has one; parts inherit paragraphs."""
    for part in parts:
        for base in part.__mro__:
            paragraphs = sections(inspect.cleandoc(base.__doc__ or ""))[""].split("\n\n")
            said = next((one for one in paragraphs if one.startswith(beginning)), None)
            if said is not None:
                yield said.removeprefix(beginning)
                break
