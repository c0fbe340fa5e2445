"""What lists with ranks leave out: users of scored rows, places in a list, or all scored rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw

from openloop.sources import remarks
from openloop.sources.frames.collecting import FrameTally
from openloop.sources.frames.joining import Joined
from openloop.sources.frames.rows import USER
from openloop.support.frames import flag


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGaps:
    """The share of scored rows whose users have no list, how many users these are, and how many lists have gaps."""

    rows: float
    users: int
    gaps: int

    @classmethod
    def of(cls, joined: Joined, model: str) -> ListGaps | None:
        """The gaps of a model's lists; None if it has no lists."""
        table = joined.rankings[model]
        if table.frame is None or table.rank is None:
            return None
        rank, one = nw.col(table.rank), nw.lit(1.0)
        own = table.frame.filter(~rank.is_null()).select(USER, one.alias("length"), rank.alias("deepest"))
        lists = own.group_by(USER).agg(nw.col("length").sum(), nw.col("deepest").max())
        scored = joined.frame.select(USER, one.alias("rows")).group_by(USER).agg(nw.col("rows").sum())
        beside = scored.join(lists.select(USER, "length"), on=USER, how="left")
        none = flag(nw.col("length").is_null())
        gone = FrameTally.sums(
            beside.select("rows", users=none, without=none * nw.col("rows")), ["rows", "users", "without"]
        )
        odd = FrameTally.sums(lists.select(gaps=flag(nw.col("deepest") > nw.col("length"))), ["gaps"])
        found, gaps = gone.result, int(odd.result["gaps"][0] or 0)
        return cls(rows=float(found["without"][0] / found["rows"][0]), users=int(found["users"][0]), gaps=gaps)


def list_notes(joined: Joined, gaps: dict[str, ListGaps | None]) -> list[str]:
    """What is odd about the lists of models."""
    found = [remarks.lists_none(m) for at, m in enumerate(gaps) if gaps[m] is not None and _lists_none(joined, at, m)]
    return found + [told for m, own in gaps.items() if own and (told := remarks.of_lists(m, own.users, own.gaps))]


def _lists_none(joined: Joined, at: int, model: str) -> bool:
    """Whether a list has none of the scored rows; unknown if the list is longer than the part that is read."""
    place, depth = f"r{at}", joined.coverage[model].depth
    if place not in joined.frame.collect_schema().names():
        return False
    found: Any = FrameTally(
        frame=joined.frame.select(place, known=flag(~nw.col(place).is_null())), totals={"known": ("known", "sum")}
    ).result
    return not found["known"][0] and depth is not None
