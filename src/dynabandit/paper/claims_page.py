"""The rules as a page: ``python -m dynabandit.paper.claims_page`` prints ``docs/paper-claims.md``."""

import sys

from dynabandit.paper.claims import CLAIMS
from dynabandit.paper.criteria import CRITERIA, METHODS

INTRODUCTION = """\
This page lists the claims of the paper, and the rules that decide whether they hold. The results are on the page
[Results for the paper's claims](paper-verdicts.md).

A claim has one or more parts. Each part compares runs by a measure, such as the ratio of mean total regret, with a 95 %
interval. Its criterion, such as "is much better than", is a region: an open interval of values of this measure. A part
**holds** if its interval lies inside the region, is **contradicted** if its interval lies outside, and is
**inconclusive** otherwise. The verdict on a claim follows from its parts:

| Verdict | Parts |
| --- | --- |
| `holds` | all hold |
| `holds in part` | some hold, and others are contradicted |
| `contradicted` | some are contradicted, and none holds |
| `inconclusive` | none is contradicted, but some are inconclusive at this number of replications |
| `not run` | its experiments were not run, or have only one replication |

The rules were written before any result was seen, and no number in them has been changed since. There were two later
changes:

- The interval of a sensitivity. At first, the largest and the smallest mean were chosen again in each bootstrap sample.
  The interval could then exclude the measured value if the settings made no difference.
- The verdict `inconclusive`. Before, such a claim counted as `holds in part`, or as not holding if no part held.

All policies of an experiment have the same paths, so they are compared replication by replication. For ε-Greedy, the
best ε of 0.1, 0.2, ..., 0.9 is used. As in the paper, it is chosen in hindsight by the mean total regret in the
experiment. The best and the worst of the other policies are chosen in the same way. Only the paper's eleven policies
are compared. There is no correction for multiple comparisons: a part whose true value lies exactly at an end of its
region is found to hold with probability 1/40.

`python -m dynabandit.paper.claims_page` prints this page from the rules that the program uses, and a test compares the
two."""


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
        *(
            f"| {criterion.phrase} | {criterion.measure} | {criterion.region} | {criterion.reason} |"
            for criterion in CRITERIA
        ),
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
            f"Experiments: {', '.join(f'`{experiment}`' for experiment in claim.experiments)}.",
            "",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(document())
