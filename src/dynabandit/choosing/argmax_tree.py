"""The argmax of static indices: a binary tree over the arms that a play updates in log2 K steps.

Some scores change only when their arm is played. The tree stores the largest score of each half, quarter and so on of
the arms, and how many arms have it. A play updates the nodes from its arm to the root; the path down from the root
finds any of the arms that tie. Both visit log2 K nodes. The result is that of a scan over all scores: the same largest
score, the same number of ties, and the same random number to choose among them.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dynabandit.choosing.draw_tree import new_draw_trees, uses_draw_tree
from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.streams import TIE, Stream, pick
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step

BEST, TIES = range(2)  # the rows of a tree: the largest score below a node, and how many arms have it
ROOT = 1  # the children of node i are 2 i and 2 i + 1; the leaves, one per arm, are the second half


def new_trees(functions: PolicyFunctions, replications: int, arms: int) -> np.ndarray:
    """Return a tree for each replication, not yet filled: of scores, of draws, or of size 0 if no tree is used."""
    if uses_draw_tree(functions, arms):
        return new_draw_trees(replications, arms)
    leaves = 1 << (arms - 1).bit_length() if functions.static_index else 0
    return np.zeros((replications, 2, 2 * leaves))


def make_fill_tree(functions: PolicyFunctions) -> Callable[..., None]:
    """Return fill_tree(tree, state, step, params), which scores all arms."""
    score = functions.score

    @kernel
    def fill_tree(tree: np.ndarray, state: PolicyState, step: Step, params: Any) -> None:
        leaves = tree.shape[1] // 2
        for arm in range(leaves):
            tree[BEST, leaves + arm] = -math.inf
            tree[TIES, leaves + arm] = 0.0
            if arm < step.arms:
                tree[BEST, leaves + arm] = nan_to_lowest(score(state, arm, step, params))
                tree[TIES, leaves + arm] = 1.0
        for node in range(leaves - 1, 0, -1):
            merge_children(tree, node)

    return fill_tree


def make_update_tree(functions: PolicyFunctions) -> Callable[..., None]:
    """Return update_tree(tree, state, arm, step, params), which scores one arm and updates the nodes above it."""
    score = functions.score

    @inlined_kernel
    def update_tree(tree: np.ndarray, state: PolicyState, arm: int, step: Step, params: Any) -> None:
        node = tree.shape[1] // 2 + arm
        tree[BEST, node] = nan_to_lowest(score(state, arm, step, params))
        while node > ROOT:
            node //= 2
            merge_children(tree, node)

    return update_tree


@kernel
def nan_to_lowest(score: float) -> float:
    """Return -infinity for NaN: an arm whose score is NaN is never chosen, as in a scan."""
    return score if score == score else -math.inf


@kernel
def merge_children(tree: np.ndarray, node: int) -> None:
    """Write the largest score below a node, and how many arms have it."""
    left, right = 2 * node, 2 * node + 1
    best = max(tree[BEST, left], tree[BEST, right])
    ties = tree[TIES, left] if tree[BEST, left] == best else 0.0
    tree[BEST, node] = best
    tree[TIES, node] = ties + (tree[TIES, right] if tree[BEST, right] == best else 0.0)


@inlined_kernel
def tree_argmax(tree: np.ndarray, number: int, random: Stream) -> int:
    """Return the arm with the largest score, as `tie_breaking.make_argmax` does for all scores."""
    best, ties = tree[BEST, ROOT], int(tree[TIES, ROOT])
    skip = pick(random, TIE, number, 0, ties) if ties > 1 else 0
    leaves = tree.shape[1] // 2
    node = ROOT
    while node < leaves:
        node *= 2
        left = int(tree[TIES, node]) if tree[BEST, node] == best else 0
        if skip >= left:
            skip -= left
            node += 1
    return node - leaves
