"""Which column of a table is the user, the item, the rating: by name, by position, or by an obvious name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from openloop.errors import ColumnError, did_you_mean, listing, quoted

Column = str | int | None

NEAR = 0.65  # of letters: "usr" and "username" look like "user", "sterne" does not
PAIR = ("user", "item")
REQUIRED = (*PAIR, "rating")

# Compared without case, underscores and blanks: user_id, userId and "User ID" are one name.
OBVIOUS: Mapping[str, str] = {
    "user": "user users uid usr username customer member reviewer visitor account viewer person",
    "item": "item items iid movie mid film product asin sku song track artist book isbn article video game",
    "rating": "rating ratings stars star score value click clicks clicked overall",
    "request": "request requests query slate",
    "reward": "reward rewards click clicks clicked",
    "score": "score scores prediction predictions predicted predictedrating pred preds est estimate estimated yhat",
    "rank": "rank ranks ranking position pos place",
}


class Header(Protocol):
    """A table's name, its columns, and how their names were found, for errors about columns."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def columns(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def note(self) -> str: ...  # noqa: D102


def choose(
    table: Header, asked: Mapping[str, Column], required: Sequence[str] = REQUIRED, taken: Iterable[str] = (),
    ways: Mapping[str, str] | None = None,
) -> dict[str, str]:  # fmt: skip
    """The column of each role: those asked for, and the obvious one for a required role that was not.

    Columns that are `taken` are something else, and not looked at for obvious names. `ways` say how a role without a
    column gets one, where naming it is not the way.
    """
    chosen = {role: named(table, role, column) for role, column in asked.items() if column is not None}
    for role in required:
        if role not in chosen:
            chosen[role] = _obvious(table, role, taken=(*chosen.values(), *taken), way=(ways or {}).get(role, ""))
    _refuse_shared(table, chosen)
    return chosen


def shared(table: Header, named: Mapping[str, Column]) -> dict[str, str]:
    """Those of another table's columns that this one has under the same name."""
    return {role: name for role, name in named.items() if isinstance(name, str) and name in table.columns}


def alike(table: Header, role: str) -> str | None:
    """The column whose name is an obvious one of this role, None where there is none; of several, one must be named."""
    found = [column for column in table.columns if names_a(role, column)]
    if len(found) > 1:
        raise _several(table, role, found)
    return found[0] if found else None


def names_a(role: str, column: str) -> bool:
    """Whether a column's name is an obvious one of this role."""
    return plain(str(column)) in OBVIOUS[role].split()


def named(table: Header, role: str, column: Any) -> str:
    """The column of this name, or else at this position; `role` is the argument that names it."""
    if isinstance(column, bool) or not isinstance(column, str | int):
        raise ColumnError(f"{role}={quoted(column)}: give a column's name, or its position as an integer.")
    if (times := table.columns.count(str(column))) > 1:
        raise ColumnError(f"{table.name}: {times} columns are named {quoted(str(column))}; rename all but one.")
    if times:
        return str(column)
    if isinstance(column, int):
        return _at(table, role, column)
    msg = f"{table.name}: no column {quoted(column)} for {role}=.{did_you_mean(column, table.columns)}{table.note}"
    raise ColumnError(msg)


def _at(table: Header, role: str, position: int) -> str:
    if 0 <= position < len(table.columns):
        return table.columns[position]
    count = f"its {len(table.columns)} columns, which count from 0"
    raise ColumnError(f"{table.name}: {role}={position} is not a position of {count}.{table.note}")


def _obvious(table: Header, role: str, taken: Iterable[str], way: str) -> str:
    used = set(taken)
    found = [c for c in table.columns if c not in used and names_a(role, c)]
    if len(found) == 1:
        return found[0]
    if found:
        raise _several(table, role, found)
    if not table.columns:
        raise ColumnError(f"{table.name}: must have a {role} column, and has no columns; write or fetch it again.")
    guess = near([c for c in table.columns if c not in used], role).strip()
    none = ", or rating=False where every row is a positive" if role == "rating" else ""
    raise ColumnError(
        f"{table.name}: no {role} column found among {listing(list(table.columns), limit=20)}"
        f"{f' ({guess})' if guess else ''}; {way or f'pass {role}= with its name{none}'}.{table.note}"
    )


def _several(table: Header, role: str, found: Sequence[str]) -> ColumnError:
    """The error of several columns with obvious names of one role."""
    return ColumnError(f"{table.name}: {listing(found)} may each be the {role} column; pass {role}= with one of them.")


def near(free: Sequence[str], role: str) -> str:
    """' Did you mean X?' where some free column's name looks like the role's."""
    close = [c for c in free if difflib.get_close_matches(role, [str(c).lower()], cutoff=NEAR)]
    guess = did_you_mean(role, close)
    return guess if "Did you mean" in guess else ""


def _refuse_shared(table: Header, chosen: Mapping[str, str]) -> None:
    roles: dict[str, str] = {}
    for role, column in chosen.items():
        if column in roles:
            msg = f"{table.name}: {roles[column]} and {role} both name column {quoted(column)}; give each its own."
            raise ColumnError(msg)
        roles[column] = role


def plain(name: str) -> str:
    """A name without case, signs and the ending "id"."""
    letters = "".join(c for c in name.lower() if c.isalnum())
    return letters if letters in {"uid", "iid", "mid"} else letters.removesuffix("id")
