"""Policies that use only the latest rewards of all arms, those in a sliding window."""

from dataclasses import dataclass

from dynabandit.policies.detectors.base import Detector
from dynabandit.policies.memories.base import Memory
from dynabandit.policies.memories.window import GrowingWindow, Window
from dynabandit.policies.preset import HorizonPreset, Preset
from dynabandit.policies.rules import kl_ucb, thompson, ucb
from dynabandit.policies.rules.base import Rule


@dataclass(frozen=True, kw_only=True)
class SWUCB(HorizonPreset):
    r"""Sliding-window UCB, which uses only the latest rewards. A baseline of the literature for changing means; with
    many arms it explores too much.

    Notes
    -----
    With the count N and the mean x of an arm's rewards among the latest W of all arms:

    .. math:: \bar{x}_t(a) + \sqrt{\frac{0.6 \, \log \min(t, W)}{N_t(a)}}

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "sw-ucb"
    made_of = Window, ucb.UCB(xi=0.6)


@dataclass(frozen=True, kw_only=True)
class SWUCBSharp(Preset):
    r"""SW-UCB#: sliding-window UCB whose window grows with time, so that it needs no horizon. A baseline of the
    literature for changing means.

    For abrupt changes, about t^nu of them in t steps, the paper has `alpha` = (1 - nu) / 2, so 1/2 for a few changes;
    for slow changes, of about t^-kappa per step, min(1, 3 kappa / 4).

    Notes
    -----
    With the count N and the mean x of an arm's rewards among the latest ones of all arms:

    .. math:: \bar{x}_t(a) + \sqrt{\frac{(1 + \alpha) \log t}{N_t(a)}}

    The rule was compared with the implementation in SMPyBandits, whose lambda is 1. The default lambda is meant to be
    that of the paper's experiments with abrupt changes, which could not be checked.

    References
    ----------
    Wei & Srivastava (2018), On abruptly-changing and slowly-varying multiarmed bandit problems. arXiv 1802.08380.
    """

    name = "sw-ucb-sharp"
    made_of = GrowingWindow, ucb.UCB()

    alpha: float = 0.5

    def parts(self) -> tuple[Memory, Rule, Detector | None]:
        """Return the parts; the exploration constant is 1 + alpha."""
        memory, _, detector = super().parts()
        return memory, ucb.UCB(xi=1.0 + self.alpha), detector


@dataclass(frozen=True, kw_only=True)
class SWKLUCB(HorizonPreset):
    r"""KL-UCB that uses only the latest rewards, those in a sliding window. Use it if you know how fast the means
    change.

    Notes
    -----
    With the count N and the mean x of an arm's rewards among the latest W of all arms:

    .. math:: \max \left\{ q : N_t(a) \, \mathrm{kl}(\bar{x}_t(a), q) \leq \log \min(t, W) \right\}

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT. With the index
    of Garivier & Cappe (2011), as a baseline of Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point
    detection for tackling piecewise-stationary bandits. JMLR 23.
    """

    name = "sw-kl-ucb"
    made_of = Window, kl_ucb.KLUCBByWidth()


@dataclass(frozen=True, kw_only=True)
class SWTS(HorizonPreset):
    r"""Sliding-window Thompson sampling, which uses only the latest rewards. Use it if you know how fast the means
    change.

    An arm without a reward in the window is drawn from its prior. The rule for the window has the order of the paper's
    bound for abrupt changes up to the logarithm.

    References
    ----------
    Trovò, Paladino, Restelli & Gatti (2020), Sliding-window Thompson sampling for non-stationary settings. JAIR 68.
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "sw-ts"
    made_of = Window, thompson.Thompson

    prior: tuple[float, float] = (1.0, 1.0)
