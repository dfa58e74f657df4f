"""The rule of each claim decides both ways."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dynabandit.paper import criteria, lookup, verdicts
from dynabandit.paper.claims import CLAIMS, Claim
from dynabandit.paper.claims_page import document
from dynabandit.paper.rule_types import ClaimPart
from dynabandit.results import Results
from dynabandit.stats.intervals import Estimate
from tools.fakes import ADAPTIVE, SETTINGS, STANDARD, STEP_SIZES, FakePaper, fake_paper, fake_run, only, shortened

ROOT = Path(__file__).parents[2]
LARGE = [f"case-{number}-arms-{arms}" for number in (1, 2, 3, 4) for arms in (50, 100)]
Change = Callable[[FakePaper], None]


def regret(*experiments: str, **policies: float) -> Change:
    """Give policies, whose names have _ for -, other mean regrets."""

    def change(paper: FakePaper) -> None:
        for experiment in experiments:
            paper.put(experiment, {policy.replace("_", "-"): mean for policy, mean in policies.items()})

    return change


def adaptive(mean: float) -> dict[str, float]:
    return {policy.replace("-", "_"): mean for policy in ADAPTIVE}


def settings(experiment: str, means: list[float], *policies: str) -> Change:
    def change(paper: FakePaper) -> None:
        for policy in policies:
            values = STEP_SIZES if experiment.startswith("step") else SETTINGS[policy][1]
            paper.settings(experiment, policy, values, means)

    return change


def every(*changes: Change) -> Change:
    def change(paper: FakePaper) -> None:
        for one in changes:
            one(paper)

    return change


def case_two_otherwise(paper: FakePaper) -> None:
    for policy in ADAPTIVE:
        paper.means["case-2-arms-2", policy, None] = 1500.0
        paper.deviations["case-2-arms-2", policy, None] = 0.1
    paper.deviations["case-2-arms-2", "aff-ucb2", None] = 0.001


def nobody_reacts(paper: FakePaper) -> None:
    paper.reacting = {("aff-ucb2", 3000)}


def one_does_not_react(paper: FakePaper) -> None:
    paper.reacting.discard(("aff-ts", 5000))


def hundred_arms_otherwise(paper: FakePaper) -> None:
    for number in (1, 2, 3, 4):
        for policy in ("eps-greedy", *STANDARD, *ADAPTIVE):
            fewer = paper.means[f"case-{number}-arms-50", policy, None]
            paper.means[f"case-{number}-arms-100", policy, None] = 40_000_000.0 / fewer


def bounds_exceeded(*exceeded: int) -> Change:
    def change(paper: FakePaper) -> None:
        paper.exceeded = list(exceeded)

    return change


STEEP = [100.0, 200.0, 400.0, 800.0]
FLAT = [500.0] * 4
SELF_TUNING = ("aff-dts1", "aff-dts2")
SMALL, ONE, TWO, THREE, FOUR = "small-changes", *(f"case-{number}-arms-2" for number in (1, 2, 3, 4))
CHANGED: dict[int, tuple[Change, Change]] = {
    # claim: (so that it is contradicted, so that it holds in part)
    1: (
        regret(SMALL, aff_d_greedy=1000.0, aff_ts=1000.0, aff_ots=1000.0),
        regret(SMALL, aff_ts=850.0),
    ),
    2: (regret(SMALL, aff_ucb1=1600.0), regret(SMALL, aff_ucb1=200.0)),
    3: (regret(SMALL, aff_ucb2=700.0, d_ucb=1600.0), regret(SMALL, aff_ucb2=700.0)),
    4: (nobody_reacts, one_does_not_react),
    5: (
        regret(ONE, aff_d_greedy=1600.0, aff_ucb1=1600.0, aff_ts=1600.0, aff_ots=1600.0, aff_ucb2=700.0),
        regret(ONE, aff_ucb2=700.0),
    ),
    6: (
        regret(ONE, aff_d_greedy=100.0, aff_ucb1=200.0, aff_ts=400.0, aff_ots=800.0, sw_ucb=1600.0),
        regret(ONE, sw_ucb=700.0),
    ),
    7: (case_two_otherwise, regret(TWO, aff_ts=800.0)),
    8: (regret(ONE, TWO, aff_ots=3000.0), regret(TWO, aff_ots=600.0)),
    9: (regret(THREE, **adaptive(1500.0)), regret(THREE, aff_ucb2=1500.0)),
    10: (regret(FOUR, aff_ts=950.0, ucb=100.0, aff_ucb1=200.0, aff_ucb2=400.0), regret(FOUR, aff_ts=950.0)),
    11: (regret(THREE, FOUR, aff_ots=2000.0), regret(FOUR, aff_ots=2000.0)),
    12: (
        regret(*LARGE, **adaptive(9000.0)),
        regret(LARGE[3], aff_ts=9000.0),
    ),
    13: (regret(*LARGE, aff_ucb1=9000.0, aff_ucb2=9000.0), regret(LARGE[0], aff_ucb1=9000.0)),
    14: (regret(*LARGE, aff_ucb2=9000.0), regret(LARGE[7], aff_ucb2=1250.0)),
    15: (regret(*LARGE, d_ucb=2700.0, sw_ucb=500.0), regret(LARGE[2], sw_ucb=3000.0)),
    16: (regret(*LARGE, aff_ots=9000.0), regret(LARGE[5], aff_ots=9000.0)),
    17: (hundred_arms_otherwise, regret(LARGE[1], ucb=9000.0)),
    18: (
        every(*(settings(f"step-size-arms-{arms}", STEEP, *ADAPTIVE) for arms in (2, 50, 100))),
        settings("step-size-arms-50", STEEP, "aff-ts"),
    ),
    19: (
        every(*(settings(f"discount-window-arms-{arms}", FLAT, "d-ucb", "sw-ucb") for arms in (2, 50, 100)),
              *(settings(f"step-size-arms-{arms}", STEEP, "aff-ts") for arms in (2, 50, 100))),
        every(settings("discount-window-arms-50", FLAT, "sw-ucb"), settings("step-size-arms-50", STEEP, "aff-ts")),
    ),
    20: (
        every(settings("memory", FLAT, "dts"), settings("memory", [300.0, 400.0, 500.0, 900.0], *SELF_TUNING)),
        settings("memory", STEEP, "aff-dts2"),
    ),
    21: (bounds_exceeded(900, 900, 900, 900), bounds_exceeded(10, 10, 900, 10)),
}  # fmt: skip


def judged(number: int, change: Change) -> verdicts.Verdict:
    paper = fake_paper()
    change(paper)
    return verdicts.judge_one(CLAIMS[number - 1], paper.results())


def parts(verdict: verdicts.Verdict) -> str:
    return "\n".join(f"{part.text}: {part.effect}, {part.evidence}" for part in verdict.parts)


@pytest.fixture(scope="module")
def all_judged(results: Results) -> list[verdicts.Verdict]:
    return verdicts.judge(results)


def test_all_claims_hold_where_they_should(all_judged: list[verdicts.Verdict]) -> None:
    for verdict in all_judged:
        assert verdict.verdict == "holds", f"claim {verdict.claim.id}\n{parts(verdict)}"


@pytest.mark.parametrize("number", range(1, 22))
def test_a_claim_is_refuted_by_data_against_it(number: int) -> None:
    verdict = judged(number, CHANGED[number][0])
    assert verdict.verdict == "contradicted", parts(verdict)
    assert verdict.count("against") == len(verdict.parts), parts(verdict)


@pytest.mark.parametrize("number", range(1, 22))
def test_a_claim_holds_in_part_when_one_part_fails(number: int) -> None:
    verdict = judged(number, CHANGED[number][1])
    assert verdict.verdict == "holds in part", parts(verdict)


def test_a_claim_with_undecided_parts_is_inconclusive_unless_a_part_is_contradicted() -> None:
    paper = fake_paper()
    paper.deviations.update({(SMALL, policy, None): 2.0 for policy in ("aff-ucb1", "ucb", "sw-ucb")})
    verdict = verdicts.judge_one(CLAIMS[1], paper.results())
    assert verdict.summary() == {"verdict": "inconclusive", "for": 0, "against": 0, "open": 2}
    assert verdicts.decide(1, 0, 1) == "inconclusive"
    assert verdicts.decide(1, 1, 1) == "holds in part"
    assert verdicts.decide(0, 1, 1) == "contradicted"


@pytest.mark.parametrize(
    ("effect", "evidence"),
    [
        ((1.1, 1.01, 1.24), "for"),
        ((1.1, 0.99, 1.24), "open"),
        ((1.1, 1.01, 1.26), "open"),
        ((0.9, 0.8, 1.0), "against"),
        ((1.5, 1.25, 1.7), "against"),
        ((1.0, 1.0, 1.0), "against"),
        ((1.1, float("nan"), float("nan")), "open"),
    ],
)
def test_evidence_is_where_the_interval_lies(effect: tuple[float, float, float], evidence: str) -> None:
    assert ClaimPart("", criteria.SLIGHTLY_WORSE, Estimate(*effect), ()).evidence == evidence


def test_equal_policies_do_not_beat_each_other() -> None:
    runs = [fake_run("small-changes", policy, [1.0, 2.0, 3.0]) for policy in ("ucb", "sw-ucb", "aff-ucb1")]
    beats, similar = verdicts.judge(Results(runs))[1].parts
    assert beats.effect == (0.0, 0.0, 0.0)
    assert beats.evidence == "against"
    assert similar.evidence == "for"


def test_a_claim_without_its_experiments_is_not_run_and_says_what_is_missing() -> None:
    some = only(fake_paper().results(), "small-changes", "step-size-arms-2")
    found = {verdict.claim.id: verdict for verdict in verdicts.judge(some)}
    assert found[1].verdict == "holds"
    assert found[5].verdict == "not run"
    assert found[5].reason == "case-1-arms-2 was not run"
    assert found[18].reason == "step-size-arms-50, step-size-arms-100 were not run"
    assert found[21].reason == "bounds was not run"


def test_a_missing_policy_is_named() -> None:
    runs = [fake_run("small-changes", policy, [1.0, 2.0]) for policy in ("ucb", "aff-ucb1")]
    assert verdicts.judge(Results(runs))[1].reason == "small-changes has no sw-ucb"


def test_one_replication_gives_no_verdict() -> None:
    found = verdicts.judge(shortened(fake_paper().results(), 1))
    assert {verdict.verdict for verdict in found[:20]} == {"not run"}
    assert "one replication" in found[0].reason


def test_the_first_replications_can_be_judged_alone() -> None:
    found = verdicts.judge(lookup.first_replications(only(fake_paper().results(), "small-changes"), 20))
    assert [found[number].verdict for number in (0, 3)] == ["holds", "holds"]


def test_results_that_keep_shares_over_all_replications_only_are_not_judged_by_the_first_ones() -> None:
    kept = [replace(run, correct_by_replication=None) for run in only(fake_paper().results(), "small-changes")]
    claim = verdicts.judge(lookup.first_replications(Results(kept), 20))[3]
    assert claim.verdict == "not run"
    assert claim.reason == "these results keep the share of correct selections over all replications only"


def test_claims_json_says_for_each_claim_what_decided_it(results: Results, all_judged: list[verdicts.Verdict]) -> None:
    text = json.dumps(verdicts.as_json(all_judged, results), allow_nan=False)
    kept = json.loads(text)
    assert kept["replications"] == 40
    assert kept["counts"] == {
        "holds": 21, "holds in part": 0, "contradicted": 0, "inconclusive": 0, "not run": 0,
    }  # fmt: skip
    assert [claim["id"] for claim in kept["claims"]] == list(range(1, 22))
    for claim in kept["claims"]:
        assert claim["verdict"] in verdicts.VERDICTS
        assert claim["statement"]
        assert claim["rule"]
        assert claim["parts"]
        for part in claim["parts"]:
            effect, region = part["effect"], part["region"]
            assert effect["low"] <= effect["value"] <= effect["high"]
            assert region["low"] is None or region["low"] < effect["low"]
            assert region["high"] is None or region["high"] > effect["high"]
            assert part["evidence"] == "for"
            assert {run["experiment"] for run in part["runs"]} <= set(claim["experiments"])
            assert all(run["policy"] for run in part["runs"])


def test_the_document_is_the_rules() -> None:
    written = (ROOT / "docs" / "paper-claims.md").read_text(encoding="utf-8")
    assert written == document(), "run: python -m dynabandit.paper.claims_page > docs/paper-claims.md"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.id))
def test_the_sentence_of_a_rule_names_the_numbers_that_the_code_uses(
    claim: Claim, all_judged: list[verdicts.Verdict]
) -> None:
    used = {part.criterion for part in all_judged[claim.id - 1].parts}
    numbers = set(re.findall(r"\d+(?:\.\d+)?", claim.rule))
    for criterion in used:
        for end in (criterion.low, criterion.high):
            if abs(end) == float("inf"):
                continue
            assert f"{end:g}" in numbers or (end == 0.5 and "half" in claim.rule), f"{end:g} is not in: {claim.rule}"


def test_criteria_are_all_used_and_all_explained(all_judged: list[verdicts.Verdict]) -> None:
    used = {part.criterion for verdict in all_judged for part in verdict.parts}
    assert used == set(criteria.CRITERIA)
    assert {one.measure for one in criteria.CRITERIA} == set(criteria.METHODS)
