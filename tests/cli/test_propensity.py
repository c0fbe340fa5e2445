"""`openloop propensity` as people and programs call it."""

from __future__ import annotations

import json
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


def test_propensity_says_what_it_read_what_it_fitted_and_what_it_checked(files, tmp_path):
    out = tmp_path / "out.csv"
    result = run(*words(files, "popularity", out))
    log = ol.read(files / "log.csv")
    model = ol.propensity.Popularity().fit(log)
    first, rest = result.stdout.split("\n", 1)
    read = (files / "log.csv", f"{len(log):,} rows", "30 users × 20 items", f"{len(log) / 600:.2%}")
    assert re.search(facts(*read, "popularity"), first)
    assert rest == f"\n{ol.propensity.check(model, log, rng=0)}\n"
    assert result.stderr == f"wrote {out}\n"


def test_propensity_json_is_valid_and_alone_on_stdout(files, tmp_path):
    result = run(*words(files, "popularity", tmp_path / "out.csv", "--json", "-"))
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    log = ol.read(files / "log.csv")
    assert content == json.loads(ol.propensity.check(ol.propensity.Popularity().fit(log), log, rng=0).to_json())


@pytest.mark.parametrize("picture", ["check.html", "check.svg", "check.png"])
def test_propensity_writes_json_and_figures_beside_the_text(files, tmp_path, picture):
    target, drawn = tmp_path / "check.json", tmp_path / picture
    result = run(*words(files, "popularity", tmp_path / "out.csv", "--json", str(target), "--figures", str(drawn)))
    assert result.exit_code == 0, result.output
    assert json.loads(target.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    begin = {"html": b"<", "svg": b"<svg", "png": b"\x89PNG"}[picture.rpartition(".")[2]]
    assert drawn.read_bytes().lstrip().startswith(begin)
    assert result.stderr.splitlines() == [f"wrote {path}" for path in (tmp_path / "out.csv", target, drawn)]


def test_propensity_takes_columns_by_name_or_position(files, tmp_path):
    pl.read_csv(files / "log.csv").select("note", i="item", r="rating", u="user").write_csv(tmp_path / "log.csv")
    for columns in (("--user", "u", "--item", "i", "--rating", "r"), ("--user", "3", "--item", "1", "--rating", "2")):
        given = ("propensity", str(tmp_path / "log.csv"), "--model", "popularity", "--out", str(tmp_path / "out.csv"))
        assert run(*given, *columns).exit_code == 0
        found = ol.read(tmp_path / "out.csv", user="u", item="i", rating="r", propensity="propensity")
        np.testing.assert_array_equal(found.propensity, by_hand(files, "popularity", ol.read(files / "log.csv")))


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


def test_an_interrupted_check_does_not_lose_the_fit(files, tmp_path, monkeypatch):
    run(*words(files, "popularity", tmp_path / "whole.csv"))
    monkeypatch.setattr(ol.propensity, "check", interrupted)
    result = run(*words(files, "popularity", tmp_path / "out.csv"))
    assert result.exit_code == 130
    assert result.stderr == f"wrote {tmp_path / 'out.csv'}\nopenloop: interrupted\n"
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_no_check_writes_the_same_file_and_refits_nothing(files, tmp_path, monkeypatch):
    run(*words(files, "popularity", tmp_path / "checked.csv", "--gamma", "5"))
    monkeypatch.setattr(ol.propensity, "check", interrupted)
    result = run(*words(files, "popularity", tmp_path / "out.csv", "--gamma", "5", "--no-check"))
    assert result.exit_code == 0, result.output
    first, *notes = result.stdout.splitlines()
    assert re.search(facts(files / "log.csv", "popularity"), first)
    assert [note for note in notes if "γ = 5.00" in note]
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "checked.csv").read_bytes()


def test_uniform_gives_every_row_the_share_of_the_grid(files, tmp_path):
    assert run(*words(files, "uniform", tmp_path / "out.csv")).exit_code == 0
    found = ol.read(tmp_path / "out.csv", propensity="propensity")
    np.testing.assert_array_equal(found.propensity, np.full(len(found), len(found) / 600))


