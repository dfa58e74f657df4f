"""Policies that use only the latest rewards of all arms, those in a sliding window."""

from dataclasses import dataclass
from typing import ClassVar

from dynabandit.policies.composition import HorizonPreset, Preset
from dynabandit.policies.detectors.base import Detector
from dynabandit.policies.memories.base import Memory
from dynabandit.policies.memories.window import GrowingWindow, Window
from dynabandit.policies.rules import kl_ucb, thompson, ucb
from dynabandit.policies.rules.base import Rule


@dataclass(frozen=True, kw_only=True)
class SWUCB(HorizonPreset):
    r"""Sliding-window UCB, which uses only the latest rewards. A baseline of the literature for changing means; with
    many arms it explores too much.

    The window moves with the rewards of all arms; a decision whose reward has not arrived yet does not move it.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("sw-ucb", changes=4, horizon=10_000).params(arms=2).memory.window
    303

    Notes
    -----
    With the count N and the mean x of an arm's rewards among the latest W of all arms:

    .. math:: \bar{x}_t(a) + \sqrt{\frac{0.6 \, \log \min(t, W)}{N_t(a)}}

    Cost per step: O(K), independent of W; memory: O(K + W).

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "sw-ucb"
    made_of = Window, ucb.UCB(xi=0.6)

    burn_in: int = 1


@dataclass(frozen=True, kw_only=True)
class SWUCBSharp(Preset):
    r"""SW-UCB#: sliding-window UCB whose window grows with time, so that it needs no horizon. A baseline of the
    literature for changing means.

    The window moves with the rewards of all arms, as in `SWUCB`. For abrupt changes, about t^nu of them in t steps, the
    paper has `alpha` = (1 - nu) / 2, so 1/2 for a few changes; for slow changes, of about t^-kappa per step, min(1, 3
    kappa / 4).

    Examples
    --------
    >>> import dynabandit as db
    >>> abrupt, slow = db.policy("sw-ucb-sharp"), db.policy("sw-ucb-sharp", alpha=0.75, scale=4.3)
    >>> slow.label
    'sw-ucb-sharp(alpha=0.75, scale=4.3)'

    Notes
    -----
    With the count N and the mean x of an arm's rewards among the latest ones of all arms:

    .. math:: \bar{x}_t(a) + \sqrt{\frac{(1 + \alpha) \log t}{N_t(a)}}, \quad \text{window } \min(\lceil \lambda
        t^\alpha \rceil, \; t)

    The rule was compared with the implementation in SMPyBandits, whose lambda is 1. The default lambda is meant to be
    that of the paper's experiments with abrupt changes, which could not be checked.

    Cost per step: O(K), independent of the window; memory: O(K + capacity).

    References
    ----------
    Wei & Srivastava (2018), On abruptly-changing and slowly-varying multiarmed bandit problems. arXiv 1802.08380.
    """

    name = "sw-ucb-sharp"
    made_of = GrowingWindow, ucb.UCB()

    burn_in: int = 1
    alpha: float = 0.5

    def parts(self) -> tuple[Memory, Rule, Detector | None]:
        """Return the parts; the exploration constant is 1 + alpha."""
        memory, _, detector = super().parts()
        return memory, ucb.UCB(xi=1.0 + self.alpha), detector


@dataclass(frozen=True, kw_only=True)
class SWKLUCB(HorizonPreset):
    r"""KL-UCB that uses only the latest rewards, those in a sliding window. Use it if you know how fast the means
    change.

    The window moves with the rewards of all arms, as in `SWUCB`.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("sw-kl-ucb", changes=1).label
    'sw-kl-ucb(changes=1)'
    >>> db.policy("sw-kl-ucb", changes=4, horizon=10_000).params(arms=2).memory.window
    303

    Notes
    -----
    With the count N and the mean x of an arm's rewards among the latest W of all arms:

    .. math:: \max \left\{ q : N_t(a) \, \mathrm{kl}(\bar{x}_t(a), q) \leq \log \min(t, W) \right\}

    Cost per step: O(K), with one root finding per arm; memory: O(K + W).

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT. With the index
    of Garivier & Cappe (2011), as a baseline of Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point
    detection for tackling piecewise-stationary bandits. JMLR 23.
    """

    name = "sw-kl-ucb"
    made_of = Window, kl_ucb.KLUCBByWidth()

    burn_in: int = 1


@dataclass(frozen=True, kw_only=True)
class SWTS(HorizonPreset):
    r"""Sliding-window Thompson sampling, which uses only the latest rewards. Use it if you know how fast the means
    change.

    The window moves with the rewards of all arms, as in `SWUCB`. An arm without a reward in the window is drawn from
    its prior.

    Examples
    --------
    >>> import dynabandit as db
    >>> [db.policy("sw-ts", changes=changes, horizon=10_000).params(arms=2).memory.window for changes in (1, 4)]
    [607, 303]

    Notes
    -----
    With S successes and F failures of the arm among the latest W rewards of all arms:

    .. math:: \theta \sim \mathrm{Beta}(a + S_W, \; b + F_W)

    Pending plays of an arm without a reward in the window count as failures.

    Cost per step: O(K), independent of W; memory: O(K + W).

    References
    ----------
    Trovò, Paladino, Restelli & Gatti (2020), Sliding-window Thompson sampling for non-stationary settings. JAIR 68.
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "sw-ts"
    made_of = Window, thompson.Thompson
    described: ClassVar[dict[str, str]] = {
        "window": (
            "The window length in rewards of all arms. The default is the rule of SW-UCB, 2 sqrt(horizon log(horizon) "
            "/ changes), which has the order of the paper's bound for abrupt changes up to the logarithm."
        ),
    }

    prior: tuple[float, float] = (1.0, 1.0)
