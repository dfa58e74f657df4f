"""The rules as a page: ``python -m dynabandit.paper.claims_page`` prints ``docs/paper-claims.md``."""

import sys

from dynabandit.paper.claims import CLAIMS
from dynabandit.paper.criteria import CRITERIA, METHODS

INTRODUCTION = """\
The rules were written before any result was seen, and no number in them has been changed since. One interval has:
that of a sensitivity first chose the extreme values again in each resample, and could miss its own value where the
settings made no difference. This page is printed from the rules that the program uses
(`python -m dynabandit.paper.claims_page`), and a test compares the two.

A claim has parts. A part compares runs by a measure with a 95 % interval, and its criterion, such as "is much better
than", is a region of that measure without its ends. The part **holds** when the interval lies inside the region, is
**contradicted** when it lies outside, and is **inconclusive** otherwise. The verdict on the claim follows from them:

| Verdict | Parts |
| --- | --- |
| `holds` | all hold |
| `holds in part` | some hold, and others are contradicted |
| `contradicted` | some are contradicted, and none holds |
| `inconclusive` | none is contradicted, but some are inconclusive at this number of replications |
| `not run` | its experiments were not run, or have only one replication |

The verdict `inconclusive` was added after the first results; until then such a claim counted as `holds in part`, or as
not holding if no part held. The parts and their rules are unchanged.

All policies of an experiment see the same paths, so they are compared replication by replication. For ε-Greedy the
best ε of 0.1, 0.2, ..., 0.9 is used, chosen in hindsight by mean total regret in that experiment, as in the paper.
The best and the worst of the others are chosen by mean total regret as well. Only the paper's eleven policies are
compared. There is no correction for multiple comparisons: of parts that lie exactly at the end of a region, one in
forty would be found to hold by chance."""


def document() -> str:
    """Return ``docs/paper-claims.md``: criteria, measures and claims."""
    lines = [
        "# The paper's claims and how they are judged",
        "",
        *INTRODUCTION.splitlines(),
        "",
        "## Criteria",
        "",
        "| Criterion | Measure | Region | Why |",
        "| --- | --- | --- | --- |",
        *(f"| {one.phrase} | {one.measure} | {one.region} | {one.reason} |" for one in CRITERIA),
        "",
        "## Measures",
        "",
        "| Measure | 95 % interval |",
        "| --- | --- |",
        *(f"| {measure} | {method} |" for measure, method in METHODS.items()),
        "",
        "## Claims",
        "",
    ]
    for claim in CLAIMS:
        lines += [
            f"### {claim.id}. {claim.title}",
            "",
            f"Section {claim.section}." if claim.section[0].isdigit() else f"{claim.section}.",
            claim.statement,
            "",
            f"Rule: {claim.rule}",
            "",
            f"Experiments: {', '.join(f'`{one}`' for one in claim.experiments)}.",
            "",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(document())
