"""Judges each claim by its rules, and writes the verdicts as JSON.

The verdict on a claim follows from the evidence on its parts:

=================  ==========================================================================================
``holds``          all parts hold
``holds in part``  some parts hold, and others are contradicted
``contradicted``   some parts are contradicted, and none holds
``inconclusive``   no part is contradicted, but some are open: there are too few replications to decide them
``not run``        there are no results to judge
=================  ==========================================================================================
"""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from dynabandit.paper.claims import CLAIMS, Claim
from dynabandit.paper.criteria import METHODS
from dynabandit.paper.lookup import MissingResultError, was_run
from dynabandit.paper.rule_types import ClaimPart
from dynabandit.results import Results
from dynabandit.stats.intervals import LEVEL

HOLDS, PARTLY, CONTRADICTED = "holds", "holds in part", "contradicted"
INCONCLUSIVE, NOT_RUN = "inconclusive", "not run"
VERDICTS = (HOLDS, PARTLY, CONTRADICTED, INCONCLUSIVE, NOT_RUN)
FEWEST = 2  # replications; with one there is no interval


@dataclass(frozen=True)
class Verdict:
    """A claim with its measured parts."""

    claim: Claim
    parts: tuple[ClaimPart, ...]
    reason: str = ""
    """Why it was not judged, or empty."""

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        return decide(self.count("for"), self.count("against"), self.count("open"))

    def count(self, evidence: str) -> int:
        """Return the number of parts with this evidence."""
        return sum(part.evidence == evidence for part in self.parts)

    def summary(self) -> dict[str, Any]:
        """Return the verdict with the number of parts for, against and open."""
        return {"verdict": self.verdict, **{evidence: self.count(evidence) for evidence in ("for", "against", "open")}}


def decide(shown: int, against: int, undecided: int) -> str:
    """Return the verdict on a claim from the numbers of parts that hold, are contradicted and are open.

    Examples
    --------
    >>> decide(3, 0, 0), decide(2, 1, 0), decide(0, 1, 2), decide(2, 0, 1), decide(0, 0, 0)
    ('holds', 'holds in part', 'contradicted', 'inconclusive', 'not run')
    """
    if not shown + against + undecided:
        return NOT_RUN
    if against:
        return PARTLY if shown else CONTRADICTED
    return INCONCLUSIVE if undecided else HOLDS


def judge(results: Results) -> list[Verdict]:
    """Judge the 21 claims.

    Examples
    --------
    >>> import dynabandit as db
    >>> from dynabandit.paper import verdicts
    >>> nothing = verdicts.judge(db.Results([]))
    >>> len(nothing), nothing[0].verdict, nothing[0].reason
    (21, 'not run', 'small-changes was not run')
    """
    return [judge_one(claim, results) for claim in CLAIMS]


def judge_one(claim: Claim, results: Results) -> Verdict:
    """Judge one claim."""
    missing = [experiment for experiment in claim.experiments if not was_run(results, experiment)]
    if missing:
        return Verdict(claim, (), f"{', '.join(missing)} {'was' if len(missing) == 1 else 'were'} not run")
    few = [run for run in results if run.experiment in claim.experiments and run.replications < FEWEST]
    if few:
        return Verdict(claim, (), f"{few[0].experiment} has only one replication, and an interval needs two")
    try:
        return Verdict(claim, tuple(part for rule in claim.rules for part in rule.measure(results)))
    except MissingResultError as error:
        return Verdict(claim, (), str(error))


def as_json(verdicts: list[Verdict], results: Results) -> dict[str, Any]:
    """Return the content of ``claims.json``."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    return {
        "level": LEVEL,
        "replications": replications(results),
        "seed": results.metadata.get("seed"),
        "counts": {name: counts[name] for name in VERDICTS},
        "claims": [_claim(verdict) for verdict in verdicts],
    }


def replications(results: Results) -> int:
    """Return the number of replications, the smallest if runs differ."""
    return min((run.replications for run in results), default=0)


def _claim(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    return {
        "id": claim.id,
        "section": claim.section,
        "title": claim.title,
        "statement": claim.statement,
        "rule": claim.rule,
        "experiments": list(claim.experiments),
        "verdict": verdict.verdict,
        "reason": verdict.reason or None,
        "parts": [_part(part) for part in verdict.parts],
    }


def _part(part: ClaimPart) -> dict[str, Any]:
    return {
        "text": part.text,
        "evidence": part.evidence,
        "rule": part.criterion.rule,
        "region": {"low": _finite(part.criterion.low), "high": _finite(part.criterion.high)},
        "effect": {
            "measure": part.criterion.measure,
            "value": _finite(part.effect.value),
            "low": _finite(part.effect.low),
            "high": _finite(part.effect.high),
            "method": METHODS[part.criterion.measure],
        },
        "note": part.note or None,
        "runs": [{"experiment": experiment, "policy": label} for experiment, label in part.runs],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
