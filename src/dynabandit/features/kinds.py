"""The kinds of features: how each checks a value and writes it into columns of numbers."""

import decimal
import functools
import math
import numbers
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from dynabandit.features.standardisation import RunningMoments
from dynabandit.validation import check_parameter_names, integer, listed, number, set_fields, unknown

__all__ = ["KINDS", "Boolean", "Category", "Feature", "Hashed", "Number", "Vector", "declared", "inferred"]

LARGEST_NUMBER = 1e100  # squares must stay finite
LARGEST_AS_IS = 1e6  # of numbers that are not standardised: a model keeps sums of products of them
MOST_COLUMNS = 4096
HASHED_COLUMNS = 16


@dataclass(frozen=True, kw_only=True)
class Feature:
    """What is declared about one feature: `width` columns for its value and, unless it is required, one if missing."""

    kind: ClassVar[str]
    valid: ClassVar[str]  # which values are valid

    name: str
    required: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"the name of a feature must be a string that is not empty, got {self.name!r}")
        if not isinstance(self.required, bool):
            raise TypeError(f"required of feature {self.name!r} must be True or False, got {self.required!r}")

    @property
    def width(self) -> int:
        """The number of columns of a value."""
        return 1

    def write(self, vector: np.ndarray, first: int, value: Any, moments: RunningMoments | None) -> None:
        """Write a value into `width` columns of zeros, or raise an error if it is not valid."""
        raise NotImplementedError

    def bad_type(self, value: Any) -> TypeError:
        """Return the error for a value of a type that is not valid."""
        return TypeError(f"feature {self.name!r} must be {self.valid}, got {_shown(value)}")

    def bad(self, value: Any) -> ValueError:
        """Return the error for a value that is not valid, such as NaN."""
        return ValueError(f"feature {self.name!r} must be {self.valid}, got {_shown(value)}")

    def to_json(self) -> dict[str, Any]:
        """Return the declaration with all options."""
        options = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        del options["name"]
        return {"kind": self.kind, **options}


@dataclass(frozen=True, kw_only=True)
class Number(Feature):
    """A number in one column, by default standardised by the mean and variance of the values so far.

    Values below `low` or above `high` are refused, so that they cannot change mean and variance.

    Examples
    --------
    >>> Number(name="age", low=0, high=120).checked(1e100)
    Traceback (most recent call last):
        ...
    ValueError: feature 'age' must be between 0 and 120, got 1e+100
    """

    kind = "number"
    valid = "a finite number"

    standardise: bool = True
    forgetting: float = 0.99999
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.standardise, bool):
            raise TypeError(f"standardise of feature {self.name!r} must be True or False, got {self.standardise!r}")
        forgetting = number(f"forgetting of feature {self.name!r}", self.forgetting, 0.0, 1.0, open_low=True)
        set_fields(self, forgetting=forgetting)
        for name, end in (("low", self.low), ("high", self.high)):
            if end is not None:
                largest = self._largest
                set_fields(self, **{name: number(f"{name} of feature {self.name!r}", end, -largest, largest)})
        lowest, highest = self._ends
        if not lowest < highest:
            raise ValueError(f"low of feature {self.name!r} must be below {highest:.15g}, got {lowest:.15g}")

    @property
    def _largest(self) -> float:
        return LARGEST_NUMBER if self.standardise else LARGEST_AS_IS

    @functools.cached_property
    def _ends(self) -> tuple[float, float]:
        return -self._largest if self.low is None else self.low, self._largest if self.high is None else self.high

    def checked(self, value: Any) -> float:
        """Return a valid value as a float."""
        if not _is_number(value):
            raise self.bad_type(value)
        try:
            result = float(value)
        except OverflowError:
            result = math.inf
        except (TypeError, ValueError):
            raise self.bad_type(value) from None
        lowest, highest = self._ends
        if not lowest <= result <= highest:
            if not math.isfinite(result):
                raise self.bad(value)
            if self.low is None and self.high is None:
                raise _too_large(self, highest, value)
            valid = f"between {lowest:.15g} and {highest:.15g}"
            raise ValueError(f"feature {self.name!r} must be {valid}, got {_shown(value)}")
        return result

    def to_json(self) -> dict[str, Any]:
        """Return the declaration with all options; without ends it is that of earlier releases, and so is its hash."""
        return {name: value for name, value in super().to_json().items() if value is not None}

    def write(self, vector: np.ndarray, first: int, value: Any, moments: RunningMoments | None) -> None:
        """Write the standardised value, or the value as it is."""
        checked = self.checked(value)
        vector[first] = checked if moments is None else moments.standardised(checked)


