"""Users assigned to clusters inside their engine, by a hash of their ids that is the same on every engine.

Dealing them in order would bring all users to one place. A hash needs no other row, so Spark deals each where it lies.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.sources.frames.rows import USER
from openloop.support.frames import collected, on_spark, plain_ids

PRIME = 2**31 - 1  # products of two smaller numbers fit into 64 bits
FACTOR, SHIFT = 1_103_515_245, 12_345
DIGITS = 15  # hexadecimal ones of a text's MD5: 60 bits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deal:
    """How many users each cluster has, those with scored rows among them."""

    groups: int
    scored: Floats  # (groups,)
    known: Floats  # (groups,) with a scored row, or with an excluded one
    users: Floats  # (groups,)

    @classmethod
    def of(cls, dealt: Any, excluded: Any | None, groups: int, n_users: int) -> Deal:
        """Of scored and excluded rows with their users and clusters; other users, of unknown ids, are drawn at random.

        A hash deals as chance does: every cluster holds such users as a random part of the population would. The draw
        moves no estimate, and is the same every time.
        """
        scored = known = _users_of(dealt, groups)
        if excluded is not None:
            known = _users_of(nw.concat([rows.select(USER, "cluster") for rows in (dealt, excluded)]), groups)
        others = max(n_users - int(known.sum()), 0)
        drawn = np.random.default_rng(0).multinomial(others, np.full(groups, 1.0 / groups))
        return cls(groups=groups, scored=scored, known=known, users=known + drawn)


def _users_of(rows: Any, groups: int) -> Floats:
    """How many distinct users are in each cluster, (groups,)."""
    users = rows.select(USER, "cluster").unique().select("cluster", nw.lit(1.0).alias("users"))
    return by_cluster(users, "users", groups)


def in_clusters(dealt: Any) -> Any:
    """Rows with their cluster in the place of their user."""
    return dealt.drop(USER).rename({"cluster": USER})


def by_cluster(dealt: Any, column: str, groups: int) -> Floats:
    """The sum of a column in each cluster, (groups,)."""
    table = collected(dealt.select("cluster", column).group_by("cluster").agg(nw.col(column).sum()))
    found = np.zeros(groups)
    found[table["cluster"].to_numpy()] = table[column].cast(nw.Float64()).to_numpy()
    return found


def dealt(frame: Any, groups: int) -> Any:
    """The frame with the cluster of its user, 0 … groups − 1: (ax + b)⁵ modulo a prime, modulo the number of clusters.

    The fifth power permutes the numbers below this prime, and leaves no trace of how ids were given: multiples of a
    hundred, or one range for each country, fill all clusters alike.
    """
    frame = _numbered(frame)
    x = nw.col("cluster")
    for step in (
        (x % PRIME).cast(nw.Int64()), (x + PRIME) % PRIME, (x * FACTOR + SHIFT) % PRIME,  # engines differ below 0
    ):  # fmt: skip
        frame = frame.with_columns(step.alias("cluster"))
    frame = frame.with_columns((x * x % PRIME).alias("power"))
    frame = frame.with_columns((nw.col("power") * nw.col("power") % PRIME).alias("power"))
    return frame.with_columns((nw.col("power") * x % PRIME % groups).alias("cluster")).drop("power")


def _numbered(frame: Any) -> Any:
    """The frame with a number for each user: the id itself, or the first digits of a text's MD5.

    There is no hash that all engines have, nor one of narwhals, so this asks each for its own MD5; the others, which
    have none, are in memory, and Python's serves them.
    """
    kind = frame.collect_schema()[USER]
    if kind.is_integer():
        wide = nw.col(USER) if kind == nw.UInt64 else nw.col(USER).cast(nw.Int64())
        return frame.with_columns(wide.alias("cluster"))
    if on_spark(frame):
        number = f"cast(conv(substring(md5({USER}), 1, {DIGITS}), 16, 10) as bigint)"
        return nw.from_native(frame.to_native().selectExpr("*", f"{number} as cluster"))
    if frame.implementation.is_duckdb():
        number = f"cast('0x' || substr(md5({USER}), 1, {DIGITS}) as bigint)"
        return nw.from_native(frame.to_native().select(f"*, {number} as cluster"))
    ids = collected(frame.select(USER).unique())
    numbers = nw.new_series("cluster", text_numbers(plain_ids(ids[USER])), nw.Int64(), backend=ids.implementation)
    table = ids.with_columns(numbers)
    return frame.join(table.lazy() if isinstance(frame, nw.LazyFrame) else table, on=USER, how="inner")


def text_numbers(ids: Array) -> Array:
    """The first digits of each text's MD5 as a number."""
    digests = (hashlib.md5(str(text).encode(), usedforsecurity=False).hexdigest() for text in ids)
    return np.array([int(digest[:DIGITS], 16) for digest in digests], np.int64)
