"""Write the tables of docs/leaderboard.md from the data in docs/measured/ that `dynabandit leaderboard` wrote."""

from pathlib import Path

from dynabandit.leaderboard.board import Board
from dynabandit.leaderboard.standings import as_markdown

DOCS = Path(__file__).parents[1]
DATA = {"leaderboard": "leaderboard.json", "contextual leaderboard": "leaderboard-contextual.json"}


def page() -> str:
    """Return the page with the tables of the data; one that was not measured stays empty."""
    text = (DOCS / "leaderboard.md").read_text(encoding="utf-8")
    for name, file in DATA.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- {name} end -->"
        before, _, rest = text.partition(begin)
        path = DOCS / "measured" / file
        tables = as_markdown(Board.load(path)) if path.exists() else ""
        text = before + begin + tables + end + rest.partition(end)[2]
    return text


if __name__ == "__main__":
    (DOCS / "leaderboard.md").write_text(page(), encoding="utf-8")
