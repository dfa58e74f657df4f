"""A trial: all that a run of the playground depends on, read from a link and written as one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote

from dynabandit.errors import nearest
from dynabandit.experiments import Experiment, Named
from dynabandit.experiments.one_line_syntax import named as parse_named
from dynabandit.playground.drawing import COLUMNS, MOST_ARMS, Drawing, decode, drawn_environment, encode

__all__ = [
    "DRAWN", "ENVIRONMENTS", "MOST_ARM_STEPS", "MOST_CASE_ARMS", "MOST_NUMBERS", "MOST_POLICIES", "TIMES", "VERSION",
    "Problem", "Trial", "Wrong", "arms_of", "read",
]  # fmt: skip

VERSION = "1"
DRAWN = "drawn"
ENVIRONMENTS = ("small-changes", "case-1", "case-2", "case-3", "case-4", DRAWN)
MOST_POLICIES = 6
MOST_HORIZON = 100_000
MOST_REPLICATIONS = 1000
MOST_CASE_ARMS = 100
MOST_NUMBERS = 10**7  # that policies keep, over the replications that run at once
LONGEST = 400  # characters
LARGEST_SEED = 2**53 - 1  # a browser counts no further
MOST_ARM_STEPS = 300_000_000  # about half a minute of one core
TIMES = 200  # points of a regret curve
MOST_FIELDS = 32  # of a link: each that is unknown takes a search for the one that was meant
MOST_TOLD = 4  # problems of unknown fields, and of the parameters of one policy
KEYS = ("v", "environment", "arms", "drawn", "policies", "horizon", "replications", "seed")

Value = TypeVar("Value")


@dataclass(frozen=True)
class Problem:
    """What is wrong with one field, such as ``policies.0.step_size``."""

    field: str
    problem: str


class Wrong(ValueError):  # noqa: N818 - an answer, not a fault
    """A trial that cannot be run; `problems` says why, field by field."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(f"{one.field}: {one.problem}" for one in problems))
        self.problems = problems


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What to run; made by `read`, which checks it.

    Examples
    --------
    >>> trial = read("v=1&environment=case-3&arms=5&policies=ucb;aff-ots:step_size=0.01&seed=7")
    >>> trial.policies[1].make_policy().label, trial.horizon
    ('aff-ots(step_size=0.01)', 6000)
    >>> trial.query
    'v=1&environment=case-3&arms=5&policies=ucb;aff-ots:step_size=0.01&horizon=6000&replications=20&seed=7'
    """

    environment: str
    arms: int
    policies: tuple[Named, ...]
    drawing: Drawing = ()
    horizon: int = 6000
    replications: int = 20
    seed: int = 1

    @property
    def world(self) -> Named:
        """The environment with its parameters."""
        if self.environment == DRAWN:
            return drawn_environment(self.drawing, self.horizon)
        return Named(self.environment, {"arms": self.arms})

    @property
    def experiment(self) -> Experiment:
        """The same as a part of a spec."""
        return Experiment(
            id="playground",
            environment=self.world,
            policies=self.policies,
            horizon=self.horizon,
            replications=self.replications,
            seed=self.seed,
            times=TIMES,
        )

    @property
    def arm_steps(self) -> int:
        """How much there is to do."""
        return self.horizon * self.replications * self.arms * len(self.policies)

    @property
    def numbers(self) -> list[int]:
        """How many numbers each policy keeps in one replication."""
        tuned = [one.make_policy().tuned(1, self.horizon) for one in self.policies]
        return [one.shared_size() + one.memory_size() * self.arms for one in tuned]

    @property
    def query(self) -> str:
        """The link to it: what comes after the question mark."""
        drawn = {"drawn": encode(self.drawing)} if self.drawing else {}
        values = {
            "v": VERSION, "environment": self.environment, "arms": self.arms, **drawn,
            "policies": ";".join(_written(one) for one in self.policies),
            "horizon": self.horizon, "replications": self.replications, "seed": self.seed,
        }  # fmt: skip
        return "&".join(f"{key}={quote(str(value), safe=':;=,[].-')}" for key, value in values.items())


def arms_of(environment: str) -> tuple[int, int]:
    """Return how few and how many arms an environment may have.

    Examples
    --------
    >>> arms_of("small-changes"), arms_of("case-1"), arms_of(DRAWN)
    ((3, 3), (2, 100), (2, 8))
    """
    return {"small-changes": (3, 3), DRAWN: (2, MOST_ARMS)}.get(environment, (2, MOST_CASE_ARMS))


def read(query: str) -> Trial:
    """Return the trial of a link, or raise `Wrong` with all that is wrong with it."""
    return _Reader(query).trial()


class _Reader:
    """Reads field by field, and goes on after a problem to find the others."""

    def __init__(self, query: str) -> None:
        self.problems: list[Problem] = []
        pairs = _pairs(query)
        self.given = dict(pairs)
        for key in [key for key in self.given if key not in KEYS][:MOST_TOLD]:
            self.note(key[:100], f"unknown field {key[:100]!r}.{nearest(key, KEYS)} Known: {', '.join(KEYS)}")
        if len(pairs) > len(self.given):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            self.note("v", f"every field must be given once, got {twice[:100]!r} {keys.count(twice)} times")
        for key, value in self.given.items():
            if key in KEYS and not value.isprintable():
                self.note(key, f"{key} must be printable text on one line, got {value[:40]!r}")

    def note(self, field: str, problem: str) -> None:
        self.problems.append(Problem(field, problem))

    def attempt(self, field: str, make: Callable[[], Value], otherwise: Value) -> Value:
        """Return what `make` does, or note the problem."""
        try:
            return make()
        except (TypeError, ValueError) as error:
            self.note(field, str(error)[:LONGEST])
        except RecursionError:
            self.note(field, f"{field} must be nested less deeply")
        return otherwise

    def whole(self, field: str, default: int, low: int, high: int) -> int:
        text = self.given.get(field, str(default))
        digits = text.isascii() and text.isdigit() and len(text) <= 20
        if not digits or not low <= int(text) <= high:
            valid = f"a whole number from {low} to {high}" if low < high else f"{low}"
            self.note(field, f"{field} must be {valid}, got {text[:40]!r}")
            return default
        return int(text)

    def trial(self) -> Trial:
        if self.given.get("v") != VERSION:
            self.note("v", f"v must be {VERSION}, the version of a link, got {self.given.get('v', '')[:40]!r}")
        environment = self.given.get("environment", ENVIRONMENTS[0])
        if environment not in ENVIRONMENTS:
            valid = ", ".join(ENVIRONMENTS)
            self.note("environment", f"environment must be one of {valid}, got {environment[:100]!r}")
            environment = ENVIRONMENTS[0]
        trial = Trial(
            environment=environment,
            arms=self.whole("arms", 3, *arms_of(environment)),
            drawing=self.drawing(environment),
            policies=self.policies(),
            horizon=self.whole("horizon", 6000, COLUMNS if environment == DRAWN else 10, MOST_HORIZON),
            replications=self.whole("replications", 20, 1, MOST_REPLICATIONS),
            seed=self.whole("seed", 1, 0, LARGEST_SEED),
        )
        if not self.problems:
            self.together(trial)
        if self.problems:
            raise Wrong(self.problems)
        return trial

    def drawing(self, environment: str) -> Drawing:
        if environment != DRAWN:
            if "drawn" in self.given:
                self.note("drawn", f"drawn goes with environment={DRAWN}, got environment={environment}")
            return ()
        return self.attempt("drawn", lambda: decode(self.given.get("drawn", "")), ())

    def policies(self) -> tuple[Named, ...]:
        texts = [text for text in self.given.get("policies", "").split(";") if text]
        if not 1 <= len(texts) <= MOST_POLICIES:
            self.note("policies", f"policies must name 1 to {MOST_POLICIES} policies, got {len(texts)}")
            return ()
        found = [self.policy(place, text) for place, text in enumerate(texts)]
        return tuple(one for one in found if one is not None)

    def policy(self, place: int, text: str) -> Named | None:
        field = f"policies.{place}"
        if len(text) > LONGEST:
            self.note(field, f"a policy with its parameters must have at most {LONGEST} characters, got {len(text)}")
            return None
        named = self.attempt(field, lambda: parse_named(text), None)
        if named is None or self.attempt(field, Named(named.name).make_policy, None) is None:
            return None
        before = len(self.problems)
        for key, value in named.parameters.items():
            # One parameter at a time, so that the message lands beside its field
            if len(self.problems) < before + MOST_TOLD:
                self.attempt(f"{field}.{key[:40]}", Named(named.name, {key: value}).make_policy, None)
        if len(self.problems) > before:
            return None
        return self.attempt(field, lambda: _changed(named), None)

    def together(self, trial: Trial) -> None:
        """Note what is wrong with fields that are fine by themselves."""
        if trial.drawing and len(trial.drawing) != trial.arms:
            self.note("arms", f"arms must be {len(trial.drawing)}, as many as are drawn, got {trial.arms}")
        labels = [one.make_policy().label for one in trial.policies]
        for place, label in enumerate(labels):
            if label in labels[:place]:
                self.note(
                    f"policies.{place}",
                    f"policies must be different, got {label} twice: change a parameter, or take one away",
                )
        room = MOST_NUMBERS
        for place, size in enumerate(trial.numbers):
            if size > room:
                self.note(f"policies.{place}", f"{labels[place]} would keep {size} numbers with {trial.arms} arms, "
                          f"but at most {room} fit here beside the policies before it")  # fmt: skip
            else:
                room -= size
        longest = max((one.make_policy().burn_in for one in trial.policies), default=0) * trial.arms
        if trial.horizon < longest:
            self.note("horizon", f"horizon must be at least {longest}, the longest burn-in, got {trial.horizon}")
        most = MOST_ARM_STEPS // (trial.arm_steps // trial.replications)
        if trial.arm_steps > MOST_ARM_STEPS:
            self.note("replications", f"replications must be at most {most} with so many steps, arms and policies: "
                      f"the playground plays {MOST_ARM_STEPS:,} arm-steps, got {trial.arm_steps:,}")  # fmt: skip
        if not self.problems:
            self.attempt("environment", lambda: trial.experiment, None)


def _pairs(query: str) -> list[tuple[str, str]]:
    fields = query.count("&") + 1
    if fields > MOST_FIELDS:
        raise Wrong([Problem("v", f"a link must have at most {MOST_FIELDS} fields, got {fields}")])
    return parse_qsl(query, keep_blank_values=True)


def _changed(named: Named) -> Named:
    """Return the policy with those parameters alone that differ from their defaults."""
    policy, default = named.make_policy(), Named(named.name).make_policy()
    values = {key: value for key, value in policy.parameters.items() if value != default.parameters[key]}
    return Named(named.name, values)


def _written(named: Named) -> str:
    parameters = ",".join(f"{key}={_value(value)}" for key, value in named.parameters.items())
    return f"{named.name}:{parameters}" if parameters else named.name


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{','.join(map(_value, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")
