"""What the paper's words mean in numbers; fixed before any result was seen."""

import math
from dataclasses import dataclass

__all__ = [
    "BEATS", "BOUNDED", "DEVIATION", "DIFFERENCE", "DOES_NOT_REACT", "GOOD", "INSENSITIVE", "METHODS", "MUCH_BETTER",
    "MUCH_WORSE", "NEARLY_BEST", "ORDER", "RATE", "RATIO", "REACTS", "RELATIVE", "SAME_LEVEL", "SAME_ORDER",
    "SENSITIVE", "SENSITIVITY", "SHARE", "SIMILAR", "SLIGHTLY_WORSE", "SOLIDLY_BETTER", "VARIES_LESS", "VARIES_MORE",
    "VARIES_NO_LESS", "VERY_GOOD", "WORDS", "Word",
]  # fmt: skip

DIFFERENCE = "paired difference of total regret"
RATIO = "ratio of mean total regret"
DEVIATION = "ratio of the standard deviations of total regret"
SHARE = "share of correct selections"
SENSITIVITY = "largest over smallest mean total regret"
RELATIVE = "ratio of two sensitivities"
ORDER = "rank correlation of mean total regret"
RATE = "share of streams beyond the bound"
METHODS = {
    DIFFERENCE: "Student's interval of the paired differences",
    RATIO: "bootstrap over replications",
    DEVIATION: "bootstrap over replications, paired",
    SHARE: "Wilson's interval, as if a replication were one observation",
    SENSITIVITY: "bootstrap over replications, paired, of the values with the largest and the smallest mean",
    RELATIVE: "bootstrap over replications, paired, of the same values",
    ORDER: "bootstrap over replications",
    RATE: "Clopper and Pearson's interval",
}


@dataclass(frozen=True)
class Word:
    """A word of the paper as a region of a measure, its ends excluded."""

    words: str
    measure: str
    low: float
    high: float
    reason: str

    @property
    def region(self) -> str:
        """The region in words."""
        if math.isinf(self.low):
            return f"below {self.high:g}"
        if math.isinf(self.high):
            return f"above {self.low:g}"
        return f"between {self.low:g} and {self.high:g}"

    @property
    def rule(self) -> str:
        """The rule in one sentence."""
        return f"The 95 % interval of the {self.measure} lies {self.region}."


INF = math.inf
BEATS = Word("beats", DIFFERENCE, -INF, 0.0, "Less regret on the same paths, beyond what chance explains.")
MUCH_BETTER = Word(
    "is much better than", RATIO, -INF, 0.8,
    "A fifth less regret is what a reader sees in a plot without measuring.",
)  # fmt: skip
SOLIDLY_BETTER = Word(
    "is solidly better than", RATIO, -INF, 0.9,
    "A tenth less: sure and worth having, yet short of much better.",
)  # fmt: skip
SIMILAR = Word(
    "is similar to", RATIO, 0.8, 1.25,
    "Neither is much better than the other: 1.25 is the inverse of 0.8.",
)  # fmt: skip
SLIGHTLY_WORSE = Word(
    "is slightly worse than", RATIO, 1.0, 1.25,
    "Worse for certain, yet still similar.",
)  # fmt: skip
MUCH_WORSE = Word("is much worse than", RATIO, 1.25, INF, "The other one is much better.")
NEARLY_BEST = Word(
    "is best or nearly best beside", RATIO, -INF, 1.1,
    "At most a tenth more regret than the best of the others, half of what a plot shows.",
)  # fmt: skip
VERY_GOOD = Word(
    "does very well beside", RATIO, -INF, 1.25,
    "The best of the others is not much better.",
)  # fmt: skip
GOOD = Word(
    "does better than", RATIO, -INF, 1.0,
    "Doing well is being in the better half of the field.",
)  # fmt: skip
VARIES_LESS = Word(
    "varies less over replications than", DEVIATION, -INF, 1.0,
    "A smaller standard deviation, beyond what chance explains.",
)  # fmt: skip
VARIES_NO_LESS = Word(
    "does not vary much less over replications than", DEVIATION, 0.8, INF,
    "An exception is shown when a clear advantage, a fifth, is excluded.",
)  # fmt: skip
REACTS = Word(
    "plays the best arm within 500 steps of", SHARE, 0.5, INF,
    "500 steps are a quarter of the phase that begins at step 3000; by then most replications, against a "
    "third by chance, play the best arm.",
)  # fmt: skip
DOES_NOT_REACT = Word(
    "does not play the best arm within 500 steps of", SHARE, -INF, 0.5,
    "The opposite of reacting.",
)  # fmt: skip
INSENSITIVE = Word(
    "is not sensitive to", SENSITIVITY, -INF, 1.25,
    "The best and the worst of the tried values are similar.",
)  # fmt: skip
SENSITIVE = Word(
    "is sensitive to", SENSITIVITY, 1.25, INF,
    "The worst of the tried values is much worse than the best.",
)  # fmt: skip
VARIES_MORE = Word(
    "varies more over", RELATIVE, 1.0, INF,
    "More sensitive than even the most sensitive adaptive policy is to its step size.",
)  # fmt: skip
SAME_LEVEL = Word(
    "has similar regret with 50 and 100 arms", RATIO, 0.8, 1.25,
    "The same region as for two policies that are similar.",
)  # fmt: skip
SAME_ORDER = Word(
    "order is the same with 50 and 100 arms", ORDER, 0.8, INF,
    "Among eleven policies only neighbours may swap places.",
)  # fmt: skip
BOUNDED = Word(
    "is exceeded in less than 5 % of streams", RATE, -INF, 0.05,
    "The number in the appendix.",
)  # fmt: skip

WORDS = (
    BEATS, MUCH_BETTER, SOLIDLY_BETTER, SIMILAR, SLIGHTLY_WORSE, MUCH_WORSE, NEARLY_BEST, VERY_GOOD, GOOD,
    VARIES_LESS, VARIES_NO_LESS, REACTS, DOES_NOT_REACT, INSENSITIVE, SENSITIVE, VARIES_MORE, SAME_LEVEL,
    SAME_ORDER, BOUNDED,
)  # fmt: skip
