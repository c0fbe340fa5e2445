"""A saved model is asked: pairs come back with scores, users get their best items, ids are those of the log."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop import learners
from openloop.commands import predict as predicting
from openloop.commands.predict import PredictRequest, predict
from openloop.data.simulate import movie_lovers
from openloop.errors import (
    UndefinedError,
)
from tests.facts import facts

WORLD = movie_lovers(users=24, items=18)
IDS = {"numbers": (lambda u: u * 7 + 100, lambda i: i + 5), "text": ("u{:02}".format, "m{:02}".format)}


def named(kind, side, codes):
    return [IDS[kind][side](code) for code in codes.tolist()]


@pytest.fixture(scope="module", params=IDS)
def told(request, tmp_path_factory):
    """Kind of ids, folder, log and the saved model of it."""
    kind, folder, seen = request.param, tmp_path_factory.mktemp("predicting"), WORLD.observe(3)
    log = pl.DataFrame({
        "user": named(kind, 0, seen.user), "item": named(kind, 1, seen.item), "rating": seen.rating,
    })  # fmt: skip
    log.write_csv(folder / "log.csv")
    model = learners.PureSVD(factors=3).fit(ol.read(folder / "log.csv"))
    model.save(folder / "m.safetensors")
    return kind, folder, log, model


def ask(told, out, **options):
    return predict(PredictRequest(model=told[1] / "m.safetensors", out=out, **options))


def read_back(path) -> pl.DataFrame:
    match path.suffix:
        case ".csv" | ".tsv":
            return pl.read_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
        case ".parquet":
            return pl.read_parquet(path)
    return pl.read_ndjson(path)


# -- pairs ---------------------------------------------------------------------------------------------------


@pytest.fixture
def pairs(told, tmp_path):
    """Pairs in no order, one of them twice, with other columns."""
    kind, _, log, _ = told
    rows = log.sample(30, shuffle=True, seed=2)
    rows = pl.concat([rows, rows.head(1)])
    return rows.select("item", code=pl.Series([f"{k:03}" for k in range(31)]), who="user"), kind


@pytest.mark.parametrize("out", ["out.csv", "out.tsv", "out.parquet", "out.jsonl"])
@pytest.mark.parametrize("given", ["pairs.csv", "pairs.tsv", "pairs.parquet", "pairs.jsonl"])
def test_pairs_come_back_with_their_scores(told, pairs, tmp_path, given, out):
    rows, kind = pairs
    writers = {"csv": rows.write_csv, "parquet": rows.write_parquet, "jsonl": rows.write_ndjson}
    writers["tsv"] = lambda path: rows.write_csv(path, separator="\t")
    writers[given.partition(".")[2]](tmp_path / given)
    done = ask(told, tmp_path / out, pairs=tmp_path / given, user="who")
    found, model = read_back(tmp_path / out), told[3]
    assert found.columns == ["item", "code", "who", "score"]
    if "csv" not in out and "tsv" not in out:
        assert found["code"].dtype == pl.String
        assert found.drop("score").equals(rows)
    assert found["who"].to_list() == rows["who"].to_list()
    assert found["item"].to_list() == rows["item"].to_list()
    codes = model.users_.codes(np.array(rows["who"].to_list(), object if kind == "text" else None))
    items = model.items_.codes(np.array(rows["item"].to_list(), object if kind == "text" else None))
    np.testing.assert_allclose(found["score"], model.predict(codes, items), rtol=1e-6 if "jsonl" in out else 0)
    assert (done.rows, done.unknown, done.kind, done.users, done.items) == (31, 0, "PureSVD", 24, 18)


def strange_pairs(told, path):
    """Every second pair has an unknown user or item."""
    kind, _, log, _ = told
    known = log.head(6).select("user", "item")
    other = {"numbers": (9999, -1), "text": ("nobody", "nothing")}[kind]
    users, items = known["user"].to_list(), known["item"].to_list()
    users[1], items[3], users[5], items[5] = other[0], other[1], *other
    pl.DataFrame({"user": users, "item": items, "n": range(6)}).write_csv(path)
    return other


def test_unknown_ids_are_dropped_or_without_a_score(told, tmp_path):
    strange_pairs(told, tmp_path / "pairs.csv")
    for out in ("out.csv", "out.parquet", "out.jsonl"):
        done = ask(told, tmp_path / out, pairs=tmp_path / "pairs.csv", unknown="drop")
        dropped = read_back(tmp_path / out)
        assert dropped["n"].to_list() == [0, 2, 4]
        assert (done.rows, done.unknown) == (3, 3)
        assert re.search(facts("3 rows", "ids"), done.summary())
        ask(told, tmp_path / out, pairs=tmp_path / "pairs.csv", unknown="null")
        kept = read_back(tmp_path / out)
        assert kept["n"].to_list() == list(range(6))
        assert kept["score"].is_null().to_list() == [False, True] * 3
        assert kept["score"].drop_nulls().to_list() == dropped["score"].to_list()


# -- the best items ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["top.csv", "top.parquet", "top.jsonl", "top.tsv"])
@pytest.mark.parametrize("block", [1, 40, 10**6])
def test_the_best_items_do_not_depend_on_blocks_or_formats(told, tmp_path, monkeypatch, out, block):
    monkeypatch.setattr(predicting, "BLOCK", block)
    kind, _, _, model = told
    done = ask(told, tmp_path / out, top=4)
    found, scores = read_back(tmp_path / out), model.scores(np.arange(24))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :4]
    assert found.columns == ["user", "item", "score", "rank"]
    assert found["user"].to_list() == np.repeat(model.users_.ids, 4).tolist()
    assert found["item"].to_list() == model.items_.ids[order.ravel()].tolist()
    assert found["rank"].to_list() == [1, 2, 3, 4] * 24
    np.testing.assert_allclose(found["score"], np.take_along_axis(scores, order, 1).ravel(), rtol=1e-6)
    assert found["user"].dtype == (pl.String if kind == "text" else pl.Int64)
    assert (done.rows, done.asked, done.short) == (96, 24, 0)


def test_what_a_log_holds_is_left_out(told, tmp_path):
    _, folder, log, model = told
    done = ask(told, tmp_path / "top.parquet", top=18, exclude=folder / "log.csv")
    found = pl.read_parquet(tmp_path / "top.parquet")
    seen = set(log.select("user", "item").rows())
    assert (
        set(found.select("user", "item").rows())
        == {(u, i) for u in model.users_.ids.tolist() for i in model.items_.ids.tolist()} - seen
    )
    assert (done.excluded, done.rows, done.short) == (len(seen), 24 * 18 - len(seen), 24)
    assert re.search(facts("24 users", "18 items", "fewer"), done.summary())
    ranks = found.group_by("user").agg(pl.col("rank")).sort("user")["rank"].to_list()
    assert all(r == list(range(1, len(r) + 1)) for r in ranks)


# -- vectors -------------------------------------------------------------------------------------------------


def test_a_model_without_vectors_is_refused(tmp_path):
    learners.Popularity().fit(WORLD.observe(3)).save(tmp_path / "m.safetensors")
    with pytest.raises(UndefinedError, match=facts("Popularity", "--top")):
        predict(PredictRequest(model=tmp_path / "m.safetensors", out=tmp_path / "v.npz", vectors=True))
