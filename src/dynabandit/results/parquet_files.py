"""The files of results: Parquet tables, whose bytes depend on the results alone, and the metadata."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynabandit.extras import import_extra
from dynabandit.results.runs import KEYS, Coverage, Run, SamplePath

if TYPE_CHECKING:
    from dynabandit.results.results import Results

REPLICATIONS = "replications.parquet"
RUNS = "runs.parquet"
PATHS = "paths.parquet"
CORRECT = "correct.parquet"  # version 0.1.0 had no such file
METADATA = "metadata.json"

# Columns and their types; brackets are lists
RUN_KEYS = {name: "int64" if name == "arms" else "string" for name in KEYS} | {"horizon": "int64", "seed": "uint64"}
REPLICATION_COLUMNS = {**RUN_KEYS, "replication": "int64", "total_regret": "float64", "regret": "[float64]"}
RUN_COLUMNS = {**RUN_KEYS, "replications": "int64", "times": "[int64]", "correct": "[float64]"}
CORRECT_COLUMNS = {"experiment": "string", "label": "string", "replication": "int64", "correct": "[bool]"}
PATH_COLUMNS = {
    "environment": "string", "arms": "int64", "replication": "int64", "times": "[int64]", "means": "[[float64]]",
}  # fmt: skip


def save(results: "Results", folder: Path) -> None:
    """Write results into a folder."""
    parquet = import_extra("pyarrow.parquet", "lab")
    folder.mkdir(parents=True, exist_ok=True)
    runs = [{**run.keys(), **{name: getattr(run, name) for name in RUN_COLUMNS if name not in KEYS}} for run in results]
    paths = [{**vars(path), "means": path.means.tolist()} for path in results.paths]
    correct = [
        {"experiment": run.experiment, "label": run.label, "replication": number, "correct": row}
        for run in results
        if run.correct_by_replication is not None
        for number, row in enumerate(run.correct_by_replication)
    ]
    parquet.write_table(replications_table(results), folder / REPLICATIONS, compression="zstd")
    parquet.write_table(_table(runs, RUN_COLUMNS), folder / RUNS, compression="zstd")
    parquet.write_table(_table(paths, PATH_COLUMNS), folder / PATHS)
    parquet.write_table(_table(correct, CORRECT_COLUMNS), folder / CORRECT, compression="zstd")
    metadata = {**results.metadata, "coverage": [asdict(coverage) for coverage in results.coverage]}
    (folder / METADATA).write_text(json.dumps(metadata, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def replications_table(results: "Results") -> Any:
    """Return a table with one row per replication: keys, total regret and the regret at the recorded times."""
    rows = [
        {**keys, "replication": number, "total_regret": float(row[-1]), "regret": row}
        for run in results
        for keys in [{**run.keys(), "horizon": run.horizon, "seed": run.seed}]
        for number, row in enumerate(run.regret)
    ]
    return _table(rows, REPLICATION_COLUMNS)


def _table(rows: list[dict[str, Any]], columns: Mapping[str, str]) -> Any:
    pyarrow = import_extra("pyarrow", "lab")

    def type_of(kind: str) -> Any:
        return pyarrow.list_(type_of(kind[1:-1])) if kind.startswith("[") else pyarrow.type_for_alias(kind)

    schema = pyarrow.schema([(name, type_of(kind)) for name, kind in columns.items()])
    return pyarrow.table({name: [row[name] for row in rows] for name in columns}, schema=schema)


def load(folder: Path) -> tuple[list[Run], dict[str, Any], list[SamplePath], list[Coverage]]:
    """Return the arguments of `Results` from a folder that `save` wrote."""
    parquet = import_extra("pyarrow.parquet", "lab")
    if not (folder / RUNS).exists():
        raise FileNotFoundError(f"no results in {folder}: it has no {RUNS}")
    regrets = iter(parquet.read_table(folder / REPLICATIONS, columns=["regret"])["regret"].to_numpy())
    correct = _load_correct(folder / CORRECT)
    runs = []
    for row in parquet.read_table(folder / RUNS).to_pylist():
        count = row.pop("replications")
        row["environment_parameters"] = json.loads(row["environment_parameters"])
        row["parameters"] = json.loads(row["parameters"])
        row["times"] = np.array(row["times"], dtype=np.int64)
        row["correct"] = np.array(row["correct"], dtype=float)
        row["regret"] = np.stack([next(regrets) for _ in range(count)])
        runs.append(Run(**row, correct_by_replication=correct.get((row["experiment"], row["label"]))))
    paths = [
        SamplePath(**{**row, "times": np.array(row["times"]), "means": np.array(row["means"])})
        for row in parquet.read_table(folder / PATHS).to_pylist()
    ]
    metadata = json.loads((folder / METADATA).read_text(encoding="utf-8"))
    coverage = [Coverage(**fields) for fields in metadata.pop("coverage")]
    return runs, metadata, paths, coverage


def _load_correct(file: Path) -> dict[tuple[str, str], np.ndarray]:
    """Return whether a best arm was played, by experiment and label; empty if there is no such file."""
    if not file.exists():
        return {}
    table = import_extra("pyarrow.parquet", "lab").read_table(file)
    rows: dict[tuple[str, str], list[np.ndarray]] = {}
    columns = (table["experiment"].to_pylist(), table["label"].to_pylist(), table["correct"].to_numpy())
    for experiment, label, correct in zip(*columns, strict=True):
        rows.setdefault((experiment, label), []).append(correct)
    return {key: np.stack(some) for key, some in rows.items()}
