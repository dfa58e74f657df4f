import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dynabandit.core.compilation import compiled, kernel
from dynabandit.estimators import AdaptiveForgetting
from dynabandit.policies.memories.adaptive import (
    START,
    AdaptiveParams,
    AdaptiveState,
    load,
    make_params,
    moved,
    observe,
    slope,
    store,
)
from oracles import paper as oracle
from tools.laws import assert_mean, size

REWARDS = st.lists(st.integers(0, 1).map(float) | st.integers(0, 10).map(lambda n: n / 10), min_size=1, max_size=25)
LOSSES = st.sampled_from(["squared-error", "bernoulli"])
STEP_SIZES = st.sampled_from([0.0, 0.001, 0.01, 0.1, "variance-scaled"])
FLOORS = st.sampled_from([0.0, 0.05, 0.6, 1.0])

# The output of the R package ffstream 0.1.7.2 on a Bernoulli stream, eta = 0.001 (its floor, 0.6, is not reached):
# y, lambda, mean, s^2, w, k / w^2, w_dot, m_dot after each observation
FFSTREAM = [
    (0, 1, 0, 0, 1, 1, 0, 0),
    (1, 1, 0.5, 0.5, 2, 0.5, 1, 0),
    (1, 0.99975000000000003, 0.66666666666666674, 0.33333333333333331, 3, 0.33333333333333331, 3, 1),
    (0, 1, 0.49996874413952619, 0.33333333333333337, 3.99925, 0.2500000029307865, 5.99925, 2.9997500000000001),
    (1, 1, 0.59998999849977497, 0.30000250137536572, 4.99925, 0.20000000300090023, 9.9984999999999999, 4.99925),
    (1, 0.99984001200220041, 0.66666666666666663, 0.2666666675002084, 5.99925, 0.16666666927148452, 14.99775,
     7.9987500000000002),
    (1, 0.99961778977997817, 0.71429734847437143, 0.2380894217693092, 6.9982901920042009, 0.14285714619195136,
     20.994600540006001, 11.996970296002601),
    (0, 1, 0.62496121672399008, 0.26786822449957315, 7.9956153739701383, 0.12500000792280055, 27.984866381118536,
     16.991245059348973),
    (1, 0.99995326226436898, 0.66665250383273289, 0.25000531352556399, 8.9956153739701392, 0.11111112067001157,
     35.980481755088675, 21.988194571922392),
    (1, 0.99980516281071163, 0.70000327869929901, 0.23333187879458211, 9.9951949392769528, 0.10000001030975035,
     44.97441548281467, 27.984116406070907),
    (0, 1, 0.63632752879275023, 0.25455628872854241, 10.993247503588595, 0.090909102858419341, 54.960847733389059,
     34.975333288218138),
    (0, 0.9999997415074221, 0.58327037904224688, 0.26516296066157585, 11.993247503588595, 0.083333345774552953,
     65.954095236977651, 41.970639305583738),
    (0, 0.99965915626048396, 0.53838009906809492, 0.26923755225896256, 12.99324440342313, 0.076923089255837296,
     77.947325691922146, 48.965934473850588),
    (0, 0.99907900735764898, 0.49989363179494106, 0.26923076114739758, 13.988815737412221, 0.07142858557334085,
     90.914002237371164, 55.944548950766539),
    (1, 0.99982956777169085, 0.53328763782375266, 0.26666993542814715, 14.975932141042859, 0.066666691284449728,
     104.81908684763609, 62.88594433628846),
    (0, 0.99933194283496862, 0.49990161396085159, 0.26666666578628329, 15.973379759557055, 0.062500033204199584,
     119.77715443813817, 70.861706020371457),
    (0, 0.9986443769070168, 0.47043098961060431, 0.26469604149315595, 16.962708628758918, 0.058823576585170415,
     135.67051621146575, 78.799484672150371),
    (0, 0.99781371793041718, 0.44420810777523162, 0.26141006689886381, 17.939713589222226, 0.055555634521537701,
     152.44930675541144, 86.672446077717026),
    (0, 0.99687511013149133, 0.42070564549169198, 0.25725202465947572, 18.900492315068657, 0.052631730826170599,
     170.05572315875398, 94.451921890428451),
    (0, 0.99585526967881888, 0.39950225249540794, 0.25252661029000467, 19.841430358123475, 0.050000305033204663,
     188.42481006744191, 102.10831385617361),
]  # fmt: skip


def states(rewards: Sequence[float], params: AdaptiveParams) -> list[AdaptiveState]:
    state = START
    path = []
    for reward in rewards:
        state = observe(state, float(reward), params)
        path.append(state)
    return path


def test_it_matches_the_package_of_bodenham_and_adams() -> None:
    rewards = [row[0] for row in FFSTREAM]
    path = states(rewards, make_params(step_size=0.001))
    ours = [(s.forgetting, s.mean, s.variance, s.w, s.k / s.w**2, s.w_dot, s.m_dot) for s in path]
    np.testing.assert_allclose(ours, [row[1:] for row in FFSTREAM], rtol=0.0, atol=1e-12)


def test_it_matches_that_package_on_a_stream_that_rises() -> None:
    path = states([1, 2, 3, 4], make_params(step_size=0.01))
    expected = [1.0, 1.0, 0.9925, 0.96583333333333343]
    np.testing.assert_allclose([state.forgetting for state in path], expected, rtol=0.0, atol=1e-15)
    assert path[-1].mean == pytest.approx(2.5028284098051543, abs=1e-14)
    assert path[-1].variance == pytest.approx(1.6691760769552486, abs=1e-14)


