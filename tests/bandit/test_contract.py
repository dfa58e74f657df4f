from collections.abc import Callable

import pytest

import dynabandit as db
from dynabandit.policies import CONTEXTUAL_POLICIES
from tools.laws import INTERPRETED
from tools.ready import BANDIT_CHECKS, TRIED


@pytest.mark.parametrize("name", [*TRIED, *(CONTEXTUAL_POLICIES if INTERPRETED else ())])
@pytest.mark.parametrize("check", BANDIT_CHECKS)
def test_every_policy_fulfils_the_contract_in_a_bandit(check: Callable[[db.Policy], None], name: str) -> None:
    check(db.policy(name))
