"""Names and ids as they travel: normalised names, and ids of decisions that say where to look them up."""

import ipaddress
import re
import unicodedata

__all__ = [
    "ID_BITS", "LONGEST_NAME", "clean_name", "decision_id", "from_bytes", "is_loopback", "is_whole", "legible",
    "public_id", "read_decision_id", "read_public_id", "to_bytes",
]  # fmt: skip

LONGEST_NAME = 200
ID_BITS = 60  # of a bandit's random number: twelve letters of five bits
LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUE = {letter: value for value, letter in enumerate(LETTERS)}
_PUBLIC = re.compile(f"[{LETTERS}]{{12}}")
_DECISION = re.compile(f"([{LETTERS}]{{12}})-([1-9][0-9]{{0,9}})")


def clean_name(name: str, what: str = "name") -> str:
    r"""Return a name in Unicode's NFC form, or raise an error where it is empty, too long or no text.

    Examples
    --------
    >>> clean_name("cafe\u0301") == "caf\xe9"
    True
    """
    clean = unicodedata.normalize("NFC", name)
    if not 1 <= len(clean) <= LONGEST_NAME:
        raise ValueError(f"{what} must have 1 to {LONGEST_NAME} characters, got {len(clean)}")
    if not clean.isascii() and any("\ud800" <= letter <= "\udfff" for letter in clean):
        raise ValueError(f"{what} must be text that UTF-8 can hold, got half a surrogate pair in {clean!r}")
    return clean


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host.

    Examples
    --------
    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def to_bytes(name: str) -> bytes:
    """Return a name as a store keeps it."""
    return name.encode(errors="surrogateescape")


def from_bytes(content: bytes) -> str:
    r"""Return the name that `to_bytes` made bytes of; damaged ones give a name that is not whole.

    Examples
    --------
    >>> name = from_bytes(b"ba\xffner")
    >>> to_bytes(name), is_whole(name), legible(name)
    (b'ba\xffner', False, 'ba�ner')
    """
    return content.decode(errors="surrogateescape")


def is_whole(name: str) -> bool:
    """Whether a name from a store is the text that was put there."""
    return legible(name) == name


def legible(name: str) -> str:
    """Return a name from a store as others can read it, damaged or not."""
    return to_bytes(name).decode(errors="replace")


def public_id(number: int) -> str:
    """Return a bandit's number as twelve letters.

    Examples
    --------
    >>> public_id(33), read_public_id("000000000011")
    ('000000000011', 33)
    """
    return "".join(LETTERS[number >> shift & 31] for shift in range(ID_BITS - 5, -1, -5))


def read_public_id(text: str) -> int | None:
    """Return the number that `public_id` wrote, or None where it did not write this."""
    if not _PUBLIC.fullmatch(text):
        return None
    number = 0
    for letter in text:
        number = number << 5 | _VALUE[letter]
    return number


def decision_id(public: str, step: int) -> str:
    """Return the id of a decision: which bandit, which step."""
    return f"{public}-{step}"


def read_decision_id(text: str) -> tuple[int, int] | None:
    """Return (number of the bandit, step), or None where `text` is no id of a decision.

    Examples
    --------
    >>> read_decision_id("000000000011-17")
    (33, 17)
    >>> read_decision_id("000000000011-017") is None
    True
    """
    match = _DECISION.fullmatch(text)
    if match is None:
        return None
    number = read_public_id(match[1])
    return None if number is None else (number, int(match[2]))
