"""Impressions and rankers' lists that stay in their engine: opened, checked and joined into one frame.

Its columns are g (the cluster), n (the request), k (position), c (reward), d (K_n); p, prefix, slate, e1 … eK, z
(shuffled) and m (pool) where they are logged; and for ranker j its rank r{j}, 0 where it does not list the item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from openloop.core.feedback import LEAST
from openloop.data.impressions import ShownColumns
from openloop.errors import DuplicateError, EmptyError, InputError, PredictionError, PropensityError, RatingError
from openloop.sources import rules
from openloop.sources.frames.holding import held
from openloop.sources.frames.model_tables import number_facts
from openloop.sources.frames.opening import EngineTable, opened
from openloop.impressions.question import ShownQuestion
from openloop.impressions.tables import id_columns, value_columns
from openloop.support.fields import fields_of
from openloop.support.frames import absent, flag, only_row, rows
from openloop.support.wording import counted

IDS = {"request": "n", "user": "u", "item": "i"}
NUMBERS = {"position": "k", "reward": "c", "propensity": "p", "prefix": "prefix", "slate": "slate", "pool": "m"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JoinedRows:
    """The joined frame, the names of the rankers, what was logged, and K."""

    frame: Any
    models: tuple[str, ...]
    logged: frozenset[str]  # of request, user, propensity, exposure, prefix, slate, shuffled, pool
    depth: int
    whole: bool  # no request lacks a position


def join_rankers(models: Mapping[str, Any], log: Any, asked: ShownQuestion, until: ExitStack) -> JoinedRows:
    """One frame of a log of impressions and of rankers' lists, held until `until` closes."""
    table = opened("the log", log)
    chosen = ShownColumns(**fields_of(ShownColumns, asked)).choose(table)  # pyright: ignore[reportArgumentType]
    if "request" not in chosen and "user" not in chosen:
        raise InputError("evaluate: a frame of impressions needs request= or user=, to tell what belongs together.")
    frame, exposures = _selected(table, chosen)
    depth = _checked(frame, exposures)
    frame, whole = _with_depth(frame, depth, requests="request" in chosen)
    for at, (name, model) in enumerate(models.items()):
        frame = _with_ranks(frame, at, _list_table(name, model, table, asked), table, chosen)
    frame = frame.with_columns(nw.col("u" if "user" in chosen else "n").alias("g"))
    eager = isinstance(nw.from_native(log), nw.DataFrame)
    logged = {role for role in chosen if not role.startswith("exposure")}
    logged |= {"exposure", "propensity"} if exposures else set()
    logged |= {"slate"} if {"prefix", "request"} <= set(chosen) else set()
    return JoinedRows(
        frame=held(frame, until, eager=eager), models=tuple(models), logged=frozenset(logged), depth=depth, whole=whole
    )


# -- the log -------------------------------------------------------------------------------------------------


def _selected(table: EngineTable, chosen: Mapping[str, str]) -> tuple[Any, list[str]]:
    """Named columns, numbers as 64-bit floats; and the columns of exposure."""
    exposed = sorted((role for role in chosen if role.startswith("exposure")), key=lambda role: int(role.split()[1]))
    columns = [nw.col(chosen[role]).alias(name) for role, name in IDS.items() if role in chosen]
    columns += [nw.col(chosen[r]).cast(nw.Float64()).alias(name) for r, name in NUMBERS.items() if r in chosen]
    columns += [nw.col(chosen[r]).cast(nw.Float64()).alias(f"e{j}") for j, r in enumerate(exposed, 1)]
    if "shuffled" in chosen:
        columns.append(nw.col(chosen["shuffled"]).cast(nw.Int64()).cast(nw.Float64()).alias("z"))
    frame = table.frame.select(*columns)
    if exposed and "propensity" not in chosen:
        own = nw.lit(0.0)
        for j in range(1, len(exposed) + 1):
            own = own + nw.when(nw.col("k") == j).then(nw.col(f"e{j}")).otherwise(nw.lit(0.0))
        frame = frame.with_columns(own.alias("p"))
    return frame, [f"e{j}" for j in range(1, len(exposed) + 1)]


def _checked(frame: Any, exposures: Sequence[str]) -> int:
    """K, once it is known that no engine sums over what is missing, and that lists are lists."""
    k, c = nw.col("k"), nw.col("c")
    names = frame.collect_schema().names()
    wrong: dict[str, Any] = {name: nw.col(name).is_null() for name in IDS.values() if name in names}
    wrong |= {"k": absent(k) | (k < 1) | (k != k.floor()), "c": absent(c) | (c < 0)}
    wrong |= {
        name: absent(nw.col(name)) | (nw.col(name) < LEAST) | (nw.col(name) > 1)
        for name in ("p", "prefix", "slate") if name in names
    }  # fmt: skip
    wrong |= {e: absent(nw.col(e)) | (nw.col(e) < 0) | (nw.col(e) > 1) for e in exposures}
    wrong |= {name: absent(nw.col(name)) for name in ("z", "m") if name in names}
    flagged = frame.select(**{f"bad_{name}": flag(bad) for name, bad in wrong.items()}, rows=nw.lit(1.0), depth=k)
    totals = [nw.col(f"bad_{name}").sum() for name in wrong]
    found = only_row(flagged.select(*totals, nw.col("rows").sum(), nw.col("depth").max()))
    if not found["rows"]:
        raise EmptyError("the log: no rows; a value needs at least one item that was shown.")
    bad = {name: int(found[f"bad_{name}"] or 0) for name in wrong}
    if not bad["k"] and exposures and len(exposures) != found["depth"]:
        raise InputError(f"exposure: {len(exposures)} columns for {found['depth']:g} positions; give one for each.")
    for name, number in bad.items():
        if number:
            raise _refused(name, number, int(found["rows"]))
    return int(found["depth"])


