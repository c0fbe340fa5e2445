"""A log of events, two lists of recommendations and one command: split by time, new pairs scored, cold rows apart."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.commands.audit.inputs import gather
from openloop.commands.audit.request import AuditRequest
from openloop.errors import DuplicateError, InputError
from tests.cli.running import run
from tests.facts import facts

U, I, K = 60, 25, 10


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    rng = np.random.default_rng(0)
    taste = rng.normal(size=(U, I))
    user, item = np.nonzero(rng.random((U, I)) < 0.6 / (1 + np.exp(-2 * taste)))
    time = rng.integers(1_700_000_000, 1_710_000_000, len(user))
    time[user < 4] = rng.integers(1_709_000_000, 1_710_000_000, (user < 4).sum())  # new users
    events = pl.DataFrame({"user": user, "item": item, "timestamp": time})
    again = events.filter(pl.col("user") > 3).sample(40, seed=1).with_columns(pl.col("timestamp") + 9_000_000)
    events = pl.concat([events, again, events.head(5)]).sample(fraction=1, shuffle=True, seed=2)
    events.write_parquet(folder / "events.parquet")
    events.write_csv(folder / "events.csv", include_header=False)
    train, _ = ol.split(events, 0.3, time="timestamp", duplicates="first")
    for n, name in enumerate("ab"):
        scores = taste + (0.3 + 2 * n) * rng.normal(size=taste.shape)
        pl.DataFrame({
            "user": np.repeat(np.arange(U), I), "item": np.tile(np.arange(I), U), "score": scores.ravel()
        }).write_parquet(folder / f"{name}_all.parquet")  # fmt: skip
        scores[train.user, train.item] = -np.inf
        best = np.argsort(-scores, axis=1)[:, :K]
        pl.DataFrame({
            "user": np.repeat(np.arange(U), K), "item": best.ravel(), "rank": np.tile(np.arange(1, K + 1), U)
        }).write_parquet(folder / f"{name}.parquet")  # fmt: skip
    return folder


def request(files, log="events.parquet", models=("a.parquet", "b.parquet"), **options):
    named = tuple((name[0], files / name) for name in models)
    told = {"time": "timestamp", "test": 0.3, "duplicates": "first", "metrics": ("recall@5",)}
    return AuditRequest(log=files / log, models=named, **told | options)


def test_the_parts_are_those_of_split(files):
    found = gather(request(files))
    train, test = ol.split(files / "events.parquet", 0.3, time="timestamp", duplicates="first")
    np.testing.assert_array_equal(found.log.cell, test.cell)
    np.testing.assert_array_equal(found.asked.exclude.cell, train.cell)
    np.testing.assert_array_equal(found.log.rows_of_items, test.rows_of_items)
    assert found.propensities is None
    assert {*train.notes, *test.notes} <= {*found.notes}


def test_one_command_gives_report_and_json(files, tmp_path):
    models = [f"{name}={files / name}.parquet" for name in "ab"]
    told = ["--time", "timestamp", "--test", "0.3", "--duplicates", "first", "--cold", "report", "--metric", "recall@5"]
    out = ["--report", tmp_path / "r.html", "--json", tmp_path / "r.json"]
    done = run("audit", files / "events.parquet", *models, *told, *out)
    assert done.exit_code in (0, 3)
    assert "split by time" in done.stdout
    assert "2024-" in done.stdout  # the cut
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["cold"]["users"] == 4
    assert {m["model"] for m in content["cold"]["comparison"]["estimates"]} == {"a", "b"}
    page = (tmp_path / "r.html").read_text()
    assert "Users and items without training rows" in page
    assert ("What would settle it" in page) == bool(content["settling"])
    scored = [f"{name}={files / name}_all.parquet" for name in "ab"]  # lists are of candidates after another cut
    dated = run("audit", files / "events.parquet", *scored, *told[:3], "2024-02-20", *told[4:])
    assert dated.exit_code in (0, 3)
    assert "before 2024-02-20" in " ".join(dated.stdout.split())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"exclude": "train.csv"}, ("--test 0.3", "--exclude train.csv")),
        ({"split": "time"}, ("--test 0.3", "--split time")),
        ({"time": None}, ("--test 0.3", "--time")),
        ({"test": None, "repeats": "keep"}, ("--repeats keep", "--test")),
        ({"test": None, "cold": "drop"}, ("--cold drop", "--test", "--exclude")),
        ({"cold": "hot"}, ("--cold 'hot'",)),
        ({"repeats": "all"}, ("--repeats 'all'",)),
    ],
)
def test_what_cannot_work_together_is_refused(files, options, told):
    with pytest.raises(InputError, match=facts(*told)):
        request(files, **options)


def test_repeats_inside_a_part_are_refused_with_the_option_that_merges_them(files):
    with pytest.raises(DuplicateError, match=facts("duplicates='first'", "'count'")):
        gather(request(files, duplicates="error"))
    done = run("audit", files / "events.parquet", f"a={files}/a.parquet", f"b={files}/b.parquet", "--time", "timestamp",
               "--test", "0.3")  # fmt: skip
    assert done.exit_code == 2
    assert "--duplicates first" in done.stderr
