"""Write the tables of docs/leaderboard.md from docs/measured/leaderboard.json, which `dynabandit leaderboard` wrote."""

from pathlib import Path

from dynabandit.leaderboard.board import Board
from dynabandit.leaderboard.standings import as_markdown

DOCS = Path(__file__).parents[1]
BEGIN, END = "<!-- leaderboard -->\n", "<!-- leaderboard end -->"


def page() -> str:
    """Return the page with the tables of the data."""
    text = (DOCS / "leaderboard.md").read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return (
        before + BEGIN + as_markdown(Board.load(DOCS / "measured" / "leaderboard.json")) + END + rest.partition(END)[2]
    )


if __name__ == "__main__":
    (DOCS / "leaderboard.md").write_text(page(), encoding="utf-8")
