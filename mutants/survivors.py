"""The list of surviving mutants, survivors.toml, with the reason why each is accepted."""

import difflib
import tomllib
from collections.abc import Collection
from pathlib import Path

import tomli_w

__all__ = ["REVIEW", "read_reasons", "reason_for", "update"]

PATH = Path(__file__).with_name("survivors.toml")
REVIEW = "REVIEW"
SIMILAR = 0.85
HEADING = """\
# Mutants that survive, each with the reason why no test distinguishes it from the original.
# An entry is a mutant as run.py prints it, or a whole function as "core/argmax.py top".
# `python mutants/run.py --update` removes entries without a mutant, moves reasons to renamed ones and adds new
# survivors with the reason "REVIEW", which has to be replaced by a real one or by a test.

"""


def read_reasons() -> dict[str, str]:
    """Return the reason of each listed mutant or function."""
    entries = tomllib.loads(PATH.read_text(encoding="utf-8"))["survivors"]
    return {key: entry["reason"] for entry in entries for key in entry["mutants"]}


def reason_for(key: str, reasons: dict[str, str]) -> str | None:
    """Return why a survivor is accepted: the reason of the mutant or of its function."""
    return reasons.get(key) or reasons.get(key.partition(": ")[0])


def update(unlisted: Collection[str], killed: Collection[str], existing: Collection[str]) -> None:
    """Write the list anew, given survivors without a reason, killed mutants and the keys of all mutants."""
    reasons = read_reasons()
    functions = {key.partition(": ")[0] for key in existing}
    kept = {
        key: reason for key, reason in reasons.items() if (key in existing and key not in killed) or key in functions
    }
    gone = [key for key in reasons if key not in existing and key not in functions]
    for key in sorted(unlisted):
        similar = difflib.get_close_matches(key, gone, n=1, cutoff=SIMILAR)
        kept[key] = reasons[similar[0]] if similar else REVIEW
    entries: dict[str, list[str]] = {}
    for key in sorted(kept):
        entries.setdefault(kept[key], []).append(key)
    ordered = sorted(entries.items(), key=lambda entry: (entry[0] != REVIEW, entry[1]))
    table = {"survivors": [{"reason": reason, "mutants": keys} for reason, keys in ordered]}
    PATH.write_text(HEADING + tomli_w.dumps(table, indent=2), encoding="utf-8")
