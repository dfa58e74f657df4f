"""The settings of a bandit."""

from typing import Any, NamedTuple

from dynabandit.service.domain.holdout import Holdout


class Settings(NamedTuple):
    """What a bandit was created with, besides its policy and arms."""

    name: str
    reward_window: float | None
    default_reward: float | None
    sticky_for: float | None = None  # seconds during which a unit keeps its arm
    holdout: Holdout | None = None
    imported: int = 0  # the first decisions, which were made elsewhere

    @classmethod
    def of_new_bandit(cls, body: dict[str, Any]) -> "Settings":
        """Return the settings in the body of a create event, or in a snapshot; earlier releases had fewer."""
        holdout = body.get("holdout")
        found = None if holdout is None else Holdout(*holdout) if isinstance(holdout, list) else Holdout(**holdout)
        rest = body.get("sticky_for"), found, body.get("imported", 0)
        return cls(body["name"], body["reward_window"], body["default_reward"], *rest)

    def hashed(self) -> list[Any]:
        """Return what the hash of a state depends on; those that are not used are left out, as in earlier releases."""
        return [*self[:3], *({name: getattr(self, name)} for name in self._fields[3:] if getattr(self, name))]
