"""Print docs/paper-verdicts.md: the verdicts of the large run that comes with the package."""

import sys

from dynabandit.paper import large_run
from dynabandit.paper.claims import CLAIMS
from dynabandit.paper.report import sentence

PAGE = """# Results for the paper's claims

The claims of *On Adaptive Estimation for Dynamic Bernoulli Bandits* and the verdicts on them from its experiments with
{replications:,} replications and seed {seed}. The [rules](paper-claims.md) were fixed before the data were seen. The
verdicts come with the package, and the report of `dynabandit paper` shows them next to those of your own run, with the
interval of every comparison. `python docs/pictures/verdicts.py` prints this page.

{counts}.

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
