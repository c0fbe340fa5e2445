"""How many users and items there are: as given, or counted in the log and what is excluded."""

from __future__ import annotations

from openloop.errors import InputError
from openloop.sources.frames.joining import Joined
from openloop.sources.frames.row_facts import RowFacts
from openloop.sources.frames.rows import USER
from openloop.support.arguments import are_counts
from openloop.support.frames import rows


def population(joined: Joined, seen: RowFacts, given: tuple[int, int] | None, notes: list[str]) -> tuple[int, int]:
    """The numbers of users and items; a note is added if they were counted."""
    if given is not None and not are_counts(given):
        raise InputError(f"evaluate: population= must be (users, items), two whole numbers, got {given!r}.")
    items = _items(joined, seen, None if given is None else int(given[1]))
    if given is None:
        users = _users(joined)
        notes.append(
            f"the population was taken to be the {users:,} users × {items:,} items in the log; pass population="
        )
        return users, items
    n_users, n_items = (int(v) for v in given)
    if n_items < items:
        raise InputError(
            f"evaluate: population= has {n_items:,} items, the log and exclude= {items:,}; give the size of the "
            "whole catalogue, or drop what is no longer in it."
        )
    return n_users, n_items


def _items(joined: Joined, seen: RowFacts, enough: int | None) -> int:
    """The items of the log and of the excluded pairs; where ids span no more than `enough`, none are counted."""
    frame, excluded = joined.frame.select("i"), joined.excluded
    frames = [frame] if excluded is None else [frame, excluded.pairs.select("i")]
    spanned = seen.spanned_items()
    if enough is not None and spanned is not None and spanned <= enough:
        return spanned
    first, *others = (part.unique() for part in frames)
    return rows(first) + sum(rows(more.join(first, on="i", how="anti")) for more in others)


def _users(joined: Joined) -> int:
    """The users of the log, and of the excluded pairs."""
    known = joined.frame.select(USER).unique()
    if joined.excluded is None:
        return rows(known)
    return rows(known) + rows(joined.excluded.counts.select(USER).join(known, on=USER, how="anti"))
