"""`WholeLog`: what is known of the log that a frame's scored rows are a part of, beyond these rows."""

from __future__ import annotations

from dataclasses import dataclass

from openloop.core.feedback import Array, Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WholeLog:
    """`users` and `items` are all ids of the population, sorted; `rows` says how many rows of the log each item has.

    `p` is the propensity of each item, where it depends on the item alone, as used in weights. `positives`: the log
    says of nothing that it was not liked. Of the scored rows, `floored` is the share of p that a floor raised,
    `kept_weight` what it leaves of Σ1/p; None without a floor.
    """

    users: Array  # (U,)
    items: Array  # (I,)
    rows: Array  # (I,)
    p: Floats | None = None  # (I,)
    positives: bool = False
    floored: float | None = None
    kept_weight: float | None = None
