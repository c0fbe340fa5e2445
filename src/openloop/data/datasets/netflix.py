"""The Netflix Prize: lines "user,rating,date" below a line "movie:", one file per movie or a few large ones."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from openloop.data.datasets import lines
from openloop.data.datasets.finding import Files
from openloop.data.datasets.records import Data
from openloop.data.reading import read
from openloop.errors import FormatError, InputError, quoted

BLOCK = 2**25  # bytes that are parsed at a time


def netflix(name: str, files: Files) -> Data:
    """All ratings, with the day of each."""
    blocks = [parsed(first, text) for first, text in _blocks(files["ratings"])]
    if not blocks:
        raise FormatError(f"{files['ratings'][0].parent}: its files are empty; fetch them again.")
    rows = pl.concat(blocks)
    try:
        log = read(rows, user="user", item="item", rating="rating", time="date")
    except InputError as error:
        raise lines.restated(error, files["ratings"][0].parent) from error
    return Data(name=name, log=log)


def parsed(path: Path, text: bytes) -> pl.DataFrame:
    """The rows of a text; `path` is the file that it begins with."""
    text_lines = _lines(path, text)
    movie = pl.when(pl.col("line").str.ends_with(":")).then(pl.col("line").str.strip_suffix(":"))
    fields = pl.col("line").str.splitn(",", 3).struct.rename_fields(["user", "rating", "date"])
    rows = text_lines.with_columns(item=movie.forward_fill(), head=pl.col("line").str.ends_with(":"))
    rows = rows.filter(~pl.col("head")).select("line", "item", fields.alias("fields")).unnest("fields")
    typed = rows.select(
        pl.col("line"),
        pl.col("user", "item").cast(pl.Int32, strict=False),
        pl.col("rating").cast(pl.Float32, strict=False),
        pl.col("date").str.to_date("%Y-%m-%d", strict=False),
    )
    bad = typed.filter(pl.any_horizontal(pl.all().is_null()))
    if bad.height:
        raise FormatError(
            f"{path}: {bad.height:,} lines are not 'user,rating,YYYY-MM-DD' below a line 'movie:', first "
            f"{quoted(bad['line'][0])}; fetch the file again."
        )
    return typed.drop("line")


def _lines(path: Path, text: bytes) -> pl.DataFrame:
    try:
        rows = pl.read_csv(
            io.BytesIO(text), has_header=False, schema={"line": pl.String}, separator="\x1f", quote_char=None
        )
    except pl.exceptions.PolarsError as error:
        raise FormatError(f"{path}: must be lines of UTF-8 text; {lines.AGAIN}") from error
    return rows.select(pl.col("line").str.strip_chars()).filter(pl.col("line") != "")


def _blocks(paths: tuple[Path, ...]) -> Iterator[tuple[Path, bytes]]:
    """The files one after another in pieces of whole lines, each below the line of its movie."""
    first, held, movie = paths[0], b"", b""
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(BLOCK):
                held += piece
                cut = held.rfind(b"\n") + 1
                if len(held) >= BLOCK and cut:
                    yield first, movie + held[:cut]
                    first, movie, held = path, _last_movie(held[:cut], movie), held[cut:]
        held += b"\n"
    if held.strip():
        yield first, movie + held


def _last_movie(text: bytes, before: bytes) -> bytes:
    """The last line "movie:" of a text, or the one before it."""
    colon = text.rfind(b":")  # occurs nowhere else
    return before if colon < 0 else text[text.rfind(b"\n", 0, colon) + 1 : colon + 1] + b"\n"
