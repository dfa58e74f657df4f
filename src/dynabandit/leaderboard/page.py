"""A page of the leaderboard to sort and filter the results and to see curves: one file without network access."""

import json
from dataclasses import asdict
from importlib.resources import files

from dynabandit.leaderboard.board import TUNED, Board
from dynabandit.leaderboard.standings import common_trials, standings

TEMPLATE = "page.html"
PLACEHOLDER = "{{ data }}"


def render(board: Board) -> str:
    """Return the page as HTML with its styles, its script and the data."""
    trials = {trial: board.trials[trial] for trial in common_trials(board)}
    entries = [
        {
            key: value
            for key, value in asdict(entry).items()
            if key in ("trial", "policy", "form", "settings", "replications", "mean", "error", "quantiles", "curve")
        }
        for entry in board.entries
        if entry.form != TUNED and entry.trial in trials
    ]
    rows = {row.policy: [row.ratio.low, row.ratio.high] for row in standings(board)}
    content = {
        "version": board.version, "hardware": board.hardware, "trials": trials, "entries": entries,
        "delays": board.delays, "microseconds": board.microseconds, "intervals": rows,
    }  # fmt: skip
    text = json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    template = files(__package__).joinpath(TEMPLATE).read_text(encoding="utf-8")
    return template.replace(PLACEHOLDER, text)
