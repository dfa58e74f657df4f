"""Links of the playground: a link holds everything that a run depends on."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl, quote

import msgspec

from dynabandit.bandit.live_policies import models_size
from dynabandit.core.one_line_syntax import read_one_line
from dynabandit.environments import Environment, environment as make_environment
from dynabandit.experiments import Experiment
from dynabandit.experiments.spec import parameters_to_write
from dynabandit.experiments.spec_reader import FieldProblem, SpecError, read_table
from dynabandit.playground.drawn_means import COLUMNS, MOST_ARMS, DrawnMeans, decode, encode, make_drawn_environment
from dynabandit.plugins import for_simulation
from dynabandit.policies import Policy, policy as make_policy
from dynabandit.validation import repeated

VERSION = "1"
DRAWN = "drawn"
CONTEXTUAL = "logistic-drift"  # the environment with features
ENVIRONMENTS = ("small-changes", "case-1", "case-2", "case-3", "case-4", CONTEXTUAL, DRAWN)
MOST_POLICIES = 6
MOST_HORIZON = 100_000
MOST_REPLICATIONS = 1000
MOST_CASE_ARMS = 100
MOST_NUMBERS = 10**7  # that policies keep, over the replications that run at once
LONGEST = 400  # characters of a policy, and of a message
LARGEST_SEED = 2**53 - 1  # the largest whole number that JavaScript keeps exactly
MOST_ARM_STEPS = 300_000_000  # about half a minute of one core
TIMES = 200  # points of a regret curve
MOST_FIELDS = 32  # of a link, known or not
MOST_PARAMETER_PROBLEMS = 4  # that are reported for one policy
NUMBERS = ("arms", "horizon", "replications", "seed")

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a link describes; made by `read`, which checks it.

    Examples
    --------
    >>> trial = read("v=1&environment=case-3&arms=5&policies=ucb;aff-ots:step_size=0.01&seed=7")
    >>> trial.policies[1].label, trial.horizon
    ('aff-ots(step_size=0.01)', 6000)
    >>> trial.query
    'v=1&environment=case-3&arms=5&policies=ucb;aff-ots:step_size=0.01&horizon=6000&replications=20&seed=7'
    """

    environment_name: str
    arms: int
    policies: tuple[Policy, ...]
    drawing: DrawnMeans
    horizon: int
    replications: int
    seed: int

    @property
    def environment(self) -> Environment:
        """The environment."""
        if self.environment_name == DRAWN:
            return make_drawn_environment(self.drawing, self.horizon)
        return make_environment(self.environment_name, arms=self.arms)

    @property
    def experiment(self) -> Experiment:
        """The experiment of a spec that gives the same numbers."""
        return Experiment(
            id="playground",
            environment=self.environment,
            policies=self.policies,
            horizon=self.horizon,
            replications=self.replications,
            seed=self.seed,
            times=TIMES,
        )

    @property
    def arm_steps(self) -> int:
        """How many arm-steps a run takes: horizon x replications x arms x policies."""
        return self.horizon * self.replications * self.arms * len(self.policies)

    @property
    def numbers(self) -> list[int]:
        """How many numbers each policy keeps in one replication."""
        tuned = [policy.tuned(1, self.horizon) for policy in self.policies]
        arms, context = self.arms, self.environment.context
        return [one.shared_size() + one.memory_size() * arms + models_size(one, arms, context) for one in tuned]

    @property
    def query(self) -> str:
        """The link: what comes after the question mark."""
        drawn = {"drawn": encode(self.drawing)} if self.drawing else {}
        values = {
            "v": VERSION, "environment": self.environment_name, "arms": self.arms, **drawn,
            "policies": ";".join(_write_policy(policy) for policy in self.policies),
            "horizon": self.horizon, "replications": self.replications, "seed": self.seed,
        }  # fmt: skip
        return "&".join(f"{key}={quote(str(value), safe=':;=,[].-')}" for key, value in values.items())


