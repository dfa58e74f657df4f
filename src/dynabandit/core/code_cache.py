"""The cache of compiled code on disk: a folder per function, named by a hash of what determines its machine code.

That is the code itself (`core.fingerprint`), the compile options and the versions of the compilers. Numba's own cache
compares only the time stamp of one file and would run an old algorithm after an edit of a captured function.
"""

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import llvmlite
import numba

from dynabandit.core.fingerprint import fingerprint

CACHE_FORMAT = 3
KEEP_UNUSED_DAYS = 30
# Settings of Numba, from environment variables, that change the machine code
NUMBA_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")


def is_cached(function: Callable[..., Any]) -> bool:
    """Whether machine code of a function that `compiled` returned is on disk, from this process or another."""
    if numba.config.DISABLE_JIT or not hasattr(function, "stats"):  # there is nothing to compile
        return True
    folder = cast(Any, function).stats.cache_path
    return folder is not None and any(Path(folder).glob("*.nbc"))


def cache_folder() -> Path:
    """Return the folder for compiled code: `NUMBA_CACHE_DIR` if it is set, else the user's cache folder."""
    # Not platformdirs: the core depends on NumPy and Numba alone
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "dynabandit"


def function_folder(function: Callable[..., Any], options: dict[str, Any]) -> Path:
    """Return the cache folder of a function compiled with these options, and mark it as used now.

    Creating a folder also deletes those that were not used for a month, such as those of earlier versions.
    """
    settings = {name: getattr(numba.config, name, None) for name in NUMBA_SETTINGS}
    compiler = (numba.__version__, llvmlite.__version__, sorted(settings.items()), _stable(options))
    key = hashlib.sha256(f"{fingerprint(function)} {compiler}".encode()).hexdigest()
    folder = cache_folder() / f"{CACHE_FORMAT}-{key[:32]}"
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _delete_unused(folder.parent)
    os.utime(folder)
    return folder


def _stable(options: dict[str, Any]) -> list[tuple[str, str]]:
    """Return options as text that is the same in every process: the order of a set is not."""
    return sorted((name, repr(sorted(value) if isinstance(value, set) else value)) for name, value in options.items())


def _delete_unused(cache: Path) -> None:
    oldest = time.time() - KEEP_UNUSED_DAYS * 86400
    for folder in cache.iterdir():
        with contextlib.suppress(OSError):  # another process may be deleting it too
            if folder.is_dir() and folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)
