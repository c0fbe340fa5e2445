"""A log with positions, from a file or any dataframe, becomes Impressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Ints, Vocabulary
from openloop.core.impressions import Impressions
from openloop.data import values
from openloop.data.columns import Column, InputTable, choose, names_a
from openloop.data.encoding import Unknown, coded
from openloop.errors import ColumnError, EmptyError, InputError, quoted

if TYPE_CHECKING:
    import polars as pl

Columns = Sequence[Column] | None
Check = Callable[["pl.Series", str], Array]

REQUIRED = ("item", "reward")
FOUND = ("request", "user")  # where a column has such a name, and is not said to be something else
IDS = ("request", "user", "item")

CHECKS: Mapping[str, Check] = {
    "position": partial(values.whole, noun="positions", least=1),
    "reward": values.rewards,
    "propensity": values.propensities,
    "exposure": values.exposures,
    "prefix": values.propensities,
    "slate": values.propensities,
    "shuffled": values.flags,
    "pool": partial(values.whole, noun="numbers of candidates", least=1),
    "arms": partial(values.whole, noun="ranks", least=0),
    "time": values.times,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownColumns:
    """The columns of a log of impressions, by name or position; `exposure` and `arms` are lists of them.

    `request` and `user` may be False: the log has none, even if a column has such a name.
    """

    position: Column
    item: Column = None
    reward: Column = None
    request: Column = None
    user: Column = None
    propensity: Column = None
    exposure: Columns = None
    prefix: Column = None
    slate: Column = None
    shuffled: Column = None
    pool: Column = None
    arms: Columns = None
    time: Column = None

    @property
    def named(self) -> dict[str, Column]:
        """Each column that was named, by its role; those of a list are numbered from 1."""
        asked: dict[str, Column] = {}
        for role in (field.name for field in fields(self)):
            given = getattr(self, role)
            if role in ("exposure", "arms"):
                asked |= {f"{role} {j}": column for j, column in enumerate(_listed(role, given), start=1)}
            elif given is not None and not (given is False and role in FOUND):
                asked[role] = given
        return asked

    def choose(self, table: InputTable) -> dict[str, str]:
        """The column of each role: those named, and by obvious names item, reward, request and user."""
        named = self.named
        given = {*named.values()}
        for role in FOUND:
            found = [c for c in table.columns if c not in given and names_a(role, c)]
            if role not in named and getattr(self, role) is None and found:
                if len(found) > 1:
                    raise ColumnError(
                        f"{table.name}: {', '.join(map(repr, found))} may each be the {role} column; pass {role}= with "
                        f"one of them, or {role}=False."
                    )
                named[role] = found[0]
        return choose(table, named, required=REQUIRED)


def _listed(role: str, given: Any) -> Sequence[Column]:
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) == 0:
        each = "position" if role == "exposure" else "arm"
        raise ColumnError(f"{role}={quoted(given)}: give a list of columns, one for each {each}.")
    return given


def read_impressions(
    table: InputTable, asked: ShownColumns, known: Mapping[str, Vocabulary | None], unknown: Unknown
) -> Impressions:
    """Impressions from a table; `known` are the vocabularies of users and items, None for those of the log."""
    chosen = asked.choose(table)
    frame = table.fetch(list(chosen.values()))
    if frame.height == 0:
        raise EmptyError(f"{table.name}: no rows; a value needs at least one item that was shown.")
    vocabularies: dict[str, Vocabulary] = {}
    columns: dict[str, Array] = {}
    for role in IDS:
        if role in chosen:
            ids, codes = coded(table, frame[chosen[role]], role, known.get(role), unknown)
            vocabularies[f"{role}s"], columns[role] = ids, codes
    columns |= {role: _numbers(table, frame, chosen, role) for role in CHECKS if _roles(chosen, role)}
    left = _known_requests(columns)
    given: dict[str, Any] = {**columns, **vocabularies}
    if left is not None:
        given |= _without(left, columns, vocabularies.get("requests"))
    try:
        return Impressions.from_arrays(**given, input_rows=frame.height)
    except InputError as error:
        raise type(error)(f"{table.name}: {error}") from error


def _roles(chosen: Mapping[str, str], role: str) -> list[str]:
    """The role itself, or those of its list: exposure 1, exposure 2 …"""
    return [name for name in chosen if name.rpartition(" ")[0] == role] if role not in chosen else [role]


def _numbers(table: InputTable, frame: pl.DataFrame, chosen: Mapping[str, str], role: str) -> Array:
    found = [
        CHECKS[role](frame[chosen[name]], f"{table.name}: {role} column {quoted(chosen[name])}")
        for name in _roles(chosen, role)
    ]
    return found[0] if role in chosen else np.stack(found, axis=1)


def _known_requests(columns: Mapping[str, Array]) -> npt.NDArray[np.bool_] | None:
    """The rows of requests without an unknown user or item, None where all are; a list is left out as a whole."""
    strange = np.zeros(len(columns["item"]), np.bool_)
    for role in ("user", "item"):
        if role in columns:
            strange |= columns[role] < 0
    if not bool(strange.any()):
        return None
    request = columns.get("request")
    return ~strange if request is None else ~np.isin(request, request[strange])


def _without(left: npt.NDArray[np.bool_], columns: Mapping[str, Array], requests: Vocabulary | None) -> dict[str, Any]:
    """The rows that are left, with their requests numbered anew."""
    if not bool(left.any()):
        raise EmptyError(f"unknown='drop': all {len(left):,} rows have unknown ids, so none is left; check their type.")
    rows = {role: column[left] for role, column in columns.items()}
    found: dict[str, Any] = {**rows, "row": np.flatnonzero(left), "dropped": int((~left).sum())}
    if requests is not None:
        still = np.bincount(rows["request"], minlength=len(requests)) > 0
        code: Ints = (np.cumsum(still) - 1).astype(np.int32)
        found |= {"request": code[rows["request"]], "requests": Vocabulary(requests.ids[still])}
    return found
