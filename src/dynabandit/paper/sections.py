"""The sections of the report, in the order of the paper."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A section of the paper: what is simulated, with its figures and claims."""

    id: str
    title: str
    text: str
    figures: tuple[str, ...]
    claims: tuple[int, ...]


SECTIONS = (
    Section(
        "small-changes",
        "4.1 A small number of changes",
        "Three arms. Arm 1 has mean reward 0.5 and Arm 2 has 0.3 throughout; Arm 3 has 0.4, jumps to 0.8 at step "
        "3000 and back to 0.4 at step 5000. The best arm is Arm 1, then Arm 3, then Arm 1 again.",
        ("small-changes",),
        (1, 2, 3, 4),
    ),
    Section(
        "abrupt",
        "4.2.1 Abrupt changes, two arms",
        "Each mean reward is constant between changes, which come at random times independently for each arm, and is "
        "drawn from a uniform distribution at each change. Arm 1 changes every 1,000 steps on average, Arm 2 every "
        "100. In Case 1 the means of both arms are drawn from (0, 1); in Case 2 those of Arm 1 are drawn from (0.3, "
        "1) and those of Arm 2 from (0, 0.7), so that Arm 1 is better in the long run.",
        ("sample-paths-case-1", "sample-paths-case-2", "two-arms-abrupt"),
        (5, 6, 7, 8),
    ),
    Section(
        "drift",
        "4.2.2 Drift, two arms",
        "In Case 3 each mean reward is a random walk with steps of variance 0.0001, reflected at 0 and 1. In Case "
        "4 it is the logistic function of a random walk with steps of variance 0.001, which tends to 0 or 1.",
        ("sample-paths-case-3", "sample-paths-case-4", "two-arms-drift"),
        (9, 10, 11),
    ),
    Section(
        "many-arms",
        "4.2.3 Many arms",
        "The four cases with 50 and 100 arms. In Cases 1 and 2 odd arms take the parameters of Arm 1 and even "
        "arms those of Arm 2. Among the UCB policies, hide D-UCB and SW-UCB in the legend to see the others better.",
        ("many-arms-case-1", "many-arms-case-2", "many-arms-case-3", "many-arms-case-4"),
        (12, 13, 14, 15, 16, 17),
    ),
    Section(
        "step-size",
        "4.3.1 Robustness: the step size",
        "Case 3 with 2, 50 and 100 arms. Each adaptive policy runs with the step sizes 0.0001, 0.001 and 0.01, "
        "and with 0.0001 divided by the estimated variance.",
        ("step-size-greedy", "step-size-ucb", "step-size-thompson"),
        (18,),
    ),
    Section(
        "discount-window",
        "4.3.1 Robustness: discount and window",
        "D-UCB and SW-UCB on the same paths. Tuned means that the discount or the window is computed from the number "
        "of changes of the best arm on the same path, which is unknown in practice.",
        ("discount-window",),
        (19,),
    ),
    Section(
        "memory",
        "4.3.2 Robustness: the memory of dynamic Thompson sampling",
        "Case 1 with two arms. DTS keeps its memory C; AFF-DTS1 and AFF-DTS2 use it only at the start.",
        ("memory",),
        (20,),
    ),
    Section(
        "bounds",
        "Appendix A: the bounds",
        "Streams of independent rewards with a constant mean. After 10, 100 and 1,000 observations it is "
        "recorded whether the mean lies above the adaptive mean plus the bonus √(log 20 / (2 w² / k)).",
        ("bounds",),
        (21,),
    ),
)
