"""A log comes back with its propensities: what is written, in which order and format, and what is refused."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.commands import propensity as estimating
from openloop.commands.propensity import PropensityRequest, estimate
from openloop.data.simulate import movie_lovers
from openloop.errors import ColumnError, FormatError, InputError, OpenloopError, UndefinedError, UnknownIdError
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


def read_raw(path) -> pl.DataFrame:
    """The fields of a delimited file as they stand."""
    return pl.read_csv(path, infer_schema=False, separator="\t" if path.suffix == ".tsv" else ",")


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


def test_the_log_comes_back_with_the_propensities_of_the_model(csv, tmp_path):
    done = run(csv, tmp_path / "out.csv", **NAMED)
    log = ol.read(csv, **NAMED)
    model = ol.propensity.Popularity().fit(log)
    again = ol.read(tmp_path / "out.csv", **NAMED, propensity="propensity")
    np.testing.assert_array_equal(again.propensity, model.predict(log).values)
    assert done.log.fingerprint == log.fingerprint
    assert done.notes == done.check().notes == model.notes_
    assert done.summary().startswith(f"read {csv}: {len(log)} rows of 24 users × 18 items (")
    assert "% of the cells); fitted popularity; an audit" in done.summary()


@pytest.mark.parametrize("out", ["out.csv", "out.tsv"])
def test_fields_of_text_stay_as_they_were_written(csv, tmp_path, out):
    run(csv, tmp_path / out, **NAMED)
    before, after = read_raw(csv), read_raw(tmp_path / out)
    assert after.columns == [*before.columns, "propensity"]
    assert after.drop("propensity").equals(before, null_equal=True)


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


def test_all_formats_hold_the_same_propensities(csv, tmp_path):
    found = []
    for out in ("out.csv", "out.tsv", "out.parquet", "out.jsonl"):
        run(csv, tmp_path / out, **NAMED)
        found.append(ol.read(tmp_path / out, **NAMED, propensity="propensity"))
    for other in found[1:]:
        assert other.fingerprint == found[0].fingerprint
        assert other.users == found[0].users
        np.testing.assert_array_equal(other.propensity, found[0].propensity)


@pytest.mark.parametrize("name", ["log.data", "log.dat"])
def test_a_file_without_a_header_gets_the_names_it_is_read_by(tmp_path, name):
    log = WORLD.observe(3)
    path, separator = tmp_path / name, "::" if name.endswith("dat") else "\t"
    fields = zip(log.user, log.item, log.rating.astype(int), log.row + 900, ["x"] * len(log), strict=True)
    path.write_text("".join(separator.join(map(str, row)) + "\n" for row in fields))
    run(path, tmp_path / "out.csv")
    found = read_raw(tmp_path / "out.csv")
    assert found.columns == ["user", "item", "rating", "time", "column_5", "propensity"]
    again = ol.read(tmp_path / "out.csv", propensity="propensity", time="time")
    np.testing.assert_array_equal(again.rating, log.rating)
    np.testing.assert_array_equal(again.time, log.row + 900)
    np.testing.assert_array_equal(again.propensity, ol.propensity.Popularity().fit(ol.read(path)).predict(again).values)


def test_a_compressed_log_can_be_read(rows, tmp_path):
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(rows.write_csv().encode()))
    run(tmp_path / "log.csv.gz", tmp_path / "out.csv", **NAMED)
    assert read_raw(tmp_path / "out.csv")["code"].to_list() == rows["code"].to_list()


def test_the_new_column_may_have_another_name(csv, tmp_path):
    run(csv, tmp_path / "once.csv", **NAMED)
    run(tmp_path / "once.csv", tmp_path / "twice.csv", **NAMED, column="p2")
    found = read_raw(tmp_path / "twice.csv")
    assert found.columns[-2:] == ["propensity", "p2"]
    assert found["p2"].to_list() == found["propensity"].to_list()


def test_a_larger_population_makes_observation_rarer(tmp_path):
    log = WORLD.observe(3)
    pl.DataFrame({"user": log.user, "item": log.item, "rating": log.rating}).write_csv(tmp_path / "log.csv")
    run(tmp_path / "log.csv", tmp_path / "a.csv")
    done = run(tmp_path / "log.csv", tmp_path / "b.csv", users=48)
    assert (done.log.n_users, done.log.n_items) == (48, 18)
    a, b = (read_raw(tmp_path / name)["propensity"].cast(float).to_numpy() for name in ("a.csv", "b.csv"))
    assert (b <= a).all()
    assert b.mean() < 0.7 * a.mean()


# -- floors and calibration ----------------------------------------------------------------------------------


def test_a_floor_raises_what_is_below_it_and_says_how_much(csv, tmp_path):
    run(csv, tmp_path / "plain.csv", **NAMED)
    plain = read_raw(tmp_path / "plain.csv")["propensity"].cast(float).to_numpy()
    floor = float(np.quantile(plain, 0.3)) + 1e-9
    done = run(csv, tmp_path / "raised.csv", **NAMED, floor=floor)
    raised = read_raw(tmp_path / "raised.csv")["propensity"].cast(float).to_numpy()
    np.testing.assert_array_equal(raised, np.maximum(plain, floor))
    share = f"{np.mean(plain < floor):.1%}"
    assert [note for note in done.notes if share in note]


def test_a_quantile_is_a_floor(csv, tmp_path):
    run(csv, tmp_path / "plain.csv", **NAMED)
    run(csv, tmp_path / "raised.csv", **NAMED, quantile=0.3)
    plain, raised = (
        read_raw(tmp_path / name)["propensity"].cast(float).to_numpy() for name in ("plain.csv", "raised.csv")
    )
    np.testing.assert_array_equal(raised, np.maximum(plain, np.quantile(plain, 0.3)))


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_calibration_is_that_of_the_wrapper(csv, tmp_path, method):
    done = run(csv, tmp_path / "out.csv", **NAMED, calibrate=method, seed=5)
    log = ol.read(csv, **NAMED)
    wrapped = ol.propensity.Calibrated(ol.propensity.Popularity(), method=method, rng=5).fit(log)
    again = ol.read(tmp_path / "out.csv", **NAMED, propensity="propensity")
    np.testing.assert_array_equal(again.propensity, wrapped.predict(log).used)
    assert [note for note in done.notes if note.startswith(method)]


# -- features and samples ------------------------------------------------------------------------------------


def test_features_stand_under_the_name_of_the_log_or_an_obvious_one(csv, rows, tmp_path):
    log = ol.read(csv, **NAMED)
    users = pl.DataFrame({"uid": log.users.ids, "x": np.arange(log.n_users) % 5, "y": np.arange(log.n_users) % 3})
    items = pl.DataFrame({"movie_id": log.items.ids, "z": np.arange(log.n_items) % 4})
    users.with_columns(item_id="y").write_csv(tmp_path / "users.csv")
    items.write_parquet(tmp_path / "items.parquet")
    done = run(
        csv, tmp_path / "out.csv", model="logistic", **NAMED,
        user_features=tmp_path / "users.csv", item_features=tmp_path / "items.parquet",
    )  # fmt: skip
    side = {
        "user_features": ol.covariates(users.with_columns(item_id="y"), log.users, id="uid"),
        "item_features": ol.covariates(items, log.items),
    }
    again = ol.read(tmp_path / "out.csv", **NAMED, propensity="propensity")
    wanted = ol.propensity.Logistic(rng=0).fit(log, **side).predict(log).values
    np.testing.assert_allclose(again.propensity, wanted, rtol=1e-9)
    assert "fitted logistic; an audit" in done.summary()


@pytest.mark.parametrize("model", ["logistic", "boosted"])
def test_what_is_done_to_features_is_told_once(csv, tmp_path, model):
    log = ol.read(csv, **NAMED)
    for name, ids in (("uid", log.users.ids), ("mid", log.items.ids)):
        table = pl.DataFrame({name: ids, "x": np.arange(len(ids)) % 3, "same": 1})
        table.write_csv(tmp_path / f"{name}.csv")
    files = {"user_features": tmp_path / "uid.csv", "item_features": tmp_path / "mid.csv"}
    done = run(csv, tmp_path / "out.csv", model=model, **NAMED, **files)
    for path in files.values():
        assert sum(bool(re.search(facts(path, "'same'"), note)) for note in done.notes) == 1


@pytest.mark.parametrize("alone", [True, False])
def test_a_sample_is_a_log_or_ratings_and_is_named_in_two_ways(csv, tmp_path, alone):
    user, item = np.divmod(np.arange(0, WORLD.ratings.size, 3), WORLD.ratings.shape[1])
    stars = WORLD.ratings[user, item]
    whole = {} if alone else {"uid": user + 100, "mid": [f"m{i:02}" for i in item]}
    pl.DataFrame(whole | {"stars": stars}).write_csv(tmp_path / "sample.csv")
    log = ol.read(csv, **NAMED)
    expected = ol.propensity.NaiveBayes().fit(log, uniform=stars).predict(log).values
    for n, given in enumerate(({"model": f"naive-bayes={tmp_path / 'sample.csv'}"},
                               {"model": "naive-bayes", "uniform": tmp_path / "sample.csv"})):  # fmt: skip
        done = run(csv, tmp_path / f"{n}.csv", **NAMED, **given)
        assert "fitted naive-bayes; an audit" in done.summary()
        assert tmp_path / "sample.csv" in [Path(path) for path in done.wanted.inputs]
        again = ol.read(tmp_path / f"{n}.csv", **NAMED, propensity="propensity")
        np.testing.assert_array_equal(again.propensity, expected)


def test_features_must_cover_the_log(csv, tmp_path):
    (tmp_path / "users.csv").write_text("uid,x\n100,1\n101,2\n")
    (tmp_path / "items.csv").write_text("mid,x\nm00,1\n")
    files = {"user_features": tmp_path / "users.csv", "item_features": tmp_path / "items.csv"}
    with pytest.raises(UnknownIdError, match=facts("users.csv", "'uid'", "22 of 24", 102)):
        run(csv, tmp_path / "out.csv", model="logistic", **NAMED, **files)


@pytest.mark.parametrize(
    ("side", "name", "other"), [("user", "movie_id", "item"), ("user", "item", "item"), ("item", "uid", "user")]
)
def test_features_of_the_other_side_are_refused(csv, tmp_path, side, name, other):
    log = ol.read(csv, **NAMED)
    for role, ids in (("user", log.users.ids), ("item", log.items.ids)):
        called = name if role == side else "id"
        pl.DataFrame({called: ids, "x": np.arange(len(ids)) % 3}).write_csv(tmp_path / f"{role}.csv")
    files = {"user_features": tmp_path / "user.csv", "item_features": tmp_path / "item.csv"}
    with pytest.raises(ColumnError, match=facts(f"--{side}-features", f"'{name}'", f"--{other}-features")):
        run(csv, tmp_path / "out.csv", model="logistic", rating="stars", user="uid" if side == "user" else 1,
            item="mid", **files)  # fmt: skip


def test_features_under_the_name_of_the_log_may_be_called_anything(tmp_path):
    log = WORLD.observe(3)
    pl.DataFrame({"item": log.user, "thing": log.item, "rating": log.rating}).write_csv(tmp_path / "log.csv")
    pl.DataFrame({"item": np.arange(24), "x": np.arange(24) % 5}).write_csv(tmp_path / "u.csv")
    pl.DataFrame({"thing": np.arange(18), "x": np.arange(18) % 5}).write_csv(tmp_path / "i.csv")
    files = {"user_features": tmp_path / "u.csv", "item_features": tmp_path / "i.csv"}
    run(tmp_path / "log.csv", tmp_path / "out.csv", model="logistic", user="item", item="thing", **files)
    assert (tmp_path / "out.csv").exists()


# -- what is refused before the work -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param({"model": "popularty"}, facts("'popularty'", "'popularity'"), id="misspelt model"),
        pytest.param({"model": "naive-bayes"}, facts("naive-bayes=SAMPLE"), id="no sample"),
        pytest.param({"uniform": "u.csv"}, facts("popularity=u.csv", "naive-bayes"), id="sample for another model"),
        pytest.param(
            {"model": "naive-bayes=u.csv", "uniform": "v.csv"},
            facts("--uniform", "v.csv", "naive-bayes=u.csv"),
            id="two samples",
        ),
        pytest.param({"model": "uniform:popularity"}, facts("uniform:popularity"), id="colon for ="),
        pytest.param(
            {"user_features": "u.csv"},
            facts("user_features=", "logistic", "boosted", "popularity"),
            id="features for popularity",
        ),
        pytest.param(
            {"model": "low-rank", "item_features": "u.csv"},
            facts("item_features=", "logistic", "boosted", "low-rank"),
            id="features for low-rank",
        ),
        pytest.param(
            {"model": "logistic", "item_features": "u.csv"},
            facts("user_features=", "item_features=", "both"),
            id="features of one side",
        ),
        pytest.param({"calibrate": "isotone"}, facts("--calibrate", "'isotone'", "'isotonic'"), id="misspelt method"),
        pytest.param(
            {"model": "naive-bayes", "uniform": "u.csv", "calibrate": "platt"},
            facts("calibrate=platt", "naive-bayes"),
            id="naive-bayes calibrated",
        ),
        pytest.param({"floor": -0.1}, facts("--floor", "[0, 1]", -0.1), id="negative floor"),
        pytest.param({"floor": float("nan")}, facts("--floor", "[0, 1]", "nan"), id="floor nan"),
        pytest.param({"quantile": 1.0}, facts("--quantile", 0, 1), id="quantile 1"),
        pytest.param({"gamma": 0.0}, facts("--gamma", "positive", 0), id="gamma 0"),
        pytest.param({"gamma": float("inf")}, facts("--gamma", "positive", "inf"), id="gamma inf"),
        pytest.param({"model": "uniform", "gamma": 2.0}, facts("gamma=2", "popularity", "uniform"), id="gamma of none"),
        pytest.param({"seed": -1}, facts("--seed", 0, -1), id="negative seed"),
        pytest.param({"column": ""}, facts("--column", "empty"), id="empty column"),
        pytest.param(
            {"out": "out.xlsx"}, facts("--out", "'out.xlsx'", "'.xlsx'", "'.csv'", "'.ndjson'"), id="unknown extension"
        ),
        pytest.param({"out": "out.csv.gz"}, facts("--out", "'.gz'", "'.csv'"), id="compressed"),
        pytest.param({"out": "-"}, facts("--out", "'-'", "''", "'.csv'"), id="no extension"),
    ],
)
def test_what_cannot_work_is_refused_before_any_file_is_opened(options, told):
    with pytest.raises(OpenloopError, match=told):
        PropensityRequest(**({"log": "no-such-log.csv", "out": "out.csv", "model": "popularity"} | options))


def test_calibrating_naive_bayes_has_no_definition():
    with pytest.raises(UndefinedError):
        PropensityRequest(log="log.csv", out="out.csv", model="naive-bayes", uniform="u.csv", calibrate="isotonic")


def test_a_log_is_not_overwritten_under_any_of_its_names(csv, tmp_path):
    before = csv.read_bytes()
    (tmp_path / "link.csv").symlink_to(csv)
    os.link(csv, tmp_path / "hard.csv")
    for out in (csv, tmp_path / "link.csv", tmp_path / "hard.csv", tmp_path / "." / "log.csv"):
        with pytest.raises(InputError, match=facts(out, csv, "overwritten", "read")):
            run(csv, out, **NAMED)
    assert csv.read_bytes() == before


def test_a_column_of_that_name_is_refused(csv, tmp_path):
    with pytest.raises(ColumnError, match=facts("log.csv", "'code'", "--column")):
        run(csv, tmp_path / "out.csv", **NAMED, column="code")


def test_columns_that_share_a_name_are_refused(tmp_path):
    (tmp_path / "log.csv").write_text("user,item,rating,x,x\n1,1,5,1,2\n2,1,3,1,2\n")
    with pytest.raises(ColumnError, match=facts("several columns", "'x'")):
        run(tmp_path / "log.csv", tmp_path / "out.csv")


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


def test_a_failing_run_leaves_what_was_there(csv, tmp_path, monkeypatch):
    out = tmp_path / "out.csv"
    out.write_text("precious")

    def broken(*_args, **_options):
        raise RuntimeError("no fit today")

    monkeypatch.setattr(ol.propensity.Popularity, "fit", broken)
    with pytest.raises(RuntimeError):
        run(csv, out, **NAMED)
    assert out.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv", "out.csv"]


def test_a_log_that_changes_while_it_is_read_is_noticed(csv, tmp_path, monkeypatch):
    inner = estimating.holdable
    monkeypatch.setattr(estimating, "holdable", lambda *given: inner(*given).head(5))
    with pytest.raises(InputError, match=facts("log.csv", "changed", 5, len(read_raw(csv)))):
        run(csv, tmp_path / "out.csv", **NAMED)
    assert not (tmp_path / "out.csv").exists()


def test_steps_are_told_in_order(csv, tmp_path):
    told = []
    wanted = PropensityRequest(log=csv, out=tmp_path / "out.csv", model="popularity", **NAMED)
    done = estimate(wanted, lambda what, done: told.append((what, done)))
    assert [what for what, _ in told] == ["reading the log", "fitting popularity", "writing the log"]
    shares = [done for _, done in told]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1] < 1
    done.check(lambda what, done: told.append((what, done)))
    assert told[-1] == ("checking the fit", 0.0)


def test_positions_that_would_swap_the_names_of_a_log_without_header_are_refused(tmp_path):
    (tmp_path / "log.csv").write_text("7,1,5\n7,2,3\n8,1,4\n9,2,1\n")
    with pytest.raises(ColumnError, match=facts("column 1", "--user", "'item'", "header")):
        run(tmp_path / "log.csv", tmp_path / "out.csv", user=1, item=0)
    assert not (tmp_path / "out.csv").exists()


def test_balanced_weights_are_written_as_weights(csv, tmp_path):
    pl.DataFrame({"stars": WORLD.ratings.ravel()[::3]}).write_csv(tmp_path / "sample.csv")
    done = run(csv, tmp_path / "out.csv", **NAMED, model=f"balanced:popularity={tmp_path / 'sample.csv'}")
    log = ol.read(csv, **NAMED)
    expected = ol.propensity.Balanced(ol.propensity.Popularity()).fit(log, uniform=WORLD.ratings.ravel()[::3])
    again = ol.read(tmp_path / "out.csv", **NAMED, weight="weight")
    np.testing.assert_allclose(again.weight, expected.predict(log).weights)
    assert re.search(facts("'weight'", "--propensity balanced=SAMPLE"), done.summary())
    assert done.check().balancing is not None
    run(csv, tmp_path / "named.csv", **NAMED, model=f"balanced={tmp_path / 'sample.csv'}", column="w")
    assert ol.read(tmp_path / "named.csv", **NAMED, weight="w").weight.min() > 0


def test_the_check_of_clicks_says_that_p_is_no_exposure(rows, tmp_path):
    rows.select("uid", "mid").write_csv(tmp_path / "clicks.csv")
    done = run(tmp_path / "clicks.csv", tmp_path / "out.csv", user="uid", item="mid")
    assert done.log.positives
    assert any("positives" in flag for flag in done.check().flags)