@given(REWARDS, STEP_SIZES, FLOORS, LOSSES)
def test_the_recursion_equals_the_sums_it_stands_for(
    rewards: list[float], step_size: float | str, floor: float, loss: str
) -> None:
    definitions = oracle.aff_path(rewards, step_size, floor, loss)[1:]
    for state, definition in zip(states(rewards, make_params(step_size, floor, loss)), definitions, strict=True):
        ours = (state.forgetting, state.mean, state.variance, state.w, state.k, state.m, state.change)
        change = abs(definition.forgetting - definition.previous_forgetting)
        theirs = (
            definition.forgetting, definition.mean, definition.variance, definition.weight,
            definition.squared_weight, definition.m, change,
        )  # fmt: skip
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-10)


@given(REWARDS, st.sampled_from([0.5, 1.0]), FLOORS)
def test_the_recursion_equals_the_sums_even_when_it_forgets_all(
    rewards: list[float], step_size: float, floor: float
) -> None:
    path = states(rewards, make_params(step_size, floor))
    definitions = oracle.aff_path(rewards, step_size, floor)[1:]
    ours = [(state.forgetting, state.mean, state.variance, state.w) for state in path]
    theirs = [(one.forgetting, one.mean, one.variance, one.weight) for one in definitions]
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-10)


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=50),
    st.floats(0.0, 1.0) | st.just("variance-scaled"),
    st.floats(0.0, 1.0),
    LOSSES,
)
def test_any_rewards_leave_it_within_its_bounds(
    rewards: list[float], step_size: float | str, floor: float, loss: str
) -> None:
    estimate = AdaptiveForgetting(step_size, floor, loss)
    for n, reward in enumerate(rewards, start=1):
        estimate.update(reward)
        assert floor <= estimate.forgetting <= 1.0
        assert 0.0 <= estimate.mean <= 1.0
        assert 0.0 <= estimate.variance < math.inf
        assert 1.0 <= estimate.weight <= n
        assert 1.0 - 1e-12 <= estimate.effective_size <= n + 1e-9


def test_the_factor_first_moves_at_the_third_reward() -> None:
    path = states([0, 1, 1], make_params(step_size=0.1))
    assert [state.forgetting for state in path[:2]] == [1.0, 1.0]
    assert path[2].forgetting < 1.0


def test_the_step_size_reported_is_the_one_that_was_used() -> None:
    assert [state.step for state in states([0, 1, 1], make_params(step_size=0.01))] == [0.01, 0.01, 0.01]
    first, second, _ = states([0, 1, 1], make_params(step_size="variance-scaled"))
    assert first.step == 0.0001 / 0.25
    assert second.step == 0.0001 / 0.5


@pytest.mark.parametrize("reward", [0.1, 0.3, 0.7])
def test_equal_rewards_move_no_factor_though_their_variance_is_rounded(reward: float) -> None:
    estimate = AdaptiveForgetting(step_size="variance-scaled")
    for _ in range(3000):
        estimate.update(reward)
    assert estimate.forgetting == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("difference", [1e-160, 5e-324])
def test_a_variance_too_small_for_a_double_is_no_variance(difference: float) -> None:
    estimate = AdaptiveForgetting(step_size="variance-scaled")
    for reward in (0.0, difference, 0.0, 1.0, difference):
        estimate.update(reward)
        assert 0.0 <= estimate.forgetting <= 1.0
        assert 0.0 <= estimate.mean <= 1.0


def test_a_still_arm_is_remembered_and_a_changed_one_forgotten() -> None:
    estimate = AdaptiveForgetting(step_size=0.01)
    for n in range(300):
        estimate.update(n % 2)
    assert estimate.forgetting > 0.95
    for _ in range(30):
        estimate.update(1)
    assert estimate.forgetting < 0.9
    assert estimate.mean > 0.95


@kernel
def fill_variances(out: np.ndarray, rewards: np.ndarray, start: AdaptiveState, params: AdaptiveParams) -> None:
    for i in range(out.size):
        state = start
        for reward in rewards[i]:
            state = observe(state, reward, params)
        out[i] = state.variance


@pytest.mark.parametrize("forgetting", [0.3, 0.9, 1.0])
@pytest.mark.parametrize("observations", [2, 3, 10])
def test_the_variance_of_independent_rewards_is_unbiased(forgetting: float, observations: int) -> None:
    # Weights that depend on the data bias any estimate: the factor is held still by a step size of 0
    rewards = (np.random.default_rng(1).random((size(40_000), observations)) < 0.3).astype(float)
    variances = np.empty(len(rewards))
    start, params = START._replace(forgetting=forgetting), make_params(step_size=0.0)
    compiled(fill_variances)(variances, rewards, start, params)
    assert_mean(variances, 0.3 * 0.7)


def test_it_starts_with_a_factor_of_one_and_zeros() -> None:
    assert tuple(START) == (1.0, *[0.0] * 9)
    assert tuple(make_params()) == (0.001, False, 0.0, False)
    assert tuple(make_params("variance-scaled", floor=0.25, loss="bernoulli")) == (0.0001, True, 0.25, True)
    assert moved(START, 0.5) == (1.0, 0.5, 1.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0)
    assert slope(AdaptiveState(0.0, 1.0, 1.0, 1.0, 3.0, 2.0, 1.0, 0.0, 0.0, 0.0)) == 1.0  # after all was forgotten


def test_a_state_is_read_as_it_was_written_in_the_column_of_its_arm() -> None:
    memory = np.arange(36.0).reshape(12, 3)
    state = AdaptiveState(*memory[:10, 1])
    assert load(memory, 1) == state == (1.0, 4.0, 7.0, 10.0, 13.0, 16.0, 19.0, 22.0, 25.0, 28.0)
    before = memory.copy()
    store(memory, 2, state)
    before[:10, 2] = before[:10, 1]
    assert (memory == before).all()
