"""The paper's 21 claims as data. Statements and rules were fixed before any result was seen."""

import itertools
from dataclasses import dataclass

from dynabandit.paper import criteria, lookup
from dynabandit.paper.lookup import ADAPTIVE, ARMS, CASES, MANY, POLICIES, case_id
from dynabandit.paper.rule_types import (
    BoundCoverage,
    ClaimRule,
    Comparison,
    ComparisonAtSetting,
    ComparisonWithOthers,
    MoreArms,
    Reaction,
    RelativeSensitivity,
    Sensitivity,
)  # fmt: skip

ABRUPT, DRIFT, MANY_ARMS = "4.2.1 Abrupt changes", "4.2.2 Drift", "4.2.3 Many arms"
SMALL = "small-changes"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that says something about results."""

    id: int
    section: str
    title: str
    statement: str
    """What the paper says, paraphrased."""
    rule: str
    """How it is judged, in one sentence."""
    rules: tuple[ClaimRule, ...]

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments that its rules need."""
        return tuple(dict.fromkeys(experiment for rule in self.rules for experiment in rule.experiments))


def others(*policies: str) -> tuple[str, ...]:
    """Return the paper's policies except these."""
    return tuple(policy for policy in POLICIES if policy not in policies)


def step_sizes(arms: int) -> tuple[Sensitivity, ...]:
    """Return the sensitivity of each adaptive policy to its step size."""
    return tuple(
        Sensitivity(f"step-size-arms-{arms}", policy, "step_size", lookup.STEP_SIZES, criteria.INSENSITIVE)
        for policy in ADAPTIVE
    )


def discount_and_window(arms: int) -> tuple[Sensitivity, Sensitivity]:
    """Return the sensitivity of D-UCB to its discount and of SW-UCB to its window."""
    experiment = f"discount-window-arms-{arms}"
    return (
        Sensitivity(experiment, "d-ucb", "discount", lookup.DISCOUNTS, criteria.VARIES_MORE),
        Sensitivity(experiment, "sw-ucb", "window", lookup.WINDOWS, criteria.VARIES_MORE),
    )


REACTING = ("aff-d-greedy", "aff-ucb1", "aff-ts", "aff-ots")
ALIKE = ("aff-d-greedy", "aff-ucb1", "aff-ts", "aff-ots", "sw-ucb")
LARGE = tuple(case_id(number, arms) for number in CASES for arms in MANY)

