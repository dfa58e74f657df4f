"""The ids of decisions: the id of the bandit, the step, and a signature without which nobody can guess an id.

Also the other secrets that are made from that of the store.
"""

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
        self._unsigned, self._secret = unsigned, secret
        self._keyed_hash = hashlib.blake2b(digest_size=SIGNATURE_BYTES, key=secret)

    def make(self, bandit_number: int, step: int) -> str:
        """Return the id of a decision, given the number of its bandit."""
        plain = f"{public_id(bandit_number)}-{step}"
        return plain if step <= self._unsigned.get(bandit_number, 0) else f"{plain}-{self._signature(plain)}"

    def _signature(self, plain: str) -> str:
        keyed_hash = self._keyed_hash.copy()
        keyed_hash.update(plain.encode())
        return keyed_hash.hexdigest()

    def read(self, text: str, signed: bool = False) -> tuple[int, int] | None:
        """Return (number of the bandit, step), or None if `text` is not an id that `make` returns.

        With `signed`, ids of earlier releases without a signature, which can be guessed, are not read.
        """
        plain, _, signature = text.rpartition("-")
        is_signed = text.isascii() and hmac.compare_digest(self._signature(plain), signature)
        match = _PLAIN.fullmatch(plain if is_signed else text)
        if match is None:
            return None
        bandit_number, step = read_public_id(match[1]) or 0, int(match[2])
        is_known = is_signed or (not signed and step <= self._unsigned.get(bandit_number, 0))
        return (bandit_number, step) if is_known else None

    def unit_secret(self, key_id: str) -> str:
        """Return the secret that signs the units of pages with an API key; see `signed_units.py`.

        Examples
        --------
        >>> len(DecisionIds(b"secret", unsigned={}).unit_secret("5f1c0a9b2d3e"))
        64
        """
        return hmac.new(self._secret, f"units of key {key_id}".encode(), hashlib.sha256).hexdigest()
