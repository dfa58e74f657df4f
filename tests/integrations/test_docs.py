"""The example of a user's own test checks a policy."""

import re
from pathlib import Path
from typing import Any

import pytest

import dynabandit as db

DOCS = Path(__file__).parents[2] / "docs"


def test_the_example_of_a_users_own_test_passes_good_policies_only() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "integrations.md").read_text(encoding="utf-8"), re.DOTALL)
    scope: dict[str, Any] = {}
    exec(code, scope)
    (test,) = (value for name, value in scope.items() if name.startswith("test_"))
    (mark,) = test.pytestmark
    name, policies = mark.args
    assert all(isinstance(policy, db.policies.Policy) for policy in policies)
    test(**{name: db.policy("ucb")})  # the policies of the example are compiled slowly; tests/test_checks.py checks all
    with pytest.raises(AssertionError, match="a policy must be a dataclass derived from Policy"):
        test(**{name: None})
