import math

import pytest

from dynabandit.stats.rank_tests import critical_difference


def test_the_critical_difference_is_nemenyis() -> None:
    # Demšar (2006), table 5: q = 2.343 for 3 and 3.164 for 10 policies at 5 %
    assert critical_difference(3, 20) == pytest.approx(2.343 * math.sqrt(3 * 4 / (6 * 20)), rel=1e-3)
    assert critical_difference(10, 30) == pytest.approx(3.164 * math.sqrt(10 * 11 / (6 * 30)), rel=1e-3)
    assert math.isnan(critical_difference(1, 30))
