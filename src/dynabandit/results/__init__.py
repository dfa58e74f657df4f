"""Results: what runs recorded, from the simulator to Parquet files."""

from dynabandit.results.results import Results
from dynabandit.results.runs import Coverage, RecordedRegret, Run, SamplePath, Simulation

__all__ = ["Coverage", "RecordedRegret", "Results", "Run", "SamplePath", "Simulation"]
