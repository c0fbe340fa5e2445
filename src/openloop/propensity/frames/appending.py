"""`appended`: a frame with p as its last column, made in its engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from openloop.errors import ColumnError
from openloop.propensity.frames.lookups import Lookup
from openloop.propensity.frames.opening import KEYS, OpenedLog
from openloop.support.columns import Column
from openloop.support.frames import collected

PLACE, P = "openloop_place", "openloop_p"


def appended(
    who: str, native: Any, name: str, parts: tuple[Sequence[Lookup], Any], *,
    asked: Mapping[str, Column], known: Mapping[str, str], fitted: Any,
) -> Any:  # fmt: skip
    """The frame with the column; rows of memory keep their order, and every engine its own kind of frame.

    `parts` are what is looked up and p as an expression of it, `known` the columns of the log that the model was fitted
    on, `fitted` that log: it needs no second check where it is lazy, and cannot have changed.
    """
    lookups, p = parts
    roles = [role for role, key in KEYS.items() if any(lookup.key == key for lookup in lookups)]
    log = OpenedLog.of(who, native, {role: asked.get(role) for role in KEYS}, known, roles)
    if name in log.columns:
        raise ColumnError(f"{who}: the frame has a column {name!r} already; pass name= with another, or drop it.")
    if not lookups:  # one p for all
        return nw.from_native(native).with_columns(p.alias(name)).to_native()
    if log.eager or native is not fitted:
        log.check()
        keyed = log.frame.select(*log.keys(list(log.chosen)))
        for lookup in lookups:
            lookup.check(keyed)
    if log.eager:
        return _beside(log, name, lookups, p, roles)
    frame = log.frame.with_columns(*log.keys(roles))
    for lookup in lookups:
        frame = lookup.onto(frame)
    return frame.with_columns(p.alias(P)).select(*log.columns, nw.col(P).alias(name)).to_native()


def _beside(log: OpenedLog, name: str, lookups: Sequence[Lookup], p: Any, roles: Sequence[str]) -> Any:
    """Rows in memory, with the column beside them."""
    frame: Any = nw.from_native(log.native)
    keyed = log.frame.select(*log.keys(roles))
    keyed = keyed.collect() if isinstance(keyed, nw.LazyFrame) else keyed  # not in batches: rows are in order
    found = keyed.with_row_index(PLACE)
    found = found.lazy() if found.implementation.is_polars() else found
    for lookup in lookups:
        found = lookup.onto(found)
    values = collected(found.select(PLACE, p.alias(P))).sort(PLACE)[P].to_numpy()
    return frame.with_columns(nw.new_series(name, values, backend=frame.implementation)).to_native()
