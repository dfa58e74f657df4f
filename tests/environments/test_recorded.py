import numpy as np
import pytest

import dynabandit as db

RATES = [[0.0, 1.0, 0.5], [1.0, 0.0, 0.25]]


@pytest.mark.parametrize("period", [1, 2, 5])
def test_each_row_lasts_for_one_period(period: int) -> None:
    env = db.environment("recorded", rates=RATES, period=period)
    assert env.longest == 2 * period
    assert (env.path(2 * period, seed=1) == np.repeat(RATES, period, axis=0)).all()


def test_the_record_is_a_copy_that_cannot_be_changed() -> None:
    mine = np.array(RATES)
    env = db.environment("recorded", rates=mine)
    mine[:] = 0.7
    assert env.path(2, seed=1).tolist() == RATES
    with pytest.raises(ValueError, match="read-only"):
        env.table()[0, 0] = 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rates": [[0.1, 1.1]]}, r"rates\[0\]\[1\] must be a number in \[0, 1\], got 1.1"),
        ({"rates": [[0.1, np.nan]]}, r"rates\[0\]\[1\] must be a number in"),
        ({"rates": [[0.1]]}, "at least 2 arms"),
        ({"rates": RATES, "period": 0}, "period must be a whole number of at least 1"),
    ],
)
def test_records_that_are_none_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        db.environment("recorded", **arguments)


def test_there_is_no_step_after_the_last_period() -> None:
    with pytest.raises(ValueError, match="horizon must be at most 6, where environment 'recorded' ends, got 7"):
        db.simulate("ts", db.environment("recorded", rates=RATES, period=3), horizon=7)
