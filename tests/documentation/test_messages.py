"""The page of all messages is complete."""

import importlib.util
from pathlib import Path

HOOK = Path(__file__).parents[2] / "docs" / "hooks" / "messages.py"


def _hook():
    spec = importlib.util.spec_from_file_location("messages_hook", HOOK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_way_to_raise_an_error_is_left_out():
    assert _hook().uncollected() == []


def test_what_a_user_sees_can_be_found():
    text = _hook().page()
    for words in (
        "epsilon must be a number in [0, 1], got {value}",
        "unknown policy {name}.[ Did you mean '...'?]",
        "this needs distributed, which is not installed: pip install 'dynabandit[cluster]'",
        "port {port} of {host} is in use; name another with --port",
        "| 503 | `the store is not available now; try again` |",
        "window must be a whole number of at least 1 and at most 4294967295",
        "The service does not answer.",
        "store not available yet",
    ):
        assert words in text, words