def arms_of(environment: str) -> tuple[int, int]:
    """Return the smallest and the largest number of arms of an environment.

    Examples
    --------
    >>> arms_of("small-changes"), arms_of("case-1"), arms_of(DRAWN)
    ((3, 3), (2, 100), (2, 8))
    """
    return {"small-changes": (3, 3), DRAWN: (2, MOST_ARMS)}.get(environment, (2, MOST_CASE_ARMS))


def read(query: str) -> Trial:
    """Return the trial of a link, or raise a `SpecError` with all problems of the link."""
    with for_simulation():
        return _Reader(query).read()


class _Reader:
    """Reads a link field by field, and goes on after a problem to find the others."""

    def __init__(self, query: str) -> None:
        self.problems: list[FieldProblem] = []
        fields = query.count("&") + 1
        if fields > MOST_FIELDS:
            raise SpecError([FieldProblem("v", f"a link must have at most {MOST_FIELDS} fields, got {fields}")])
        pairs = parse_qsl(query, keep_blank_values=True)
        self.given = dict(pairs)
        if (twice := repeated(key for key, _ in pairs)) is not None:
            self.note("v", f"every field must be given once, got {twice[0][:100]!r} {twice[1]} times")

    def note(self, field: str, problem: str) -> None:
        self.problems.append(FieldProblem(field, problem))

    def attempt(self, field: str, make: Callable[[], Value], otherwise: Value) -> Value:
        """Return the result of `make`, or note the problem and return `otherwise`."""
        try:
            return make()
        except (TypeError, ValueError) as error:
            self.note(field, str(error)[:LONGEST])
        except RecursionError:
            self.note(field, f"{field} must be nested less deeply")
        return otherwise

    def read(self) -> Trial:
        environment = self.given.get("environment", ENVIRONMENTS[0])
        fields = self.read_fields(environment if environment in ENVIRONMENTS else ENVIRONMENTS[0])
        trial = Trial(
            environment_name=fields.environment,
            arms=fields.arms,
            drawing=self.read_drawing(fields),
            policies=self.read_policies(fields.policies),
            horizon=fields.horizon,
            replications=fields.replications,
            seed=fields.seed,
        )
        if not self.problems:
            self.check_combination(trial)
        if self.problems:
            raise SpecError(self.problems)
        return trial

    def read_fields(self, environment: str) -> Any:
        """Return the fields of the link; those with problems have their defaults."""
        link_type = _link_type(environment)
        given: dict[str, Any] = {"v": "", **self.given}
        given |= {key: int(given[key]) for key in NUMBERS if _is_number(given.get(key, ""))}
        try:
            fields = read_table(link_type, given)
        except SpecError as error:
            for problem in error.problems:
                text = f"{problem.field} {problem.problem}" if problem.problem.startswith("must") else problem.problem
                self.note(problem.field, text[:LONGEST])
            wrong = {problem.field for problem in error.problems}
            known = {key: value for key, value in given.items() if key in link_type.__struct_fields__}
            fields = link_type(**{key: value for key, value in known.items() if key not in wrong} | {"v": VERSION})
        for key, value in self.given.items():
            if hasattr(fields, key) and not value.isprintable():
                self.note(key, f"{key} must be printable text on one line, got {value[:40]!r}")
        return fields

    def read_drawing(self, fields: Any) -> DrawnMeans:
        if fields.environment == DRAWN:
            return self.attempt("drawn", lambda: decode(fields.drawn), ())
        if "drawn" in self.given:
            self.note("drawn", f"drawn goes with environment={DRAWN}, got environment={fields.environment}")
        return ()

    def read_policies(self, text: str) -> tuple[Policy, ...]:
        texts = [one for one in text.split(";") if one]
        if not 1 <= len(texts) <= MOST_POLICIES:
            self.note("policies", f"policies must name 1 to {MOST_POLICIES} policies, got {len(texts)}")
            return ()
        found = [self.read_policy(f"policies.{place}", one) for place, one in enumerate(texts)]
        return tuple(policy for policy in found if policy is not None)

    def read_policy(self, field: str, text: str) -> Policy | None:
        if len(text) > LONGEST:
            self.note(field, f"a policy with its parameters must have at most {LONGEST} characters, got {len(text)}")
            return None
        entry = self.attempt(field, lambda: read_one_line(text), None)
        if entry is None or self.attempt(field, lambda: make_policy(entry[0]), None) is None:
            return None
        name, parameters = entry
        before = len(self.problems)
        for key, value in parameters.items():
            # One parameter at a time, so that each message appears beside its field of the form
            if len(self.problems) < before + MOST_PARAMETER_PROBLEMS:
                self.attempt(f"{field}.{key[:40]}", functools.partial(make_policy, name, **{key: value}), None)
        if len(self.problems) > before:
            return None
        return self.attempt(field, lambda: make_policy(name, **parameters), None)

    def check_combination(self, trial: Trial) -> None:
        """Note the problems of fields that are valid by themselves."""
        if trial.drawing and len(trial.drawing) != trial.arms:
            self.note("arms", f"arms must be {len(trial.drawing)}, as many as are drawn, got {trial.arms}")
        labels = [policy.label for policy in trial.policies]
        for place, label in enumerate(labels):
            if label in labels[:place]:
                self.note(
                    f"policies.{place}",
                    f"policies must be different, got {label} twice: change a parameter, or remove one of them",
                )
        if trial.environment_name != CONTEXTUAL:
            for place, policy in enumerate(trial.policies):
                if policy.functions.contextual:
                    self.note(
                        f"policies.{place}",
                        f"{labels[place]} decides by features and needs the environment {CONTEXTUAL}, "
                        f"got {trial.environment_name}",
                    )
        room = MOST_NUMBERS
        for place, size in enumerate(trial.numbers):
            if size > room:
                self.note(f"policies.{place}", f"{labels[place]} would keep {size} numbers with {trial.arms} arms, "
                          f"but at most {room} fit here beside the policies before it")  # fmt: skip
            else:
                room -= size
        longest = max((policy.burn_in for policy in trial.policies), default=0) * trial.arms
        if trial.horizon < longest:
            self.note("horizon", f"horizon must be at least {longest}, the longest burn-in, got {trial.horizon}")
        most = MOST_ARM_STEPS // (trial.arm_steps // trial.replications)
        if trial.arm_steps > MOST_ARM_STEPS:
            self.note("replications", f"replications must be at most {most} with so many steps, arms and policies: "
                      f"the playground runs {MOST_ARM_STEPS:,} arm-steps, got {trial.arm_steps:,}")  # fmt: skip
        if not self.problems:
            self.attempt("environment", lambda: trial.experiment, None)


def _link_type(environment: str) -> type[msgspec.Struct]:
    """Return the fields of a link; the limits of some depend on the environment."""
    low, high = arms_of(environment)
    return msgspec.defstruct(
        "Link",
        [
            ("v", Literal[VERSION]),
            ("environment", Literal[ENVIRONMENTS], ENVIRONMENTS[0]),
            ("arms", _between(low, high), 3),
            ("drawn", str, ""),
            ("policies", str, ""),
            ("horizon", _between(COLUMNS if environment == DRAWN else 10, MOST_HORIZON), 6000),
            ("replications", _between(1, MOST_REPLICATIONS), 20),
            ("seed", _between(0, LARGEST_SEED), 1),
        ],
    )


def _between(low: int, high: int) -> Any:
    return Annotated[int, msgspec.Meta(ge=low, le=high)]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20


def _write_policy(policy: Policy) -> str:
    parameters = ",".join(f"{key}={_write_value(value)}" for key, value in parameters_to_write(policy).items())
    name = policy.name.replace(" ", "")  # of a composition: a link has no spaces
    return f"{name}:{parameters}" if parameters else name


def _write_value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{','.join(map(_write_value, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")