def test_gamma_is_the_exponent_of_popularity(files, tmp_path):
    assert run(*words(files, "popularity", tmp_path / "out.csv", "--gamma", "1", "--no-check")).exit_code == 0
    found = ol.read(tmp_path / "out.csv", propensity="propensity")
    n = np.bincount(found.item, minlength=found.n_items)
    np.testing.assert_allclose(found.propensity, n[found.item] / found.n_users)  # γ = 1: n_i/U


# -- the words of errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "more", "told"),
    [
        pytest.param(
            "user,item,rating\n1,1,5\n1,1,4\n2,1,3\n", (), facts("log.csv", "once", "(1, 1)"), id="pair twice"
        ),
        pytest.param("user,item,rating\n1,1,5\n2,1\n2,3,4\n", (), facts("line 3", "2 fields", 3), id="short line"),
        pytest.param("a,b,c\n1,1,5\n2,1,3\n", (), facts("user column", "--user", "'a'", "','"), id="no user column"),
        pytest.param(
            "user,item,rating\n1,1,5\n", ("--rating", "stars"), facts("'stars'", "--rating"), id="unknown column"
        ),
        pytest.param("user,item,rating\n1,1,5\n", ("--rating", "9"), facts("--rating 9", 3), id="unknown position"),
        pytest.param(
            "user,item,rating\n1,1,5\n7,1,3\n",
            ("--users", "3"),
            facts("'user'", 7, "--users", "--items"),
            id="few users",
        ),
        pytest.param("user,item,rating\n1,1,5\n", ("--users", "0"), facts("--users 0", "at least 1"), id="no users"),
    ],
)
def test_errors_name_options_and_no_keywords(tmp_path, content, more, told):
    (tmp_path / "log.csv").write_text(content)
    result = run("propensity", tmp_path / "log.csv", "--model", "uniform", "--out", tmp_path / "out.csv", *more)
    assert result.exit_code == 2
    assert re.search(told, result.stderr.strip())
    assert not re.search(r"\w=", result.stderr)


def test_an_unknown_extension_names_no_keyword(files, tmp_path):
    (tmp_path / "log.xyz").write_bytes((files / "log.csv").read_bytes())
    result = run("propensity", tmp_path / "log.xyz", "--model", "uniform", "--out", tmp_path / "out.csv")
    assert result.exit_code == 2
    assert re.search(facts("'.xyz'", "'.csv'", ".gz"), result.stderr)
    assert not re.search(r"\w=", result.stderr)


def test_gaps_in_features_name_no_keyword(files, tmp_path):
    table = pl.read_csv(files / "users.csv", infer_schema=False)
    table.with_columns(age=pl.when(pl.col("user_id") != "3").then("age")).write_csv(tmp_path / "users.csv")
    side = ("--user-features", tmp_path / "users.csv", "--item-features", files / "items.csv")
    result = run("propensity", files / "log.csv", "--model", "logistic", "--out", tmp_path / "out.csv", *side)
    assert result.exit_code == 2
    assert re.search(facts("users.csv", "'age'", "id 3"), result.stderr)
    assert not re.search(r"\w=", result.stderr)


def test_tables_of_the_other_side_are_refused(files, tmp_path):
    side = ("--user-features", files / "items.csv", "--item-features", files / "users.csv")
    result = run("propensity", files / "log.csv", "--model", "logistic", "--out", tmp_path / "out.csv", *side)
    assert result.exit_code == 2
    assert re.search(facts("--user-features", "'item_id'", "--item-features"), result.stderr)


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


def test_a_safe_file_has_no_formulas(tmp_path):
    log, out = tmp_path / "log.csv", tmp_path / "out.csv"
    log.write_text("user,item,rating\n=1+1,a,-1\n=1+1,@b,2\nu,a,3\nu,@b,4\n")
    words = ("propensity", log, "--model", "popularity", "--gamma", "0.5", "--no-check", "--out", out)
    assert run(*words).exit_code == 0
    assert out.read_text().splitlines()[1].startswith("=1+1,a,-1,")
    assert run(*words, "--safe-csv").exit_code == 0
    assert out.read_text().splitlines()[1].startswith("'=1+1,a,-1,")
    assert ",'@b,2," in out.read_text()
