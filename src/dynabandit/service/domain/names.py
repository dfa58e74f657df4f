"""Names of bandits and arms in normal form, and the public ids of bandits."""

import functools
import re
import unicodedata

MAX_NAME = 200
MAX_DECOMPOSED = 4  # characters that NFC may compose to one
ID_BITS = 60  # of a bandit's random number: twelve letters of five bits
LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUE = {letter: value for value, letter in enumerate(LETTERS)}
_PUBLIC = re.compile(f"[{LETTERS}]{{12}}")


def clean_name(name: str, what: str = "name") -> str:
    r"""Return a name in Unicode's NFC form, or raise an error if it is empty, too long or not valid text.

    Examples
    --------
    >>> clean_name("cafe\u0301") == "caf\xe9"
    True
    """
    # A long text takes long to normalise; one of too many characters cannot become short enough
    clean = unicodedata.normalize("NFC", name) if len(name) <= MAX_NAME * MAX_DECOMPOSED else name
    if not 1 <= len(clean) <= MAX_NAME:
        raise ValueError(f"{what} must have 1 to {MAX_NAME} characters, got {len(clean)}")
    if not clean.isascii() and any("\ud800" <= letter <= "\udfff" for letter in clean):
        raise ValueError(f"{what} must be text that UTF-8 can hold, got half a surrogate pair in {clean!r}")
    return clean


def in_namespace(name: str, namespace: str | None) -> bool:
    """Whether a bandit belongs to a namespace, the part of its name before the first slash; None has all bandits.

    Examples
    --------
    >>> in_namespace("shop/banner", "shop"), in_namespace("shop", "shop"), in_namespace("shop", None)
    (True, False, True)
    """
    return namespace is None or name.startswith(f"{namespace}/")


def to_bytes(name: str) -> bytes:
    """Return a name as stores keep it."""
    return name.encode(errors="surrogateescape")


def from_bytes(content: bytes) -> str:
    r"""Return the name that `to_bytes` encoded; damaged bytes give a name for which `is_whole` is false.

    Examples
    --------
    >>> name = from_bytes(b"ba\xffner")
    >>> to_bytes(name), is_whole(name), legible(name)
    (b'ba\xffner', False, 'ba�ner')
    """
    return content.decode(errors="surrogateescape")


def is_whole(name: str) -> bool:
    """Whether a name from a store is undamaged."""
    return legible(name) == name


def legible(name: str) -> str:
    """Return a name from a store as valid text, with replacement characters where it is damaged."""
    return to_bytes(name).decode(errors="replace")


@functools.lru_cache(maxsize=1000)
def public_id(bandit_number: int) -> str:
    """Return a bandit's number as twelve letters.

    Examples
    --------
    >>> public_id(33), read_public_id("000000000011")
    ('000000000011', 33)
    """
    return "".join(LETTERS[bandit_number >> shift & 31] for shift in range(ID_BITS - 5, -1, -5))


@functools.lru_cache(maxsize=1000)
def read_public_id(text: str) -> int | None:
    """Return the number that `public_id` encoded, or None if `text` is not such an id."""
    if not _PUBLIC.fullmatch(text):
        return None
    bandit_number = 0
    for letter in text:
        bandit_number = bandit_number << 5 | _VALUE[letter]
    return bandit_number
