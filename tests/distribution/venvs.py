"""Install the archives into empty virtual environments, one per extra, and try the features of each.

``python -m distribution.venvs FOLDER [EXTRA...]``: `none` is the wheel without extras, `sources` the source archive.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

from distribution.archives import ROOT, found
from tools.postgres_server import postgres

SCRIPT = Path(__file__).with_name("try_installation.py")
DEVELOPMENT = ("bench", "dev")  # extras that only `make` installs, in a checkout


def extras(wheel: Path) -> list[str]:
    """Return the names of the extras in the metadata of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        said = Parser().parsestr(archive.read(name).decode()).get_all("Provides-Extra", [])
    return sorted(set(said) - set(DEVELOPMENT))


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return environment variables that hide the repository and use a new cache of compiled code."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return kept | {"NUMBA_CACHE_DIR": str(folder / "cache"), "PIP_DISABLE_PIP_VERSION_CHECK": "1", **more}


def size(folder: Path) -> float:
    """Return the size of all files in a folder in megabytes."""
    return sum(path.lstat().st_size for path in folder.rglob("*")) / 1e6


def check(extra: str, maker: str, wheel: Path, sources: Path, **more: str) -> None:
    """Install one extra and try it."""
    with tempfile.TemporaryDirectory(prefix="dynabandit-dist-") as name:
        folder = Path(name)
        work, python = folder / "work", folder / "venv" / "bin" / "python"
        work.mkdir()
        shutil.copy(SCRIPT, work)
        shutil.copy(ROOT / "README.md", work)
        around: dict[str, Any] = {"cwd": work, "env": environment(folder, **more), "check": True}
        began = time.monotonic()
        subprocess.run([maker, "-m", "venv", folder / "venv"], **around)
        bare = size(folder)
        what = {"none": str(wheel), "sources": str(sources)}.get(extra, f"{wheel}[{extra}]")
        subprocess.run([python, "-m", "pip", "install", "--quiet", what], **around)
        subprocess.run([python, "-m", "pip", "check", "--quiet"], **around)
        sys.stdout.write(f"{extra}: {time.monotonic() - began:.0f} s to install, {size(folder) - bare:.0f} MB\n")
        sys.stdout.flush()
        if extra == "docs":
            with tarfile.open(sources) as archive:
                archive.extractall(folder / "unpacked", filter="data")
            (unpacked,) = (folder / "unpacked").iterdir()
            unpacked.rename(work / "sources")
        subprocess.run([python, "-I", "try_installation.py", "none" if extra == "sources" else extra], **around)


def main() -> None:
    """Check all extras, or the given ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="interpreter of the virtual environments")
    parser.add_argument("folder", type=Path, help="folder with a wheel and a source archive")
    parser.add_argument("extras", nargs="*", help="extras to check; all by default")
    asked = parser.parse_args()
    chosen = asked.extras
    wheel, sources = (path.resolve() for path in found(asked.folder))
    known = ["none", "sources", *extras(wheel)]
    if unknown := set(chosen) - set(known):
        sys.exit(f"unknown extras {sorted(unknown)}. Known: {', '.join(known)}")
    warnings.simplefilter("ignore")
    failed = []
    with postgres() as url:
        for extra in chosen or known:
            try:
                check(extra, asked.python, wheel, sources, DYNABANDIT_POSTGRES=url)
            except subprocess.CalledProcessError as error:
                sys.stdout.write(f"{extra}: {error}\n")
                failed.append(extra)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
