"""The paper's 21 claims as data. Words and rules were fixed before any result was seen."""

import itertools
from dataclasses import dataclass

from dynabandit.paper.labels import (
    BEATS,
    DOES_NOT_REACT,
    GOOD,
    INSENSITIVE,
    MUCH_BETTER,
    MUCH_WORSE,
    NEARLY_BEST,
    REACTS,
    SENSITIVE,
    SIMILAR,
    SLIGHTLY_WORSE,
    SOLIDLY_BETTER,
    VARIES_LESS,
    VARIES_MORE,
    VARIES_NO_LESS,
    VERY_GOOD,
)
from dynabandit.paper.lookup import ADAPTIVE, ARMS, CASES, DISCOUNTS, MANY, MEMORIES, PAPER, STEP_SIZES, WINDOWS, case
from dynabandit.paper.rule_types import (
    Bounds,
    MoreArms,
    Reaction,
    Rule,
    Settings,
    SettingsVersus,
    SettingVersus,
    Versus,
    VersusField,
)

__all__ = ["CLAIMS", "Claim"]

ABRUPT, DRIFT, MANY_ARMS = "4.2.1 Abrupt changes", "4.2.2 Drift", "4.2.3 Many arms"
SMALL = "small-changes"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that says something about results."""

    id: int
    section: str
    title: str
    statement: str
    """What the paper says, in our words."""
    rule: str
    """How it is judged, in one sentence."""
    rules: tuple[Rule, ...]

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments behind it."""
        return tuple(dict.fromkeys(one for rule in self.rules for one in rule.experiments))


def others(*policies: str) -> tuple[str, ...]:
    """Return the paper's policies but these."""
    return tuple(policy for policy in PAPER if policy not in policies)


def step_sizes(arms: int) -> tuple[Settings, ...]:
    """Return the adaptive policies over their step sizes."""
    return tuple(
        Settings(f"step-size-arms-{arms}", policy, "step_size", STEP_SIZES, INSENSITIVE) for policy in ADAPTIVE
    )


def rivals(arms: int) -> tuple[Settings, Settings]:
    """Return D-UCB over its discount and SW-UCB over its window."""
    experiment = f"discount-window-arms-{arms}"
    return (
        Settings(experiment, "d-ucb", "discount", DISCOUNTS, VARIES_MORE),
        Settings(experiment, "sw-ucb", "window", WINDOWS, VARIES_MORE),
    )


REACTING = ("aff-d-greedy", "aff-ucb1", "aff-ts", "aff-ots")
ALIKE = ("aff-d-greedy", "aff-ucb1", "aff-ts", "aff-ots", "sw-ucb")
LARGE = tuple(case(number, arms) for number in CASES for arms in MANY)

