"""SW-KL-UCB: the Kullback-Leibler index on a sliding window of rewards."""

import math
from dataclasses import dataclass

from dynabandit.core.bernoulli_kl import negentropy
from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.pending_plays import pending_plays
from dynabandit.policies.presets import sw_ucb, ucb
from dynabandit.policies.presets.sw_ucb import SWUCB, Params
from dynabandit.policies.rules import kl_index

SLOTS = (*ucb.SLOTS, "negentropy")
NEGENTROPY = SLOTS.index("negentropy")


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return math.log(sw_ucb.rewards_in_window(state, params))


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    memory, pending = state.memory, pending_plays(state, arm)
    if pending > 0:
        width = 1.0 / math.sqrt(memory[ucb.PLAYS, arm] + pending)
        return kl_index.pending_bound(memory[ucb.MEAN, arm], pending, step.common * width * width)
    width = memory[ucb.WIDTH, arm]
    return kl_index.bound(memory[ucb.MEAN, arm], memory[NEGENTROPY, arm], step.common * width * width)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory = state.memory
    leaving = sw_ucb.observe(state, arm, reward.value, params.window)
    memory[NEGENTROPY, arm] = negentropy(memory[ucb.MEAN, arm])
    if leaving >= 0:
        memory[NEGENTROPY, leaving] = negentropy(memory[ucb.MEAN, leaving])


@dataclass(frozen=True, kw_only=True)
class SWKLUCB(SWUCB):
    r"""KL-UCB that uses only the latest rewards, those in a sliding window. Use it if you know how fast the means
    change.

    The window moves with the rewards of all arms, as in `SWUCB`.

    Parameters
    ----------
    window
        The window length in rewards of all arms; by default 2 sqrt(horizon log(horizon) / changes).
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
    >>> db.policy("sw-kl-ucb", changes=1).label
    'sw-kl-ucb(changes=1)'
    >>> db.policy("sw-kl-ucb", changes=4, horizon=10_000).params(arms=2)
    Params(window=303)

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
    slots = SLOTS
    functions = PolicyFunctions(start=ucb.start, score=score, learn=learn, common=common, params=Params)
