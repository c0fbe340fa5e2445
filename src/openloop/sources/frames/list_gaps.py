"""What lists with ranks leave out: users of scored rows, positions in a list, or all scored rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from openloop.sources import remarks
from openloop.sources.frames.collecting import Fact, FrameTally
from openloop.sources.frames.joining import Joined
from openloop.sources.frames.model_tables import ModelTable
from openloop.sources.frames.rows import USER
from openloop.support.frames import flag


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGaps:
    """The share of scored rows whose users have no list, the number of these users, and the lists with gaps.

    `none`: the list has none of the scored rows.
    """

    rows: float
    users: int
    gaps: int
    none: bool


def gaps_query(joined: Joined) -> Fact | None:
    """The query for the gaps of all models that give lists of their own; None if no model does."""
    listed = _listed(joined)
    return Fact(lambda: _by_user(joined, listed)) if listed else None


def list_gaps(joined: Joined, asked: Fact | None) -> dict[str, ListGaps]:
    """The gaps of each model that gives lists of its own, from the answer to their query."""
    if asked is None:
        return {}
    found = {name: float(value or 0.0) for name, value in asked.row.items()}
    listed = _listed(joined)
    whole = {at: joined.coverage[joined.models[at]].depth is not None for at in listed}  # read to its end
    return {
        joined.models[at]: ListGaps(
            rows=found[f"without{at}"] / found["rows"], users=int(found[f"users{at}"]), gaps=int(found[f"gaps{at}"]),
            none=whole[at] and found.get(f"known{at}") == 0,
        )
        for at in listed
    }  # fmt: skip


def list_notes(gaps: Mapping[str, ListGaps]) -> list[str]:
    """What is odd about the lists of models."""
    found = [remarks.lists_none(model) for model, own in gaps.items() if own.none]
    return found + [told for model, own in gaps.items() if (told := remarks.of_lists(model, own.users, own.gaps))]


def _listed(joined: Joined) -> dict[int, ModelTable]:
    """The lists of models, by the models' places."""
    tables = enumerate(joined.rankings[model] for model in joined.models)
    return {at: table for at, table in tables if table.frame is not None and table.rank is not None}


def _by_user(joined: Joined, listed: Mapping[int, ModelTable]) -> FrameTally:
    """Rows, list lengths and deepest ranks of each user: one group-by of a union, where joins would cost more."""
    one, none = nw.lit(1.0), nw.lit(0.0)
    columns = joined.frame.collect_schema().names()
    known = {f"known{at}": flag(~nw.col(f"r{at}").is_null()) for at in listed if f"r{at}" in columns}
    names = ["rows", *known, *(f"{what}{at}" for at in listed for what in ("length", "deepest"))]
    parts = [joined.frame.select(USER, **dict.fromkeys(names, none) | {"rows": one} | known)]
    for at, table in listed.items():
        rank = nw.col(str(table.rank))
        own = {f"length{at}": one, f"deepest{at}": rank.cast(nw.Float64())}
        parts.append(table.frame.filter(~rank.is_null()).select(USER, **dict.fromkeys(names, none) | own))
    sums = [nw.col(name).sum() for name in names if not name.startswith("deepest")]
    users = nw.concat(parts).group_by(USER).agg(*sums, *(nw.col(f"deepest{at}").max() for at in listed))
    flags: dict[str, Any] = {name: nw.col(name) for name in ("rows", *known)}
    for at in listed:
        absent = flag((nw.col("rows") > 0) & (nw.col(f"length{at}") == 0))
        flags |= {f"users{at}": absent, f"without{at}": absent * nw.col("rows")}
        flags[f"gaps{at}"] = flag(nw.col(f"deepest{at}") > nw.col(f"length{at}"))
    return FrameTally.sums(users.select(**flags), list(flags))
