"""Frames of any engine, through narwhals: opened, asked small questions, and joined with small tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from openloop.errors import InputError
from openloop.support.forking import forks

MAX_COLUMNS = 80  # wider plans are slow on Spark and DuckDB, and pandas warns from 100 on
WIDEST = 2**63 - 1
WIDE = (nw.UInt64, nw.UInt128, nw.Int128)


def is_frame(given: Any) -> bool:
    """Whether it is a dataframe of an engine that narwhals knows."""
    return isinstance(nw.from_native(given, pass_through=True), nw.DataFrame | nw.LazyFrame)


def on_spark(frame: Any) -> bool:
    """Whether a frame is Spark's, in this process or behind Spark Connect."""
    return frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect()


def lazy(native: Any) -> Any:
    """A lazy frame where the engine has them; pyarrow, which lacks windows, becomes Polars."""
    frame: Any = nw.from_native(native)
    if frame.implementation.is_pyarrow():
        import polars as pl

        frame = nw.from_native(pl.DataFrame(native))
    if not frame.implementation.is_polars():
        return frame
    forks.refuse()
    return frame.lazy()


def collected(frame: Any) -> Any:
    """The eager result of a small frame; Polars runs the plan in batches, in bounded memory."""
    if not isinstance(frame, nw.LazyFrame):
        return frame
    if frame.implementation.is_polars():
        return frame.collect(engine="streaming")
    return frame.collect()


def only_row(frame: Any) -> dict[str, Any]:
    """The only row of a frame."""
    table = collected(frame)
    return {name: table[name].to_list()[0] for name in table.columns}


def absent(column: Any) -> Any:
    """Where a number is missing or not finite."""
    return column.is_null() | ~column.is_finite()


def flag(condition: Any) -> Any:
    """1.0 where a condition holds: engines do not agree on sums of booleans."""
    return nw.when(condition).then(1.0).otherwise(0.0)


def rows(frame: Any) -> int:
    """How many rows a frame has, of narwhals or of an engine."""
    return int(only_row(nw.from_native(frame).select(nw.len().alias("n")))["n"])


# -- ids -----------------------------------------------------------------------------------------------------


def too_wide(frame: Any, column: str) -> Any:
    """Where an id does not fit 64 signed bits; None where every id of the column's type does."""
    return nw.col(column) > WIDEST if frame.collect_schema()[column] in WIDE else None


def plain_ids(series: Any) -> npt.NDArray[Any]:
    """Ids as integers or Python strings."""
    values = series.to_numpy()
    return values if values.dtype.kind in "iu" else np.array(series.to_list(), object)


# -- groups --------------------------------------------------------------------------------------------------


def times(frame: Any, columns: Sequence[str]) -> Any:
    """How often each combination of some columns is there, as `times`."""
    return frame.select(*columns, nw.lit(1.0).alias("times")).group_by(*columns).agg(nw.col("times").sum())


# -- small tables --------------------------------------------------------------------------------------------


def table_beside(frame: Any, columns: Mapping[str, Any]) -> Any:
    """Arrays as a frame of another one's engine, in the same session or connection, where the two can be joined."""
    implementation = frame.implementation
    if implementation.is_polars():
        import polars as pl

        return nw.from_native(pl.DataFrame(dict(columns)).lazy())
    if implementation.is_pandas_like():
        return nw.from_dict(dict(columns), backend=implementation)
    if implementation.is_duckdb():
        return nw.from_native(_in_connection(frame.to_native(), columns))
    if on_spark(frame):
        return nw.from_native(frame.to_native().sparkSession.createDataFrame(_arrow(columns)))
    raise InputError(
        f"a {implementation} frame cannot be joined with a small table here; bring it into Polars, pandas, pyarrow, "
        "DuckDB or Spark."
    )


def _in_connection(relation: Any, columns: Mapping[str, Any]) -> Any:
    # DuckDB finds it by its name.
    openloop_small = _arrow(columns)  # noqa: F841  # pyright: ignore[reportUnusedVariable]
    return relation.query("openloop_log", "select * from openloop_small")


def _arrow(columns: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array(values) for name, values in columns.items()})


def looked_up(frame: Any, table: Any, key: str) -> Any:
    """The frame with the columns of a table that has each key once, null where it has not; rows keep their order."""
    if frame.implementation.is_polars():
        joined = frame.to_native().join(table.to_native(), on=key, how="left", maintain_order="left")
        return nw.from_native(joined)
    return frame.join(table, on=key, how="left")
