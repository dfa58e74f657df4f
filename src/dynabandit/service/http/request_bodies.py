"""Request bodies: decoded by msgspec; errors name the field, its value and what would be valid.

msgspec's own messages name neither the value nor all that is valid, so a body that it rejects is checked again here.
"""

import json
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from dynabandit.service.errors import InvalidValueError
from dynabandit.validation import repeated, unknown

MAX_CHECKED = 40_000  # values of a body that is checked again, which takes some microseconds for each
MAX_CONTAINERS = 50_000  # lists and objects of a body: each takes memory, and the time of the garbage collector
MAX_VALUES = 250_000  # of a body: decoding them takes less than a tenth of a second, in which no other thread runs
MAX_QUOTED = 100  # characters that are quoted
CONTAINERS: dict[type, type[Any]] = {inspect.StrType: str, inspect.ListType: list, inspect.DictType: dict}
Body = TypeVar("Body")


def decode_body(decoder: msgspec.json.Decoder[Body], content: bytes, most: int = MAX_CONTAINERS) -> Body:
    """Return a body with at most so many lists and objects, and `MAX_VALUES` values, or raise `InvalidValueError`.

    If it is not JSON, the error is `msgspec.DecodeError`.

    Examples
    --------
    >>> from dynabandit.service import api_types
    >>> decode_body(msgspec.json.Decoder(api_types.Decide), b'{"count": 0}')
    Traceback (most recent call last):
    dynabandit.service.errors.InvalidValueError: count must be a whole number from 1 to 1000, got 0
    """
    containers = sum(map(content.count, (b"[", b"{")))
    if containers > most:
        raise InvalidValueError(f"the body must have at most {most} lists and objects, got {containers}")
    values = content.count(b",")
    if values > MAX_VALUES:
        raise InvalidValueError(
            f"the body must have at most {MAX_VALUES} values, counted by their commas, got {values}: send some of "
            "them, such as fewer arms, and the others later"
        )
    try:
        return _decode(decoder, content)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"text must be UTF-8, {error.reason}") from None


def _decode(decoder: msgspec.json.Decoder[Body], content: bytes) -> Body:
    try:
        body = decoder.decode(content)
    except msgspec.ValidationError as error:
        if sum(map(content.count, (b",", b"[", b"{"))) > MAX_CHECKED:
            where = str(error).partition(" - at ")[2].strip("`") or "its beginning"
            raise InvalidValueError(f"the body is not valid at {where}") from None
        try:
            _check(msgspec.json.decode(content), inspect.type_info(decoder.type), "")
        except msgspec.ValidationError as other:  # such as a number that is too large for every type
            raise InvalidValueError(f"the body must hold numbers of a usual size: {other}") from None
        _check_names(content)  # of two fields with one name, the first was wrong
        raise InvalidValueError(f"the body is not valid: {error}") from None
    _check_names(content)
    return body


def _check_names(content: bytes) -> None:
    """Raise an error if an object of a valid body has two fields with the same name, of which msgspec takes the last.

    Each field has a colon, so most bodies need not be parsed again. Without escapes a text looks the same when it is
    encoded again, and only a field that was dropped can make a difference.
    """
    colons = content.count(b":")
    if colons < 2:
        return
    if b"\\" not in content and msgspec.json.encode(msgspec.json.decode(content)).count(b":") == colons:
        return
    json.loads(content, object_pairs_hook=_check_object)


def _check_object(fields: list[tuple[str, Any]]) -> None:
    if len(dict(fields)) < len(fields) and (twice := repeated(name for name, _ in fields)) is not None:
        raise InvalidValueError(f"the body must name every field once, got {_quote(twice[0])} {twice[1]} times")


def _check(value: Any, kind: inspect.Type, where: str) -> None:
    """Raise an error if a value does not fit; `where` is its place in the body."""
    kinds = _kinds(kind)
    is_whole = type(value) is int and any(isinstance(one, inspect.IntType) for one in kinds)
    fitting = (one for one in kinds if _fits(value, one) and not (is_whole and isinstance(one, inspect.FloatType)))
    found = next(fitting, None)
    if found is None:
        raise InvalidValueError(f"{where or 'the body'} must be {_valid_of(kinds)}, got {_quote(value)}")
    if isinstance(found, inspect.ListType):
        for place, item in enumerate(value):
            _check(item, found.item_type, f"{where}[{place}]")
    if isinstance(found, inspect.DictType):
        for key, item in value.items():
            _check(key, found.key_type, f"a key of {where}")
            _check(item, found.value_type, f"{where}.{key}")
    if isinstance(found, inspect.StructType):
        _check_fields(value, found, where)


