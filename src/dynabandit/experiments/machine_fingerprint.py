"""What must be equal on two machines for their results to be equal to the last bit: versions, code and arithmetic."""

import functools
import hashlib
import math
import struct
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable

PACKAGES = ("dynabandit", "numba", "numpy")
FUNCTIONS = (math.log, math.exp, math.sin, math.cos, math.sqrt, math.log1p, math.expm1, math.lgamma)
POINTS = 500


@functools.cache
def machine_fingerprint() -> dict[str, str]:
    """Return the versions of the packages that compute, a hash of the code of dynabandit, and one of the arithmetic.

    Examples
    --------
    >>> list(machine_fingerprint())
    ['python', 'dynabandit', 'numba', 'numpy', 'code', 'arithmetic']
    """
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        **{name: import_module(name).__version__ for name in PACKAGES},
        "code": _code(),
        "arithmetic": _arithmetic(),
    }


def describe_difference(expected: Mapping[str, str], found: Mapping[str, str | None]) -> str:
    """Return the first difference of another machine in words; empty if there is none.

    Examples
    --------
    >>> describe_difference({"numpy": "2.1", "code": "a"}, {"numpy": "2.0", "code": "b"})
    'it has numpy 2.0, not 2.1'
    """
    for name, version in found.items():
        if name in expected and version != expected[name]:
            if version is None:
                return f"it has no {name}"
            if name == "code":
                return "its copy of dynabandit has other code under the same version"
            if name == "arithmetic":
                return "its C library or processor gives other last digits of functions such as the logarithm"
            return f"it has {name} {version}, not {expected[name]}"
    return ""


def _code() -> str:
    """Return a hash of every file of this package that can affect a result."""
    digest = hashlib.sha256()
    for name, content in sorted(_sources(files("dynabandit"))):
        digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()


def _sources(folder: Traversable, inside: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(entry, f"{inside}{entry.name}/")
        elif entry.name.endswith(".py"):
            yield f"{inside}{entry.name}", entry.read_bytes()


def _arithmetic() -> str:
    """Return a hash of values of functions whose last digits depend on the C library and the processor."""
    points = [(1.0 + index) * 0.7548776662466927 % 1.0 + 1e-3 for index in range(POINTS)]
    values = [function(scale * point) for function in FUNCTIONS for scale in (1.0, 40.0) for point in points]
    values += [point**power for point in points for power in (0.3, 7.7)]
    return hashlib.sha256(struct.pack(f"<{len(values)}d", *values)).hexdigest()
