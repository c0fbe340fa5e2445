"""Frames that are read more than once: held in their engine, and released after the last read."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import narwhals as nw

from openloop.support.frames import on_spark
from openloop.support.sizes import driver_limit


def result_limit(frame: Any) -> int | None:
    """How many bytes a result may have that leaves the engine; None: as many as there are."""
    return driver_limit(frame.to_native().sparkSession) if on_spark(frame) else None


def held(frame: Any, until: ExitStack, *, eager: bool = False) -> Any:
    """The frame, made once: later passes read it again. Closing `until` gives its space back.

    Spark keeps it on its executors, in memory and then on disk, with what it was made from: what is lost with an
    executor is made again. A checkpoint would forget the origin, and a lost executor would end the evaluation.
    """
    if on_spark(frame):
        kept = frame.to_native().persist()
        until.callback(kept.unpersist)
        return nw.from_native(kept)
    return frame.collect().lazy() if eager and frame.implementation.is_polars() else frame
