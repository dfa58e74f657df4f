"""Policies whose parameters follow from the horizon and the number of changes."""

from dataclasses import dataclass, replace
from typing import Any, Self

from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies.base import Policy
from dynabandit.policies.horizons.doubling_horizon import DOUBLING, DoublingHorizon, doubling_class
from dynabandit.validation import check_field, integer


@dataclass(frozen=True, kw_only=True)
class HorizonTuned(Policy):
    """A policy whose parameters follow from a horizon and a number of changes, unless they are given.

    Without `changes`, a simulation counts how often the best arm changes on its path. That is knowledge a real user
    does not have; `changes=1` does not use it. The label shows which one was used. With `horizon="doubling"` the
    parameters follow from a horizon that doubles with time (`policies.horizons.doubling_horizon`).

    Parameters
    ----------
    changes
        The expected number of changes of the best arm. By default a simulation counts them on its path, which is not
        possible in practice; `changes=1` does not use the path.
    horizon
        The expected number of steps, T in equations, or ``"doubling"``; a simulation uses its own horizon.
    """

    changes: int | None = None
    horizon: int | str | None = None

    def __new__(cls, **parameters: Any) -> Self:
        doubles = isinstance(parameters.get("horizon"), str) and parameters["horizon"] == DOUBLING
        kind: Any = cls
        return object.__new__(doubling_class(kind) if doubles and not issubclass(cls, DoublingHorizon) else kind)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "changes", integer, 1, LARGEST_STEP, optional=True)
        if isinstance(self.horizon, str):
            if self.horizon != DOUBLING:
                raise ValueError(f"horizon must be a whole number of at least 1 or {DOUBLING!r}, got {self.horizon!r}")
        elif self.horizon is not None:
            check_field(self, "horizon", integer, 1, LARGEST_STEP)

    @classmethod
    def described_parameters(cls) -> dict[str, str]:
        uses_changes = cls._follows_from_changes is not HorizonTuned._follows_from_changes
        return super().described_parameters() | ({} if uses_changes else {"changes": "Not used."})

    def _follows_from_changes(self) -> bool:
        """Whether a parameter that follows from the number of changes is not given."""
        return False

    def _follows_from_horizon(self) -> bool:
        """Whether a parameter that follows from the horizon is not given."""
        return self._follows_from_changes()

    @property
    def needs_tuning(self) -> bool:
        return self.changes is None and self._follows_from_changes()

    @property
    def needs_horizon(self) -> bool:
        return self.horizon is None and self._follows_from_horizon()

    def tuned(self, switches: int, horizon: int) -> Self:
        return replace(
            self,
            changes=max(switches, 1) if self.needs_tuning else self.changes,
            horizon=horizon if self.needs_horizon else self.horizon,
        )

    def practical(self) -> Self:
        return replace(
            self,
            changes=1 if self.needs_tuning else self.changes,
            horizon=DOUBLING if self.needs_horizon else self.horizon,
        )

    def _expected(self) -> tuple[int, int]:
        """Return the number of changes and the horizon, 1 for one that is not needed."""
        assert not isinstance(self.horizon, str), "with a doubling horizon, `DoublingHorizon` asks for each of them"
        return self.changes or 1, self.horizon or 1
