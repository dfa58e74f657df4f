"""The largest of many scores that stand still: a knockout tree, in which a step replays the matches of one arm.

Some scores change only where an arm is played. A tree over the arms then keeps the largest score of each half, each
quarter and so on, together with how many arms hold it. After a play, the matches on the way from that arm to the root
are played again; the way down from the root finds any one of the arms that tie. Both are log2 K nodes long, where a
scan would touch K scores, and the choice is that of the scan: the same largest score, the same number of ties, the
same random number to pick one of them.
"""

import math
from collections.abc import Callable

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import TIE, Stream, uniform
from dynabandit.policies.base import Kernels, Now

__all__ = ["make_enter", "make_enter_all", "new_trees", "winner"]

BEST, TIES = range(2)  # the rows of a tree: the largest score below a node, and how many arms have it
ROOT = 1  # the children of node i are 2 i and 2 i + 1; the leaves, one for each arm, are the second half


def new_trees(kernels: Kernels, replications: int, arms: int) -> np.ndarray:
    """Return an empty tree for each replication; of no size where the policy's scores do not stand still."""
    leaves = 1 << (arms - 1).bit_length() if kernels.still else 0
    return np.zeros((replications, 2, 2 * leaves))


def make_enter_all(kernels: Kernels) -> Callable[..., None]:
    """Return enter_all(tree, memory, now, parameters, table, source), which plays all matches."""
    score = kernels.score

    @kernel
    def enter_all(
        tree: np.ndarray, memory: np.ndarray, now: Now, parameters: np.ndarray, table: np.ndarray, source: Stream
    ) -> None:
        leaves = tree.shape[1] // 2
        for arm in range(leaves):
            tree[BEST, leaves + arm] = -math.inf
            tree[TIES, leaves + arm] = 0.0
            if arm < now.arms:
                tree[BEST, leaves + arm] = comparable(score(memory, arm, 0, now, parameters, table, source))
                tree[TIES, leaves + arm] = 1.0
        for node in range(leaves - 1, 0, -1):
            match(tree, node)

    return enter_all


def make_enter(kernels: Kernels) -> Callable[..., None]:
    """Return enter(tree, memory, arm, now, parameters, table, source), which replays the matches of one arm."""
    score = kernels.score

    @kernel
    def enter(
        tree: np.ndarray,
        memory: np.ndarray,
        arm: int,
        now: Now,
        parameters: np.ndarray,
        table: np.ndarray,
        source: Stream,
    ) -> None:
        node = tree.shape[1] // 2 + arm
        tree[BEST, node] = comparable(score(memory, arm, 0, now, parameters, table, source))
        while node > ROOT:
            node //= 2
            match(tree, node)

    return enter


@kernel
def comparable(score: float) -> float:
    """Return a score that can be larger or smaller than others: NaN never wins, here as in a scan."""
    return score if score == score else -math.inf


@kernel
def match(tree: np.ndarray, node: int) -> None:
    """Let the better child of a node advance; where they tie, all their arms do."""
    left, right = 2 * node, 2 * node + 1
    best = max(tree[BEST, left], tree[BEST, right])
    ties = tree[TIES, left] if tree[BEST, left] == best else 0.0
    tree[BEST, node] = best
    tree[TIES, node] = ties + (tree[TIES, right] if tree[BEST, right] == best else 0.0)


@kernel
def winner(tree: np.ndarray, arms: int, step: int, source: Stream) -> int:
    """Return the arm with the largest score, as `decision.make_largest` would of all the scores."""
    best, ties = tree[BEST, ROOT], int(tree[TIES, ROOT])
    skip = min(int(uniform(source, TIE, step, 0) * ties), ties - 1) if ties > 1 else 0
    leaves = tree.shape[1] // 2
    node = ROOT
    while node < leaves:
        node *= 2
        left = int(tree[TIES, node]) if tree[BEST, node] == best else 0
        if skip >= left:
            skip -= left
            node += 1
    return node - leaves
