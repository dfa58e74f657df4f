"""The files of results: Parquet tables and the metadata.

The bytes of the tables depend on the results alone, so that equal experiments give equal files.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynabandit.extras import import_extra
from dynabandit.results.runs import KEYS, Coverage, Run, SamplePath

if TYPE_CHECKING:
    from dynabandit.results.results import Results

__all__ = ["load", "replications_table", "save"]

REPLICATIONS = "replications.parquet"
RUNS = "runs.parquet"
PATHS = "paths.parquet"
CORRECT = "correct.parquet"  # version 0.1.0 had no such file
METADATA = "metadata.json"


def save(results: "Results", folder: Path) -> None:
    """Write results into a folder."""
    parquet = import_extra("pyarrow.parquet", "lab")
    folder.mkdir(parents=True, exist_ok=True)
    parquet.write_table(replications_table(results), folder / REPLICATIONS, compression="zstd")
    parquet.write_table(_runs_table(results), folder / RUNS, compression="zstd")
    parquet.write_table(_paths_table(results), folder / PATHS)
    parquet.write_table(_correct_table(results), folder / CORRECT, compression="zstd")
    metadata = {**results.metadata, "coverage": [asdict(one) for one in results.coverage]}
    (folder / METADATA).write_text(json.dumps(metadata, indent=2, sort_keys=True) + "\n", encoding="utf-8")


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
    coverage = [Coverage(**one) for one in metadata.pop("coverage")]
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


def replications_table(results: "Results") -> Any:
    """Return a table with one row per replication: keys, total regret and the regret at the recorded times."""
    pyarrow = import_extra("pyarrow", "lab")
    columns: dict[str, list[Any]] = {name: [] for name in (*KEYS, "horizon", "seed", "replication")}
    for run in results:
        keys = {**run.keys(), "horizon": run.horizon, "seed": run.seed}
        for name, value in keys.items():
            columns[name] += [value] * run.replications
        columns["replication"] += range(run.replications)
    columns["total_regret"] = [float(value) for run in results for value in run.total_regret]
    columns["regret"] = [row for run in results for row in run.regret]
    number = pyarrow.float64()
    own = [("replication", pyarrow.int64()), ("total_regret", number), ("regret", pyarrow.list_(number))]
    return pyarrow.table(columns, schema=pyarrow.schema([*_key_fields(pyarrow), *own]))


def _runs_table(results: "Results") -> Any:
    """Return a table with one row per run."""
    pyarrow = import_extra("pyarrow", "lab")
    names = ("horizon", "seed", "replications", "times", "correct")
    columns = {name: [run.keys()[name] for run in results] for name in KEYS}
    columns |= {name: [getattr(run, name) for run in results] for name in names}
    own = [
        ("replications", pyarrow.int64()),
        ("times", pyarrow.list_(pyarrow.int64())),
        ("correct", pyarrow.list_(pyarrow.float64())),
    ]
    return pyarrow.table(columns, schema=pyarrow.schema([*_key_fields(pyarrow), *own]))


def _key_fields(pyarrow: Any) -> list[tuple[str, Any]]:
    text, whole = pyarrow.string(), pyarrow.int64()
    fields = [(name, whole if name == "arms" else text) for name in KEYS]
    return [*fields, ("horizon", whole), ("seed", pyarrow.uint64())]


def _paths_table(results: "Results") -> Any:
    """Return a table with one row per sample path."""
    pyarrow = import_extra("pyarrow", "lab")
    rows = [{**vars(path), "times": path.times.tolist(), "means": path.means.tolist()} for path in results.paths]
    fields = [
        ("environment", pyarrow.string()),
        ("arms", pyarrow.int64()),
        ("replication", pyarrow.int64()),
        ("times", pyarrow.list_(pyarrow.int64())),
        ("means", pyarrow.list_(pyarrow.list_(pyarrow.float64()))),
    ]
    return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(fields))


def _correct_table(results: "Results") -> Any:
    """Return a table with one row per replication: whether a best arm was played at the recorded times."""
    pyarrow = import_extra("pyarrow", "lab")
    kept = [(run, run.correct_by_replication) for run in results if run.correct_by_replication is not None]
    columns = {
        "experiment": [run.experiment for run, rows in kept for _ in rows],
        "label": [run.label for run, rows in kept for _ in rows],
        "replication": [number for _, rows in kept for number in range(len(rows))],
        "correct": [row for _, rows in kept for row in rows],
    }
    fields = [
        ("experiment", pyarrow.string()),
        ("label", pyarrow.string()),
        ("replication", pyarrow.int64()),
        ("correct", pyarrow.list_(pyarrow.bool_())),
    ]
    return pyarrow.table(columns, schema=pyarrow.schema(fields))
