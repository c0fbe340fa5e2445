"""Stores and shelves: where rows lie, and how they came there, changes nothing of what is read."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openloop.blocks import store as module
from openloop.blocks.store import BUCKETS, Budget, Shelf, Store, bounds, bucket_of
from openloop.errors import InputError

NOTHING, PLENTY = 0, 10**9
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=24)


# -- buckets -----------------------------------------------------------------------------------------------------


def mixed(word):
    """The finaliser of splitmix64."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def bucket(value):
    """The definition, on Python's integers."""
    word = 0xCBF29CE484222325
    for byte in str(value).encode():
        word = (word ^ byte) * 0x100000001B3 % 2**64
    try:
        number = int(value)
    except ValueError:
        number = None
    is_integer = number is not None and str(number) == str(value) and -(2**63) <= number < 2**63
    return mixed(number % 2**64 if is_integer else word) >> 56


@given(st.lists(INT64, min_size=1))
def test_an_integer_and_its_text_have_one_bucket(ids):
    expected = [bucket(number) for number in ids]
    assert bucket_of(pl.Series(ids, dtype=pl.Int64)).tolist() == expected
    assert bucket_of(pl.Series([str(number) for number in ids])).tolist() == expected


@given(st.lists(TEXT | st.from_regex(r"-?0?[0-9]{1,20}", fullmatch=True), min_size=1))
def test_other_text_is_hashed_byte_by_byte(ids):
    assert bucket_of(pl.Series(ids, dtype=pl.String)).tolist() == [bucket(text) for text in ids]


NOT_PYTHONS = ["007", "-0", "+7", "7.0", " 7", "", "-", "9223372036854775808", "-9223372036854775809", "٣"]


@pytest.mark.parametrize("text", NOT_PYTHONS)
def test_what_python_does_not_write_for_an_integer_is_text(text):
    assert bucket_of(pl.Series([text])).tolist() == [bucket(text)]


def test_part_of_a_column_has_the_same_buckets():
    ids = pl.Series([f"ü{number}" for number in range(100)])
    assert bucket_of(ids[20:50]).tolist() == bucket_of(ids)[20:50].tolist()
    assert bucket_of(ids[20:50].append(ids[:5])).tolist() == [*bucket_of(ids)[20:50], *bucket_of(ids)[:5]]
    assert bucket_of(ids.clear()).tolist() == []


@pytest.mark.parametrize("step", [1, 256, 2**32])
def test_buckets_are_even(step):
    """Of 256 · 400 ids a bucket has 400 on average, with a standard deviation of 20."""
    counts = np.bincount(bucket_of(pl.Series(np.arange(BUCKETS * 400) * step)), minlength=BUCKETS)
    assert abs(counts - 400).max() < 6 * 20


# -- stores ------------------------------------------------------------------------------------------------------


def stored(batches, budget):
    store = Store(Budget(budget))
    for batch in batches:
        store.add(batch)
    store.finish()
    return store


def by_bucket(frame):
    """What a store must give, by one stable sort."""
    return frame[np.argsort(bucket_of(frame["user"]), kind="stable")]


@settings(max_examples=50)
@given(st.data(), st.sampled_from([NOTHING, 3000, PLENTY]), st.booleans())
def test_neither_batches_nor_spilling_change_what_is_read(data, budget, is_text):
    ids = data.draw(st.lists(st.none() | (TEXT if is_text else INT64), max_size=60))
    frame = pl.DataFrame({"user": pl.Series(ids, dtype=pl.String if is_text else pl.Int64)}).with_row_index("row")
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(ids)), max_size=4))), len(ids)]
    first, last = sorted(data.draw(st.tuples(st.integers(0, BUCKETS), st.integers(0, BUCKETS))))
    numbers = bucket_of(frame["user"])
    with closing(stored((frame[a:b] for a, b in pairwise(cuts)), budget)) as store:
        assert store.rows.tolist() == np.bincount(numbers, minlength=BUCKETS).tolist()
        assert store.frame(0, BUCKETS).equals(by_bucket(frame))
        assert store.frame(first, last).equals(by_bucket(frame.filter((numbers >= first) & (numbers < last))))


@pytest.mark.parametrize("budget", [NOTHING, PLENTY])
def test_every_type_is_read_as_it_was_added(budget):
    frame = pl.DataFrame({
        "user": [1, None, 3], "score": [0.5, float("nan"), None], "flag": [True, None, False],
        "text": ["é" * 40, None, ""], "level": pl.Series(["b", "a", None], dtype=pl.Enum(["b", "a"])),
        "kind": pl.Series(["b", "a", None], dtype=pl.Categorical), "count": pl.Series([1, 2, 3], dtype=pl.UInt16),
        "time": pl.Series([0, 1, None]).cast(pl.Datetime("ns", "UTC")),
    })  # fmt: skip
    store = stored([frame, frame], budget)
    assert store.frame(0, BUCKETS).equals(by_bucket(pl.concat([frame, frame])))
    assert store.frame(0, BUCKETS).schema == frame.schema
    store.close()


