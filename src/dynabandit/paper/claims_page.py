"""The rules in words: ``python -m dynabandit.paper.claims_page`` prints ``docs/paper-claims.md``."""

import sys

from dynabandit.paper.claims import CLAIMS
from dynabandit.paper.labels import METHODS, WORDS

__all__ = ["document"]

INTRODUCTION = """\
The rules were written down before any result was seen, and no number in them has been changed since. (One
interval was: that of a sensitivity first chose the extreme values anew in each resample, and did not hold the
value it belonged to where settings made no difference.) This page is printed from the rules that the program
uses (`python -m dynabandit.paper.claims_page`), and a test compares the two.

A claim has parts. A part compares runs by a measure with a 95 % interval; what the paper says in words is a
region of that measure, its ends excluded. The part **holds** when the interval lies inside the region, is
**contradicted** when it lies outside, and stays **open** when it reaches over an end. The claim `holds` when
all its parts hold, `holds in part` when some do, and `does not hold` when none does: an open part counts as
not shown. A claim whose experiments were not run, or have one replication only, is `not run`.

All policies of an experiment see the same paths, so they are compared replication by replication. ε-Greedy
stands for its best ε of 0.1, 0.2, ..., 0.9, chosen with hindsight by mean total regret in that experiment, as
in the paper; the best and the worst of the others are chosen by mean total regret, too. Only the paper's
eleven policies take part. There is no correction for asking many questions: of parts that lie exactly at the
end of a region, one in forty would be found to hold by chance."""


def document() -> str:
    """Return ``docs/paper-claims.md``: the words, the rules and the claims."""
    lines = [
        "# The paper's claims and how they are judged",
        "",
        *INTRODUCTION.splitlines(),
        "",
        "## Words",
        "",
        "| Word | Measure | Region | Why |",
        "| --- | --- | --- | --- |",
        *(f"| {word.words} | {word.measure} | {word.region} | {word.reason} |" for word in WORDS),
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