def _check_fields(value: dict[str, Any], kind: inspect.StructType, where: str) -> None:
    known = {field.encode_name: field for field in kind.fields}
    for name in value:
        if name not in known:
            raise InvalidValueError((f"{where}: " if where else "") + str(unknown("field", name, known)))
    for name, field in known.items():
        place = f"{where}.{name}" if where else name
        if name in value:
            _check(value[name], field.type, place)
        elif field.required:
            raise InvalidValueError(f"{place} must be {_valid_of(_kinds(field.type))}, got nothing")


def _kinds(kind: inspect.Type) -> list[inspect.Type]:
    """Return the types that a value may have."""
    if isinstance(kind, inspect.Metadata):
        return _kinds(kind.type)
    return [one for part in kind.types for one in _kinds(part)] if isinstance(kind, inspect.UnionType) else [kind]


def _fits(value: Any, kind: inspect.Type) -> bool:
    """Whether a value is of a type, without looking at its items."""
    match kind:
        case inspect.IntType() | inspect.FloatType():
            numbers = int if isinstance(kind, inspect.IntType) else (int, float)
            return isinstance(value, numbers) and not isinstance(value, bool) and _within(value, kind)
        case inspect.StrType() | inspect.ListType() | inspect.DictType():
            low, high = kind.min_length or 0, kind.max_length
            return type(value) is CONTAINERS[type(kind)] and low <= len(value) and (high is None or len(value) <= high)
        case inspect.LiteralType():
            return any(value == one and type(value) is type(one) for one in kind.values)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.NoneType():
            return value is None
        case inspect.AnyType():
            return True
    return isinstance(value, dict)


def _within(value: float, kind: inspect.IntType | inspect.FloatType) -> bool:
    return (
        (kind.ge is None or value >= kind.ge)
        and (kind.gt is None or value > kind.gt)
        and (kind.le is None or value <= kind.le)
    )


def _valid_of(kinds: list[inspect.Type]) -> str:
    *most, last = (_valid(one) for one in kinds if not isinstance(one, inspect.NoneType))
    null = ", or null" if len(most) + 1 < len(kinds) else ""
    return (f"{', '.join(most)} or {last}" if most else last) + null


def _valid(kind: inspect.Type) -> str:
    """Describe the values of a type."""
    match kind:
        case inspect.IntType():
            return "a whole number" + _bounds(kind)
        case inspect.FloatType():
            return "a number" + _bounds(kind)
        case inspect.StrType():
            return "text" + _size(kind, "characters")
        case inspect.ListType():
            return f"a list{_size(kind, 'items')}, each {_valid_of(_kinds(kind.item_type))}"
        case inspect.DictType():
            return "an object" + _size(kind, "keys")
        case inspect.LiteralType():
            return " or ".join(map(_quote, kind.values))
        case inspect.BoolType():
            return "true or false"
    return "an object"


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.le is None:
        return ""
    high = f"{kind.le:.15g}" if isinstance(kind.le, float) else kind.le
    return f" above {kind.gt} and at most {high}" if kind.ge is None else f" from {kind.ge} to {high}"


def _size(kind: inspect.StrType | inspect.ListType | inspect.DictType, of: str) -> str:
    if kind.max_length is None:
        return ""
    return f" of {f'{kind.min_length} to' if kind.min_length else 'at most'} {kind.max_length} {of}"


def _quote(value: Any) -> str:
    """Return a value as it is quoted; of a long one, its length."""
    if isinstance(value, list):
        return f"a list of {len(value)} item{'' if len(value) == 1 else 's'}"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, str):
        return repr(value) if len(value) <= MAX_QUOTED else f"{value[:MAX_QUOTED]!r}... of {len(value)} characters"
    return msgspec.json.encode(value).decode()
