"""Simulations without compiled policies, for tests whose subject needs no machine code of its own."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from dynabandit.choosing.choose_arm import is_pruned
from dynabandit.choosing.draw_tree import uses_draw_tree
from dynabandit.environments import RewardFunctions
from dynabandit.policies import PolicyFunctions
from dynabandit.simulation.stepper import make_play


def play(functions: PolicyFunctions, arms: int, law: RewardFunctions, *, delayed: bool) -> Any:
    pruned, in_tree = functions.posterior is not None and is_pruned(arms), uses_draw_tree(functions, arms)
    return make_play(functions, law, pruned=pruned, delayed=delayed, in_tree=in_tree)


@contextlib.contextmanager
def interpreted() -> Iterator[None]:
    """Let simulations on the CPU call the plain Python functions of policies and reward laws."""
    with mock.patch("dynabandit.simulation.cpu.compiled_play", play):
        yield
