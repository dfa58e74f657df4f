"""Executes the notebooks of this folder in place; with --check, fails where what they print has changed instead."""

import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent


def executed(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with fresh outputs and nothing in it that depends on when or where it ran."""
    notebook = nbformat.read(path, as_version=4)
    # One output for all that a cell prints, however the kernel cuts it
    NotebookClient(notebook, timeout=900, kernel_name="python3", coalesce_streams=True).execute()
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", []):
            output.metadata = {}
            for kind, text in output.get("data", {}).items():
                output.data[kind] = re.sub(r" *<metadata>.*?</metadata>\n", "", text, flags=re.DOTALL)  # the date
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what each cell printed; figures are not compared, since Matplotlib's versions draw differently."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return ["".join(output.get("text", "") for output in cell.outputs) for cell in cells]


def main() -> None:
    checking = "--check" in sys.argv[1:]
    for path in sorted(HERE.glob("*.ipynb")):
        fresh = executed(path)
        if checking:
            for then, now in zip(printed(nbformat.read(path, as_version=4)), printed(fresh), strict=True):
                if then != now:
                    sys.exit(
                        f"{path.name} printed\n{then}\nand now prints\n{now}\nRun: python docs/notebooks/execute.py"
                    )
        else:
            nbformat.write(fresh, path)


if __name__ == "__main__":
    main()
