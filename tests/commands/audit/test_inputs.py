"""Files become what `ol.evaluate` takes: the same numbers in every format, on one population, with the right shares."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.commands.audit.inputs import gather, run
from openloop.commands.audit.request import GUESSED, AuditRequest, ModelFile
from openloop.core.propensities import Propensities
from openloop.errors import (
    ColumnError,
    EmptyError,
    FormatError,
    InputError,
    PredictionError,
    PropensityError,
    RatingError,
    UndefinedError,
    UnknownIdError,
)
from tests.audit_files import ITEMS, NAMED, SCORES, USERS, I, U, audit_files, rows, write
from tests.examples import same
from tests.facts import facts

GRIDS = ("a.npy", "b.npy")
METRICS, ESTIMATORS = ["mae", "ndcg@5"], ["naive", "ips", "snips", "stratified"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return audit_files(tmp_path_factory.mktemp("audit"))


def wanted(files, models=("a", "b"), log="log", **options):
    named = tuple((name[0], files / name) for name in models) if not isinstance(models, dict) else tuple(models.items())
    return AuditRequest(
        log=files / log, models=named, **({"users": files / "users", "items": files / "items"} | options)
    )


def evaluated(found, **options):
    return ol.evaluate(
        found.models, found.log, found.propensities, exclude=found.asked.exclude,
        **({"metrics": METRICS, "estimators": ESTIMATORS} | options),
    )  # fmt: skip


def assert_same(found, expected):
    assert set(found.estimates) == set(expected.estimates)
    for key, estimate in expected.estimates.items():
        same(found[key].value, estimate.value)
        same(found[key].stderr, estimate.stderr)


def expected(files, log=None, propensities=None, exclude=None, models="ab", **options):
    return ol.evaluate(
        {name: SCORES[name] for name in models}, log or files.test, propensities, exclude=exclude,
        **({"metrics": METRICS, "estimators": ESTIMATORS} | options),
    )  # fmt: skip


# -- formats -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".parquet", ".jsonl"])
def test_every_format_gives_the_numbers_of_the_arrays(tmp_path, kind):
    files = audit_files(tmp_path, kind)
    models = {"a": files / "a_all", "b": files / "b.npy", "c": files / "c_wide.parquet"}
    found = gather(wanted(files, models, propensity="p", exclude=files / "train"))
    assert found.log.users.ids.tolist() == USERS.tolist()
    assert_same(evaluated(found), expected(files, exclude=files.train, models="abc"))


def test_a_model_file_is_asked_in_the_codes_of_the_log(files):
    model = ol.load(files / "bias.safetensors")
    found = gather(wanted(files, {"a": files / "a.npy", "bias": files / "bias.safetensors"}, propensity="p"))
    together = ol.evaluate({"a": SCORES["a"], "bias": model}, files.test, metrics=METRICS, estimators=["snips"])
    whole = evaluated(found, estimators=["snips"])
    same(whole["bias", "mae", "snips"].value, ol.evaluate(
        {"bias": model}, found.log, found.propensities, metrics=["mae"], estimators=["snips"]
    )["bias", "mae", "snips"].value)  # fmt: skip
    same(whole["bias", "mae", "snips"].value, together["bias", "mae", "snips"].value)


def test_what_a_model_file_does_not_know_ranks_as_a_last_place_would(files, tmp_path):
    known = rows(files.train).filter((pl.col("uid") > 104) & (pl.col("mid") > "m03"))
    model = ol.learners.Bias().fit(ol.read(known, **NAMED))
    model.save(tmp_path / "part.safetensors")
    models = {"a": files / "a.npy", "part": tmp_path / "part.safetensors"}
    found = gather(wanted(files, models, propensity="p", exclude=files / "train"))
    assert any(re.search(facts("'part'", "5 of 60 users", "4 of 25 items"), note) for note in found.notes)
    grid = np.full((U, I), -1e9)
    grid[5:, 4:] = model.scores(np.arange(U - 5))
    asked = {"metrics": ["ndcg@5", "recall@10"], "estimators": ["snips", "naive"]}
    last = ol.evaluate({"a": SCORES["a"], "part": grid}, files.test, exclude=files.train, **asked)
    assert_same(evaluated(found, **asked), last)
    grid[grid < 0] = np.nan
    gaps = np.isnan(grid[files.test.user, files.test.item])
    with pytest.raises(PredictionError, match=facts("'part'", f"{gaps.sum()} of {len(gaps)}")):
        evaluated(found)
    told = evaluated(found, missing="drop", metrics=["mae"], estimators=["naive"])
    rest = np.abs(grid[files.test.user, files.test.item] - files.test.rating)[~gaps]
    same(told["part", "mae", "naive"].value, rest.mean())


@pytest.mark.parametrize("stream", [True, False])
def test_scores_may_be_named_or_counted_from_0(files, tmp_path, stream):
    table = pl.read_csv(files / "a")
    odd = table.with_columns(points=pl.col("score"), score=pl.lit(0.0))
    paths = [tmp_path / f"{name}.parquet" for name in ("a", "b")]
    for path in paths:
        odd.write_parquet(path)
    for score in ("points", odd.columns.index("points")):
        given = {"models": dict(zip("ab", paths, strict=True)), "propensity": "p", "score": score, "stream": stream}
        found = gather(wanted(files, **given))
        model = found.models["a"]
        scores = model.collect()["score"].to_numpy() if stream else model.score
        assert sorted(scores) == sorted(table["score"].to_list())


def test_a_log_without_a_header_is_read_by_position(files, tmp_path):
    rows(files.test).select("uid", "mid", "stars").write_csv(tmp_path / "bare.csv", include_header=False)
    found = gather(wanted(files, log=tmp_path / "bare.csv", propensity="uniform"))
    assert found.notes[0].endswith("user 'user', item 'item', rating 'rating'")
    assert_same(
        evaluated(found, metrics=["mae"], estimators=["naive"]), expected(files, metrics=["mae"], estimators=["naive"])
    )


def test_what_is_guessed_is_said_and_what_is_given_is_not(files):
    def guessed(**names):
        notes = gather(wanted(files, **names)).notes
        return [role for role, name in NAMED.items() if any(f"{role} '{name}'" in note for note in notes)]

    assert guessed() == list(NAMED)
    assert guessed(**NAMED) == []
    assert guessed(**NAMED | {"item": None}) == ["item"]


# -- one population ------------------------------------------------------------------------------------------


def test_the_population_is_that_of_all_logs(files, tmp_path):
    known = rows(files.test)
    write(known.filter(pl.col("uid") < 140), tmp_path / "log.csv")
    write(known.filter(pl.col("uid") > 120).with_columns(mid=pl.lit("z") + pl.col("mid")), tmp_path / "train.csv")
    write(pl.DataFrame({"uid": [7], "mid": ["q"], "stars": [3]}), tmp_path / "sample.csv")
    found = gather(
        wanted(
            files, log=tmp_path / "log.csv", exclude=tmp_path / "train.csv", open_loop=tmp_path / "sample.csv",
            users=None, items=None, propensity="p", models={"a": files / "a.csv", "b": files / "b.csv"},
            missing="drop",
        )
    )  # fmt: skip
    log, train, sample = found.log, found.asked.exclude, found.asked.open_loop
    assert log.users is train.users is sample.users
    assert log.users.ids[0] == 7
    assert set(log.users.ids[log.user]) == set(known.filter(pl.col("uid") < 140)["uid"])
    assert {*log.items.ids[train.item]} == {f"z{m}" for m in known.filter(pl.col("uid") > 120)["mid"]}
    again = known.filter(pl.col("uid") < 140).sort("uid", "mid")
    assert log.items.ids[log.item].tolist() == again["mid"].to_list()
    same(log.propensity, again["p"].to_numpy())
    assert not sample.uniform  # it is scored, by the plain average


def test_users_and_items_are_numbers_files_or_lists(tmp_path):
    pl.DataFrame({"user": [0, 1], "item": [0, 2], "rating": [1, 5]}).write_csv(tmp_path / "log.csv")
    for name in "ab":
        pl.DataFrame({"user": [0, 1], "item": [0, 2], "score": [2.0, 4.0]}).write_csv(tmp_path / f"{name}.csv")
    (tmp_path / "users.txt").write_text("0\n1\n2\n")
    (tmp_path / "users.csv").write_text("user_id\n0\n1\n2\n")
    models = tuple((name, tmp_path / f"{name}.csv") for name in "ab")
    for users in (3, tmp_path / "users.txt", tmp_path / "users.csv"):
        found = gather(
            AuditRequest(log=tmp_path / "log.csv", models=models, users=users, items=4, propensity="uniform")
        )
        assert (found.log.n_users, found.log.n_items) == (3, 4)
    with pytest.raises(UnknownIdError, match=facts("item", "1 ids", "row 2")):
        gather(AuditRequest(log=tmp_path / "log.csv", models=models, items=2, propensity="uniform"))


def test_integers_in_one_log_and_text_in_the_other_are_refused(files, tmp_path):
    write(rows(files.train).with_columns(uid=pl.format("u{}", "uid")), tmp_path / "train.csv")
    with pytest.raises(InputError, match=facts("user ids", "integers", "text", 100, "'u100'")):
        gather(wanted(files, exclude=tmp_path / "train.csv", users=None))


# -- log and train -------------------------------------------------------------------------------------------


def test_two_parts_without_a_common_pair_are_one_log_split_at_random(files):
    found = gather(wanted(files, GRIDS, propensity="p", exclude=files / "train"))
    assert any("--split time" in note for note in found.notes)
    assert found.log.origin == found.asked.exclude.origin == files.test.origin  # the whole log, put together again
    same(found.log.share[0], files.test.share[0])
    same(found.asked.exclude.share[0], files.train.share[0])
    assert_same(evaluated(found), expected(files, exclude=files.train))


@pytest.mark.parametrize("name", ["popularity", "uniform"])
def test_propensity_models_are_fitted_on_both_parts_together(files, name):
    found = gather(wanted(files, GRIDS, propensity=name, exclude=files / "train"))
    whole = ol.read(pl.concat([rows(files.test), rows(files.train)]), **NAMED, items=ITEMS.tolist())
    model = {"popularity": ol.propensity.Popularity, "uniform": ol.propensity.Uniform}[name]().fit(whole)
    same(found.propensities.predict(found.log).values, model.predict(files.test).values)
    assert_same(evaluated(found), expected(files, propensities=model, exclude=files.train))
    assert found.about_propensity == f"{name}, fitted on log and excluded log together"


def test_a_split_by_time_has_no_shares(files):
    found = gather(wanted(files, propensity="p", exclude=files / "train", split="time"))
    assert found.log.share is None
    assert found.asked.exclude.share is None
    assert found.log.origin == found.asked.exclude.origin
    result = evaluated(found, metrics=["mae"])
    assert ("mae", "ips") in result.skipped
    same(result["a", "mae", "snips"].value, expected(files)["a", "mae", "snips"].value)


def test_separate_logs_have_their_own_propensities(files):
    found = gather(wanted(files, propensity="popularity", exclude=files / "train", split="none"))
    assert found.log.origin is None
    assert found.log.share[0] == 1
    alone = ol.read(rows(files.test), **NAMED, items=ITEMS.tolist())
    same(found.propensities.predict(found.log).values, ol.propensity.Popularity().fit(alone).predict(alone).values)
    assert found.about_propensity == "popularity, fitted on the log"


def test_common_pairs_make_two_logs(files, tmp_path):
    write(pl.concat([rows(files.train), rows(files.test).head(3)]), tmp_path / "train.csv")
    found = gather(wanted(files, propensity="p", exclude=tmp_path / "train.csv"))
    assert any(re.search(facts("3 pairs"), note) for note in found.notes)
    assert found.log.share[0] == 1
    for way in ("random", "time"):
        with pytest.raises(InputError, match=facts(f"--split {way}", "3 pairs")):
            gather(wanted(files, propensity="p", exclude=tmp_path / "train.csv", split=way))


# -- propensities --------------------------------------------------------------------------------------------


def test_a_column_is_taken_as_it_stands_above_the_floor(files):
    found = gather(wanted(files, propensity="p", floor=0.4))
    assert isinstance(found.propensities, Propensities)
    same(found.propensities.used, np.maximum(files.test.propensity, 0.4))
    assert found.about_propensity == "column 'p' of the log, raised to at least 0.4"


def test_without_a_word_propensities_are_the_column_of_that_name_or_logistic(files, tmp_path):
    found = gather(wanted(files))
    assert found.asked.doubts == ()  # the rules ask how far ratings may matter beyond it
    assert GUESSED in found.notes
    write(rows(files.test).rename({"p": "propensity"}), tmp_path / "own.csv")
    found = gather(wanted(files, log=tmp_path / "own.csv"))
    assert any("column 'propensity'" in note for note in found.notes)
    same(found.propensities.values, files.test.propensity)


def test_a_column_of_a_models_name_is_the_column(files, tmp_path):
    write(rows(files.test).rename({"p": "uniform"}), tmp_path / "own.csv")
    same(
        gather(wanted(files, log=tmp_path / "own.csv", propensity="uniform")).propensities.values, files.test.propensity
    )


def test_naive_bayes_takes_its_sample(files):
    found = gather(wanted(files, propensity=f"naive-bayes={files / 'sample'}"))
    alone = ol.read(rows(files.test), **NAMED, items=ITEMS.tolist(), users=USERS.tolist())
    model = ol.propensity.NaiveBayes().fit(alone, uniform=files.sample)
    same(found.propensities.predict(found.log).values, model.predict(alone).values)


@pytest.mark.parametrize("kind", [".csv", ".parquet", ".jsonl", ".txt"])
@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_naive_bayes_takes_ratings_alone(files, tmp_path, kind, floor):
    ratings, path = pl.DataFrame({"anything": files.sample.rating}), tmp_path / f"ratings{kind}"
    ratings.write_csv(path, include_header=False) if kind == ".txt" else write(ratings, path)
    alone, whole = (gather(wanted(files, propensity=f"naive-bayes={s}", floor=floor)) for s in (path, files / "sample"))
    same(alone.propensities.predict(alone.log).used, whole.propensities.predict(whole.log).used)


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        pytest.param("mid\nm00\nm01\n", ColumnError, facts("user", "item", "rating", "got 'mid'"), id="ids alone"),
        pytest.param(
            "mid,stars\nm00,4\n", ColumnError, facts("user", "item", "rating", "got 'mid', 'stars'"), id="no users"
        ),
        pytest.param("stars\n4\nhigh\n", RatingError, facts("naive-bayes=", "'stars'", "1 of 2", "'high'"), id="words"),
        pytest.param("stars\n", EmptyError, facts("naive-bayes=", "sample.csv", "ratings"), id="header alone"),
    ],
)
def test_a_sample_is_a_log_or_ratings(files, tmp_path, text, error, told):
    (tmp_path / "sample.csv").write_text(text)
    with pytest.raises(error, match=told):
        gather(wanted(files, propensity=f"naive-bayes={tmp_path / 'sample.csv'}"))


def test_logistic_takes_features_of_both_sides(files):
    options = {"user_features": files / "users", "item_features": files / "items"}
    found = gather(wanted(files, propensity="logistic", floor=0.01, **options))
    alone = ol.read(rows(files.test), **NAMED, items=ITEMS.tolist(), users=USERS.tolist())
    side = {
        "user_features": ol.covariates(files / "users", alone.users),
        "item_features": ol.covariates(files / "items", alone.items),
    }
    model = ol.propensity.Logistic().fit(alone, **side)
    same(found.propensities.predict(found.log).used, np.maximum(model.predict(alone).values, 0.01), rtol=1e-6)
    with pytest.raises(ColumnError, match="--item-features"):
        gather(wanted(files, propensity="logistic", user_features=files / "items", item_features=files / "users"))


@pytest.mark.parametrize(
    ("name", "model"),
    [("low-rank", ol.propensity.LowRank(rng=3)), ("boosted", ol.propensity.Boosted(rng=3)),
     ("popularity", ol.propensity.Popularity(gamma=1.0))],
)  # fmt: skip
def test_models_are_those_of_the_library_with_their_corrections(files, name, model):
    gamma = 1.0 if name == "popularity" else None
    found = gather(wanted(files, GRIDS, propensity=name, gamma=gamma, calibrate="platt", quantile=0.1, seed=3))
    alone = ol.read(rows(files.test), **NAMED, items=ITEMS.tolist(), users=USERS.tolist())
    expected = ol.propensity.Calibrated(model, method="platt", quantile=0.1, rng=3).fit(alone)
    same(found.propensities.predict(found.log).used, expected.predict(alone).used)
    assert found.about_propensity == f"{name}, fitted on the log, calibrated (platt), the smallest 10 % raised"


@pytest.mark.parametrize(
    "options", [{"gamma": 2.0}, {"quantile": 0.1}, {"calibrate": "platt"}, {"user_features": "u.csv"}]
)
def test_a_column_takes_a_floor_and_nothing_else(files, options):
    (name, value) = next(iter(options.items()))
    with pytest.raises(InputError, match=facts(f"--{name.replace('_', '-')}", value, "column 'p'")):
        gather(wanted(files, propensity="p", **options))


# -- strata --------------------------------------------------------------------------------------------------


def test_columns_group_the_rows_in_the_order_of_the_log(files):
    found = gather(wanted(files, propensity="p", strata=("3", "region")))
    assert found.asked.strata == ("3",)
    assert found.asked.groups["region"].tolist() == ["north" if u % 3 else "south" for u in files.test.user]
    with pytest.raises(ColumnError, match=facts("--strata", "'regoin'", "'region'")):
        gather(wanted(files, propensity="p", strata=("regoin",)))


# -- what is wrong with a log --------------------------------------------------------------------------------


def test_a_log_that_is_missing_or_empty_is_named(files, tmp_path):
    with pytest.raises(InputError, match=facts("lgo.csv", "'log.csv'")):
        gather(wanted(files, log=files / "lgo.csv"))
    (tmp_path / "none.csv").write_text("")
    with pytest.raises(FormatError, match=facts("none.csv", "empty")):
        gather(wanted(files, log=tmp_path / "none.csv"))
    (tmp_path / "none.csv").write_text("uid,mid,stars\n")
    with pytest.raises(EmptyError, match=facts("none.csv", "no rows")):
        gather(wanted(files, log=tmp_path / "none.csv"))


@pytest.mark.parametrize("bad", [None, 0.0, 1.5])
def test_propensities_that_are_none_are_counted(files, tmp_path, bad):
    some = rows(files.test).with_columns(p=pl.when(pl.col("uid") == 103).then(bad).otherwise(pl.col("p")))
    write(some, tmp_path / "log.csv")
    number = len(some.filter(pl.col("uid") == 103))
    with pytest.raises(PropensityError, match=facts("column 'p'", f"{number} of {len(some)}")):
        gather(wanted(files, log=tmp_path / "log.csv", propensity="p"))


def test_the_whole_log_is_what_a_model_is_checked_on(files):
    asked = {"propensity": "popularity", "exclude": files / "train"}
    checked, plain = (gather(wanted(files, GRIDS, check=check, **asked)).asked.check for check in (True, False))
    assert len(checked) == len(files.test) + len(files.train)
    assert plain is False


def test_the_whole_grid_is_known_when_all_ids_are_given(files):
    found = gather(wanted(files, propensity="p"))
    assert (found.log.n_users, found.log.n_items) == (U, I)


# -- the whole audit -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def audit_wanted(files):
    models = tuple(ModelFile(name, files / name) for name in "ab")
    ids = {"users": files / "users", "items": files / "items"}
    return AuditRequest(log=files / "log", models=models, propensity="p", metrics=("mae",), check=False, **ids)


def test_an_audit_knows_its_files_and_its_command(files, audit_wanted):
    steps = []
    found = run(audit_wanted, "openloop audit …", lambda _what, done: steps.append(round(done, 9)))
    alone = ol.Feedback.from_arrays(
        files.test.user, files.test.item, files.test.rating, users=files.test.users, items=files.test.items,
        propensity=files.test.propensity,
    )  # fmt: skip
    expected = ol.audit({name: SCORES[name] for name in "ab"}, alone, metrics=["mae"])
    assert found.result["a", "mae", "snips"].value == pytest.approx(expected.result["a", "mae", "snips"].value)
    assert found.setting.log == str(files / "log")
    assert found.setting.propensity == "column 'p' of the log"
    assert found.setting.command == "openloop audit …"
    assert re.search(facts("user 'uid'", "item 'mid'", "rating 'stars'"), found.notes[0])
    assert steps == sorted(steps)
    assert 0 <= steps[0] < steps[-1] < 1


def test_a_file_that_may_not_be_read_is_named(audit_wanted, monkeypatch):
    def denied(*_given, **_options):
        raise PermissionError(13, "Permission denied", "log.csv")

    monkeypatch.setattr("openloop.commands.audit.inputs.read", denied)
    with pytest.raises(InputError, match=facts("log.csv", "Permission denied")):
        run(audit_wanted, "openloop audit")


# -- positives -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clicks(files):
    for name in ("log", "train"):
        frame = rows(getattr(files, "test" if name == "log" else name))
        write(frame.select("uid", "mid"), files / f"clicked_{name}.csv")
    return files


def test_no_propensities_are_guessed_for_clicks(clicks):
    found = gather(wanted(clicks, GRIDS, log="clicked_log.csv", exclude=clicks / "clicked_train.csv"))
    assert found.log.positives
    assert found.asked.exclude.positives
    assert found.propensities is None
    assert found.about_propensity == "none"
    assert found.asked.doubts == ()
    assert sum("positive" in note for note in found.notes) == 2


def test_a_model_fitted_on_clicks_is_refused_and_their_exposure_is_not(clicks):
    with pytest.raises(UndefinedError, match=facts("positives", "column")):
        run(wanted(clicks, GRIDS, log="clicked_log.csv", propensity="popularity", check=False), "")
    found = gather(wanted(clicks, GRIDS, propensity="p", user="uid", item="mid", no_rating=True))
    assert found.log.positives
    np.testing.assert_array_equal(found.propensities.values, clicks.test.propensity)


def test_a_part_that_lacks_bad_ratings_by_chance_is_not_one_of_positives(files):
    liked = rows(files.test).filter(pl.col("stars") >= 4)
    write(liked, files / "liked.csv")
    assert gather(wanted(files, GRIDS, log="liked.csv", **NAMED)).log.positives
    found = gather(wanted(files, GRIDS, log="liked.csv", exclude=files / "train", split="random", **NAMED))
    assert not found.log.positives


def test_an_excluded_log_without_ratings_is_refused_beside_one_that_has_them(clicks):
    with pytest.raises(ColumnError, match=facts("rating=")):
        gather(wanted(clicks, GRIDS, exclude=clicks / "clicked_train.csv", **NAMED))


def test_balanced_propensities_are_fitted_with_a_sample_that_is_named(files):
    asked = wanted(files, GRIDS, exclude=files / "train", propensity=f"balanced={files / 'sample'}", **NAMED)
    found = gather(asked)
    sample = ol.read(files / "sample", **NAMED, uniform=True)
    model = ol.propensity.Balanced(ol.propensity.Logistic())
    whole = ol.Feedback.from_arrays(
        *(np.concatenate([getattr(p, n) for p in (files.test, files.train)]) for n in ("user", "item", "rating")),
        users=files.test.users, items=files.test.items,
    )  # fmt: skip
    fitted = model.fit(whole, uniform=sample)
    np.testing.assert_allclose(found.propensities.predict(found.log).values, fitted.predict(files.test).values)
    assert found.about_propensity.startswith("balanced, fitted on")
