"""Check the contents of the archives to publish: ``python -m distribution.archives FOLDER``."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAX_WHEEL_BYTES = 3_000_000
WHEEL_METADATA = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
TOP_LEVEL = {
    "src", "tests", "mutants", "benchmarks", "docs", "scripts", "mkdocs.yml", "Makefile", "pyproject.toml",
    "Containerfile", ".dockerignore", ".github", ".gitignore", "PKG-INFO", "README.md", "CHANGELOG.md",
    "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md",
}  # fmt: skip


def build(folder: Path, *options: str) -> None:
    """Build the archives with the installed tools, without network access."""
    command = [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.PIPE)


def found(folder: Path) -> tuple[Path, Path]:
    """Return the wheel and the source archive of a folder."""
    wheels, sources = list(folder.glob("*.whl")), list(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        raise ValueError(f"{folder} must contain one wheel and one source archive: make dist")
    return wheels[0], sources[0]


def package_files() -> set[str]:
    """Return the files of the package: code, templates, styles, scripts, specs and data."""
    source = ROOT / "src"
    files = (path for path in (source / "dynabandit").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(source).as_posix() for path in files}


def wheel_problems(wheel: Path) -> list[str]:
    """Return the problems of a wheel."""
    problems = []
    if wheel.stat().st_size >= MAX_WHEEL_BYTES:
        problems.append(f"{wheel.name} has {wheel.stat().st_size:,} bytes and must have fewer than {MAX_WHEEL_BYTES:,}")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    metadata = {name for name in names if name.partition("/")[0].endswith(".dist-info")}
    problems += [f"{wheel.name} lacks {name}" for name in sorted(package_files() - names)]
    unexpected = sorted(names - metadata - package_files())
    problems += [f"{wheel.name} contains {name}, which is not part of the package" for name in unexpected]
    if {name.partition("/")[2] for name in metadata} != WHEEL_METADATA:
        problems.append(f"{wheel.name} must have the metadata {sorted(WHEEL_METADATA)}, got {sorted(metadata)}")
    return problems


def source_problems(archive: Path) -> list[str]:
    """Return the problems of a source archive."""
    with tarfile.open(archive) as opened:
        names = {member.name.partition("/")[2] for member in opened.getmembers() if member.isfile()}
    top = {name.partition("/")[0] for name in names}
    problems = [f"{archive.name} lacks {name}" for name in sorted(TOP_LEVEL - top)]
    problems += [f"{archive.name} contains {name}, which is not needed" for name in sorted(top - TOP_LEVEL)]
    problems += [f"{archive.name} lacks src/{name}" for name in sorted(package_files()) if f"src/{name}" not in names]
    problems += [f"{archive.name} contains {name}" for name in sorted(names) if name.endswith((".pyc", ".db"))]
    return problems


def main(folder: Path) -> None:
    """Exit with the problems, or print the sizes of the archives."""
    wheel, sources = found(folder)
    problems = wheel_problems(wheel) + source_problems(sources)
    if problems:
        sys.exit("\n".join(problems))
    for path in (wheel, sources):
        sys.stdout.write(f"{path}: {path.stat().st_size / 1e6:.2f} MB\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
