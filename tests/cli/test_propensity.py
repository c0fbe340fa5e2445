"""`openloop propensity` as people and programs call it."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.data.simulate import movie_lovers
from tests.cli.running import interrupted, run
from tests.facts import facts


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A log in no order as CSV and Parquet, a uniform sample, and what is known about users and items."""
    folder, rng = tmp_path_factory.mktemp("propensity"), np.random.default_rng(0)
    world = movie_lovers(users=30, items=20)
    log = world.observe(7)
    rows = pl.DataFrame(
        {"user": log.user, "item": log.item, "rating": log.rating, "note": [f"n{k:03}" for k in log.row]}
    )
    rows = rows.sample(fraction=1, shuffle=True, seed=1)
    rows.write_csv(folder / "log.csv")
    rows.write_parquet(folder / "log.parquet")
    user, item = rng.integers(0, 30, 200), rng.integers(0, 20, 200)
    sample = pl.DataFrame({"user": user, "item": item, "rating": world.ratings[user, item]})
    sample.unique(["user", "item"], maintain_order=True).write_csv(folder / "uniform.csv")
    users = {"user_id": range(30), "horror": [int(u < 15) for u in range(30)], "age": rng.integers(18, 80, 30)}
    pl.DataFrame(users).write_csv(folder / "users.csv")
    pl.DataFrame({"item_id": range(20), "genre": ["abc"[i % 3] for i in range(20)]}).write_csv(folder / "items.csv")
    return folder


def words(files, model, out, *more, log="log.csv"):
    """The command that fits a model with all that it takes."""
    side = {
        "naive-bayes": ("--uniform", str(files / "uniform.csv")),
        "logistic": ("--user-features", str(files / "users.csv"), "--item-features", str(files / "items.csv")),
    }
    side["boosted"] = side["logistic"]
    given = ("propensity", str(files / log), "--model", model, "--out", str(out))
    return (*given, *side.get(model, ()), *more)


def by_hand(files, model, log):
    """The propensities of a log as the library gives them."""
    features = {
        "user_features": ol.covariates(files / "users.csv", log.users),
        "item_features": ol.covariates(files / "items.csv", log.items),
    }
    match model:
        case "popularity":
            fitted = ol.propensity.Popularity().fit(log)
        case "naive-bayes":
            fitted = ol.propensity.NaiveBayes().fit(log, uniform=ol.read(files / "uniform.csv", uniform=True))
        case "logistic":
            fitted = ol.propensity.Logistic(rng=4).fit(log, **features)
        case "low-rank":
            fitted = ol.propensity.LowRank(rng=4).fit(log)
        case "boosted":
            fitted = ol.propensity.Boosted(rng=4).fit(log, **features)
    return fitted.predict(log).values


@pytest.mark.parametrize("model", ["popularity", "naive-bayes", "logistic", "low-rank", "boosted"])
def test_propensity_writes_what_the_model_says_beside_the_untouched_rows(files, tmp_path, model):
    for log, out in (("log.csv", "out.csv"), ("log.parquet", "out.parquet")):
        result = run(*words(files, model, tmp_path / out, "--seed", "4", log=log))
        assert result.exit_code == 0, result.output
        before = ol.read(files / log)
        after = ol.read(tmp_path / out, propensity="propensity")
        np.testing.assert_array_equal(after.row, before.row)
        np.testing.assert_array_equal(after.propensity, by_hand(files, model, before))
        reader = pl.read_parquet if out.endswith("parquet") else pl.read_csv
        found = reader(tmp_path / out)
        assert found.columns == ["user", "item", "rating", "note", "propensity"]
        assert found.drop("propensity").equals(reader(files / log))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.parquet"]


def test_propensity_floor_quantile_calibration_and_column_reach_the_file(files, tmp_path):
    more = ("--floor", "0.3", "--quantile", "0.2", "--calibrate", "platt", "--column", "p", "--seed", "2")
    result = run(*words(files, "popularity", tmp_path / "out.csv", *more))
    assert result.exit_code == 0, result.output
    log = ol.read(files / "log.csv")
    model = ol.propensity.Calibrated(ol.propensity.Popularity(), method="platt", floor=0.3, quantile=0.2, rng=2).fit(
        log
    )
    np.testing.assert_array_equal(ol.read(tmp_path / "out.csv", propensity="p").propensity, model.predict(log).used)
    assert f"{np.mean(model.predict(log).values < model.floor_):.1%}" in result.stdout  # the share that was raised


