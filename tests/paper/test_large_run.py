"""The verdicts of the large run that come with the package, and how they are made."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dynabandit.experiments import RunOptions, Spec
from dynabandit.paper import large_run
from dynabandit.paper.verdicts import VERDICTS, decide, judge
from dynabandit.results import Results
from tools.fakes import fake_paper, only

DOCS = Path(__file__).parents[2] / "docs"
METADATA = {"seed": 7, "precision": "mixed", "backends": {"memory": "cuda"}, "versions": {"dynabandit": "0.2.0"}}


@pytest.fixture(scope="module")
def some(results: Results) -> Results:
    part = only(results, "small-changes", "case-1-arms-2", "memory")
    return Results(part.runs, METADATA, coverage=results.coverage)


def test_the_package_has_the_verdicts_of_at_least_5000_replications() -> None:
    large = large_run.load()
    assert large.replications >= 5000
    assert list(large.claims) == list(range(1, 22))
    for claim in large.claims.values():
        assert claim["verdict"] == decide(claim["for"], claim["against"], claim["open"])
        assert claim["verdict"] in VERDICTS
        evidence = [part["evidence"] for part in claim["parts"]]
        assert not evidence or [evidence.count(one) for one in ("for", "against", "open")] == [
            claim["for"], claim["against"], claim["open"],
        ]  # fmt: skip


def test_the_page_of_the_documentation_has_these_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS / "pictures"))
    import verdicts  # type: ignore[import-not-found]

    written = (DOCS / "paper-verdicts.md").read_text(encoding="utf-8")
    assert written == verdicts.page(), "run: python docs/pictures/verdicts.py > docs/paper-verdicts.md"


def test_a_large_run_keeps_verdicts_effects_and_how_it_was_made(some: Results, tmp_path: Path) -> None:
    file = tmp_path / "large_run.json"
    file.write_text(json.dumps(large_run.summarise(some), allow_nan=False))
    large = large_run.load(file)
    assert (large.version, large.replications, large.seed, large.precision) == ("0.2.0", 40, 7, "mixed")
    judged = judge(some)
    for verdict in judged:
        kept = large.claims[verdict.claim.id]
        assert {name: kept[name] for name in ("verdict", "for", "against", "open")} == verdict.summary()
        for index, part in enumerate(verdict.parts):
            again = large.part(verdict, index)
            assert again
            assert (again.text, again.evidence) == (part.text, part.evidence)
            np.testing.assert_allclose(again.effect, part.effect, rtol=1e-5)
    growing = large.variants["aff-ucb2-growing"]
    assert [row.experiment for row in growing] == ["small number of changes", "Case 1, 2 arms"]
    assert growing[0].ratio.value == pytest.approx(700 / 900)
    first = judged[0]
    assert large.part(type(first)(first.claim, first.parts[:1]), 0) is None  # measured by other rules


def test_total_regrets_and_shares_are_enough_to_judge(some: Results, tmp_path: Path) -> None:
    large_run.save_totals(some, tmp_path / "totals.npz")
    assert (tmp_path / "totals.npz").stat().st_size < 4 * 40 * len(some) + 200_000
    again = large_run.load_totals(tmp_path / "totals.npz")
    for before, after in zip(judge(some), judge(again), strict=True):
        assert after.summary() == before.summary()
        for one, two in zip(before.parts, after.parts, strict=True):
            # Not closer, since the largest of equal means may be another one
            np.testing.assert_allclose(one.effect, two.effect, rtol=0.02, atol=0.02)


def test_both_steps_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = fake_paper()
    paper.replications = 5000
    part = only(paper.results(), "memory")
    simulated = Results(part.runs, METADATA)
    asked: list[tuple[int, str, str]] = []

    def compute(spec: Spec, folder: Path, options: RunOptions, reporter: object) -> Results:
        asked.append((spec.experiments[0].replications, options.backend, options.precision))
        folder.mkdir()
        return simulated

    monkeypatch.setattr(large_run, "compute", compute)
    monkeypatch.setattr(large_run, "FILE", tmp_path / "large_run.json")
    for module in ("pyarrow", "scipy", "typer", "rich", "matplotlib", "plotly", "jinja2"):
        monkeypatch.setitem(sys.modules, module, None)
    options = ["--replications", "5000", "--backend", "cuda", "--precision", "mixed"]
    large_run.main(["simulate", str(tmp_path / "out"), *options])
    monkeypatch.undo()
    monkeypatch.setattr(large_run, "FILE", tmp_path / "large_run.json")
    assert asked == [(5000, "cuda", "mixed")]
    large_run.main(["judge", str(tmp_path / "out" / "totals.npz")])
    large = large_run.load()
    assert large.replications == 5000
    assert large.claims[20]["verdict"] == "holds"


def test_few_replications_are_not_a_large_run(
    some: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large_run.save_totals(some, tmp_path / "totals.npz")
    with pytest.raises(SystemExit):
        large_run.main(["judge", str(tmp_path / "totals.npz")])
    assert "a large run has at least 5,000 replications, got 40" in capsys.readouterr().err
