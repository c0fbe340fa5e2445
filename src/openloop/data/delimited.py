"""Delimited text as a table: separator and header are found, ragged and cut files refused.

Fields stay text here: only their reader knows that "007" is an id and "4" a rating.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars as pl

from openloop.data.characters import TO_LINES, TO_UTF8, refuse_encoding, refuse_strange
from openloop.data.columns import HEADERLESS, Column, InputTable, stream
from openloop.data.contents import (
    LONGEST,
    SAMPLE,
    Contents,
    blanked,
    first_lines,
    is_text,
    tail_of,
    unpacked,
    unreadable,
    whole,
)
from openloop.data.ragged import UNIT, refuse_ragged
from openloop.data.values import ISO, look_like_times
from openloop.errors import FormatError, InputError, quoted
from openloop.support.arguments import is_whole

SEPARATORS = ("\t", "::", ",", ";", "|", " ")
WIDE = 100  # columns
USUAL = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".psv": "|"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextForm:
    """How a delimited file is to be read; what is None is found.

    The first `skip` lines are passed over, and so are those that begin with `comment`.
    """

    separator: str | None = None
    header: bool | None = None
    skip: int = 0
    comment: str | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and (not self.separator or set(self.separator) & set('\r\n"')):
            raise InputError(
                f"separator={quoted(self.separator)}: give the characters between two fields, such as ',' or '::'."
            )
        for name, given in (("separator", self.separator), ("comment", self.comment)):
            if given is not None and not is_text(given):
                raise InputError(f"{name}={quoted(given)}: must be text that UTF-8 can write; give other characters.")
        if not (is_whole(self.skip) and self.skip >= 0):
            raise InputError(
                f"skip={quoted(self.skip)}: give the number of lines before the log, a whole number from 0."
            )
        if self.comment is not None and (not self.comment.strip() or set(self.comment) & set('\r\n"')):
            raise InputError(
                f"comment={quoted(self.comment)}: give what lines that are not rows begin with, such as '#'."
            )

    def refuse(self, what: str) -> None:
        """Refuse any option for a file that is not delimited text."""
        if self != FOUND:
            raise InputError(
                f"{what}: separator=, header=, skip= and comment= are for files of delimited text; leave them out."
            )


FOUND = TextForm()


@dataclass(frozen=True, slots=True)
class _Text:
    """A delimited file, how it is divided, and how many lines precede its first row.

    `timed`: it has three columns and no header, and the third looks like times.
    """

    path: Path
    contents: Contents
    separator: str
    first: Sequence[str]
    header: bool
    skip: int
    timed: bool = False

    @property
    def names(self) -> list[str]:
        if self.header:
            return [field.strip() for field in self.first]
        if len(self.first) == 1:
            return ["column_1"]
        if self.timed:
            return [*HEADERLESS[:2], HEADERLESS[3]]
        return [HEADERLESS[i] if i < len(HEADERLESS) else f"column_{i + 1}" for i in range(len(self.first))]

    @property
    def note(self) -> str:
        word = "its first line was taken as the header" if self.header else "it was read as having no header"
        return f" ({word}, its fields divided by {quoted(self.separator)}; header= and separator= say otherwise.)"

    @property
    def remark(self) -> str:
        return f"{self.path}: its third column looks like times, so it is called 'time'" if self.timed else ""


def open_text(
    path: Path, asked: Mapping[str, Column], form: TextForm = FOUND, *, undivided: bool = False
) -> InputTable:
    """The table in a delimited file; without a header its columns are user, item, rating, time, column_5 …

    Where a third and last column looks like times they are user, item, time. With `undivided` a file that no separator
    divides is one column, column_1 where it has no header.
    """
    try:
        text = _divide(path, asked, form, undivided=undivided)
    except csv.Error as error:  # a field is too long, or lines end in a carriage return alone
        remedy = TO_LINES if "new-line" in str(error) else "pass separator="
        raise unreadable(path, str(error).partition(" - ")[0], remedy) from error
    _refuse_cut_line(text)

    @cache
    def check() -> bool:  # once, however often the file is scanned; whether it may have blank lines
        refuse_strange(path, text.contents, text.separator)
        _refuse_ragged(text)
        return len(text.first) <= WIDE or bool(_scan(text).select(_blank().any()).collect(engine="streaming").item())

    def scan(columns: Sequence[str]) -> pl.LazyFrame:
        return _rows(text, columns, blank=check())

    return InputTable(
        str(path), text.names, lambda columns, size: _batches(text, columns, size), text=True, note=text.note,
        remark=text.remark, headed=text.header, scan=scan,
    )  # fmt: skip


def _divide(path: Path, asked: Mapping[str, Column], form: TextForm, *, undivided: bool) -> _Text:
    contents = blanked(unpacked(path), form.skip, form.comment)
    lines = _first_lines(path, contents)
    filled = [line for line in lines if line.strip()]
    if not filled:
        rest = " apart from what skip= and comment= leave out" if form.skip or form.comment else ""
        raise FormatError(f"{path}: holds blank lines only{rest}; write or fetch it again.")
    separator = form.separator or _separator(path, filled[:20], undivided=undivided)
    records = _records(lines, separator)
    rows = [at for at, fields in enumerate(records) if fields]
    first = records[rows[0]]
    header = _has_header(first, asked) if form.header is None else form.header
    rows = rows[1:] if header else rows
    timed = not header and len(first) == 3 and look_like_times(pl.Series([records[at][-1] for at in rows[:20]]))
    return _Text(path, contents, separator, first, header, rows[0] if rows else len(records), timed)


def _first_lines(path: Path, contents: Contents) -> list[str]:
    head = first_lines(contents)
    refuse_encoding(path, head)
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if len(head) == LONGEST and len(lines) == 1:
        raise unreadable(path, f"its first line is longer than {LONGEST:,} bytes", TO_LINES)
    complete = lines[:-1] if len(head) in (SAMPLE, LONGEST) and len(lines) > 1 else lines
    try:
        return [line.decode() for line in complete]
    except UnicodeDecodeError as error:
        raise unreadable(path, "it is not UTF-8 text", TO_UTF8) from error


def _separator(path: Path, lines: Sequence[str], *, undivided: bool) -> str:
    """The first separator that gives all lines the same three or more fields; or else the first line."""
    likely = [USUAL[s] for s in path.suffixes if s in USUAL]
    for chosen, least in ((lines, 3), (lines[:1], 3), (lines[:1], 2)):
        for separator in (*likely, *SEPARATORS):
            counts = {_count(line, separator) for line in chosen}
            if len(counts) == 1 and counts.pop() >= least:
                return separator
    if undivided:
        return ","
    _fields(lines[0], ",")  # raises where lines end in carriage returns
    raise FormatError(f"{path}: no separator divides its first line {quoted(lines[0])}; pass separator=.")


def _count(line: str, separator: str) -> int:
    try:
        return len(_fields(line, separator))
    except csv.Error:  # a carriage return that is within quotes for another separator
        return 0


def _has_header(first: Sequence[str], asked: Mapping[str, Column]) -> bool:
    """A first line that has an asked name, or neither a number nor a date in the place of the rating, is a header."""
    names = [field.strip() for field in first]
    if any(isinstance(column, str) and column in names for column in asked.values()):
        return True
    rating = asked.get("rating")
    position = HEADERLESS.index("rating") if isinstance(rating, bool) or not isinstance(rating, int) else rating
    field = names[position] if 0 <= position < len(names) else names[-1]
    return not (field.lower() in {"", "true", "false"} or _is_number(field) or ISO.match(field))


def _batches(text: _Text, columns: Sequence[str], size: int | None) -> Iterator[pl.DataFrame]:
    chosen = [pl.col(f"field_{text.names.index(name)}") for name in columns]
    # Every field takes part in `blank`: Polars refuses a line with too many only when it reads them all. What a line
    # lacks Polars leaves empty, the last field first; only a count tells that from a field that is empty in the file.
    blank = _blank().alias("blank")
    doubtful = pl.last().is_null().alias("doubtful")
    refuse_strange(text.path, text.contents, text.separator)
    is_checked = False
    try:
        for batch in stream(_scan(text).select(*chosen, blank, doubtful), size):
            if not is_checked and batch["doubtful"].any():
                _refuse_ragged(text)
                is_checked = True
            rows = batch.filter(~pl.col("blank")) if batch["blank"].any() else batch
            rows = rows.drop("blank", "doubtful")
            yield rows.rename(dict(zip(rows.columns, columns, strict=True)))
    except (pl.exceptions.PolarsError, OSError) as error:
        _refuse_ragged(text)
        remedy = TO_UTF8 if "utf-8" in str(error) else "write or fetch it again"
        raise unreadable(text.path, str(error), remedy) from error


def _rows(text: _Text, columns: Sequence[str], *, blank: bool) -> pl.LazyFrame:
    """The rows that `_batches` would read, left in the file; `blank`: it may have lines without a field.

    The time of such a filter grows with the square of the number of columns: with 10,000 it would be hours.
    """
    chosen = [pl.col(f"field_{text.names.index(name)}").alias(name) for name in columns]
    rows = _scan(text).filter(~_blank()) if blank else _scan(text)
    return rows.select(chosen)


def _blank() -> pl.Expr:
    """Whether a line has no field."""
    return pl.all_horizontal(pl.all().is_null())


def _scan(text: _Text) -> pl.LazyFrame:
    separator, quote = text.separator, '"'
    source = io.BytesIO(text.contents) if isinstance(text.contents, bytes) else text.contents
    if len(separator.encode()) > 1:
        source = io.BytesIO(whole(text.contents).replace(separator.encode(), UNIT))
        separator, quote = UNIT.decode(), None
    schema = {f"field_{i}": pl.String for i in range(len(text.first))}
    return pl.scan_csv(
        source, has_header=False, skip_rows=text.skip, schema=schema, separator=separator, quote_char=quote,
        raise_if_empty=False, glob=False,
    )  # fmt: skip


def _refuse_cut_line(text: _Text) -> None:
    """A last line without its end and with too few fields was cut; one with quotes may be a field's tail."""
    tail = tail_of(text.contents)
    if b"\n" not in tail and len(tail) == SAMPLE:
        return
    last = tail.rsplit(b"\n", 1)[-1].decode(errors="replace")
    if last.strip() and '"' not in last and len(_fields(last, text.separator)) < len(text.first):
        raise FormatError(
            f"{text.path}: cut short: it ends in the middle of a line, {quoted(last[-60:])}, which has fewer than "
            f"{len(text.first)} fields; write or fetch the file again."
        )


def _refuse_ragged(text: _Text) -> None:
    refuse_ragged(text.path, text.contents, text.separator, len(text.first))


def _records(lines: Sequence[str], separator: str) -> list[list[str]]:
    """The fields of each record; a quoted field may go over several lines, and a blank line has none."""
    kept = [line.rstrip("\r") if line.strip() else "" for line in lines]
    if len(separator.encode()) > 1:
        return [line.split(separator) if line else [] for line in kept]
    return list(csv.reader((f"{line}\n" for line in kept), delimiter=separator))


def _fields(line: str, separator: str) -> list[str]:
    return _records([line], separator)[0]


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
