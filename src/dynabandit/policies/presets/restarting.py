"""Policies that test whether the rewards of an arm have changed, and then forget them: for abrupt changes."""

from dataclasses import dataclass
from typing import ClassVar

from dynabandit.policies.detectors import cusum, glr, halves
from dynabandit.policies.memories.sample_mean import SampleMean
from dynabandit.policies.preset import HorizonPreset
from dynabandit.policies.rules import kl_ucb, ucb


@dataclass(frozen=True, kw_only=True)
class GLRKLUCB(HorizonPreset):
    r"""KL-UCB that tests whether an arm has changed, and then forgets its earlier rewards or those of all arms. Use it
    for abrupt changes.

    The test is a generalised likelihood ratio test. An arm is tested at its own plays: are its rewards since the
    restart more likely with two means than with one?

    The test considers splits after every tenth reward, as in the experiments of the paper. When there are more than
    `capacity` splits, every other one is dropped and the spacing doubles, so that memory and time are bounded. A change
    is then at most one spacing, less than 2 / capacity of the rewards, away from a split.

    Examples
    --------
    >>> import dynabandit as db
    >>> means = [[0.5, 0.1, 0.1], [0.5, 0.9, 0.1], [0.5, 0.1, 0.9]]
    >>> environment = db.environment("piecewise", starts=[1, 1001, 2001], means=means)
    >>> runs = db.compare(["kl-ucb", "glr-kl-ucb"], environment, horizon=3000, replications=2, seed=1)
    >>> runs["glr-kl-ucb"].total_regret.mean() < runs["kl-ucb"].total_regret.mean() / 2
    np.True_

    Notes
    -----
    The score is that of `KLUCB` on the rewards and the steps since the restart.

    References
    ----------
    Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point detection for tackling piecewise-stationary
    bandits. JMLR 23.
    """

    name = "glr-kl-ucb"
    made_of = SampleMean, kl_ucb.KLUCB(), glr.GLR
    described: ClassVar[dict[str, str]] = {
        "changes": (
            "The expected number of changes of the best arm, for the constant schedule. By default a simulation counts "
            "them on its path, which is not possible in practice."
        )
    }


@dataclass(frozen=True, kw_only=True)
class GLRKLUCBDiminishing(HorizonPreset):
    r"""GLR-klUCB that explores often after a detected change, and ever more rarely as time goes on. Use it for large
    changes after long constant periods.

    Everything else is as in `GLRKLUCB`.

    Notes
    -----
    Sessions of forced exploration start at these times u after a restart:

    .. math:: u_{i + 1} = u_i + \frac{K}{\alpha} \sqrt{u_i} + \frac{K^2}{4 \alpha^2}

    References
    ----------
    Li, Hsieh & Huang (2024), Diminishing exploration: a minimalist approach to piecewise stationary multi-armed
    bandits. With the test of Besson, Kaufmann, Maillard & Seznec (2022). JMLR 23.
    """

    name = "glr-kl-ucb-diminishing"
    made_of = SampleMean, kl_ucb.KLUCB(), glr.GLRDiminishing
    described: ClassVar[dict[str, str]] = {
        "changes": "Not used.",
        "horizon": "The expected number of steps, for `delta`; a simulation uses its own horizon.",
    }


@dataclass(frozen=True, kw_only=True)
class CusumUCB(HorizonPreset):
    r"""UCB that forgets the rewards of an arm when they differ too much from its first ones. Use it for abrupt changes.

    A two-sided CUSUM test detects that the mean of an arm differs from that of its first plays, and restarts the arm.

    Notes
    -----
    With n plays of all arms since their restarts, the score of an arm with N plays and the sample mean x is

    .. math:: \bar{x} + \sqrt{\frac{\log n}{N}}

    References
    ----------
    Liu, Lee & Shroff (2018), A change-detection based framework for piecewise-stationary multi-armed bandit problem.
    AAAI.
    """

    name = "cusum-ucb"
    made_of = SampleMean, ucb.UCB(xi=1.0), cusum.Cusum


@dataclass(frozen=True, kw_only=True)
class CusumKLUCB(HorizonPreset):
    r"""CUSUM-UCB with the tighter bound of KL-UCB: the form in which later papers compare with CUSUM-UCB. Use it for
    abrupt changes.

    The test, its defaults and the random exploration are those of `CusumUCB`. The experiments of Besson et al. use
    drift 0.1 with 200 first plays, or drift 0.05 with 400, and explore in a share sqrt(changes K log(T) / T) of the
    steps.

    Notes
    -----
    With n plays of all arms since their restarts, the score of an arm with N plays and the sample mean x is

    .. math:: \max \left\{ q : N \, \mathrm{kl}(\bar{x}, q) \leq \log n \right\}

    References
    ----------
    The test: Liu, Lee & Shroff (2018), A change-detection based framework for piecewise-stationary multi-armed bandit
    problem. AAAI. The index: the experiments of Besson, Kaufmann, Maillard & Seznec (2022), JMLR 23, and their code,
    which gives an alarm above the threshold only; here, as in the first paper, also at the threshold.
    """

    name = "cusum-kl-ucb"
    made_of = SampleMean, kl_ucb.KLUCB(), cusum.Cusum


@dataclass(frozen=True, kw_only=True)
class MUCB(HorizonPreset):
    r"""Monitored UCB, which forgets all rewards when the two halves of an arm's latest rewards differ too much. Use it
    for abrupt changes.

    Notes
    -----
    With tau steps since the restart, the score of an arm with N plays and the sample mean x is

    .. math:: \bar{x} + \sqrt{\frac{2 \log \tau}{N}}

    References
    ----------
    Cao, Wen, Kveton & Xie (2019), Nearly optimal adaptive procedure with change detection for piecewise-stationary
    bandit. AISTATS.
    """

    name = "m-ucb"
    made_of = SampleMean, ucb.UCB(), halves.HalvesWithThisStep


@dataclass(frozen=True, kw_only=True)
class MKLUCB(HorizonPreset):
    r"""M-UCB with the tighter bound of KL-UCB: the form in which later papers compare with M-UCB. Use it for abrupt
    changes.

    The test, its defaults and the forced exploration are those of `MUCB`. The experiments of Besson et al. use windows
    of 200 and 800 plays and explore in a share sqrt(changes K log(T) / T) of the steps.

    Notes
    -----
    With t steps played since the restart, the score of an arm with N plays and the sample mean x is

    .. math:: \max \left\{ q : N \, \mathrm{kl}(\bar{x}, q) \leq \log t \right\}

    References
    ----------
    The test: Cao, Wen, Kveton & Xie (2019), Nearly optimal adaptive procedure with change detection for
    piecewise-stationary bandit. AISTATS. The index: the experiments of Besson, Kaufmann, Maillard & Seznec (2022), JMLR
    23, and their code.
    """

    name = "m-kl-ucb"
    made_of = SampleMean, kl_ucb.KLUCB(), halves.Halves
