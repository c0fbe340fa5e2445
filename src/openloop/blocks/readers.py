"""Rows of any source in pieces of about equal size, each source read once and in its order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from openloop.data.columns import InputTable


def batches(table: InputTable, columns: Sequence[str], size: int = 1_000_000) -> Iterator[pl.DataFrame]:
    """The named columns in pieces of `size` rows, the last of fewer; a source without rows has one piece."""
    return _resized(table.batches(columns, size), size)


def _resized(pieces: Iterable[pl.DataFrame], size: int) -> Iterator[pl.DataFrame]:
    waiting: list[pl.DataFrame] = []
    rows = n_read = 0
    for piece in pieces:
        waiting.append(piece)
        rows, n_read = rows + piece.height, n_read + piece.height
        if rows >= size:
            frame, rest = _joined(waiting), rows % size
            yield from (part.rechunk() for part in frame[: rows - rest].iter_slices(size))
            waiting, rows = [frame[rows - rest :]], rest
    if rows or not n_read:
        yield _joined(waiting).rechunk()


def _joined(pieces: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Pieces of one schema; numbers of several types, as different files may have them, take one that holds all."""
    return pl.concat(pieces, how="vertical_relaxed")