CLAIMS = (
    Claim(
        1, "4.1 Few changes", "Adaptive greedy and Thompson sampling are much better",
        "With two changes in 10,000 steps, AFF-d-Greedy, AFF-TS and AFF-OTS have much less regret than the "
        "standard policies that they adapt.",
        "The ratio of each one's mean total regret to that of its standard policy lies below 0.8.",
        tuple(
            Comparison(SMALL, policy, criteria.MUCH_BETTER, ADAPTIVE[policy])
            for policy in ("aff-d-greedy", "aff-ts", "aff-ots")
        ),
    ),
    Claim(
        2, "4.1 Few changes", "AFF-UCB1 beats UCB and is close to SW-UCB",
        "Among the UCB policies, AFF-UCB1 improves on UCB and is about as good as SW-UCB.",
        "The paired difference to UCB lies below 0, and the ratio to SW-UCB between 0.8 and 1.25.",
        (
            Comparison(SMALL, "aff-ucb1", criteria.BEATS, "ucb"),
            Comparison(SMALL, "aff-ucb1", criteria.SIMILAR, "sw-ucb"),
        ),
    ),
    Claim(
        3, "4.1 Few changes", "AFF-UCB2 and D-UCB are slightly worse than UCB",
        "AFF-UCB2 and D-UCB have slightly more regret than UCB.",
        "The ratio of each one's mean total regret to that of UCB lies between 1 and 1.25.",
        tuple(Comparison(SMALL, policy, criteria.SLIGHTLY_WORSE, "ucb") for policy in ("aff-ucb2", "d-ucb")),
    ),
    Claim(
        4, "4.1 Few changes", "All adaptive policies but AFF-UCB2 react quickly",
        "The share of correct selections shows that the adaptive policies react fairly quickly to both changes, at "
        "steps 3000 and 5000; AFF-UCB2 does not.",
        "In the 100 steps that end 500 steps after each change, more than half of the replications play the best "
        "arm; for AFF-UCB2 fewer than half do after step 3000. (At step 5000 the best arm is again the first one, "
        "which a policy that did not react is still playing, so that change says nothing about AFF-UCB2.)",
        (
            *(Reaction(policy, change, criteria.REACTS) for policy in REACTING for change in (3000, 5000)),
            Reaction("aff-ucb2", 3000, criteria.DOES_NOT_REACT),
        ),
    ),
    Claim(
        5, ABRUPT, "Case 1: adaptive beats standard, AFF-UCB2 excepted",
        "With two arms in Case 1 each adaptive policy improves on its standard policy, except AFF-UCB2, which "
        "is slightly worse than UCB.",
        "The paired difference lies below 0 for four policies; for AFF-UCB2 the ratio to UCB lies between 1 and "
        "1.25.",
        (
            *(Comparison(case_id(1, 2), policy, criteria.BEATS, ADAPTIVE[policy]) for policy in REACTING),
            Comparison(case_id(1, 2), "aff-ucb2", criteria.SLIGHTLY_WORSE, "ucb"),
        ),
    ),
    Claim(
        6, ABRUPT, "Case 1: five policies are similar",
        "With two arms in Case 1 AFF-d-Greedy, AFF-UCB1, AFF-TS, AFF-OTS and SW-UCB perform similarly.",
        "The ratio of mean total regret lies between 0.8 and 1.25 for each of the ten pairs.",
        tuple(
            Comparison(case_id(1, 2), policy, criteria.SIMILAR, other)
            for policy, other in itertools.combinations(ALIKE, 2)
        ),
    ),
    Claim(
        7, ABRUPT, "Case 2: like the standard policies, but steadier",
        "With two arms in Case 2, where one arm is better in the long run, adaptive and standard policies perform "
        "similarly, but the adaptive ones, except AFF-UCB2, vary less over replications.",
        "The ratio of mean total regret lies between 0.8 and 1.25 for each pair of an adaptive and a standard "
        "policy; the ratio of standard deviations lies below 1, for AFF-UCB2 above 0.8.",
        (
            *(Comparison(case_id(2, 2), policy, criteria.SIMILAR, other) for policy, other in ADAPTIVE.items()),
            *(Comparison(case_id(2, 2), policy, criteria.VARIES_LESS, ADAPTIVE[policy]) for policy in REACTING),
            Comparison(case_id(2, 2), "aff-ucb2", criteria.VARIES_NO_LESS, "ucb"),
        ),
    ),
    Claim(
        8, ABRUPT, "Cases 1 and 2: AFF-OTS is best or nearly best",
        "With two arms in Cases 1 and 2 AFF-OTS has the smallest or nearly the smallest total regret.",
        "The ratio of its mean total regret to that of the best other policy lies below 1.1.",
        tuple(
            ComparisonWithOthers(case_id(number, 2), "aff-ots", criteria.NEARLY_BEST, "best", others("aff-ots"))
            for number in (1, 2)
        ),
    ),
    Claim(
        9, DRIFT, "Case 3: adaptive beats standard",
        "With two arms in Case 3 the adaptive policies do better than the standard ones.",
        "The paired difference of total regret lies below 0 for each of the five pairs.",
        tuple(Comparison(case_id(3, 2), policy, criteria.BEATS, other) for policy, other in ADAPTIVE.items()),
    ),
    Claim(
        10, DRIFT, "Case 4: TS improves solidly, the UCB policies are alike",
        "With two arms in Case 4 adaptive estimation improves TS solidly, while UCB, AFF-UCB1 and AFF-UCB2 perform "
        "similarly.",
        "The ratio of AFF-TS to TS lies below 0.9; the ratios among the three UCB policies lie between 0.8 and "
        "1.25.",
        (
            Comparison(case_id(4, 2), "aff-ts", criteria.SOLIDLY_BETTER, "ts"),
            Comparison(case_id(4, 2), "aff-ucb1", criteria.SIMILAR, "ucb"),
            Comparison(case_id(4, 2), "aff-ucb2", criteria.SIMILAR, "ucb"),
            Comparison(case_id(4, 2), "aff-ucb1", criteria.SIMILAR, "aff-ucb2"),
        ),
    ),
    Claim(
        11, DRIFT, "Cases 3 and 4: AFF-OTS does very well",
        "With two arms AFF-OTS does very well in both drifting cases.",
        "The ratio of its mean total regret to that of the best other policy lies below 1.25.",
        tuple(
            ComparisonWithOthers(case_id(number, 2), "aff-ots", criteria.VERY_GOOD, "best", others("aff-ots"))
            for number in (3, 4)
        ),
    ),
    Claim(
        12, MANY_ARMS, "Gains hold for every policy",
        "With 50 and 100 arms, in all four cases, each adaptive policy improves on its standard policy.",
        "The paired difference of total regret lies below 0 for each of the five pairs in each of the eight "
        "experiments.",
        tuple(
            Comparison(where, policy, criteria.BEATS, other)
            for where in LARGE for policy, other in ADAPTIVE.items()
        ),
    ),
    Claim(
        13, MANY_ARMS, "AFF-UCB1 and AFF-UCB2 beat UCB",
        "With 50 and 100 arms, unlike with two, AFF-UCB1 and AFF-UCB2 do better than UCB in all cases.",
        "The paired difference of total regret to UCB lies below 0 for both in each of the eight experiments.",
        tuple(
            Comparison(where, policy, criteria.BEATS, "ucb")
            for where in LARGE for policy in ("aff-ucb1", "aff-ucb2")
        ),
    ),
    Claim(
        14, MANY_ARMS, "AFF-UCB2 is best",
        "With 50 and 100 arms AFF-UCB2 has the smallest regret in all cases.",
        "The paired difference of total regret to the best other policy lies below 0 in each of the eight "
        "experiments.",
        tuple(ComparisonWithOthers(where, "aff-ucb2", criteria.BEATS, "best", others("aff-ucb2")) for where in LARGE),
    ),
    Claim(
        15, MANY_ARMS, "D-UCB and SW-UCB are far behind",
        "With 50 and 100 arms D-UCB and SW-UCB do much worse than all the others.",
        "The ratio of each one's mean total regret to that of the worst other policy lies above 1.25 in each of "
        "the eight experiments.",
        tuple(
            ComparisonWithOthers(where, policy, criteria.MUCH_WORSE, "worst", others("d-ucb", "sw-ucb"))
            for where in LARGE for policy in ("d-ucb", "sw-ucb")
        ),
    ),
    Claim(
        16, MANY_ARMS, "AFF-OTS does well",
        "With 50 and 100 arms AFF-OTS does well in all cases.",
        "The ratio of its mean total regret to the median of the other ten policies, taken in each replication, "
        "lies below 1 in each of the eight experiments.",
        tuple(ComparisonWithOthers(where, "aff-ots", criteria.GOOD, "median", others("aff-ots")) for where in LARGE),
    ),
    Claim(
        17, MANY_ARMS, "50 and 100 arms look alike",
        "In all four cases the results with 50 and with 100 arms are very similar.",
        "For each case the ratio of mean total regret between 100 and 50 arms lies between 0.8 and 1.25 for each "
        "of the eleven policies, and the rank correlation between their means lies above 0.8.",
        tuple(MoreArms(number, POLICIES) for number in CASES),
    ),
    Claim(
        18, "4.3.1 Initialisation", "No adaptive policy is sensitive to the step size",
        "In Case 3, with 2, 50 and 100 arms, none of the adaptive policies depends much on the step size (0.0001, "
        "0.001, 0.01 or 0.0001 / s²).",
        "For each policy and number of arms, the largest over the smallest of the four mean total regrets lies "
        "below 1.25.",
        tuple(settings for arms in ARMS for settings in step_sizes(arms)),
    ),
    Claim(
        19, "4.3.1 Initialisation", "D-UCB and SW-UCB vary more",
        "D-UCB depends more on its discount (tuned, 0.99, 0.8, 0.5), and SW-UCB on its window (tuned, 10, 100, "
        "1000), than the adaptive policies do on their step size.",
        "For each number of arms, its largest over smallest mean total regret, divided by that of the most "
        "sensitive adaptive policy, lies above 1.",
        tuple(
            RelativeSensitivity(sensitivity, step_sizes(arms))
            for arms in ARMS for sensitivity in discount_and_window(arms)
        ),
    ),
    Claim(
        20, "4.3.2 Dynamic Thompson sampling", "DTS is sensitive to C, AFF-DTS1 and AFF-DTS2 are not",
        "With two arms in Case 1 DTS depends strongly on its memory C (5, 10, 100 or 1000) and is much worse than "
        "AFF-DTS1 and AFF-DTS2 at 100 and 1000. These two depend little on their initial C.",
        "The largest over the smallest mean total regret lies above 1.25 for DTS and below 1.25 for the other "
        "two; at C = 100 and 1000 the ratio of DTS to each of them lies above 1.25.",
        (
            Sensitivity("memory", "dts", "memory", lookup.MEMORIES, criteria.SENSITIVE),
            Sensitivity("memory", "aff-dts1", "memory", lookup.MEMORIES, criteria.INSENSITIVE),
            Sensitivity("memory", "aff-dts2", "memory", lookup.MEMORIES, criteria.INSENSITIVE),
            *(
                ComparisonAtSetting("memory", "dts", policy, "memory", value, criteria.MUCH_WORSE)
                for value in (100, 1000) for policy in ("aff-dts1", "aff-dts2")
            ),
        ),
    ),
    Claim(
        21, "Appendix A", "The bonus bounds the error",
        "The expected adaptive mean exceeds the adaptive mean by the bonus or more with probability at most 0.05.",
        "For each set of simulated streams the interval of the share of streams that exceed the bonus lies below "
        "0.05.",
        (BoundCoverage(),),
    ),
)  # fmt: skip
