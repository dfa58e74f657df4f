"""What memories, rules and detectors have in common: a name, parameters, and what these may follow from."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

from dynabandit.core.docstrings import inherit_parameters
from dynabandit.core.records import NoParams
from dynabandit.policies.beta_posterior import Prior


class Setting(NamedTuple):
    """What the parameters of a part may follow from, besides its own fields."""

    arms: int
    changes: int = 1  # of the best arm, expected until the horizon
    horizon: int = 1
    burn_in: int = 0
    prior: Prior = Prior(0.0, 0.0)  # the Beta prior of a rule that draws from posteriors


@dataclass(frozen=True, kw_only=True)
class Part:
    """Base class of memories, rules and detectors; a subclass is a frozen dataclass whose fields are its parameters.

    A docstring need not repeat the parameters that the class it is derived from describes.
    """

    name: ClassVar[str]
    variant_of: ClassVar[Any] = None  # the part that users mean, if releases keep this one for details that differ
    first_plays: ClassVar[int] = 0  # how often each arm is played before a policy with this part decides, by default
    follows_horizon: ClassVar[bool] = False  # whether a parameter may follow from a horizon and a number of changes

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_parameters(cls, cls.__mro__[1])

    def __post_init__(self) -> None:
        """Check the parameters."""

    def params(self, setting: Setting) -> Any:
        """Return the parameters as the named tuple that the kernels read."""
        return NoParams()

    @property
    def needs_changes(self) -> bool:
        """Whether a parameter is not given and follows from the number of changes."""
        return False

    @property
    def needs_horizon(self) -> bool:
        """Whether a parameter is not given and follows from the horizon."""
        return self.needs_changes

    def limited(self, horizon: int) -> Self:
        """Return the part as it is needed for so many steps, such as with a shorter window."""
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
