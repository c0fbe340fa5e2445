"""Frames that are read more than once: held where they are, and given back when nobody reads them any more."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import narwhals as nw

from openloop.support.frames import on_spark

UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}


def result_limit(frame: Any) -> int | None:
    """How many bytes a result may have that leaves the engine; None: as many as there are."""
    if not on_spark(frame):
        return None
    text = str(frame.to_native().sparkSession.conf.get("spark.driver.maxResultSize", "1g")).lower().removesuffix("b")
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "")
    return int(number) * UNITS.get(unit, 1) or None


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
