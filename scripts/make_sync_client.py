"""Generates the synchronous client from the asynchronous one: `make client`."""

import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "src" / "dynabandit" / "client"
SOURCE, TARGET = FOLDER / "async_client.py", FOLDER / "sync_client.py"
REPLACEMENTS = (
    (r'^""".*"""', '"""The synchronous client, generated from async_client.py by `make client`. Do not edit."""'),
    (r"An asynchronous client", "A client"),
    (r"\bimport asyncio\b", "import time"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\b(async|await) ", ""),
    (r"\bAsync(Client|Iterator)\b", r"\1"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\b_http\.aclose\b", "_http.close"),
    (r"\banswer\.a(read|iter_lines)\b", r"answer.\1"),
)


def make_sync_client() -> str:
    """Return the source of the synchronous client."""
    text = SOURCE.read_text(encoding="utf-8")
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    for command in (["check", "--fix", "--quiet", "--select", "I"], ["format"]):
        arguments = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TARGET), "-"]
        text = subprocess.run(arguments, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    TARGET.write_text(make_sync_client(), encoding="utf-8")
