"""Bandits that choose in a draw tree although they have few arms, without compiled code of their own."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from dynabandit.bandit import arm_tree


@contextlib.contextmanager
def trees_from(arms: int) -> Iterator[None]:
    """Let bandits with at least so many arms choose in a tree."""
    cached: tuple[Any, ...] = (arm_tree.choose_in_tree, arm_tree.compiled_mark_arm, arm_tree.compiled_close_arm)
    with (
        mock.patch("dynabandit.policies.draw_tree.MANY_ARMS", arms - 1),
        mock.patch.object(arm_tree, "compiled_for", lambda functions, function: function),
        mock.patch.object(arm_tree, "compiled", lambda function: function),
    ):
        for function in cached:
            function.cache_clear()
        yield
    for function in cached:
        function.cache_clear()