def _refused(name: str, number: int, size: int) -> InputError:
    roles = {own: role for role, own in (IDS | NUMBERS).items()} | {"z": "shuffled"}
    role = roles.get(name, "exposure")
    rule = {
        "k": "a whole number from 1", "c": "finite and not negative", "p": "in (0, 1]", "prefix": "in (0, 1]",
        "slate": "in (0, 1]",
    }.get(name, "in [0, 1]" if role == "exposure" else "there")  # fmt: skip
    kind = RatingError if name == "c" else PropensityError if rule.startswith(("in (", "in [")) else InputError
    return kind(f"the log: {role} must be {rule}, and is not in {number:,} of {size:,} rows; repair those rows.")


def _with_depth(frame: Any, depth: int, *, requests: bool) -> tuple[Any, bool]:
    """The frame with K_n and the slate that follows from prefixes; and whether every list is whole."""
    if not requests:
        return frame.with_columns(nw.lit(float(depth)).alias("d")), True
    names = frame.collect_schema().names()
    one = frame.select("n", "k", nw.lit(1.0).alias("rows"), *(["u"] if "u" in names else []))
    twice = one.group_by("n", "k").agg(nw.col("rows").sum()).filter(nw.col("rows") > 1)
    if number := rows(twice):
        raise DuplicateError(
            f"the log: {number:,} times two items share one position of one request; keep one of them."
        )
    users = [nw.col("u").min().alias("low"), nw.col("u").max().alias("high")] if "u" in names else []
    lists = one.group_by("n").agg(nw.col("k").max().alias("d"), nw.col("rows").sum(), *users)
    if users and (number := rows(lists.filter(nw.col("low") != nw.col("high")))):
        raise InputError(f"the log: {number:,} requests have more than one user; a request has one.")
    whole = rows(lists.filter(nw.col("d") != nw.col("rows"))) == 0
    frame = frame.join(lists.select("n", "d"), on="n", how="left")
    if "prefix" in names and "slate" not in names:
        last = frame.filter(nw.col("k") == nw.col("d")).select("n", nw.col("prefix").alias("slate"))
        frame = frame.join(last, on="n", how="left")
    return frame, whole


# -- rankers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Lists:
    """The lists of one ranker: owner, i and rank."""

    what: str
    side: str  # "request" or "user"
    frame: Any


def _list_table(name: str, model: Any, log: EngineTable, asked: ShownQuestion) -> _Lists:
    what = f"model {name!r}"
    table = opened(what, model)
    if table.frame.implementation != log.frame.implementation:
        raise InputError(
            f"{what} is in {table.frame.implementation}, the log in {log.frame.implementation}; bring both into one."
        )
    side, owner, item = id_columns(table, asked)
    rank = value_columns(table, asked).get("rank")
    if rank is None:
        raise PredictionError(
            f"{what}: with a frame as the log a ranker needs a rank column; or read the log with ol.read."
        )
    frame = table.frame.select(
        nw.col(owner).alias("owner"), nw.col(item).alias("i"), nw.col(rank).cast(nw.Float64()).alias("rank")
    )
    found = number_facts(frame, ("rank",), (), "rank")
    if not found["rows"]:
        raise rules.no_rows(what)
    twice = [rows(_times(frame, key).filter(nw.col("times") > 1)) for key in ("rank", "i")]
    if found["gone:rank"] or found["odd"] or twice[0]:
        raise PredictionError(f"{what}: ranks must be integers starting at 1, unique within each {side}.")
    if twice[1]:
        raise PredictionError(f"{what}: {twice[1]:,} ({side}, item) pairs are in it more than once; keep one of each.")
    return _Lists(what=what, side=side, frame=frame)


def _times(frame: Any, key: str) -> Any:
    once = frame.select("owner", key, nw.lit(1.0).alias("times"))
    return once.group_by("owner", key).agg(nw.col("times").sum())


def _with_ranks(frame: Any, at: int, lists: _Lists, log: EngineTable, chosen: Mapping[str, str]) -> Any:
    """The frame with ranker `at`'s rank r{at} of each row."""
    if lists.side not in chosen:
        raise PredictionError(f"{lists.what}: has lists of {lists.side}s, and the log names none.")
    own, schema, theirs = IDS[lists.side], log.frame.collect_schema(), lists.frame.collect_schema()
    for side, column, name in ((lists.side, chosen[lists.side], "owner"), ("item", chosen["item"], "i")):
        kinds = ["integers" if kind.is_integer() else "text" for kind in (schema[column], theirs[name])]
        if kinds[0] != kinds[1]:
            raise InputError(f"{lists.what}: its {side} ids are {kinds[1]}, the log's {kinds[0]}; cast one side.")
    casts = {
        name: nw.col(name).cast(nw.Int64() if theirs[name].is_integer() else nw.String()) for name in ("owner", "i")
    }
    ranks = lists.frame.select(casts["owner"].alias(own), casts["i"], nw.col("rank").alias(f"r{at}"))
    kinds = frame.collect_schema()
    frame = frame.with_columns(
        *(nw.col(x).cast(nw.Int64() if kinds[x].is_integer() else nw.String()) for x in (own, "i"))
    )
    lacking = frame.select(own).unique().join(ranks.select(own).unique(), on=own, how="anti")
    if number := rows(lacking):
        raise PredictionError(
            f"{lists.what}: the log has {counted(number, lists.side)} with no list; give a list for every {lists.side}."
        )
    joined = frame.join(ranks, on=[own, "i"], how="left")
    return joined.with_columns(nw.col(f"r{at}").fill_null(0.0))
