"""What a bandit knows about its arms."""

from typing import NamedTuple

__all__ = ["Arm", "Arms"]


class Arm(NamedTuple):
    """What a bandit knows about one arm.

    Before the first reward the mean is NaN, or that of the prior where the policy's memory starts from one, as in DTS.
    """

    mean: float
    variance: float
    forgetting: float
    effective_size: float
    idle: int
    plays: int
    paused: bool = False


class Arms(dict[str, Arm]):
    """The arms of a bandit by name, shown as a table."""

    def __repr__(self) -> str:
        width = max(3, *(len(name) for name in self))
        lines = [f"{'arm':<{width}}    mean  variance  forgetting  effective size    idle   plays"]
        for name, arm in self.items():
            lines.append(
                f"{name:<{width}}  {arm.mean:6.3f}  {arm.variance:8.4f}  {arm.forgetting:10.4f}"
                f"  {arm.effective_size:14.1f}  {arm.idle:6d}  {arm.plays:6d}"
            )
        return "\n".join(lines)
