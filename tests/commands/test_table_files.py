"""Tables to files: every format holds the same rows, blocks join, and nothing is overwritten by mistake."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.commands import table_files as writing
from openloop.commands.table_files import (
    WRITERS,
    check_extension,
    holdable,
    in_input_order,
    log_line,
    open_to_extend,
    pairs_of,
    refuse_overwriting,
    write,
    write_blocks,
)
from openloop.data.frames import open_frame
from openloop.data.simulate import movie_lovers
from openloop.errors import ColumnError, FormatError, InputError
from tests.facts import facts

WORLD = movie_lovers(users=24, items=18)
ROWS = pl.DataFrame({"user": [3, 1, 2], "name": ["a,b", None, 'say "x"'], "score": [0.1, -2.5, 1e-9]})


def read_back(path) -> pl.DataFrame:
    match path.suffix:
        case ".csv" | ".tsv":
            return pl.read_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
        case ".parquet" | ".pq":
            return pl.read_parquet(path)
    return pl.read_ndjson(path)


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("part", [1, 2, 100])
def test_blocks_are_the_table_in_every_format(tmp_path, monkeypatch, kind, part):
    monkeypatch.setattr(writing, "PART", part)
    write(tmp_path / f"whole{kind}", ROWS)
    write_blocks(tmp_path / f"blocks{kind}", (ROWS[k : k + 1] for k in range(3)))
    for name in ("whole", "blocks"):
        assert read_back(tmp_path / f"{name}{kind}").equals(ROWS, null_equal=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"blocks{kind}", f"whole{kind}"]


@pytest.mark.parametrize("kind", WRITERS)
def test_blocks_that_stop_half_way_leave_what_was_there(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(writing, "PART", 1)
    out = tmp_path / f"out{kind}"
    out.write_text("precious")

    def blocks():
        yield ROWS
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_blocks(out, blocks())
    assert out.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]


def test_blocks_are_held_one_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "PART", 3)
    alive = []

    def blocks():
        for _ in range(5):
            written = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
            alive.append(written)
            yield ROWS

    write_blocks(tmp_path / "out.parquet", blocks())
    assert alive == sorted(alive)
    assert alive[-1] > alive[1] > 0  # earlier blocks are on the disk before the last is asked for
    assert len(pl.read_parquet(tmp_path / "out.parquet")) == 15


def test_a_log_is_told_in_a_line():
    log = WORLD.observe(3)
    told = facts("log.csv", f"{len(log)} rows", "24 users × 18 items", f"{len(log) / 432:.2%}")
    assert re.search(told, log_line("log.csv", log))


def test_values_come_back_in_input_order():
    rng = np.random.default_rng(0)
    log = WORLD.observe(1)
    mix = rng.permutation(len(log))
    given = rng.random(len(log))
    frame = pl.DataFrame({"user": log.user[mix], "item": log.item[mix], "rating": log.rating[mix]})
    mixed = ol.read(frame, users=24, items=18)
    pair = pairs_of(open_frame(frame), {"user": "user", "item": "item"}, mixed)
    np.testing.assert_array_equal(in_input_order(mixed.align(given), pair), given)


def test_rows_of_one_pair_have_one_value_and_rows_left_out_none():
    frame = pl.DataFrame({"user": ["b", "a", "b", "a"], "item": [1, 1, 1, 2], "minutes": [40, 50, 60, 3]})
    log = ol.read(frame, rating="minutes", positive=30, duplicates="last")
    pair = pairs_of(open_frame(frame), {"user": "user", "item": "item"}, log)
    assert pair.tolist() == [1, 0, 1, -1]
    np.testing.assert_array_equal(in_input_order(np.array([0.5, 0.25]), pair), [0.25, 0.5, 0.25, np.nan])


# -- a table that comes back ---------------------------------------------------------------------------------


def test_fields_become_numbers_only_where_nothing_is_lost(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c,d\n1,007,1.5,x\n20,8,2.25,\n")
    table = open_to_extend(tmp_path / "t.csv", {}, "new")
    rows = table.fetch(table.columns)
    assert holdable(table, rows, ".csv").dtypes == [pl.String] * 4
    assert holdable(table, rows, ".parquet").dtypes == [pl.Int64, pl.String, pl.Float64, pl.String]


def test_a_name_that_is_taken_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("user,item,score\n1,2,3\n")
    with pytest.raises(ColumnError, match=facts("t.csv", "'score'", "--column")):
        open_to_extend(tmp_path / "t.csv", {}, "score")


def test_what_a_format_cannot_hold_is_refused(tmp_path):
    pl.DataFrame({"a": [[1]], "b": [b"x"]}).write_parquet(tmp_path / "t.parquet")
    table = open_to_extend(tmp_path / "t.parquet", {}, "new")
    with pytest.raises(FormatError, match=facts(".csv", "'a'", "List(Int64)")):
        holdable(table, table.fetch(["a"]), ".csv")
    with pytest.raises(FormatError, match=facts(".jsonl", "'b'", "Binary", ".parquet")):
        holdable(table, table.fetch(["b"]), ".jsonl")


# -- refusals ------------------------------------------------------------------------------------------------


def test_extensions_are_checked():
    check_extension("a/B.CSV")
    check_extension("m.safetensors", [".safetensors"])
    with pytest.raises(FormatError, match=facts("--out", "'a.xls'", "'.xls'", "'.csv'")):
        check_extension("a.xls")
    with pytest.raises(FormatError, match=facts("--out", "'m.pkl'", "'.pkl'", "'.safetensors'")):
        check_extension("m.pkl", [".safetensors"])


def test_two_results_do_not_share_a_file(tmp_path):
    refuse_overwriting([tmp_path / "a", tmp_path / "b"], [tmp_path / "c"])
    with pytest.raises(InputError, match=facts(tmp_path / "a", "overwritten", "written")):
        refuse_overwriting([tmp_path / "a", tmp_path / "x" / ".." / "a"], [])


# -- formulas ------------------------------------------------------------------------------------------------------

FORMULAS = ["=1+1", "+cmd|'/c calc'!A1", "-2+3", "@sum(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", '=HYPERLINK("x")']
PLAIN = ["a=b", "1-2", "-1.5", "+7", "-3e-5", "-inf", "", None, "'=1"]


@pytest.mark.parametrize("kind", [".csv", ".tsv"])
def test_no_field_of_a_safe_file_is_a_formula(tmp_path, kind):
    fields = [*FORMULAS, *PLAIN]
    rows = pl.DataFrame({"=name": fields, "score": [-0.5] * len(fields)})
    write_blocks(tmp_path / f"x{kind}", [rows[:3], rows[3:]], safe_csv=True)
    back = pl.read_csv(tmp_path / f"x{kind}", separator="," if kind == ".csv" else "\t", infer_schema=False)
    assert back.columns == ["'=name", "score"]
    assert back["'=name"].to_list() == [*(f"'{field}" for field in FORMULAS), *PLAIN]
    assert set(back["score"]) == {"-0.5"}  # a number is no text


def test_a_plain_file_keeps_every_field(tmp_path):
    rows = pl.DataFrame({"id": [*FORMULAS, *PLAIN]})
    write(tmp_path / "x.csv", rows)
    assert pl.read_csv(tmp_path / "x.csv").equals(rows)


def test_what_safe_csv_cannot_do_is_refused(tmp_path):
    with pytest.raises(ColumnError, match=facts("--safe-csv", '"\'=a"', "rename")):
        write(tmp_path / "x.csv", pl.DataFrame({"=a": [1], "'=a": [2]}), safe_csv=True)
    with pytest.raises(InputError, match=facts("--safe-csv", ".csv", ".tsv", "x.parquet")):
        check_extension("x.parquet", safe_csv=True)
    assert list(tmp_path.iterdir()) == []
