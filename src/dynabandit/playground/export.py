"""A trial in forms that others can run: TOML for `dynabandit run`, and Python."""

from typing import Any

from dynabandit import experiments
from dynabandit.environments import Environment
from dynabandit.experiments import Spec
from dynabandit.experiments.spec import parameters_to_write
from dynabandit.playground.link import TIMES, Trial
from dynabandit.policies import Policy


def toml(trial: Trial) -> str:
    """Return a spec for `dynabandit run` that gives the numbers of the playground.

    Examples
    --------
    >>> from dynabandit.playground import read
    >>> experiments.loads(toml(read("v=1&policies=ucb"))).experiments[0].policies
    (UCB(burn_in=1),)
    """
    return experiments.dumps(Spec(title="From the playground", experiments=(trial.experiment,)))


def python(trial: Trial) -> str:
    """Return a program that gives the numbers of the playground.

    Examples
    --------
    >>> from dynabandit.playground import read
    >>> print(python(read("v=1&policies=ucb;dts:memory=50")))  # doctest: +ELLIPSIS
    import dynabandit as db
    <BLANKLINE>
    runs = db.compare(
        [
            db.policy("ucb"),
            db.policy("dts", memory=50.0),
        ],
        db.environment("small-changes", arms=3),
        horizon=6000,
    ...
    """
    policies = "".join(f"        {_call('policy', policy)},\n" for policy in trial.policies)
    return (
        "import dynabandit as db\n\n"
        "runs = db.compare(\n"
        f"    [\n{policies}    ],\n"
        f"    {_call('environment', trial.environment)},\n"
        f"    horizon={trial.horizon},\n"
        f"    replications={trial.replications},\n"
        f"    seed={trial.seed},\n"
        f"    times={TIMES},\n"
        ")\n"
        "for label, run in runs.items():\n"
        '    print(f"{label}: mean total regret {run.total_regret.mean():.2f}")\n'
    )


def _call(function: str, one: Policy | Environment) -> str:
    parameters = "".join(f", {key}={_literal(value)}" for key, value in parameters_to_write(one).items())
    return f"db.{function}({_literal(one.name)}{parameters})"


def _literal(value: Any) -> str:
    """Return a value as Python source, with double quotes where that is possible."""
    return f'"{value}"' if isinstance(value, str) and value.isprintable() and '"' not in value else repr(value)
