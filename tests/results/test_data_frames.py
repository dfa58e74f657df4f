"""Results in the tables and arrays that people work with."""

import json
import subprocess
import sys

import numpy as np
import pytest

import dynabandit as db

SIM = db.simulate("ts", "case-1", horizon=40, replications=3, seed=1, times=4, keep=("arms", "rewards"))


def run(label: str, regret: np.ndarray) -> db.Run:
    return db.Run(
        experiment="one", environment="case-1", arms=2, environment_parameters={}, label=label, policy="ts",
        parameters={}, horizon=40, seed=1, times=SIM.times, regret=regret, correct=SIM.correct,
    )  # fmt: skip


def test_a_simulation_is_a_row_for_each_replication_and_recorded_step() -> None:
    frame, table = SIM.to_pandas(), SIM.to_polars()
    assert list(frame.columns) == table.columns == ["replication", "step", "regret"]
    assert frame.set_index(["replication", "step"]).regret[(2, 40)] == SIM.regret[2, -1]
    assert table.filter((table["replication"] == 2) & (table["step"] == 40))["regret"].item() == SIM.regret[2, -1]
    assert len(frame) == len(table) == 12


def test_a_simulation_is_labelled_arrays() -> None:
    data = SIM.to_xarray()
    assert data.regret.sel(replication=1, step=40).item() == SIM.regret[1, -1]
    assert dict(data.arm.sizes) == {"replication": 3, "every_step": 40}
    assert SIM.arms is not None
    assert data.arm.sel(replication=2, every_step=7).item() == SIM.arms[2, 6]
    assert data.attrs["policy"] == "ts"
    bare = db.simulate("ts", "case-1", horizon=40, first_replication=5).to_xarray()
    assert set(bare.data_vars) == {"regret", "correct"}
    assert bare.replication.values.tolist() == [5]


def test_results_are_labelled_arrays_that_can_be_reduced_by_name() -> None:
    data = db.Results([run("a", SIM.regret), run("b", 2.0 * SIM.regret)]).to_xarray()
    means = data.regret.mean("replication").sel(step=40)
    assert means.sizes == {"run": 2}
    assert means.values.tolist() == pytest.approx([SIM.regret[:, -1].mean(), 2.0 * SIM.regret[:, -1].mean()])
    assert data.label.values.tolist() == ["a", "b"]


def test_results_that_do_not_fit_into_one_array_are_refused() -> None:
    with pytest.raises(ValueError, match="'b' of 'one' differs from 'a' of 'one': select those that agree"):
        db.Results([run("a", SIM.regret), run("b", SIM.regret[:2])]).to_xarray()
    with pytest.raises(ValueError, match="there must be runs"):
        db.Results([]).to_xarray()


MISSING = """
import json, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"pandas", "polars", "xarray", "river", "gymnasium"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import importlib
import dynabandit as db
sim = db.simulate("ts", "case-1", horizon=5)
found = {}
for what, call in {
    "pandas": sim.to_pandas, "polars": sim.to_polars, "xarray": sim.to_xarray,
    "river": lambda: importlib.import_module("dynabandit.integrations.river"),
    "gymnasium": lambda: importlib.import_module("dynabandit.integrations.gymnasium"),
}.items():
    try:
        call()
    except ModuleNotFoundError as error:
        found[what] = str(error)
print(json.dumps(found))
"""


def test_a_missing_package_is_named_with_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, check=True)
    extras = {"pandas": "frames", "polars": "frames", "xarray": "frames", "river": "river", "gymnasium": "gymnasium"}
    assert json.loads(done.stdout) == {
        package: f"this needs {package}, which is not installed: pip install 'dynabandit[{name}]'"
        for package, name in extras.items()
    }
