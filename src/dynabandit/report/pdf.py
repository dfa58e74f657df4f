"""The printable version of a report, made by an installed Chrome or Chromium."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC_PATHS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = ("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
NO_BROWSER = (
    f"a PDF needs Chrome or Chromium, but none of {', '.join(NAMES)} was found: install one, or open report.html in "
    "another browser and print it"
)
PATIENCE = 300  # seconds


class PdfError(OSError):
    """There is no browser, or it failed; the message says what to do."""


def find_browser() -> str | None:
    """Return the path of a browser, if there is one."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    return next((path for path in MAC_PATHS if Path(path).exists()), None)


def print_pdf(report: Path) -> Path:
    """Write a report as a PDF file of the same name beside it, and return its path."""
    browser, pdf = find_browser(), report.with_suffix(".pdf")
    if browser is None:
        raise PdfError(NO_BROWSER)
    pdf.unlink(missing_ok=True)
    # Chromium has no sandbox for root; the only page it opens is ours
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, *FLAGS, *root, f"--user-data-dir={profile}", "--no-pdf-header-footer"]
        command += [f"--print-to-pdf={pdf.resolve()}", report.resolve().as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise PdfError(f"{browser} did not print {report} within {PATIENCE} seconds") from None
    if not pdf.exists():
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise PdfError(f"{browser} could not print {report}: {last}")
    return pdf
