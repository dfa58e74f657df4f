"""The cells of a draw tree: where boundaries are placed, against a literal implementation, and the size of a tree."""

import math

import numpy as np
import pytest

from dynabandit.choosing.draw_cells import (
    BOUNDARIES,
    BOUNDARY,
    EXCESS,
    EXPIRY,
    FAMILY,
    FIELDS,
    FILLED,
    HEAD_ROWS,
    LEVELS,
    NEW,
    POINTS,
    REFERENCE,
    SAVED,
    first_leaf_of,
    is_placed,
    place,
    place_first,
)
from dynabandit.choosing.draw_search import mass_between
from dynabandit.choosing.draw_tree import new_draw_trees
from dynabandit.core.beta_cells import write_points

WIDE = np.linspace(12.0, -9.0, BOUNDARIES) + 0.3 * np.sin(np.arange(BOUNDARIES))
NARROW = np.linspace(1e-10, -1e-10, BOUNDARIES)
ENDS = {end: end * 1e12 - np.arange(BOUNDARIES) * 1e6 for end in (-1.0, 1.0)}
STEPS = np.repeat([0.0, 0.4, math.inf], [9, 13, 9])
CASES = {
    "inside": (WIDE, np.exp(np.linspace(-8.0, 6.0, BOUNDARIES) + 0.2 * np.cos(np.arange(BOUNDARIES)))),
    "at the levels": (WIDE, np.array(LEVELS)),
    "some on each side": (WIDE, np.exp(np.linspace(-2.0, 1.5, BOUNDARIES))),
    "in two steps": (WIDE, STEPS),
    "above": (WIDE, np.exp(np.linspace(6.0, 60.0, BOUNDARIES))),
    "far above": (WIDE, np.exp(np.linspace(6.0, 6.1, BOUNDARIES))),
    "nothing is below": (WIDE, np.full(BOUNDARIES, math.inf)),
    "below": (WIDE, np.exp(np.linspace(-29.0, -7.0, BOUNDARIES))),
    "nothing is above": (WIDE, np.zeros(BOUNDARIES)),
    "narrow": (NARROW, np.exp(np.linspace(-7.5, 5.5, BOUNDARIES))),
    "below the smallest draw": (ENDS[-1.0], np.full(BOUNDARIES, 1e-5)),
    "above the largest draw": (ENDS[1.0], np.full(BOUNDARIES, 1e6)),
    "below a constant": (WIDE, np.full(BOUNDARIES, 200.0)),
}


def expected_places(boundary: np.ndarray, hazard: np.ndarray) -> list[float]:
    logs, levels, i = np.log(np.clip(hazard, 1e-9, 1e9)), np.log(LEVELS), np.arange(31)
    width = boundary[0] - boundary[-1]
    reach = 4.0 * width + 0.1
    all_cells, first_cell = (logs[-1] - logs[0]) / width, (logs[1] - logs[0]) / (boundary[0] - boundary[1])
    below = boundary[-1] - np.minimum((levels - logs[-1]) / max(all_cells, 1.0 / width), reach * (i + 1) / 31)
    above = boundary[0] + np.minimum((logs[0] - levels) / max(first_cell, 1.0 / width), reach * (31 - i) / 31)
    inside = np.interp(levels, logs, boundary)
    wanted = np.clip(np.where(levels > logs[-1], below, np.where(levels <= logs[0], above, inside)), -1e12, 1e12)
    places = [float(wanted[0])]
    for one in wanted[1:]:
        places.append(min(float(one), places[-1] - 1e-9 * max(abs(places[-1]), 1.0)))
    return places


def grid_of(boundary: np.ndarray) -> np.ndarray:
    grid = np.zeros(4 * BOUNDARIES)
    write_points(boundary, grid)
    return grid


@pytest.mark.parametrize("case", CASES)
def test_boundaries_are_placed_where_the_interpolated_hazard_has_its_levels(case: str) -> None:
    boundary, hazard = CASES[case]
    head = np.full(FIELDS * FAMILY, 7.0)
    head[BOUNDARY:SAVED] = boundary
    place(head, hazard.copy(), np.zeros(BOUNDARIES))
    assert head[BOUNDARY:SAVED] == pytest.approx(expected_places(boundary, hazard), rel=1e-12, abs=1e-20)
    assert (np.diff(head[BOUNDARY:SAVED]) < 0.0).all()
    assert head[EXCESS] == 0.0
    assert head[FILLED] == 7.0
    assert head[POINTS : POINTS + 4 * BOUNDARIES].tolist() == grid_of(head[BOUNDARY:SAVED]).tolist()
    assert (head[POINTS + 4 * BOUNDARIES :] == 7.0).all()


def test_without_masses_boundaries_are_log_odds_from_15_to_minus_15() -> None:
    head = np.zeros(FIELDS * FAMILY)
    assert not is_placed(head)
    head[EXCESS] = 7.0
    place_first(head)
    assert is_placed(head)
    assert head[BOUNDARY:SAVED].tolist() == list(range(15, -16, -1))
    assert head[EXCESS] == 0.0
    assert head[POINTS : POINTS + 4 * BOUNDARIES].tolist() == grid_of(head[BOUNDARY:SAVED]).tolist()


def test_boundaries_are_placed_whatever_the_excess() -> None:
    head = np.zeros(FIELDS * FAMILY)
    head[EXCESS] = 7.0
    assert not is_placed(head)
    head[BOUNDARY:SAVED] = 7.0 - np.arange(BOUNDARIES)
    assert is_placed(head)


def test_the_levels_are_those_at_which_decisions_are_fast() -> None:
    """Trees that are saved have boundaries at these levels."""
    assert LEVELS[:5] == (0.001, 0.01, 0.06, 0.25, 0.5)
    assert np.diff(LEVELS[3:15]).tolist() == [0.25] * 11
    assert LEVELS[14] == LEVELS[REFERENCE] == 3.0
    assert np.divide(LEVELS[15:], LEVELS[14:-1]) == pytest.approx(1.32)
    assert (EXCESS, BOUNDARY, SAVED, FILLED, POINTS) == (0, 1, 32, 32, 33)
    assert (len(LEVELS), NEW, EXPIRY, FIELDS, HEAD_ROWS) == (31, 32, 33, 34, 3)


@pytest.mark.parametrize(
    ("arms", "first_leaf", "families"),
    [(1, 0, 1), (8, 0, 1), (9, 1, 2), (64, 1, 8), (65, 9, 9), (70, 9, 9), (512, 9, 64), (513, 73, 65)],
)
def test_a_tree_has_the_families_of_its_arms_and_those_above_them(arms: int, first_leaf: int, families: int) -> None:
    assert first_leaf_of(arms) == first_leaf
    assert new_draw_trees(2, arms).shape == (2, 3 + first_leaf + families, 34 * 8)


def test_the_mass_of_a_cell_is_not_negative_and_infinite_where_no_draw_is_below() -> None:
    assert mass_between(-0.5, -2.0) == 1.5
    assert mass_between(-2.0, -2.0 + 1e-9) == 0.0  # rounding errors of the logarithms
    assert mass_between(-2.0, -math.inf) == math.inf
    assert mass_between(-math.inf, -math.inf) == math.inf