@pytest.mark.parametrize("budget", [NOTHING, PLENTY])
def test_no_rows_have_their_columns_and_one_user_may_have_all(budget):
    none = stored([pl.DataFrame(schema={"user": pl.String, "score": pl.Float32})], budget)
    assert none.frame(0, BUCKETS).schema == {"user": pl.String, "score": pl.Float32}
    one = stored([pl.DataFrame({"user": [7] * 1000, "row": range(1000)})] * 3, budget)
    assert one.rows.max() == 3000
    assert one.frame(0, BUCKETS)["row"].to_list() == [*range(1000)] * 3
    none.close()
    one.close()


def test_what_is_released_is_in_the_budget_again():
    budget = Budget(PLENTY)
    store = Store(budget)
    store.add(pl.DataFrame({"user": np.arange(10_000)}))
    assert not budget.reserve(PLENTY)
    store.release(0, 100)
    assert store.frame(0, 100).is_empty()
    store.close()
    assert budget.reserve(PLENTY)


def test_a_store_that_spilled_keeps_nothing_in_memory():
    budget = Budget(100_000)
    store = Store(budget)
    for _ in range(4):
        store.add(pl.DataFrame({"user": np.arange(5000)}))
    store.finish()
    assert budget.reserve(100_000)
    assert store.frame(0, BUCKETS).height == 20_000
    store.close()


# -- shelves -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [NOTHING, 2000, PLENTY])
def test_threads_read_from_a_shelf_what_was_put_there(budget):
    shelf = Shelf(Budget(budget))
    frames = {key: pl.DataFrame({"x": np.arange(key), "text": [f"ß{key}"] * key}) for key in range(40)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(shelf.put, frames, frames.values()))
        assert all(pool.map(lambda key: shelf.get(key).equals(frames[key]), list(frames) * 5))
    shelf.put(3, frames[30])
    assert shelf.pop(3).equals(frames[30])
    with pytest.raises(KeyError):
        shelf.get(3)
    shelf.close()


def test_a_closed_shelf_gives_its_memory_back():
    budget = Budget(PLENTY)
    shelf = Shelf(budget)
    for key in (1, 1, 2):
        shelf.put(key, pl.DataFrame({"x": np.arange(100)}))
    shelf.pop(2)
    shelf.close()
    assert budget.reserve(PLENTY)


# -- memory and disk ---------------------------------------------------------------------------------------------


def test_a_budget_is_half_of_the_memory_that_is_free(monkeypatch):
    monkeypatch.setattr(module, "free_memory", lambda: 1000.0)
    budget = Budget()
    assert budget.reserve(500)
    assert not budget.reserve(1)


def test_where_the_system_tells_nothing_a_budget_is_finite(monkeypatch):
    monkeypatch.setattr(module, "free_memory", lambda: float("inf"))
    monkeypatch.setattr(module, "total_memory", lambda: None)
    assert not Budget().reserve(2**40)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.skipif(os.name != "posix", reason="an open file has a name on Windows")
def test_what_is_spilled_has_no_name(folder):
    store = stored([pl.DataFrame({"user": range(100)})], NOTHING)
    assert not list(folder.iterdir())
    store.close()


def test_rows_for_which_the_disk_has_no_room_are_refused(folder, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 90, 10))
    with pytest.raises(InputError, match=rf"{folder}.*free some space, or set \$TMPDIR"):
        stored([pl.DataFrame({"user": range(100)})], NOTHING)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")  # noqa: PTH110
def test_a_disk_that_fills_is_named(folder, monkeypatch):
    full = open("/dev/full", "r+b", buffering=0)  # noqa: PTH123, SIM115 (the store closes it)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)
    shelf = Shelf(Budget(NOTHING))
    with pytest.raises(OSError, match="No space left") as error:
        shelf.put(0, pl.DataFrame({"x": [1]}))
    assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(folder))
    shelf.close()


# -- blocks ------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**8), st.integers(0, BUCKETS - 1))
def test_blocks_depend_on_the_number_of_rows_alone(n, heavy):
    even, skewed = np.full(BUCKETS, n // BUCKETS), np.zeros(BUCKETS, np.int64)
    skewed[heavy] = even.sum()
    blocks = bounds(even)
    assert bounds(skewed) == blocks
    assert [bucket for first, last in blocks for bucket in range(first, last)] == list(range(BUCKETS))
    assert len(blocks) == BUCKETS or even.sum() <= 100_000 * len(blocks)
    assert len(blocks) == 1 or even.sum() > 50_000 * len(blocks)
