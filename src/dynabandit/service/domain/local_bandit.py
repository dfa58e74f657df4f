"""The bandit of a local decider, with which it decides and `dynabandit verify` makes its decisions again."""

import hashlib

from dynabandit.bandit import Bandit
from dynabandit.service.domain.decision_details import Context
from dynabandit.service.domain.holdout import Holdout


class LocalBandit:
    """The state of bandit `number` after event `base`, with a random stream for one decider.

    Its decisions are a function of this state, the decider, the contexts and the units. They count as plays, but it
    learns no rewards.
    """

    def __init__(self, bandit: Bandit, number: int, holdout: Holdout | None, decider: str, base: int) -> None:
        self.bandit = bandit.reseeded(local_seed(bandit.seed, decider, base))
        self.base = base
        self._number, self._holdout, self._decider = number, holdout, decider

    def decide(self, step: int, context: Context | None, unit: str | None) -> tuple[int, bool]:
        """Return the column of decision `step` of the decider, and whether the unit is in the holdout."""
        column = None
        if self._holdout is not None:
            unit = local_id(self._decider, step) if unit is None else unit
            column = self._holdout.column(self.bandit, self._number, unit)
        if column is None:
            return self.bandit.choose_column(context), False
        self.bandit.play_column(column, context, counts_for_shares=False)
        return column, True


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
