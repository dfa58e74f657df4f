"""A tour of the paper in five steps: a link for each, and a text that says what to look at."""

from typing import Any, NamedTuple

from dynabandit.playground.link import read

__all__ = ["STEPS", "Step"]


class Step(NamedTuple):
    """A step: the playground is set to `link` and shows the beliefs of policy number `look`."""

    title: str
    link: str
    look: int
    text: str

    @property
    def shown(self) -> dict[str, Any]:
        """The step as plain values: the link in its usual form, the text as paragraphs."""
        paragraphs = [" ".join(one.split()) for one in self.text.split("\n\n")]
        return {"title": self.title, "link": read(self.link).query, "look": self.look, "text": paragraphs}


SMALL = "v=1&environment=small-changes&arms=3&horizon=8000&replications=40&seed=1&policies="
MANY = "v=1&environment=case-3&arms=50&horizon=8000&replications=20&seed=1&policies="

STEPS = (
    Step(
        "Why a sample mean fails",
        SMALL + "ts",
        look=0,
        text="""
        Arm 3 is the best one from step 3,000 to step 5,000, and only then. Thompson sampling believes in the mean of
        all rewards since the start. Look at the means: the estimate of arm 3 rises a thousand steps after the arm
        does, and when the arm falls back the estimate comes down so slowly that the arm is still played at the end.

        In the regret, each of the two changes is a kink that leads upwards.
        """,
    ),
    Step(
        "What forgetting does",
        SMALL + "ts;dts:memory=100",
        look=1,
        text="""
        Dynamic Thompson sampling weighs old rewards down: an arm remembers about its last 100. Its estimate of arm 3
        now follows both changes within a few hundred steps, and the regret ends at less than half.

        The price is in the means as well: an estimate from few rewards trembles.
        """,
    ),
    Step(
        "Why the factor should adapt",
        SMALL + "dts:memory=5;dts:memory=1000;aff-dts2",
        look=2,
        text="""
        A memory of 5 rewards is always in doubt and pays in quiet times, a memory of 1,000 sees the changes too late.
        AFF-DTS2 needs no such guess and ends below both.

        Look at how much it remembers: the forgetting factor of arm 3 falls after the arm has fallen at step 5,000,
        because the rewards are no longer what the estimate predicts. Move the step size of AFF-DTS2, the paper's eta,
        and run again to see the factor move further or less.
        """,
    ),
    Step(
        "What an idle arm needs",
        SMALL + "aff-ucb2;aff-ucb1",
        look=0,
        text="""
        An arm that is not played sends no news, so nothing tells its estimate to adapt. In AFF-UCB2 the bonus for
        exploring does not grow with the idle time: look at arm 3, whose estimate stays where it was while the truth
        jumps to 0.8.

        AFF-UCB1 lets the bonus grow for as long as an arm is idle. It tries arm 3 again, and its regret ends far
        below.
        """,
    ),
    Step(
        "When which policy wins",
        MANY + "aff-ucb2;aff-ots;ucb;sw-ucb",
        look=0,
        text="""
        Fifty arms that all drift: looking around is expensive now. SW-UCB and UCB keep trying every arm and pay for
        it, while AFF-UCB2, which looked around too little in the last step, has the least regret.

        Set the number of arms to 2 and run again: there AFF-OTS is the best of the four. No policy wins everywhere, so
        try yours on the world that you expect, or draw it.
        """,
    ),
)
