"""The ids of decisions: the id of the bandit, the step, and a signature without which nobody can guess an id."""

import hashlib
import hmac
import re
from collections.abc import Mapping

from dynabandit.service.domain.names import LETTERS, public_id, read_public_id

SIGNATURE_BYTES = 8
_PLAIN = re.compile(f"([{LETTERS}]{{12}})-([1-9][0-9]{{0,14}})")  # a step is below 2^48


class DecisionIds:
    """Makes and checks the ids of decisions with the secret of the store, which all replicas share.

    Earlier releases gave out ids without a signature: `unsigned` has the last such step of each bandit. These decisions
    keep their ids, and all others have a signed one.

    Examples
    --------
    >>> ids = DecisionIds(b"secret", unsigned={33: 2})
    >>> ids.make(33, 2), ids.make(33, 3)
    ('000000000011-2', '000000000011-3-f431b98188b0605d')
    >>> ids.read("000000000011-2"), ids.read(ids.make(33, 3)), ids.read("000000000011-3")
    ((33, 2), (33, 3), None)
    """

    def __init__(self, secret: bytes, unsigned: Mapping[int, int]) -> None:
        self._unsigned = unsigned
        self._keyed_hash = hashlib.blake2b(digest_size=SIGNATURE_BYTES, key=secret)

    def make(self, bandit_number: int, step: int) -> str:
        """Return the id of a decision, given the number of its bandit."""
        plain = f"{public_id(bandit_number)}-{step}"
        return plain if step <= self._unsigned.get(bandit_number, 0) else f"{plain}-{self._signature(plain)}"

    def _signature(self, plain: str) -> str:
        keyed_hash = self._keyed_hash.copy()
        keyed_hash.update(plain.encode())
        return keyed_hash.hexdigest()

    def read(self, text: str) -> tuple[int, int] | None:
        """Return (number of the bandit, step), or None if `text` is not an id that `make` returns."""
        plain, _, signature = text.rpartition("-")
        is_signed = text.isascii() and hmac.compare_digest(self._signature(plain), signature)
        match = _PLAIN.fullmatch(plain if is_signed else text)
        if match is None:
            return None
        bandit_number, step = read_public_id(match[1]) or 0, int(match[2])
        return (bandit_number, step) if is_signed or step <= self._unsigned.get(bandit_number, 0) else None
