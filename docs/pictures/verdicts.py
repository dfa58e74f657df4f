"""Print docs/paper-verdicts.md from the output folder of `dynabandit paper`, such as out/paper.

With --reference before the folder it prints src/dynabandit/paper/reference.json for a large run, such as `dynabandit
paper --backend cuda --replications 5000`: the report shows its verdicts next to those of a smaller run.
"""

import json
import sys
from pathlib import Path

import dynabandit as db
from dynabandit.paper.verdicts import reference

VERBS = {  # singular and plural
    "holds": ("holds", "hold"),
    "holds in part": ("holds in part", "hold in part"),
    "does not hold": ("does not hold", "do not hold"),
    "not run": ("was not run", "were not run"),
}
HEAD = """# Results for the paper's claims

The claims of *On Adaptive Estimation for Dynamic Bernoulli Bandits* and the results of its experiments, run by
`dynabandit paper` with {replications} replications and seed {seed}. The [rules](paper-claims.md) were fixed before the
data were seen. `python docs/pictures/verdicts.py out/paper` prints this page.

{counts}

A claim holds in part if some of its comparisons hold and others do not or are inconclusive. The report of `dynabandit
paper` has all comparisons with their intervals.

| | claim | verdict | comparisons that hold |
|--:|---|---|--:|
"""


def page(found: dict) -> str:
    counts = ", ".join(f"{count} {VERBS[verdict][count > 1]}" for verdict, count in found["counts"].items() if count)
    counts = f"{len(found['claims'])} claims were checked: {counts}."
    head = HEAD.format(replications=found["replications"], seed=found["seed"], counts=counts)
    rows = []
    for claim in found["claims"]:
        held = sum(part["evidence"] == "for" for part in claim["parts"])
        rows.append(f"| {claim['id']} | {claim['title']} | **{claim['verdict']}** | {held} of {len(claim['parts'])} |")
    return head + "\n".join(rows) + "\n"


if __name__ == "__main__":
    *options, folder = sys.argv[1:]
    if options == ["--reference"]:
        kept = reference(db.Results.load(Path(folder) / "results"))
        sys.stdout.write(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    else:
        sys.stdout.write(page(json.loads((Path(folder) / "claims.json").read_text(encoding="utf-8"))))
