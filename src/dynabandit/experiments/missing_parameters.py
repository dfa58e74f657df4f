"""A parameter that is needed and was left out: how to write it, for those who write no Python."""

from collections.abc import Callable
from typing import Any

from dynabandit.catalogue import example
from dynabandit.environments import ENVIRONMENTS, Environment
from dynabandit.errors import Needed
from dynabandit.experiments.spec import Named

__all__ = ["try_environment"]


def try_environment(named: Named, write: Callable[[str, dict[str, Any]], str]) -> Environment:
    """Return the environment; `write` writes a name and parameters as they are written where this one came from.

    Examples
    --------
    >>> try_environment(Named("fixed"), lambda name, given: f"{name} {given}")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: environment 'fixed' needs means, such as fixed {'means': [0.2, 0.8]}; dynabandit list shows all ...
    """
    try:
        return named.make_environment()
    except Needed as error:
        parameters = example(ENVIRONMENTS[named.name])
        such = f", such as {write(named.name, parameters)}" if parameters else ""
        raise TypeError(f"{error.lack}{such}; dynabandit list shows all parameters") from None
