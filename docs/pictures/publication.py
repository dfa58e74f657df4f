"""Draw the figures of docs/figures.md, with the calls that the page shows."""

from pathlib import Path

import dynabandit as db

HERE = Path(__file__).parent


def main() -> None:
    runs = db.compare(["ucb", "ts", "aff-ots", "mix-ts"], "small-changes", replications=100, seed=1)
    run = db.simulate("aff-ots", "small-changes", seed=1, keep=("arms", "rewards"))
    figures = {
        "regret": db.plot.regret(runs),
        "boxes": db.plot.boxes(runs),
        "correct": db.plot.correct(runs, width="double", height=2.2),
        "paths": db.plot.paths(run),
        "beliefs": db.plot.beliefs(run),
    }
    for name, figure in figures.items():
        figure.savefig(HERE / f"publication-{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