@dataclass(frozen=True, kw_only=True)
class Boolean(Feature):
    """True or false, in one column as 1 or 0."""

    kind = "boolean"
    valid = "True or False"

    def write(self, vector: np.ndarray, first: int, value: Any, moments: RunningMoments | None) -> None:
        """Write 1 or 0."""
        if not isinstance(value, bool | np.bool_):
            raise self.bad_type(value)
        vector[first] = value


@dataclass(frozen=True, kw_only=True)
class Category(Feature):
    """One of several values: a column for each of `values` and one for all others, or hashed into `columns` columns."""

    kind = "category"
    valid = "a string or a whole number"

    values: tuple[str, ...] | None = None
    columns: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values is not None and self.columns is not None:
            raise ValueError(f"feature {self.name!r} can have values or columns, not both")
        if self.values is None:
            columns = HASHED_COLUMNS if self.columns is None else self.columns
            checked = integer(f"columns of feature {self.name!r}", columns, 1, MOST_COLUMNS)
            set_fields(self, columns=checked)
            return
        if not isinstance(self.values, list | tuple) or not self.values:
            raise TypeError(f"values of feature {self.name!r} must be a list of strings, got {self.values!r}")
        values = tuple(self._text(value) for value in self.values)
        if len(set(values)) < len(values):
            raise ValueError(f"values of feature {self.name!r} must be different, got {listed(values)}")
        integer(f"the number of values of feature {self.name!r}", len(values), 1, MOST_COLUMNS)
        set_fields(self, values=values)

    @functools.cached_property
    def _column(self) -> dict[str, int]:
        return {value: column for column, value in enumerate(self.values or ())}

    @property
    def width(self) -> int:
        """The number of columns of a value."""
        return self.columns if self.values is None else len(self.values) + 1  # type: ignore[return-value]

    def _text(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, int | np.integer) and not isinstance(value, bool):
            return str(int(value))
        raise self.bad_type(value)

    def write(self, vector: np.ndarray, first: int, value: Any, moments: RunningMoments | None) -> None:
        """Write 1 into the column of the value."""
        text = value if type(value) is str else self._text(value)
        if self.values is None:
            column = zlib.crc32(f"{self.name}={text}".encode("utf-8", "surrogatepass")) % self.columns  # type: ignore[operator]
        else:
            column = self._column.get(text, len(self.values))
        vector[first + column] = 1.0


@dataclass(frozen=True, kw_only=True)
class Vector(Feature):
    """A list of numbers, used as they are, one column for each."""

    kind = "vector"

    size: int

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, size=integer(f"size of feature {self.name!r}", self.size, 1, MOST_COLUMNS))

    @property
    def valid(self) -> str:  # type: ignore[override]
        """Which values are valid."""
        return f"a list of {self.size} finite numbers"

    @property
    def width(self) -> int:
        """The number of columns of a value."""
        return self.size

    def write(self, vector: np.ndarray, first: int, value: Any, moments: RunningMoments | None) -> None:
        """Write the numbers as they are."""
        array = _as_vector(value)
        if array is None:
            raise self.bad_type(value)
        if len(array) != self.size:
            raise ValueError(f"feature {self.name!r} must be {self.valid}, got {len(array)} numbers: {_shown(value)}")
        if not np.all(np.abs(array) <= LARGEST_AS_IS):
            if np.all(np.isfinite(array)):
                raise _too_large(self, LARGEST_AS_IS, value)
            raise self.bad(value)
        vector[first : first + self.size] = array


