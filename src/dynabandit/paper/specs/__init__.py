"""The paper's experiments as specs, one file per figure, in the order of the paper."""

from importlib.resources import files

from dynabandit.experiments.spec import Spec
from dynabandit.experiments.spec_reader import loads

__all__ = ["FIGURES", "paper"]

TITLE = "On adaptive estimation for dynamic Bernoulli bandits"
FIGURES = (
    "small-changes", "sample-paths", "two-arms-abrupt", "two-arms-drift", "many-arms-case-1", "many-arms-case-2",
    "many-arms-case-3", "many-arms-case-4", "step-size", "discount-window", "memory", "bounds",
)  # fmt: skip


def paper() -> Spec:
    """Return the spec of everything that the paper simulates.

    Examples
    --------
    >>> [experiment.id for experiment in paper().only(["memory", "small-changes"]).experiments]
    ['small-changes', 'memory']
    """
    specs = [loads((files(__name__) / f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml") for name in FIGURES]
    return Spec(
        title=TITLE,
        experiments=tuple(experiment for spec in specs for experiment in spec.experiments),
        sample_paths=tuple(paths for spec in specs for paths in spec.sample_paths),
        coverage=tuple(coverage for spec in specs for coverage in spec.coverage),
    )
