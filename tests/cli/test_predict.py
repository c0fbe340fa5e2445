"""`openloop predict` as people and programs call it."""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop import learners
from openloop.data.simulate import movie_lovers
from tests.cli.running import interrupted, run
from tests.facts import facts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log, and a model that `openloop train` learned from it."""
    found, log = tmp_path_factory.mktemp("predict"), movie_lovers(users=30, items=20).observe(7)
    rows = pl.DataFrame({"user": log.user, "item": [f"m{i:02}" for i in log.item], "rating": log.rating})
    rows.sample(fraction=1, shuffle=True, seed=1).write_csv(found / "log.csv")
    rows.sample(15, seed=2).select("item", "user", note=pl.lit("x")).write_csv(found / "pairs.csv")
    train = ("train", found / "log.csv", "--model", "svd", "--factors", "3", "--out", found / "m.safetensors")
    assert run(*train).exit_code == 0
    other = {"users": range(30), "items": [f"m{i:02}" for i in range(20)]}  # of another program
    np.savez(found / "b.npz", user_factors=np.ones((30, 1)), item_factors=np.arange(20.0)[:, None] / 5, **other)
    return found


def test_pairs_get_their_scores(folder, tmp_path):
    result = run("predict", folder / "m.safetensors", "--pairs", folder / "pairs.csv", "--out", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    model, pairs, found = learners.load(folder / "m.safetensors"), pl.read_csv(folder / "pairs.csv"), pl.read_csv(
        tmp_path / "out.csv"
    )  # fmt: skip
    assert found.drop("score").equals(pairs)
    user, item = model.users_.codes(pairs["user"]), model.items_.codes(np.array(pairs["item"].to_list(), object))
    np.testing.assert_array_equal(found["score"], model.predict(user, item))
    assert "15 pairs" in result.stdout.splitlines()[1]
    assert result.stderr == f"wrote {tmp_path / 'out.csv'}\n"


def test_a_list_made_by_two_commands_is_judged_as_its_model(folder, tmp_path):
    given = ("--top", "5", "--exclude", folder / "log.csv", "--out", tmp_path / "top.parquet")
    result = run("predict", folder / "m.safetensors", *given)
    assert result.exit_code == 0, result.output
    log = ol.read(folder / "log.csv")
    seen = set(zip(log.users.ids[log.user].tolist(), log.items.ids[log.item].tolist(), strict=True))
    found = pl.read_parquet(tmp_path / "top.parquet")
    assert found.columns == ["user", "item", "score", "rank"]
    assert not seen & set(found.select("user", "item").rows())
    world = movie_lovers(users=30, items=20)
    rest = np.array([(u, i) for u in range(30) for i in range(20) if (u, f"m{i:02}") not in seen])
    user, item = rest.T
    test = ol.Feedback.from_arrays(user, item, world.ratings[user, item], users=log.users, items=log.items)
    models = {"list": found, "model": learners.load(folder / "m.safetensors")}
    judged = ol.evaluate(models, test, metrics=["ndcg@5"], estimators=["naive"], exclude=log)
    assert judged["list", "ndcg@5", "naive"].value == pytest.approx(judged["model", "ndcg@5", "naive"].value)


WRONG = {
    (): ("--pairs FILE", "--top K"),
    ("--top", "few"): ("--top", "'few'", "whole number"),
    ("--top", "0"): ("--top", 1, 0),
    ("--pairs", "PAIRS", "--top", "3"): ("--pairs FILE", "--top K"),
    ("--pairs", "PAIRS", "--exclude", "PAIRS"): ("--exclude", "--top", "--pairs"),
    ("--pairs", "none.csv"): ("none.csv",),
    ("--pairs", "PAIRS", "--user", "uid"): ("--user", "'uid'"),
    ("--pairs", "PAIRS", "--column", "note"): ("'note'", "--column NAME"),
    ("--pairs", "STRANGE"): (777, "--unknown drop"),
    ("--pairs", "STRANGE", "--unknown", "skip"): ("--unknown", "'skip'", "'drop'"),
    ("--top", "3", "--out", "out.txt"): ("--out", "'.txt'", "'.csv'"),
}


@pytest.mark.parametrize(("more", "told"), WRONG.items(), ids=map(" ".join, WRONG))
def test_what_is_wrong_is_one_line_and_leaves_no_file(folder, tmp_path, monkeypatch, more, told):
    monkeypatch.chdir(tmp_path)
    (folder / "strange.csv").write_text("user,item\n3,m01\n777,m01\n")
    names = {"PAIRS": folder / "pairs.csv", "STRANGE": folder / "strange.csv"}
    given = [names.get(word, word) for word in more]
    result = run("predict", folder / "m.safetensors", "--out", "out.csv", *given, COLUMNS="200")
    assert result.exit_code == 2
    assert re.search(facts(*told), result.stderr)
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_what_was_there(folder, tmp_path, monkeypatch):
    out = tmp_path / "top.csv"
    out.write_text("precious")
    monkeypatch.setattr(learners.PureSVD, "scores", interrupted)
    result = run("predict", folder / "m.safetensors", "--top", "3", "--out", out)
    assert result.exit_code == 130
    assert out.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("ending", ["npz", "parquet", "safetensors"])
def test_vectors_are_audited_as_the_model_that_they_are_of(folder, tmp_path, ending):
    vectors, (model, log) = tmp_path / f"v.{ending}", (folder / "m.safetensors", folder / "log.csv")
    result = run("predict", model, "--vectors", "--out", vectors)
    assert result.exit_code == 0, result.output
    assert "50 vectors of 3 numbers" in result.stdout
    assert result.stderr == f"wrote {vectors}\n"
    found = {}
    for name, path in (("model", model), ("vectors", vectors)):
        options = ("--metric", "mae", "--metric", "ndcg@5", "--propensity", "popularity", "--json", tmp_path / name)
        done = run("audit", log, f"a={path}", f"b={folder / 'b.npz'}", *options)
        assert done.exit_code in {0, 3}, done.output
        told = json.loads((tmp_path / name).read_text())["comparison"]["estimates"]
        found[name] = {(row["model"], row["metric"], row["estimator"]): row["value"] for row in told}
    assert ("a", "ndcg@5", "snips") in found["model"]
    assert found["vectors"] == pytest.approx(found["model"], abs=1e-6)