@dataclass(frozen=True, kw_only=True)
class Hashed(Feature):
    """A mapping from any names to numbers, booleans and strings, hashed into columns (Weinberger et al., 2009).

    The hash of the name, or of the name and the string, decides the column and a sign, so that the sum of names in the
    same column is 0 on average. A number x above 1 is written as 1 + log x, and one below -1 likewise: values that are
    not known in advance cannot be standardised, and large ones would outweigh all others.

    Examples
    --------
    >>> vector = np.zeros(6)
    >>> Hashed(name="user", columns=6).write(vector, 0, {"age": 0.5, "country": "NO", "new": True}, None)
    >>> vector.tolist()
    [0.0, 0.0, 0.0, 1.0, 1.0, -0.5]
    """

    kind = "hashed"
    valid = "a mapping from names to finite numbers, booleans or strings"

    columns: int = HASHED_COLUMNS

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, columns=integer(f"columns of feature {self.name!r}", self.columns, 1, MOST_COLUMNS))

    @property
    def width(self) -> int:
        """The number of columns of a value."""
        return self.columns

    def write(self, vector: np.ndarray, first: int, value: Any, moments: RunningMoments | None) -> None:
        """Add each number, or 1 for a string, to the column of its hash or subtract it; None is a missing value."""
        if not isinstance(value, Mapping):
            raise self.bad_type(value)
        for name, one in value.items():
            if not isinstance(name, str):
                raise self.bad_type(value)
            if one is None:
                continue
            text, amount = (f"{name}={one}", 1.0) if isinstance(one, str) else (name, self._amount(name, one))
            hashed = zlib.crc32(text.encode("utf-8", "surrogatepass"))
            vector[first + (hashed >> 1) % self.columns] += amount if hashed & 1 else -amount

    def _amount(self, name: str, value: Any) -> float:
        is_valid = _is_number(value) or isinstance(value, bool | np.bool_)
        if not is_valid or not abs(value) <= LARGEST_NUMBER:  # as a whole number may be too large for a float
            raise ValueError(f"feature {self.name!r} must be {self.valid}, got {name!r}: {_shown(value)}")
        number = float(value)
        return number if abs(number) <= 1.0 else math.copysign(1.0 + math.log(abs(number)), number)


KINDS: dict[str, type[Feature]] = {one.kind: one for one in (Number, Boolean, Category, Vector, Hashed)}


def declared(name: str, declaration: Any) -> Feature:
    """Return the feature with this declaration: a kind, or a mapping with the kind and options.

    Examples
    --------
    >>> declared("embedding", {"kind": "vector", "size": 16})
    Vector(name='embedding', required=False, size=16)
    """
    if isinstance(declaration, Feature):
        return declaration
    options = dict(declaration) if isinstance(declaration, Mapping) else {"kind": declaration}
    kind = options.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise unknown(f"kind of feature {name!r}:", kind, KINDS)
    if kind == "vector" and "size" not in options:
        raise TypeError(f'feature {name!r} needs a size: {{"kind": "vector", "size": 16}}')
    check_parameter_names(f"feature {name!r}", options, [one.name for one in fields(KINDS[kind]) if one.name != "name"])
    return KINDS[kind](name=name, **options)


def inferred(name: str, value: Any) -> Feature:
    """Return a feature of the kind that fits a value.

    Examples
    --------
    >>> inferred("country", "NO").kind, inferred("hour", 18).kind, inferred("embedding", [0.5, 1.0]).width
    ('category', 'number', 2)
    """
    if isinstance(value, bool | np.bool_):
        return Boolean(name=name)
    if isinstance(value, str):
        return Category(name=name)
    vector = _as_vector(value)
    if vector is not None:
        return Vector(name=name, size=len(vector))
    feature = Number(name=name)
    try:
        feature.checked(value)
    except TypeError:
        valid = "a boolean, a number, a string or a list of numbers"
        raise TypeError(f"feature {name!r} must be {valid}, got {_shown(value)}") from None
    return feature


def _is_number(value: Any) -> bool:
    if type(value) is float or type(value) is int:  # much faster than the check for all types
        return True
    return isinstance(value, numbers.Real | decimal.Decimal) and not isinstance(value, bool)


def _as_vector(value: Any) -> np.ndarray | None:
    """Return a list, tuple or array of numbers as an array of floats; None for anything else."""
    if isinstance(value, np.ndarray):
        is_vector = value.ndim == 1 and value.dtype.kind in "iuf"
        return value.astype(np.float64, copy=False) if is_vector else None
    if not isinstance(value, list | tuple) or not all(_is_number(one) for one in value):
        return None
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return array if array.ndim == 1 else None


def _too_large(feature: Feature, largest: float, value: Any) -> ValueError:
    return ValueError(
        f"feature {feature.name!r} must be between {-largest:g} and {largest:g}, got {_shown(value)}; rescale it"
    )


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 100 else f"{shown[:100]}..."
