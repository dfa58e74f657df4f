"""Draw the badges of README.md from pyproject.toml and the version: ``python docs/pictures/badges.py``."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LETTER = 6.6  # pixels, on average
PADDING = 7
TEMPLATE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}: {value}">
  <title>{label}: {value}</title>
  <clipPath id="round"><rect width="{width}" height="20" rx="3"/></clipPath>
  <g clip-path="url(#round)">
    <rect width="{split}" height="20" fill="#444"/>
    <rect x="{split}" width="{rest}" height="20" fill="#3949ab"/>
  </g>
  <g fill="#fff" text-anchor="middle" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">
    <text x="{left}" y="14" textLength="{label_length}">{label}</text>
    <text x="{right}" y="14" textLength="{value_length}">{value}</text>
  </g>
</svg>
"""


def facts() -> dict[str, tuple[str, str]]:
    """Return the label and the value of each badge."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = (ROOT / "src" / "dynabandit" / "__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    pythons = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    return {
        "version": ("version", version),
        "python": ("python", " | ".join(pythons)),
        "licence": ("licence", project["license"]),
    }


def badge(label: str, value: str) -> str:
    """Return a badge as SVG."""
    lengths = [round(LETTER * len(text)) for text in (label, value)]
    split, rest = (length + 2 * PADDING for length in lengths)
    return TEMPLATE.format(
        label=label, value=value, split=split, rest=rest, width=split + rest, left=split / 2, right=split + rest / 2,
        label_length=lengths[0], value_length=lengths[1],
    )  # fmt: skip


if __name__ == "__main__":
    for name, words in facts().items():
        path = ROOT / "docs" / "pictures" / f"badge-{name}.svg"
        path.write_text(badge(*words), encoding="utf-8")
        print(path.relative_to(ROOT))
