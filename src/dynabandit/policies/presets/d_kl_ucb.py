"""D-KL-UCB: the Kullback-Leibler index on discounted means."""

import math
from dataclasses import dataclass

from dynabandit.core.bernoulli_kl import negentropy
from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.pending_plays import pending_plays
from dynabandit.policies.presets import d_ucb
from dynabandit.policies.presets.d_ucb import DUCB, Params
from dynabandit.policies.rules import kl_index

SLOTS = (*d_ucb.SLOTS, "negentropy")
NEGENTROPY = SLOTS.index("negentropy")


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    # log n_t, over the scale that is missing in the arms' counts
    return math.log(max(state.shared[d_ucb.SUM], 1.0)) / state.shared[d_ucb.SCALE]


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    memory, pending = state.memory, pending_plays(state, arm)
    if pending > 0:
        width = 1.0 / math.sqrt(memory[d_ucb.COUNT, arm] + pending / state.shared[d_ucb.SCALE])
        return kl_index.pending_bound(memory[d_ucb.MEAN, arm], pending, step.common * width * width)
    width = memory[d_ucb.WIDTH, arm]
    return kl_index.bound(memory[d_ucb.MEAN, arm], memory[NEGENTROPY, arm], step.common * width * width)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    d_ucb.learn(state, arm, reward, params)
    state.memory[NEGENTROPY, arm] = negentropy(state.memory[d_ucb.MEAN, arm])


@dataclass(frozen=True, kw_only=True)
class DKLUCB(DUCB):
    r"""KL-UCB that gives older rewards less weight, at a constant rate. Use it if you know how fast the means change.

    The means and counts of all arms are discounted, whether they are played or not, with each reward of any arm, as in
    `DUCB`.

    Parameters
    ----------
    discount
        The discount factor per reward of any arm, in (0, 1]; by default 1 - sqrt(changes / horizon) / 4.
    changes
        The expected number of changes of the best arm. By default a simulation counts them on its path, which is not
        possible in practice; `changes=1` does not use the path.
    horizon
        The expected number of steps, or ``"doubling"``; a simulation uses its own horizon.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("d-kl-ucb", changes=1).label
    'd-kl-ucb(changes=1)'
    >>> db.policy("d-kl-ucb", changes=4, horizon=10_000).params(arms=2)
    Params(discount=0.995)

    Notes
    -----
    With discounted counts N and means x, and n the sum of all counts:

    .. math:: \max \left\{ q : N_t(a) \, \mathrm{kl}(\bar{x}_t(a), q) \leq \log n_t \right\}

    Cost per step: O(K), with one root finding per arm.

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT. With the index
    of Garivier & Cappe (2011), as a baseline of Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point
    detection for tackling piecewise-stationary bandits. JMLR 23.
    """

    name = "d-kl-ucb"
    slots = SLOTS
    functions = PolicyFunctions(start=d_ucb.start, score=score, learn=learn, common=common, params=Params)
