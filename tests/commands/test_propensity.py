"""A log comes back with its propensities: what is written, in which order and format, and what is refused."""

from __future__ import annotations

import os

import numpy as np
import polars as pl
import pytest

from openloop.commands.propensity import PropensityRequest, estimate
from openloop.data.simulate import movie_lovers
from openloop.errors import ColumnError, FormatError, InputError, OpenloopError
from tests.facts import facts

WORLD = movie_lovers(users=24, items=18)


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """A log in no order, with columns that a careless program would change."""
    log = WORLD.observe(3)
    n = len(log)
    frame = pl.DataFrame({
        "when": np.arange(n) + 881250949,
        "uid": log.user + 100,
        "mid": [f"m{i:02}" for i in log.item],
        "stars": log.rating,
        "code": [f"{k:04}" for k in range(n)],
        "said": [[None, "good, really", 'he said "no"', " padded ", "null"][k % 5] for k in range(n)],
    })  # fmt: skip
    return frame.sample(fraction=1, shuffle=True, seed=1)


NAMED = {"user": "uid", "item": "mid", "rating": "stars"}


@pytest.fixture
def csv(rows, tmp_path):
    path = tmp_path / "log.csv"
    rows.write_csv(path)
    return path


def run(log, out, **options):
    return estimate(PropensityRequest(log=log, out=out, **({"model": "popularity"} | options)))


# -- what is written -----------------------------------------------------------------------------------------


def test_repeated_rows_of_a_pair_have_its_propensity(rows, csv, tmp_path):
    twice = tmp_path / "twice.parquet"
    pl.concat([rows, rows.head(40)]).write_parquet(twice)
    with pytest.raises(OpenloopError, match=facts("duplicates='first'")):
        run(twice, tmp_path / "no.parquet", **NAMED)
    run(twice, tmp_path / "out.parquet", **NAMED, duplicates="first", time="when")
    run(csv, tmp_path / "once.parquet", **NAMED)
    found, once = (
        pl.read_parquet(tmp_path / name)["propensity"].to_numpy() for name in ("out.parquet", "once.parquet")
    )
    np.testing.assert_allclose(found[: len(rows)], once)
    np.testing.assert_allclose(found[len(rows) :], once[:40])


@pytest.mark.parametrize("out", ["out.parquet", "out.pq", "out.jsonl", "out.ndjson"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_formats_with_types_keep_every_value(rows, tmp_path, kind, out):
    path = tmp_path / f"log.{kind}"
    {"csv": rows.write_csv, "parquet": rows.write_parquet, "jsonl": rows.write_ndjson}[kind](path)
    run(path, tmp_path / out, **NAMED)
    found = pl.read_ndjson(tmp_path / out) if "js" in out else pl.read_parquet(tmp_path / out)
    wanted = rows.with_columns(pl.col("stars").cast(found["stars"].dtype))
    assert found.columns == [*rows.columns, "propensity"]
    assert found["code"].dtype == pl.String  # "0007" is not 7
    assert found["uid"].dtype.is_integer()
    assert found["stars"].dtype.is_float()
    assert found.drop("propensity").equals(wanted.cast({"uid": found["uid"].dtype}), null_equal=True)


# -- what is refused before the work -------------------------------------------------------------------------


def test_a_log_is_not_overwritten_under_any_of_its_names(csv, tmp_path):
    before = csv.read_bytes()
    (tmp_path / "link.csv").symlink_to(csv)
    os.link(csv, tmp_path / "hard.csv")
    for out in (csv, tmp_path / "link.csv", tmp_path / "hard.csv", tmp_path / "." / "log.csv"):
        with pytest.raises(InputError, match=facts(out, csv, "overwritten", "read")):
            run(csv, out, **NAMED)
    assert csv.read_bytes() == before


@pytest.mark.parametrize(
    ("values", "out", "told"),
    [
        pytest.param([["a"]], "out.csv", facts(".csv", "'odd'", "List(String)", ".parquet", ".jsonl"), id="csv, list"),
        pytest.param([b"a"], "out.tsv", facts(".tsv", "'odd'", "Binary", ".parquet"), id="tsv, bytes"),
        pytest.param([b"a"], "out.jsonl", facts(".jsonl", "'odd'", "Binary", ".parquet"), id="jsonl, bytes"),
    ],
)
def test_columns_that_the_format_cannot_hold_are_named(rows, tmp_path, values, out, told):
    odd = pl.Series("odd", values * len(rows))
    rows.with_columns(odd).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(FormatError, match=told):
        run(tmp_path / "log.parquet", tmp_path / out, **NAMED)
    run(tmp_path / "log.parquet", tmp_path / "out.parquet", **NAMED)
    assert pl.read_parquet(tmp_path / "out.parquet")["odd"].to_list() == odd.to_list()


# -- failures ------------------------------------------------------------------------------------------------


def test_positions_that_would_swap_the_names_of_a_log_without_header_are_refused(tmp_path):
    (tmp_path / "log.csv").write_text("7,1,5\n7,2,3\n8,1,4\n9,2,1\n")
    with pytest.raises(ColumnError, match=facts("column 1", "--user", "'item'", "header")):
        run(tmp_path / "log.csv", tmp_path / "out.csv", user=1, item=0)
    assert not (tmp_path / "out.csv").exists()


def test_the_check_of_clicks_says_that_p_is_no_exposure(rows, tmp_path):
    rows.select("uid", "mid").write_csv(tmp_path / "clicks.csv")
    done = run(tmp_path / "clicks.csv", tmp_path / "out.csv", user="uid", item="mid")
    assert done.log.positives
    assert any("positives" in flag for flag in done.check().flags)
