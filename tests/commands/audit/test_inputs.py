"""Files become what `ol.evaluate` takes: the same numbers in every format, on one population, with the right shares."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.commands.audit.inputs import gather, run
from openloop.commands.audit.request import GUESSED, AuditRequest, same_file
from openloop.errors import (
    InputError,
    LeakError,
    PredictionError,
    UndefinedError,
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


def test_what_a_model_file_does_not_know_ranks_as_a_last_place_would(files, tmp_path):
    known = rows(files.train).filter((pl.col("uid") > 104) & (pl.col("mid") > "m03"))
    model = ol.learners.Bias().fit(ol.read(known, **NAMED))
    model.save(tmp_path / "part.safetensors")
    models = {"a": files / "a.npy", "part": tmp_path / "part.safetensors"}
    found = gather(wanted(files, models, propensity="p", exclude=files / "train"))
    grid = np.full((U, I), -1e9)
    grid[5:, 4:] = model.scores(np.arange(U - 5))
    asked = {"metrics": ["ndcg@5", "recall@10"], "estimators": ["snips", "naive"]}
    last = ol.evaluate({"a": SCORES["a"], "part": grid}, files.test, exclude=files.train, **asked)
    assert_same(evaluated(found, **asked), last)
    assert any(re.search(facts("'part'", "5 of 60 users", "4 of 25 items"), note) for note in found.notes)
    grid[grid < 0] = np.nan
    gaps = np.isnan(grid[files.test.user, files.test.item])
    with pytest.raises(PredictionError, match=facts("'part'", f"{gaps.sum()} of {len(gaps)}")):
        evaluated(found)
    told = evaluated(found, missing="drop", metrics=["mae"], estimators=["naive"])
    rest = np.abs(grid[files.test.user, files.test.item] - files.test.rating)[~gaps]
    same(told["part", "mae", "naive"].value, rest.mean())


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
    log, train, sample = found.log, found.asked.exclude, found.asked.sample
    assert log.users is train.users is sample.users
    assert log.users.ids[0] == 7
    assert set(log.users.ids[log.user]) == set(known.filter(pl.col("uid") < 140)["uid"])
    assert {*log.items.ids[train.item]} == {f"z{m}" for m in known.filter(pl.col("uid") > 120)["mid"]}
    again = known.filter(pl.col("uid") < 140).sort("uid", "mid")
    assert log.items.ids[log.item].tolist() == again["mid"].to_list()
    same(log.propensity, again["p"].to_numpy())
    assert not sample.uniform  # it is scored, by the plain average


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


def test_common_pairs_make_two_logs(files, tmp_path):
    write(pl.concat([rows(files.train), rows(files.test).head(3)]), tmp_path / "train.csv")
    found = gather(wanted(files, propensity="p", exclude=tmp_path / "train.csv"))
    assert any(re.search(facts("3 pairs"), note) for note in found.notes)
    assert found.log.share[0] == 1
    for way in ("random", "time"):
        with pytest.raises(InputError, match=facts(f"--split {way}", "3 pairs")):
            gather(wanted(files, propensity="p", exclude=tmp_path / "train.csv", split=way))


# -- propensities --------------------------------------------------------------------------------------------


def test_without_a_word_propensities_are_the_column_of_that_name_or_logistic(files, tmp_path):
    found = gather(wanted(files))
    assert GUESSED in found.notes
    write(rows(files.test).rename({"p": "propensity"}), tmp_path / "own.csv")
    found = gather(wanted(files, log=tmp_path / "own.csv"))
    assert any("column 'propensity'" in note for note in found.notes)
    same(found.propensities.values, files.test.propensity)


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


TWO = (("a", "a.csv"), ("b", "b.csv"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A log and a sample, in the folder of work."""
    monkeypatch.chdir(tmp_path)
    for name in ("log.csv", "sample.csv"):
        (tmp_path / name).write_text("user,item,rating\n1,1,1\n")
    (tmp_path / "link.csv").symlink_to("sample.csv")
    return tmp_path


def test_a_sample_that_made_the_propensities_cannot_judge_them(folder):
    for path in ("sample.csv", "./sample.csv", "link.csv"):
        with pytest.raises(LeakError, match=facts(f"--open-loop {path}", "--propensity")):
            AuditRequest(log="log.csv", models=TWO, propensity="naive-bayes=sample.csv", open_loop=path)
    with pytest.raises(LeakError, match=facts("--propensity log.csv", "log itself")):
        AuditRequest(log="log.csv", models=TWO, propensity="naive-bayes=log.csv")
    with pytest.raises(LeakError, match=facts("--open-loop log.csv", "log itself")):
        AuditRequest(log="log.csv", models=TWO, open_loop="log.csv")
    assert same_file("link.csv", folder / "sample.csv")
    assert not same_file("none.csv", "none.csv")
