"""Print docs/paper-verdicts.md: the verdicts of the large run that comes with the package."""

import sys

from dynabandit.paper import large_run
from dynabandit.paper.claims import CLAIMS
from dynabandit.paper.report import sentence

PAGE = """# Results for the paper's claims

{counts}.

The claims are those of *On Adaptive Estimation for Dynamic Bernoulli Bandits*. The verdicts are based on the paper's
experiments with {replications:,} replications and seed {seed}. A claim has one or more parts, which the last three
columns count. The [rules](paper-claims.md) were written before any result was seen; that page also lists later changes.

The verdicts are included in the package. The report of `dynabandit paper` shows them next to the verdicts of your own
run, with the interval of every comparison. `python docs/pictures/verdicts.py` prints this page.

| | claim | verdict | parts that hold | contradicted | inconclusive |
|--:|---|---|--:|--:|--:|
{rows}
"""


def page() -> str:
    large = large_run.load()
    rows = []
    for claim in CLAIMS:
        found = large.claims[claim.id]
        numbers = " | ".join(str(found[evidence]) for evidence in ("for", "against", "open"))
        rows.append(f"| {claim.id} | {claim.title} | **{found['verdict']}** | {numbers} |")
    return PAGE.format(
        replications=large.replications,
        seed=large.seed,
        counts=sentence(found["verdict"] for found in large.claims.values()),
        rows="\n".join(rows),
    )


if __name__ == "__main__":
    sys.stdout.write(page())
