"""Bandits that choose in a draw tree although they have few arms, without compiled code of their own."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

from dynabandit.bandit import arm_tree
from dynabandit.core.beta_cells import write_log_distribution


@contextlib.contextmanager
def trees_from(arms: int) -> Iterator[None]:
    """Let bandits with at least so many arms choose in a tree."""
    cached: tuple[Any, ...] = (arm_tree.choose_in_tree, arm_tree.compiled_mark_arm, arm_tree.compiled_close_arm)
    with (
        mock.patch("dynabandit.choosing.draw_tree.MANY_ARMS", arms - 1),
        mock.patch.object(arm_tree, "compiled_for", lambda functions, function: function),
        mock.patch.object(arm_tree, "compiled", lambda function: function),
    ):
        for function in cached:
            function.cache_clear()
        yield
    for function in cached:
        function.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def remembered_distributions() -> Iterator[None]:
    """Compute the distribution function of a posterior on a grid once: tests fill many trees with the same ones.

    Interpreted, this takes most of the time. Import the fixture into a module to use it.
    """
    known: dict[Any, np.ndarray] = {}

    def write(a: float, b: float, grid: np.ndarray, work: np.ndarray, logs: np.ndarray) -> None:
        key = (a, b, grid.tobytes())
        if key not in known:
            write_log_distribution(a, b, grid, work, logs)
            known[key] = logs.copy()
        logs[:] = known[key]

    with mock.patch("dynabandit.choosing.draw_tree.write_log_distribution", write):
        yield
