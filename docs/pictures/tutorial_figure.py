"""Draw docs/pictures/tutorial-figure.svg with the code of the page docs/tutorials/figure.md."""

import os
import re
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
PAGE = HERE.parent / "tutorials" / "figure.md"


def main() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # for the PDF file that the code writes
        exec(compile(code, PAGE.name, "exec"), {})
        os.chdir(HERE)
    plt.gcf().savefig(HERE / "tutorial-figure.svg", metadata={"Date": None})


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "dynabandit"
    main()
