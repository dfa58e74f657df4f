"""Policies whose parameters follow from what they are told: how long they play, and how often the best arm changes."""

from dataclasses import dataclass, replace
from typing import Self

from dynabandit.errors import integer, keep
from dynabandit.policies.base import Policy

__all__ = ["PATH", "Told"]

PATH = "path"


@dataclass(frozen=True, kw_only=True)
class Told(Policy):
    """A policy with parameters that follow from `horizon` and `switches` where they are not given.

    Without switches it is told the horizon alone, as somebody is who plans an experiment. With a number, it is told
    what the user expects. With ``"path"``, a simulation tells it how often the best arm changes on the very path that
    it plays: knowledge that no real user has, for a fair comparison with other policies that are given it.
    """

    horizon: int | None = None
    switches: int | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.horizon is not None:
            keep(self, horizon=integer("horizon", self.horizon, 1))
        if isinstance(self.switches, str):
            if self.switches != PATH:
                raise ValueError(
                    "switches must be a whole number of at least 0, None where nobody knows it, "
                    f"or 'path' to take it from the simulated path, got {self.switches!r}"
                )
        elif self.switches is not None:
            keep(self, switches=integer("switches", self.switches, 0))

    @property
    def open(self) -> bool:
        """Whether a parameter was not given, so that the horizon and the switches decide."""
        raise NotImplementedError

    @property
    def needs_tuning(self) -> bool:
        return self.open and self.switches == PATH

    @property
    def needs_horizon(self) -> bool:
        return self.open and self.switches != PATH and self.horizon is None

    def tuned(self, switches: int, horizon: int) -> Self:
        if not self.open:
            return self
        told = switches if self.switches == PATH else self.switches
        return replace(self, horizon=self.horizon or horizon, switches=told)

    @property
    def changes(self) -> int:
        """The switches to reckon with: at least one, and one where nobody knows."""
        return max(self.switches, 1) if isinstance(self.switches, int) else 1

    @property
    def steps(self) -> int:
        """The horizon, and 1 while nobody knows it."""
        return self.horizon or 1
