"""How a spec is run: on what, with how many threads, and whether stored results are used."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dynabandit.experiments.spec import Spec
from dynabandit.simulation import check_backend
from dynabandit.simulation.backends import check_names
from dynabandit.validation import integer

LOCAL = "local"
ADDRESS = re.compile(r"[a-z]+://[^\s/]+:\d+")


@dataclass(frozen=True)
class RunOptions:
    """The options that every way to run a spec has; `dynabandit.experiments.run` describes them.

    Examples
    --------
    >>> from dynabandit.paper.specs import paper
    >>> RunOptions(backend="cuda", precision="half").check([paper()])
    Traceback (most recent call last):
    ...
    ValueError: unknown precision 'half'. Known: double, mixed, single
    """

    jobs: int | None = None
    fresh: bool = False
    backend: str = "cpu"
    precision: str = "double"
    cluster: str | None = None

    def check(self, specs: Iterable[Spec]) -> None:
        """Raise an error if no machine could run the specs with these options."""
        jobs, backend, precision, cluster = self.jobs, self.backend, self.precision, self.cluster
        if jobs is not None:
            integer("jobs", jobs, 1)
        check_names(backend, precision)
        for experiment in (experiment for spec in specs for experiment in spec.experiments):
            policies, environment = experiment.policies_by_label, experiment.environment
            try:
                check_backend(backend, precision, environment, policies, experiment.horizon)
            except ValueError as error:
                raise ValueError(f"{experiment.id}: {error}") from None
        if cluster == LOCAL and backend != "cpu":
            raise ValueError(
                f"cluster 'local' needs backend='cpu', got backend={backend!r}: a GPU needs no cluster here"
            )
        if cluster in (None, LOCAL):
            return
        if not ADDRESS.fullmatch(cluster):
            raise ValueError(f"cluster must be 'local' or an address such as tcp://scheduler:8786, got {cluster!r}")
        if jobs is not None:
            raise ValueError(
                f"jobs must be left out with cluster {cluster}, whose workers have threads of their own, got {jobs}"
            )
