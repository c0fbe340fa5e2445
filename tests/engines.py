"""The dataframe engines that tests run on, and how a Polars frame gets into each."""

from __future__ import annotations

import duckdb
import pandas as pd

EAGER = ("polars", "lazy", "pandas", "pyarrow", "duckdb")


def converter(engine, spark=None):
    """A function from a Polars frame to a frame of the engine."""
    if engine == "duckdb":
        connection = duckdb.connect()
        return lambda frame: connection.from_arrow(frame.to_arrow())
    return {
        "polars": lambda frame: frame,
        "lazy": lambda frame: frame.lazy(),
        "pandas": lambda frame: pd.DataFrame(frame.to_dict(as_series=False)),
        "pyarrow": lambda frame: frame.to_arrow(),
        "spark": lambda frame: spark.createDataFrame(frame.to_arrow()),
    }[engine]
