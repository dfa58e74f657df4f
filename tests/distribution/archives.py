"""What the archives must hold: ``python -m distribution.archives FOLDER`` says what is wrong with those in a folder."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LARGEST = 3_000_000  # bytes of a wheel
ABOUT = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
SOURCES = {
    "src", "tests", "mutants", "benchmarks", "docs", "mkdocs.yml", "Makefile", "pyproject.toml", ".gitignore",
    "PKG-INFO", "README.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE",
}  # fmt: skip


def build(folder: Path, *options: str) -> None:
    """Build the archives with what is installed, without a network."""
    command = [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.PIPE)


def found(folder: Path) -> tuple[Path, Path]:
    """Return the wheel and the source archive in a folder, where there is one of each."""
    wheels, sources = list(folder.glob("*.whl")), list(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        raise ValueError(f"{folder} must hold one wheel and one source archive: make dist")
    return wheels[0], sources[0]


def wanted() -> set[str]:
    """Return the files of the package: code, templates, styles, scripts, specs and data."""
    source = ROOT / "src"
    files = (path for path in (source / "dynabandit").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(source).as_posix() for path in files}


def problems_of_wheel(wheel: Path) -> list[str]:
    """Return what is wrong with a wheel."""
    said = []
    if wheel.stat().st_size >= LARGEST:
        said.append(f"{wheel.name} has {wheel.stat().st_size:,} bytes, and must have less than {LARGEST:,}")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = {name for name in names if name.partition("/")[0].endswith(".dist-info")}
    said += [f"{wheel.name} lacks {name}" for name in sorted(wanted() - names)]
    said += [f"{wheel.name} holds {name}, which is no part of the package" for name in sorted(names - about - wanted())]
    if {name.partition("/")[2] for name in about} != ABOUT:
        said.append(f"{wheel.name} must say {sorted(ABOUT)} of itself, and says {sorted(about)}")
    return said


def problems_of_sources(archive: Path) -> list[str]:
    """Return what is wrong with a source archive."""
    with tarfile.open(archive) as opened:
        names = {member.name.partition("/")[2] for member in opened.getmembers() if member.isfile()}
    top = {name.partition("/")[0] for name in names}
    said = [f"{archive.name} lacks {name}" for name in sorted(SOURCES - top)]
    said += [f"{archive.name} holds {name}, which nobody needs" for name in sorted(top - SOURCES)]
    said += [f"{archive.name} lacks src/{name}" for name in sorted(wanted()) if f"src/{name}" not in names]
    said += [f"{archive.name} holds {name}" for name in sorted(names) if name.endswith((".pyc", ".db"))]
    return said


def main(folder: Path) -> None:
    """Say what is wrong, or how large the archives are."""
    wheel, sources = found(folder)
    said = problems_of_wheel(wheel) + problems_of_sources(sources)
    if said:
        sys.exit("\n".join(said))
    for path in (wheel, sources):
        sys.stdout.write(f"{path}: {path.stat().st_size / 1e6:.2f} MB\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
