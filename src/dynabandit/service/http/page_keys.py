"""What a key with the role `page` may not do: web pages publish it, so whoever sends it may be an attacker."""

import hashlib
from collections.abc import Iterable

from starlette.requests import Request

from dynabandit.service import api_types
from dynabandit.service.domain.signed_units import read_signed_unit
from dynabandit.service.errors import InvalidValueError
from dynabandit.service.http.requests import api_key_of, checked_name, idempotency_key
from dynabandit.service.http.status_codes import ApiError
from dynabandit.service.service import Service
from dynabandit.service.stores import KeyRow

SHORTEST_RANDOM_KEY = 22  # characters: 128 random bits in base64


def page_key(request: Request) -> KeyRow | None:
    """Return the key of a request if it has the role `page`."""
    api_key = api_key_of(request)
    return api_key if api_key is not None and api_key.role == "page" else None


async def unit_of(service: Service, request: Request, body: api_types.Decide) -> str | None:
    """Return the unit of a request for decisions; a page may only name one that the site's server has signed.

    Otherwise it would get the decisions of other visitors, and could reward them. All other callers may name any unit,
    so it does not matter who has signed it.
    """
    key = page_key(request)
    if body.signed_unit is None:
        if body.unit is None:
            return None
        if key is not None:
            raise ApiError(403, f"a page may not name a unit that your server has not signed: {_how_to_sign(key)}")
        return checked_name(body.unit, "unit")
    if body.unit is not None:
        raise InvalidValueError("unit and signed_unit must not be given together")
    secret = None if key is None else (await service.decision_ids()).unit_secret(key.id)
    try:
        return read_signed_unit(body.signed_unit, secret)
    except ValueError as error:
        if key is None:
            raise InvalidValueError(str(error)) from None
        raise ApiError(403, f"{error}: {_how_to_sign(key)}") from None


def _how_to_sign(key: KeyRow) -> str:
    return (
        "send signed_unit, which your server makes with dynabandit.sign_unit(unit, secret), and the secret is what"
        f" 'dynabandit keys unit-secret {key.id}' prints"
    )


def stored_key(request: Request, unit: str | None) -> str | None:
    """Return the idempotency key of a decision as it is stored.

    Pages have keys of their own, for each unit, so that they do not get decisions of others by guessing their keys.
    """
    sent, key = idempotency_key(request), page_key(request)
    if sent is None or key is None:
        return sent
    if unit is None and len(sent) < SHORTEST_RANDOM_KEY:
        raise InvalidValueError(
            "of a page without signed_unit, Idempotency-Key must be random, because whoever guesses it gets the same"
            f" decision: at least {SHORTEST_RANDOM_KEY} characters, got {len(sent)}"
        )
    content = "\n".join((key.id, sent, "" if unit is None else unit))
    return f"page\n{hashlib.blake2b(content.encode(), digest_size=16).hexdigest()}"  # no caller can send a line break


def check_may_reward(request: Request) -> None:
    """Raise an error if a request comes from a page whose key may not send rewards."""
    key = page_key(request)
    if key is not None and not key.sends_rewards:
        raise ApiError(403, f"this key may not send rewards; 'dynabandit keys allow {key.id}' would allow it")


def check_may_measure(request: Request, metrics: Iterable[str]) -> None:
    """Raise an error if a request comes from a page whose key may not send one of the metrics: they can pause arms."""
    key = page_key(request)
    refused = None if key is None else next((metric for metric in metrics if metric not in key.metrics), None)
    if key is not None and refused is not None:
        raise ApiError(
            403, f"this key may not send the metric {refused!r}; 'dynabandit keys allow {key.id}' can allow it"
        )
