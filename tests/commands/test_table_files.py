"""Tables to files: every format holds the same rows, blocks join, and nothing is overwritten by mistake."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.commands import table_files as writing
from openloop.commands.table_files import (
    WRITERS,
    in_input_order,
    pairs_of,
    refuse_overwriting,
    write,
    write_blocks,
)
from openloop.data.frames import open_frame
from openloop.data.simulate import movie_lovers
from openloop.errors import InputError
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


# -- refusals ------------------------------------------------------------------------------------------------


def test_two_results_do_not_share_a_file(tmp_path):
    refuse_overwriting([tmp_path / "a", tmp_path / "b"], [tmp_path / "c"])
    with pytest.raises(InputError, match=facts(tmp_path / "a", "overwritten", "written")):
        refuse_overwriting([tmp_path / "a", tmp_path / "x" / ".." / "a"], [])