WRONG = {
    ("--model", "popularty"): ("'popularty'", "'popularity'"),
    ("--model", "naive-bayes"): ("naive-bayes=SAMPLE",),
    ("--uniform", "u.csv"): ("popularity=u.csv", "naive-bayes"),
    ("--user-features", "u.csv"): ("--user-features", "logistic", "boosted", "popularity"),
    ("--out", "no-such-folder/out.csv"): ("--out", "no-such-folder", "exist"),
    ("--out", "out.xlsx"): ("--out", ".xlsx", ".parquet"),
    ("--column", "note"): ("'note'", "--column NAME"),
    ("--figures", "check.pdf"): ("--figures", "check.pdf", ".svg"),
    ("--floor", "2"): ("--floor", "[0, 1]", 2),
    ("--seed", "x"): ("--seed", "whole number", "'x'"),
    ("--rating", "note"): ("rating", "column 'note'", "numbers"),
    ("--rating", "stars"): ("--rating", "'stars'"),
    ("--users", "10"): ("'user'", "20 ids", "--users"),
    ("--gamma", "0"): ("--gamma", "positive", 0),
    ("--gamma", "x"): ("--gamma", "number", "'x'"),
    ("--model", "uniform", "--gamma", "2"): ("--gamma 2", "popularity", "uniform"),
    ("--no-check", "--json", "-"): ("--no-check", "--json"),
    ("--no-check", "--figures", "f.svg"): ("--no-check", "--figures"),
    ("--json", "same.html", "--figures", "same.html"): ("same.html", "overwritten", "written"),
}


@pytest.mark.parametrize(("more", "told"), WRONG.items(), ids=map(" ".join, WRONG))
def test_propensity_says_what_is_wrong_and_leaves_no_file(files, tmp_path, monkeypatch, more, told):
    monkeypatch.chdir(tmp_path)
    result = run(*words(files, "popularity", "out.csv"), *more, COLUMNS="200")
    assert result.exit_code == 2
    assert re.search(facts(*told), result.stderr)
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_propensity_does_not_overwrite_the_log(files):
    before = (files / "log.csv").read_bytes()
    result = run(*words(files, "popularity", files / "log.csv"))
    assert result.exit_code == 2
    assert re.search(facts("overwritten", "read"), result.stderr)
    assert (files / "log.csv").read_bytes() == before


def test_an_interrupted_propensity_leaves_no_file(files, tmp_path, monkeypatch):
    monkeypatch.setattr(ol.propensity.Popularity, "fit", interrupted)
    result = run(*words(files, "popularity", tmp_path / "out.csv"))
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


# -- the words of errors -------------------------------------------------------------------------------------


def test_balanced_weights_are_written_checked_and_drawn(files, tmp_path):
    out, picture = tmp_path / "out.csv", tmp_path / "checks.html"
    given = f"balanced={files / 'uniform.csv'}"
    result = run("propensity", files / "log.csv", "--model", given, "--out", out, "--figures", picture)
    assert result.exit_code == 0, result.output
    log = ol.read(files / "log.csv")
    model = ol.propensity.Balanced(ol.propensity.Logistic()).fit(
        log, uniform=ol.read(files / "uniform.csv", uniform=True)
    )
    np.testing.assert_allclose(ol.read(out, weight="weight").weight, model.predict(log).weights)
    assert re.search(facts("balancing", "rating 5", "'weight'"), result.stdout)
    assert "What was balanced" in picture.read_text(encoding="utf-8")


def test_clicks_are_read_without_ratings(files, tmp_path):
    clicks = tmp_path / "clicks.csv"
    pl.read_csv(files / "log.csv").select("user", "item", "rating").write_csv(clicks, include_header=False)
    result = run("propensity", clicks, "--model", "popularity", "--no-rating", "--out", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    assert "positives only" in result.stdout
    result = run(
        "propensity", clicks, "--model", "popularity", "--no-rating", "--rating", "2", "--out", tmp_path / "x.csv"
    )
    assert result.exit_code == 2
    assert re.search(facts("--no-rating", "--rating 2"), result.output)
