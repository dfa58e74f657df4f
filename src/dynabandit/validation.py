"""Validation of arguments: each error names the argument, the value and what would be valid."""

import difflib
import math
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, TypeVar

Name = TypeVar("Name", bound=Hashable)


class MissingParameterError(TypeError):
    """A parameter without a default is missing; `lack` is the message without the reference to the documentation."""

    def __init__(self, lack: str, where: str) -> None:
        super().__init__(f"{lack}: see {where}")
        self.lack = lack


class ParameterError(ValueError):
    """A parameter of a policy or an environment is out of its range, which an earlier release may have accepted."""


LONGEST = 100  # characters of a name that are quoted and looked up: the lookup takes time per character
MOST_COMPARED = 400_000  # characters of a name times those of the names it is compared with: about 10 ms
MOST_LISTED = 20


def suggestion(value: object, known: Iterable[str]) -> str:
    """Return a hint such as `` Did you mean 'ucb'?``, or an empty string if no known name is similar."""
    given, compared = str(value)[:LONGEST], list[str]()
    room = MOST_COMPARED // max(len(given), 1)
    for name in known:
        room -= len(name)
        if room < 0:
            break
        compared.append(name)
    close = difflib.get_close_matches(given, compared, n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


def unknown(kind: str, value: object, known: Iterable[str]) -> ValueError:
    """Return the error for a name that is not in a registry."""
    names = sorted(known)
    given = f"{value[:LONGEST]}..." if isinstance(value, str) and len(value) > LONGEST else value
    return ValueError(f"unknown {kind} {given!r}.{suggestion(value, names)} Known: {', '.join(names)}")


def listed(names: Iterable[object]) -> str:
    """Return names in quotes, at most the first twenty: a bandit may have a hundred thousand arms.

    >>> listed(["red", "blue"]), listed(range(22))[-13:]
    ("'red', 'blue'", '19 and 2 more')
    """
    every = list(names)
    shown = [repr(name) for name in every[:MOST_LISTED]]
    cut = [name if len(name) <= LONGEST else f"{name[:LONGEST]}..." for name in shown]
    return ", ".join(cut) + (f" and {len(every) - MOST_LISTED} more" if len(every) > MOST_LISTED else "")


def repeated(names: Iterable[Name]) -> tuple[Name, int] | None:
    """Return the first of some names that is given more than once, and how many times; None if all are different.

    >>> repeated(["red", "blue", "red"]), repeated(["red", "blue"])
    (('red', 2), None)
    """
    return next(((name, times) for name, times in Counter(names).items() if times > 1), None)


def number(
    argument: str, value: Any, low: float, high: float, *, open_low: bool = False, open_high: bool = False
) -> float:
    """Return `value` as a float in [low, high], without the ends that are open; else raise an error."""
    valid = f"a number in {'(' if open_low else '['}{low:g}, {high:g}{')' if open_high or math.isinf(high) else ']'}"
    if _is_bool(value) or isinstance(value, str) or not hasattr(value, "__float__"):  # NumPy's strings have __float__
        raise TypeError(f"{argument} must be {valid}, got {value!r}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    except (TypeError, ValueError):  # such as an array of several numbers
        raise TypeError(f"{argument} must be {valid}, got {value!r}") from None
    inside = (low < result if open_low else low <= result) and (result < high if open_high else result <= high)
    if not inside or math.isinf(result):
        raise ValueError(f"{argument} must be {valid}, got {value!r}")
    return result


def _is_bool(value: Any) -> bool:
    """Whether a value is true or false, of Python or NumPy, without importing NumPy, which clients do not need."""
    return isinstance(value, bool) or (type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"))


def integer(argument: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value` as an int in [low, high]; else raise an error."""
    valid = f"a whole number of at least {low}" + ("" if high is None else f" and at most {high}")
    if low == high:
        valid = str(low)
    try:
        if isinstance(value, bool):
            raise TypeError
        result = operator.index(value)
    except TypeError:
        raise TypeError(f"{argument} must be {valid}, got {value!r}") from None
    if result < low or (high is not None and result > high):
        raise ValueError(f"{argument} must be {valid}, got {value!r}")
    return result


# Of parameters such as scales and priors: ratios, products and squares of such numbers stay finite and above 0
LEAST_FACTOR, LARGEST_FACTOR = 1e-12, 1e12
LARGEST_REWARD = 1e100  # squares of rewards, and sums of squares, must stay finite
SMALLEST_AMOUNT = 1e-100  # ratios of amounts must stay finite and above 0
LARGEST_COUNT = 2.0**53  # up to here every whole number is a float


class RewardDomain(NamedTuple):
    """The rewards that a reward law draws, or that a policy can learn from; `name` is that of the law.

    Examples
    --------
    >>> REWARD_DOMAINS["bernoulli"].is_within(REWARD_DOMAINS["counts"]), COUNTS.check(3), COUNTS.description
    (True, 3.0, 'a whole number in [0, 9.0072e+15]')
    """

    name: str
    low: float
    high: float
    whole: bool = False
    smallest: float = 0.0  # rewards between 0 and this are not valid

    @property
    def description(self) -> str:
        """Which rewards are valid."""
        described = f"a {'whole ' if self.whole else ''}number in [{self.low:g}, {self.high:g}]"
        return f"0 or a number in [{self.smallest:g}, {self.high:g}]" if self.smallest > 0.0 else described

    def check(self, value: Any, argument: str = "reward") -> float:
        """Return a reward as a float, or raise an error; True and False are 1 and 0."""
        result = number(argument, int(value) if _is_bool(value) else value, self.low, self.high)
        if not self.contains(result):
            raise ValueError(f"{argument} must be {self.description}, got {value!r}")
        return result

    def contains(self, values: Any) -> Any:
        """Whether a number is in the domain; an array of numbers gives an array."""
        inside = (self.low <= values) & (values <= self.high)
        if self.smallest > 0.0:
            inside = inside & ((values == 0.0) | (values >= self.smallest))
        return inside & (values % 1.0 == 0.0) if self.whole else inside

    def check_all(self, values: Any) -> None:
        """Raise an error for the first value of an array that is not in the domain."""
        for value in values[~self.contains(values)]:
            self.check(float(value))

    def is_within(self, other: "RewardDomain") -> bool:
        """Whether every reward of this domain is one of another, except rewards that are too small for it."""
        return other.low <= self.low and self.high <= other.high and (self.whole or not other.whole)


BERNOULLI = RewardDomain("bernoulli", 0.0, 1.0, whole=True)
BOUNDED = RewardDomain("bounded", 0.0, 1.0)
NORMAL = RewardDomain("normal", -LARGEST_REWARD, LARGEST_REWARD)
COUNTS = RewardDomain("counts", 0.0, LARGEST_COUNT, whole=True)
REVENUE = RewardDomain("revenue", 0.0, LARGEST_REWARD, smallest=SMALLEST_AMOUNT)
REWARD_DOMAINS = {one.name: one for one in (BERNOULLI, BOUNDED, NORMAL, COUNTS, REVENUE)}


def set_fields(owner: object, **checked: Any) -> None:
    """Set fields of a frozen dataclass to validated values."""
    for name, value in checked.items():
        object.__setattr__(owner, name, value)


def check_field(
    owner: object, name: str, check: Callable[..., Any], *limits: float, optional: bool = False, **ends: bool
) -> None:
    """Set a field of a frozen dataclass to what `number` or `integer` returns for it; an optional one may be None."""
    value = getattr(owner, name)
    if value is not None or not optional:
        try:
            checked = check(name, value, *limits, **ends)
        except ValueError as error:
            raise ParameterError(str(error)) from None
        set_fields(owner, **{name: checked})


def check_parameter_names(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise an error if `given` contains a parameter that `what` does not have."""
    names = list(known)
    for name in given:
        if name not in names:
            raise TypeError(
                f"{what} has no parameter {name!r}.{suggestion(name, names)} Its parameters: {', '.join(names)}"
            )
