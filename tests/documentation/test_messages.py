"""The page of messages lists all messages of the code."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

HOOK = Path(__file__).parents[2] / "docs" / "hooks" / "messages.py"


@pytest.fixture(scope="module")
def hook() -> Any:
    spec = importlib.util.spec_from_file_location("messages_hook", HOOK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(hook: Any) -> str:
    return hook.page()


def test_every_raised_message_is_collected(hook: Any) -> None:
    assert hook.uncollected() == []


@pytest.mark.parametrize(
    "words",
    [
        "epsilon must be a number in [0, 1], got {value}",
        "unknown policy {name}.[ Did you mean '...'?]",
        "this needs distributed, which is not installed: pip install 'dynabandit[cluster]'",
        "port {port} of {host} is in use; name another with --port",
        "| 503 | `the store is not available now; try again` |",
        "window must be a whole number of at least 1 and at most 4294967295",
        "The service cannot be reached.",
        "store not available yet",
    ],
)
def test_the_page_lists_messages_of_each_kind(page: str, words: str) -> None:
    assert words in page
