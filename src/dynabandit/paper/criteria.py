"""What the paper's phrases, such as "much better", mean in numbers; fixed before any result was seen."""

import math
from dataclasses import dataclass

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
class Criterion:
    """A phrase of the paper as an open region of a measure."""

    phrase: str
    measure: str
    low: float
    high: float
    reason: str
    """Why this region."""

    @property
    def region(self) -> str:
        """The region as text."""
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
BEATS = Criterion("beats", DIFFERENCE, -INF, 0.0, "Significantly less regret on the same paths.")
MUCH_BETTER = Criterion(
    "is much better than", RATIO, -INF, 0.8,
    "A fifth less regret is visible in a plot without measuring.",
)  # fmt: skip
SOLIDLY_BETTER = Criterion(
    "is solidly better than", RATIO, -INF, 0.9,
    "A tenth less regret: a clear gain, but smaller than much better.",
)  # fmt: skip
SIMILAR = Criterion(
    "is similar to", RATIO, 0.8, 1.25,
    "Neither is much better than the other: 1.25 is the inverse of 0.8.",
)  # fmt: skip
SLIGHTLY_WORSE = Criterion("is slightly worse than", RATIO, 1.0, 1.25, "Significantly worse, but still similar.")
MUCH_WORSE = Criterion("is much worse than", RATIO, 1.25, INF, "The other one is much better.")
NEARLY_BEST = Criterion(
    "is best or nearly best beside", RATIO, -INF, 1.1,
    "At most a tenth more regret than the best of the others, half of what is visible in a plot.",
)  # fmt: skip
VERY_GOOD = Criterion("does very well beside", RATIO, -INF, 1.25, "The best of the others is not much better.")
GOOD = Criterion("does better than", RATIO, -INF, 1.0, "Doing well means being in the better half of the policies.")
VARIES_LESS = Criterion(
    "varies less over replications than", DEVIATION, -INF, 1.0,
    "A significantly smaller standard deviation.",
)  # fmt: skip
VARIES_NO_LESS = Criterion(
    "does not vary much less over replications than", DEVIATION, 0.8, INF,
    "The exception is shown when a clear advantage, of a fifth, is excluded.",
)  # fmt: skip
REACTS = Criterion(
    "plays the best arm within 500 steps of", SHARE, 0.5, INF,
    "500 steps are a quarter of the phase that begins at step 3000. By then most replications should play the best "
    "arm; by chance a third would.",
)  # fmt: skip
DOES_NOT_REACT = Criterion(
    "does not play the best arm within 500 steps of", SHARE, -INF, 0.5,
    "The opposite of reacting.",
)  # fmt: skip
INSENSITIVE = Criterion(
    "is not sensitive to", SENSITIVITY, -INF, 1.25,
    "The best and the worst of the tried values are similar.",
)  # fmt: skip
SENSITIVE = Criterion(
    "is sensitive to", SENSITIVITY, 1.25, INF,
    "The worst of the tried values is much worse than the best.",
)  # fmt: skip
VARIES_MORE = Criterion(
    "varies more over", RELATIVE, 1.0, INF,
    "More sensitive than the adaptive policy that is most sensitive to its step size.",
)  # fmt: skip
SAME_LEVEL = Criterion(
    "has similar regret with 50 and 100 arms", RATIO, 0.8, 1.25,
    "The same region as for two similar policies.",
)  # fmt: skip
SAME_ORDER = Criterion(
    "order is the same with 50 and 100 arms", ORDER, 0.8, INF,
    "Among eleven policies only neighbours may change places.",
)  # fmt: skip
BOUNDED = Criterion("is exceeded in less than 5 % of streams", RATE, -INF, 0.05, "The number in the appendix.")

CRITERIA = (
    BEATS, MUCH_BETTER, SOLIDLY_BETTER, SIMILAR, SLIGHTLY_WORSE, MUCH_WORSE, NEARLY_BEST, VERY_GOOD, GOOD,
    VARIES_LESS, VARIES_NO_LESS, REACTS, DOES_NOT_REACT, INSENSITIVE, SENSITIVE, VARIES_MORE, SAME_LEVEL,
    SAME_ORDER, BOUNDED,
)  # fmt: skip
