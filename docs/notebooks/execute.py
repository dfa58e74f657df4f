"""Execute the notebooks of this folder in place; with --check, fail if their printed output would change."""

import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent


def execute(path: Path) -> nbformat.NotebookNode:
    """Return the executed notebook without anything that depends on the time or the machine."""
    notebook = nbformat.read(path, as_version=4)
    # A single output per cell, however the kernel splits what the cell prints
    NotebookClient(notebook, timeout=900, kernel_name="python3", coalesce_streams=True).execute()
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", []):
            output.metadata = {}
            for kind, text in output.get("data", {}).items():
                output.data[kind] = re.sub(r" *<metadata>.*?</metadata>\n", "", text, flags=re.DOTALL)  # has the date
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what each cell prints; figures are not compared because they depend on the Matplotlib version."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return ["".join(output.get("text", "") for output in cell.outputs) for cell in cells]


def main() -> None:
    checking = "--check" in sys.argv[1:]
    for path in sorted(HERE.glob("*.ipynb")):
        executed = execute(path)
        if not checking:
            nbformat.write(executed, path)
            continue
        for before, now in zip(printed(nbformat.read(path, as_version=4)), printed(executed), strict=True):
            if before != now:
                sys.exit(f"{path.name} printed\n{before}\nand now prints\n{now}\nRun: python docs/notebooks/execute.py")


if __name__ == "__main__":
    main()