CLAIMS = (
    Claim(
        1, "4.1 Few changes", "Adaptive greedy and Thompson sampling are much better",
        "With two changes in 10,000 steps, AFF-d-Greedy, AFF-TS and AFF-OTS have far less regret than the "
        "standard policies they adapt.",
        "Each is much better than its standard policy: its mean total regret is below 0.8 times as large.",
        tuple(Versus(SMALL, one, MUCH_BETTER, ADAPTIVE[one]) for one in ("aff-d-greedy", "aff-ts", "aff-ots")),
    ),
    Claim(
        2, "4.1 Few changes", "AFF-UCB1 beats UCB and is close to SW-UCB",
        "Among the UCB policies AFF-UCB1 improves on UCB, and comes out about as well as SW-UCB.",
        "The paired difference to UCB lies below 0, and the ratio to SW-UCB between 0.8 and 1.25.",
        (Versus(SMALL, "aff-ucb1", BEATS, "ucb"), Versus(SMALL, "aff-ucb1", SIMILAR, "sw-ucb")),
    ),
    Claim(
        3, "4.1 Few changes", "AFF-UCB2 and D-UCB are slightly worse than UCB",
        "AFF-UCB2 and D-UCB lose a little against plain UCB.",
        "The ratio of each one's mean total regret to that of UCB lies between 1 and 1.25.",
        tuple(Versus(SMALL, one, SLIGHTLY_WORSE, "ucb") for one in ("aff-ucb2", "d-ucb")),
    ),
    Claim(
        4, "4.1 Few changes", "All adaptive policies but AFF-UCB2 react quickly",
        "The share of correct selections shows that the adaptive policies notice both changes, at steps 3000 and "
        "5000, and respond fairly quickly; AFF-UCB2 does not.",
        "In the 100 steps that end 500 steps after each change, more than half of the replications play the best "
        "arm; for AFF-UCB2 fewer than half do after step 3000. (At 5000 the best arm is again the one that a "
        "policy which never moved still plays, so that change says nothing about AFF-UCB2.)",
        (
            *(Reaction(policy, change, REACTS) for policy in REACTING for change in (3000, 5000)),
            Reaction("aff-ucb2", 3000, DOES_NOT_REACT),
        ),
    ),
    Claim(
        5, ABRUPT, "Case 1: adaptive beats standard, AFF-UCB2 excepted",
        "With two arms in Case 1 each adaptive policy improves on its standard policy, except AFF-UCB2, which "
        "comes out slightly worse than UCB.",
        "The paired difference lies below 0 for four policies; for AFF-UCB2 the ratio to UCB lies between 1 and "
        "1.25.",
        (
            *(Versus(case(1, 2), one, BEATS, ADAPTIVE[one]) for one in REACTING),
            Versus(case(1, 2), "aff-ucb2", SLIGHTLY_WORSE, "ucb"),
        ),
    ),
    Claim(
        6, ABRUPT, "Case 1: five policies are similar",
        "With two arms in Case 1 AFF-d-Greedy, AFF-UCB1, AFF-TS, AFF-OTS and SW-UCB come out alike.",
        "The ratio of mean total regret lies between 0.8 and 1.25 for each of the ten pairs.",
        tuple(Versus(case(1, 2), one, SIMILAR, two) for one, two in itertools.combinations(ALIKE, 2)),
    ),
    Claim(
        7, ABRUPT, "Case 2: like the standard policies, but steadier",
        "With two arms in Case 2, where one arm is better in the long run, adaptive and standard policies come "
        "out alike, but the adaptive ones, AFF-UCB2 excepted, vary less over replications.",
        "The ratio of mean total regret lies between 0.8 and 1.25 for each pair of an adaptive and a standard "
        "policy; the ratio of standard deviations lies below 1, for AFF-UCB2 above 0.8.",
        (
            *(Versus(case(2, 2), one, SIMILAR, two) for one, two in ADAPTIVE.items()),
            *(Versus(case(2, 2), one, VARIES_LESS, ADAPTIVE[one]) for one in REACTING),
            Versus(case(2, 2), "aff-ucb2", VARIES_NO_LESS, "ucb"),
        ),
    ),
    Claim(
        8, ABRUPT, "Cases 1 and 2: AFF-OTS is best or nearly best",
        "With two arms in Cases 1 and 2 AFF-OTS has the smallest total regret, or nearly so.",
        "The ratio of its mean total regret to that of the best other policy lies below 1.1.",
        tuple(
            VersusField(case(number, 2), "aff-ots", NEARLY_BEST, "best", others("aff-ots")) for number in (1, 2)
        ),
    ),
    Claim(
        9, DRIFT, "Case 3: adaptive beats standard",
        "With two arms in Case 3 the adaptive policies do better than the standard ones.",
        "The paired difference of total regret lies below 0 for each of the five pairs.",
        tuple(Versus(case(3, 2), one, BEATS, two) for one, two in ADAPTIVE.items()),
    ),
    Claim(
        10, DRIFT, "Case 4: TS improves solidly, the UCB policies are alike",
        "With two arms in Case 4 adaptive estimation improves TS solidly, while UCB, AFF-UCB1 and AFF-UCB2 come "
        "out alike.",
        "The ratio of AFF-TS to TS lies below 0.9; the ratios among the three UCB policies lie between 0.8 and "
        "1.25.",
        (
            Versus(case(4, 2), "aff-ts", SOLIDLY_BETTER, "ts"),
            Versus(case(4, 2), "aff-ucb1", SIMILAR, "ucb"),
            Versus(case(4, 2), "aff-ucb2", SIMILAR, "ucb"),
            Versus(case(4, 2), "aff-ucb1", SIMILAR, "aff-ucb2"),
        ),
    ),
    Claim(
        11, DRIFT, "Cases 3 and 4: AFF-OTS does very well",
        "With two arms AFF-OTS does very well in both drifting cases.",
        "The ratio of its mean total regret to that of the best other policy lies below 1.25.",
        tuple(
            VersusField(case(number, 2), "aff-ots", VERY_GOOD, "best", others("aff-ots")) for number in (3, 4)
        ),
    ),
    Claim(
        12, MANY_ARMS, "Gains hold for every policy",
        "With 50 and 100 arms, in all four cases, each adaptive policy improves on its standard policy.",
        "The paired difference of total regret lies below 0 for each of the five pairs in each of the eight "
        "experiments.",
        tuple(Versus(where, one, BEATS, two) for where in LARGE for one, two in ADAPTIVE.items()),
    ),
    Claim(
        13, MANY_ARMS, "AFF-UCB1 and AFF-UCB2 beat UCB",
        "With 50 and 100 arms, unlike with two, AFF-UCB1 and AFF-UCB2 do better than UCB in all cases.",
        "The paired difference of total regret to UCB lies below 0 for both in each of the eight experiments.",
        tuple(Versus(where, one, BEATS, "ucb") for where in LARGE for one in ("aff-ucb1", "aff-ucb2")),
    ),
    Claim(
        14, MANY_ARMS, "AFF-UCB2 is best",
        "With 50 and 100 arms AFF-UCB2 has the smallest regret in all cases.",
        "The paired difference of total regret to the best other policy lies below 0 in each of the eight "
        "experiments.",
        tuple(VersusField(where, "aff-ucb2", BEATS, "best", others("aff-ucb2")) for where in LARGE),
    ),
    Claim(
        15, MANY_ARMS, "D-UCB and SW-UCB are far behind",
        "With 50 and 100 arms D-UCB and SW-UCB do much worse than all the others.",
        "The ratio of each one's mean total regret to that of the worst other policy lies above 1.25 in each of "
        "the eight experiments.",
        tuple(
            VersusField(where, one, MUCH_WORSE, "worst", others("d-ucb", "sw-ucb"))
            for where in LARGE for one in ("d-ucb", "sw-ucb")
        ),
    ),
    Claim(
        16, MANY_ARMS, "AFF-OTS does well",
        "With 50 and 100 arms AFF-OTS does well in all cases.",
        "The ratio of its mean total regret to the median of the other ten policies, taken in each replication, "
        "lies below 1 in each of the eight experiments.",
        tuple(VersusField(where, "aff-ots", GOOD, "median", others("aff-ots")) for where in LARGE),
    ),
    Claim(
        17, MANY_ARMS, "50 and 100 arms look alike",
        "In all four cases the results with 50 and with 100 arms are very similar.",
        "For each case the ratio of mean total regret between 100 and 50 arms lies between 0.8 and 1.25 for each "
        "of the eleven policies, and the rank correlation between their means lies above 0.8.",
        tuple(MoreArms(number, PAPER) for number in CASES),
    ),
    Claim(
        18, "4.3.1 Initialisation", "No adaptive policy is sensitive to the step size",
        "In Case 3, with 2, 50 and 100 arms, none of the adaptive policies depends much on the step size, be it "
        "0.0001, 0.001, 0.01 or 0.0001 / s².",
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
        tuple(SettingsVersus(one, step_sizes(arms)) for arms in ARMS for one in rivals(arms)),
    ),
    Claim(
        20, "4.3.2 Dynamic Thompson sampling", "DTS is sensitive to C, AFF-DTS1 and AFF-DTS2 are not",
        "With two arms in Case 1 DTS depends much on its memory C in 5, 10, 100, 1000, and does much worse than "
        "AFF-DTS1 and AFF-DTS2 at 100 and 1000; these two hardly depend on the C they start from.",
        "The largest over the smallest mean total regret lies above 1.25 for DTS and below 1.25 for the other "
        "two; at C = 100 and 1000 the ratio of DTS to each of them lies above 1.25.",
        (
            Settings("memory", "dts", "memory", MEMORIES, SENSITIVE),
            Settings("memory", "aff-dts1", "memory", MEMORIES, INSENSITIVE),
            Settings("memory", "aff-dts2", "memory", MEMORIES, INSENSITIVE),
            *(
                SettingVersus("memory", "dts", one, "memory", value, MUCH_WORSE)
                for value in (100, 1000) for one in ("aff-dts1", "aff-dts2")
            ),
        ),
    ),
    Claim(
        21, "Appendix A", "The bonus bounds the error",
        "The expected adaptive mean exceeds the adaptive mean by the bonus or more with probability at most 0.05.",
        "For each set of simulated streams the interval of the share that exceeds the bonus lies below 0.05.",
        (Bounds(),),
    ),
)  # fmt: skip
