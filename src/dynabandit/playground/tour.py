"""A tour of the paper in five steps: a link for each, and a text that says what to look at."""

from typing import Any, NamedTuple

from dynabandit.playground.link import read


class TourStep(NamedTuple):
    """A step: the playground opens `link` and shows the beliefs of policy number `look`."""

    title: str
    link: str
    look: int
    text: str

    @property
    def shown(self) -> dict[str, Any]:
        """The step as plain values: the link in its canonical form, the text as paragraphs."""
        paragraphs = [" ".join(one.split()) for one in self.text.split("\n\n")]
        return {"title": self.title, "link": read(self.link).query, "look": self.look, "text": paragraphs}


SMALL = "v=1&environment=small-changes&arms=3&horizon=8000&replications=40&seed=1&policies="
MANY = "v=1&environment=case-3&arms=50&horizon=8000&replications=20&seed=1&policies="

STEPS = (
    TourStep(
        "Why a sample mean fails",
        SMALL + "ts",
        look=0,
        text="""
        Arm 3 is the best arm from step 3,000 to step 5,000 only. Thompson sampling estimates a mean from all rewards
        since the start. Look at the means: the estimate of arm 3 rises hundreds of steps after its mean does, and after
        the mean falls back the estimate falls so slowly that the arm is still played at the end.

        The regret curve becomes steeper after each of the two changes.
        """,
    ),
    TourStep(
        "What forgetting does",
        SMALL + "ts;dts:memory=100",
        look=1,
        text="""
        Dynamic Thompson sampling gives old rewards less weight: it remembers about the last 100 rewards of an arm. Its
        estimate of arm 3 follows both changes within a few hundred steps, and its total regret is less than half.

        The price is visible in the means, too: an estimate from few rewards fluctuates more.
        """,
    ),
    TourStep(
        "Why the factor should adapt",
        SMALL + "dts:memory=5;dts:memory=1000;aff-dts2",
        look=2,
        text="""
        A memory of 5 rewards is always uncertain and costs regret while nothing changes; a memory of 1,000 detects the
        changes too late. AFF-DTS2 needs no such choice and has less regret than both.

        Look at how much it remembers: the forgetting factor of arm 3 falls after its mean has fallen at step 5,000,
        because the rewards no longer agree with the estimate. Change the step size of AFF-DTS2, the paper's eta, and
        run again: the factor moves more or less.
        """,
    ),
    TourStep(
        "What an idle arm needs",
        SMALL + "aff-ucb2;aff-ucb1",
        look=0,
        text="""
        An arm that is not played gives no rewards, so its estimate cannot adapt. In AFF-UCB2 the exploration bonus does
        not grow while an arm is idle: the estimate of arm 3 stays where it was while its mean jumps to 0.8.

        In AFF-UCB1 the bonus grows for as long as an arm is idle. It tries arm 3 again, and its total regret is much
        smaller.
        """,
    ),
    TourStep(
        "When which policy wins",
        MANY + "aff-ucb2;aff-ots;ucb;sw-ucb",
        look=0,
        text="""
        Fifty arms that all drift: exploration is expensive now. SW-UCB and UCB keep trying every arm, which costs
        regret, while AFF-UCB2, which explored too little in the previous step, has the least regret.

        Set the number of arms to 2 and run again: there AFF-OTS is the best of the four. No policy is best everywhere,
        so test yours in the environment that you expect, or draw it.
        """,
    ),
)
