"""Results as tables of pandas and polars, and as labelled arrays of xarray."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dynabandit.errors import extra

if TYPE_CHECKING:
    import pandas
    import polars
    import xarray

__all__ = ["dataset", "pandas_frame", "polars_frame", "tidy"]


def tidy(times: np.ndarray, regret: np.ndarray) -> dict[str, np.ndarray]:
    """Return columns with a row for each replication and recorded step."""
    replications = len(regret)
    return {
        "replication": np.repeat(np.arange(replications), len(times)),
        "step": np.tile(times, replications),
        "regret": regret.ravel(),
    }


def pandas_frame(columns: Mapping[str, Any]) -> "pandas.DataFrame":
    """Return columns as a pandas data frame."""
    return extra("pandas", "frames").DataFrame(dict(columns))


def polars_frame(columns: Mapping[str, Any]) -> "polars.DataFrame":
    """Return columns as a polars data frame."""
    return extra("polars", "frames").DataFrame(dict(columns))


def dataset(
    variables: Mapping[str, tuple[tuple[str, ...], Any]], coordinates: Mapping[str, Any], attributes: Mapping[str, Any]
) -> "xarray.Dataset":
    """Return arrays with named axes as an xarray data set."""
    return extra("xarray", "frames").Dataset(dict(variables), coords=dict(coordinates), attrs=dict(attributes))
