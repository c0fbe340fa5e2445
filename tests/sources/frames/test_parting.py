"""Rows on disk by ranges of users: every row is in one range, no range is large, and nothing is left."""

from __future__ import annotations

import errno
import shutil
import tempfile
from contextlib import ExitStack

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from openloop.errors import DuplicateError, InputError
from openloop.sources.frames import parting
from openloop.sources.frames.facts import repeats
from openloop.sources.frames.model_tables import refuse_repeats
from openloop.sources.frames.parting import WHOLE, by_user

LIMITS = {"PART": 300, "RUN": 150, "GROUP": 20, "JOINED": 50}


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    for name, value in LIMITS.items():
        monkeypatch.setattr(parting, name, value)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def pairs(n=1_000, users=60, seed=0, text=False):
    """Distinct pairs in no order."""
    cell = np.random.default_rng(seed).choice(users * 50, n, replace=False)
    frame = pl.DataFrame({"user": cell // 50 - 7, "item": cell % 50, "x": np.arange(float(n))})
    return frame.with_columns(pl.format("user {}", "user").alias("user")) if text else frame


def put(*frames, until, **more):
    tables, parts = by_user([frame.lazy() for frame in frames], until, **more)
    return [nw.from_native(table) for table in tables], parts


def rows_of(piece):
    return piece.collect().to_native()


@pytest.mark.parametrize("text", [False, True], ids=["integers", "text"])
def test_every_row_is_in_the_range_of_its_user(text, tmp_path):
    log, model = pairs(text=text), pairs(600, users=40, seed=1, text=text)
    with ExitStack() as until:
        tables, parts = put(log, model, until=until)
        assert len(parts.cuts) + 1 >= 1_600 / LIMITS["PART"]
        pieces = [[rows_of(piece) for piece in parts.pieces(table, "user")] for table in tables]
        for frame, own in zip((log, model), pieces, strict=True):
            assert pl.concat(own).sort("x").equals(frame.sort("x"))
        users = [set(a["user"]) | set(b["user"]) for a, b in zip(*pieces, strict=True)]
        assert sum(map(len, users)) == log["user"].n_unique()  # each in one range
        most = LIMITS["PART"] + max(log["user"].value_counts()["count"]) + max(model["user"].value_counts()["count"])
        assert max(a.height + b.height for a, b in zip(*pieces, strict=True)) <= most
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_few_rows_are_not_put_on_disk(tmp_path):
    frame = pairs(LIMITS["PART"]).lazy()
    with ExitStack() as until:
        tables, parts = by_user([frame], until)
        assert (tables, parts, list(tmp_path.iterdir())) == ([frame], WHOLE, [])


def test_a_user_with_more_rows_than_a_range_has_one_alone():
    rows = pl.DataFrame({"user": [5] * 900 + [1, 9], "item": range(902)})
    with ExitStack() as until:
        (table,), parts = put(rows, until=until)
        assert [rows_of(piece)["user"].unique().to_list() for piece in parts.pieces(table, "user")] == [[1, 5], [9]]


def test_rows_without_a_user_are_in_the_first_range():
    rows = pairs().with_columns(user=pl.when(pl.col("x") < 5).then(None).otherwise("user"))
    with ExitStack() as until:
        (table,), parts = put(rows, until=until)
        found = [rows_of(piece)["user"].null_count() for piece in parts.pieces(table, "user")]
        assert found == [5, *[0] * len(parts.cuts)]


def test_what_is_made_of_ranges_is_what_is_made_of_all_rows():
    log, model = pairs(), pairs(2_000, seed=1).rename({"x": "s"})
    seen, told = [], []

    def make(frame, scores):
        seen.append(rows_of(frame).height + rows_of(scores).height)
        joined = frame.join(scores, on=["u", "i"], how="left")
        return joined.with_columns(nw.col("s").rank("min").over("u").alias("place"))

    def renamed(frame):
        return frame.select(nw.col("user").alias("u"), nw.col("item").alias("i"), *set(frame.columns) & {"x", "s"})

    with ExitStack() as until:
        tables, parts = put(log, model, until=until, step=lambda what, _done: told.append(what))
        found = rows_of(parts.each(make, *map(renamed, tables))).sort("x")
        assert max(seen) <= LIMITS["PART"] + 100 < sum(seen) == 3_000
        assert found.equals(
            rows_of(WHOLE.each(make, *(renamed(nw.from_native(f.lazy())) for f in (log, model)))).sort("x")
        )
        again = parts.each(lambda frame: frame.filter(nw.col("x") < 0), nw.from_native(found.lazy()))
        assert again.collect_schema() == nw.from_native(found).schema  # where no range has a row
    assert told[-1] == f"joining, part {len(parts.cuts) + 1} of {len(parts.cuts) + 1}"


@pytest.mark.parametrize("at", [0, 149, 600], ids=["in a run", "in the next", "in another"])
def test_a_pair_that_is_there_twice_is_found_wherever_its_rows_are(at):
    rows = pairs()
    twice = pl.concat([rows, rows[at : at + 1]]).select(u="user", i="item")
    for frame, number in ((rows.select(u="user", i="item"), 0), (twice, 1)):
        with ExitStack() as until:
            (table,), parts = put(frame, until=until, user="u")
            assert repeats(table, parts=parts) == number
            if number:
                with pytest.raises(DuplicateError) as whole:
                    refuse_repeats("the log", nw.from_native(frame.lazy()))
                with pytest.raises(DuplicateError) as parted:
                    refuse_repeats("the log", table, parts=parts)
                assert str(parted.value) == str(whole.value)


def test_a_disk_that_is_too_small_is_refused_before_the_work(monkeypatch, tmp_path):
    usage = shutil.disk_usage(tmp_path)
    for free, refused in ((4_000, False), (3_999, True)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _place, free=free: usage._replace(free=free))
        with ExitStack() as until:
            if not refused:
                assert put(pairs(1_000), until=until)[1] is not WHOLE
                continue
            with pytest.raises(
                InputError, match=r"1,000 rows take at least 3.91 KiB there, and 3.91 KiB are free.*TMPDIR"
            ):
                put(pairs(1_000), until=until)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_an_error_of_the_folder_and_leaves_nothing(number, monkeypatch, tmp_path):
    def refuse(*_given, **_more):
        raise pl.exceptions.ComputeError(f"no more (os error {number})")

    for method, of in (("sink_parquet", pl.LazyFrame), ("write_parquet", pl.DataFrame)):
        with monkeypatch.context() as broken, ExitStack() as until:
            broken.setattr(of, method, refuse)
            with pytest.raises(OSError, match="openloop-rows") as error:
                put(pairs(), until=until)
        assert error.value.errno == number
        assert list(tmp_path.iterdir()) == []
