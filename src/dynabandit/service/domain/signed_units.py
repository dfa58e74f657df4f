"""Signed units: the server of a site says by a signature for which unit a web page may ask for decisions."""

import hashlib
import hmac
import re
import time

from dynabandit.service.domain.names import clean_name
from dynabandit.validation import number

DAY = 86400.0
LONGEST_VALID = 10 * 365 * DAY
_SECRET = re.compile("[0-9a-f]{64}")
_SIGNED = re.compile(r"([0-9]{1,12})\.([0-9a-f]{64})\.(.+)", re.DOTALL)


def sign_unit(unit: str, secret: str, valid_for: float = DAY) -> str:
    """Return a signed unit, with which a web page can ask for decisions for this unit; call this on your server.

    Parameters
    ----------
    unit
        Whom the decisions are for, such as a user whom your server has identified.
    secret
        What ``dynabandit keys unit-secret ID`` prints for the key in your pages.
    valid_for
        The seconds for which the page can use it.

    Examples
    --------
    >>> import dynabandit
    >>> signed = dynabandit.sign_unit("user-17", secret="0123456789abcdef" * 4, valid_for=3600)
    >>> signed.endswith(".user-17")
    True
    """
    unit = clean_name(unit, "unit")
    if not isinstance(secret, str) or not _SECRET.fullmatch(secret):  # not shown: it may be another secret
        raise ValueError("secret must be the 64 characters that dynabandit keys unit-secret prints")
    number("valid_for", valid_for, 0.0, LONGEST_VALID, open_low=True)
    expires = int(time.time() + valid_for)
    return f"{expires}.{_signature(f'{expires}.{unit}', secret)}.{unit}"


def read_signed_unit(text: str, secret: str | None) -> str:
    """Return the unit of a text that `sign_unit` has made, or raise an error; without a secret, any signature is valid.

    Examples
    --------
    >>> secret = "0123456789abcdef" * 4
    >>> read_signed_unit(sign_unit("user-17", secret), secret)
    'user-17'
    """
    match = _SIGNED.fullmatch(text)
    if match is None:
        raise ValueError("signed_unit must be a time, a signature and the unit, with dots between them")
    expires, signature, unit = match.groups()
    clean = clean_name(unit, "the unit of signed_unit")
    if secret is not None:
        if not hmac.compare_digest(_signature(f"{expires}.{unit}", secret), signature):
            raise ValueError("the signature of signed_unit is wrong")
        if int(expires) < time.time():
            raise ValueError("signed_unit is not valid any more")
    return clean


def _signature(content: str, secret: str) -> str:
    return hmac.new(secret.encode(), content.encode(), hashlib.sha256).hexdigest()
