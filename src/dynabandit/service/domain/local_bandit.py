"""The bandit of a local decider, with which it decides and `dynabandit verify` makes its decisions again."""

import hashlib

from dynabandit.bandit import Bandit
from dynabandit.bandit.block_decisions import choose_columns, compile_blocks
from dynabandit.service.domain.decision_details import ContextValues
from dynabandit.service.domain.holdout import Holdout

MAX_BLOCK = 256  # decisions that are made at a time


class LocalBandit:
    """The state of bandit `bandit_number` after event `base`, with a random stream for one decider.

    Its decisions are a function of this state, the decider, the contexts and the units. They count as plays, but it
    learns no rewards. If they are made in blocks, where that is possible, `bandit` is ahead of them.
    """

    def __init__(
        self,
        bandit: Bandit,
        bandit_number: int,
        holdout: Holdout | None,
        decider: str,
        base: int,
        *,
        in_blocks: bool = False,
    ) -> None:
        self.bandit = bandit.reseeded(local_seed(bandit.seed, decider, base))
        self.bandit.build_tree()  # in the thread that got the state, and not at the first decision
        self.base = base
        self._ready: list[int] = []  # the columns of the next decisions, in reverse order
        self._block = 1
        self._in_blocks = in_blocks and MAX_BLOCK > 1 and holdout is None and bandit.context is None
        self._number, self._holdout, self._decider = bandit_number, holdout, decider

    def decide(self, step: int, context: ContextValues | None, unit: str | None) -> tuple[int, bool]:
        """Return the column of decision `step` of the decider, and whether the unit is in the holdout."""
        if self._in_blocks and context is None:
            return self._next_ready(), False
        column = None
        if self._holdout is not None:
            unit = local_id(self._decider, step) if unit is None else unit
            column = self._holdout.column(self.bandit, self._number, unit)
        if column is None:
            return self.bandit.choose_column(context), False
        self.bandit.play_column(column, context, counts_for_shares=False)
        return column, True

    def _next_ready(self) -> int:
        """Return the column of the next decision of those that are made in blocks, which grow while they are used."""
        if not self._ready:
            self._block = min(2 * self._block, MAX_BLOCK)
            self._ready = choose_columns(self.bandit, self._block)[::-1]
        return self._ready.pop()

    def compile(self) -> None:
        """Compile the functions for decisions now instead of at their first use."""
        self.bandit.compile()
        if self._in_blocks:
            compile_blocks(self.bandit)


def local_seed(seed: int, decider: str, base: int) -> int:
    """Return the seed of a decider's decisions from one state.

    Examples
    --------
    >>> local_seed(7, "0123456789abcdef", 40)
    4597605346391376331
    """
    digest = hashlib.blake2b(f"{seed} {decider} {base}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def local_id(decider: str, step: int) -> str:
    """Return the id of a local decision."""
    return f"{decider}-{step}"
