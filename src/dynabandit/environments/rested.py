"""Rested arms: the mean of an arm changes with its own plays only, not with time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.validation import integer, number, set_fields

PerArm = float | Sequence[float]  # one number for all arms, or one for each


@kernel
def start(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> None:
    state[0, arm] = 0.0


@kernel
def advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> float:
    return params.initial[arm]


class RottingParams(NamedTuple):
    initial: np.ndarray
    exponent: np.ndarray
    scale: np.ndarray


@kernel
def rotting_mean(value: float, plays: int, arm: int, params: RottingParams) -> float:
    return value * (1.0 + plays / params.scale[arm]) ** -params.exponent[arm]


class DropParams(NamedTuple):
    initial: np.ndarray
    final: np.ndarray
    drop: np.ndarray


@kernel
def drop_mean(value: float, plays: int, arm: int, params: DropParams) -> float:
    return value if plays < params.drop[arm] else params.final[arm]


class RisingParams(NamedTuple):
    initial: np.ndarray
    final: np.ndarray
    scale: np.ndarray


@kernel
def rising_mean(value: float, plays: int, arm: int, params: RisingParams) -> float:
    return params.final[arm] - (params.final[arm] - value) * math.exp(-plays / params.scale[arm])


@dataclass(frozen=True, kw_only=True)
class RestedEnvironment(Environment):
    """What environments with rested arms share. A path has the means of arms that were never played."""

    slots = ("unused",)

    def constant_until(self, step: int) -> int:
        return LARGEST_STEP

    def means_by_plays(self, plays: int) -> np.ndarray:
        """Return the means at the first, second, ... play of each arm, an array (plays, arms).

        Examples
        --------
        >>> import dynabandit as db
        >>> env = db.environment("rested-drops", initial=0.7, final=[0.1, 0.2], drop=2)
        >>> env.means_by_plays(3).tolist()
        [[0.7, 0.7], [0.7, 0.7], [0.1, 0.2]]
        """
        plays, params = integer("plays", plays, 1, LARGEST_STEP), self.params()
        mean = self.functions.mean
        return np.array([[mean(params.initial[arm], n, arm, params) for arm in range(self.arms)] for n in range(plays)])

    def _set(self, name: str, low: float, high: float, *, open_low: bool = False) -> None:
        """Check and set a parameter: None, one number for all arms, or one for each."""
        value = getattr(self, name)
        if value is None:
            return
        if isinstance(value, (list, tuple, np.ndarray)):
            if len(value) != self.arms:
                raise ValueError(f"{name} must be a number or one for each of {self.arms} arms, got {value!r}")
            checked: Any = tuple(
                number(f"{name}[{arm}]", one, low, high, open_low=open_low) for arm, one in enumerate(value)
            )
        else:
            checked = number(name, value, low, high, open_low=open_low)
        set_fields(self, **{name: checked})

    def _check_order(self, smaller: str, larger: str) -> None:
        """Raise an error if one parameter is above the other for some arm."""
        below, above = self.per_arm(getattr(self, smaller), getattr(self, larger))
        wrong = np.flatnonzero(below > above)
        if len(wrong):
            raise ValueError(
                f"{smaller} must not be above {larger}, got {below[wrong[0]]:g} and {above[wrong[0]]:g} "
                f"for arm {wrong[0]}"
            )


@dataclass(frozen=True, kw_only=True)
class RestedRotting(RestedEnvironment):
    r"""Arms that wear out: the mean of an arm falls with each of its own plays.

    It falls with a power of the number of plays. An arm that is not played keeps its mean (rested). In `Rotting`, by
    contrast, all arms decay with time, whether they are played or not (restless). The best policy plays the arm with
    the largest current mean, and regret is measured against it.

    Parameters
    ----------
    arms
        The number of arms.
    initial
        The mean of an arm that was never played, in [0, 1]: one number, or one for each arm.
    exponent
        The power, at least 0: one number, or one for each arm; by default evenly spaced from 0.1 to 0.4.
    scale
        After how many plays the decay begins to show, positive: one number, or one for each arm.

    Examples
    --------
    >>> import dynabandit as db
    >>> env = db.environment("rested-rotting", exponent=[0, 1], scale=1)
    >>> env.means_by_plays(3).round(2).tolist()
    [[1.0, 1.0], [1.0, 0.5], [1.0, 0.33]]

    Notes
    -----
    The mean of an arm after n plays:

    .. math:: \mu(n) = \mathrm{initial} \cdot \left( 1 + \frac{n}{\mathrm{scale}} \right)^{-\mathrm{exponent}}

    References
    ----------
    Levine, Crammer & Mannor (2017), Rotting bandits. NIPS.
    Heidari, Kearns & Roth (2016), Tight policy regret bounds for improving and decaying bandits. IJCAI.
    """

    name = "rested-rotting"
    functions = EnvironmentFunctions(start, advance, RottingParams, rotting_mean)

    initial: PerArm = 1.0
    exponent: PerArm | None = None
    scale: PerArm = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("initial", 0.0, 1.0)
        self._set("exponent", 0.0, math.inf)
        self._set("scale", 0.0, math.inf, open_low=True)

    def params(self) -> RottingParams:
        exponent = np.linspace(0.1, 0.4, self.arms) if self.exponent is None else self.exponent
        return RottingParams(*self.per_arm(self.initial, exponent, self.scale))


@dataclass(frozen=True, kw_only=True)
class RestedDrops(RestedEnvironment):
    """Arms that break: the mean of an arm drops once, after a number of its own plays.

    An arm that is not played keeps its mean (rested). The best policy plays the arm with the largest current mean, and
    regret is measured against it.

    Parameters
    ----------
    arms
        The number of arms.
    initial
        The mean before the drop, in [0, 1]: one number, or one for each arm.
    final
        The mean after the drop, at most `initial`: one number, or one for each arm.
    drop
        After how many plays an arm drops, at least 0: one number, or one for each arm; by default 200 for the first
        arm, 400 for the second, and so on.

    Examples
    --------
    >>> import dynabandit as db
    >>> env = db.environment("rested-drops", initial=[0.5, 0.9], final=[0.5, 0.1], drop=1)
    >>> env.means_by_plays(2).tolist()
    [[0.5, 0.9], [0.5, 0.1]]

    References
    ----------
    Levine, Crammer & Mannor (2017), Rotting bandits. NIPS, the non-parametric case of the experiments.
    Seznec, Locatelli, Carpentier, Lazaric & Valko (2019), Rotting bandits are no harder than stochastic ones. AISTATS.
    """

    name = "rested-drops"
    functions = EnvironmentFunctions(start, advance, DropParams, drop_mean)

    initial: PerArm = 0.8
    final: PerArm = 0.2
    drop: PerArm | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("initial", 0.0, 1.0)
        self._set("final", 0.0, 1.0)
        self._set("drop", 0.0, LARGEST_STEP)
        self._check_order("final", "initial")

    def params(self) -> DropParams:
        drop = 200.0 * np.arange(1, self.arms + 1) if self.drop is None else self.drop
        return DropParams(*self.per_arm(self.initial, self.final, drop))


@dataclass(frozen=True, kw_only=True)
class RestedRising(RestedEnvironment):
    r"""Arms that improve: the mean of an arm rises with its own plays, ever more slowly.

    An arm that is not played keeps its mean (rested). The best policy plays one arm only: that with the largest sum of
    means over all steps. Regret after t steps is measured against the best single arm for t steps. By default the arms
    that rise to the largest mean rise most slowly.

    Parameters
    ----------
    arms
        The number of arms.
    initial
        The mean of an arm that was never played, in [0, 1]: one number, or one for each arm.
    final
        The mean after many plays, at least `initial`: one number, or one for each arm; by default evenly spaced from
        0.5 to 0.9.
    scale
        After how many plays 63 % of the rise is over, positive: one number, or one for each arm; by default from 100 to
        1000, with equal ratios.

    Examples
    --------
    >>> import dynabandit as db
    >>> env = db.environment("rested-rising", initial=0, final=1, scale=[1, 2])
    >>> env.means_by_plays(3).round(2).tolist()
    [[0.0, 0.0], [0.63, 0.39], [0.86, 0.63]]

    Notes
    -----
    The mean of an arm after n plays:

    .. math:: \mu(n) = \mathrm{final} - (\mathrm{final} - \mathrm{initial}) \, e^{-n / \mathrm{scale}}

    References
    ----------
    Metelli, Trovò, Pirola & Restelli (2022), Stochastic rising bandits. ICML.
    Heidari, Kearns & Roth (2016), Tight policy regret bounds for improving and decaying bandits. IJCAI.
    """

    name = "rested-rising"
    functions = EnvironmentFunctions(start, advance, RisingParams, rising_mean, rising=True)

    initial: PerArm = 0.1
    final: PerArm | None = None
    scale: PerArm | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("initial", 0.0, 1.0)
        self._set("final", 0.0, 1.0)
        self._set("scale", 0.0, math.inf, open_low=True)
        if self.final is not None:
            self._check_order("initial", "final")

    def params(self) -> RisingParams:
        final = np.linspace(0.5, 0.9, self.arms) if self.final is None else self.final
        scale = np.geomspace(100.0, 1000.0, self.arms) if self.scale is None else self.scale
        return RisingParams(*self.per_arm(self.initial, final, scale))
