"""Rows that stay on disk: the numbers are those of the same files in memory, and what needs memory is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.commands.audit import scans as streaming
from openloop.commands.audit.inputs import gather, run
from openloop.commands.audit.request import AuditRequest
from openloop.errors import InputError, OpenloopError, PredictionError, UndefinedError, UnknownIdError
from tests.audit_files import ITEMS, NAMED, SCORES, I, U, audit_files, rows, write
from tests.examples import same
from tests.facts import facts

ESTIMATORS = ["naive", "ips", "snips", "stratified"]


@pytest.fixture(scope="module", params=[".csv", ".parquet", ".jsonl"])
def files(request, tmp_path_factory):
    return audit_files(tmp_path_factory.mktemp("stream"), request.param)


def wanted(files, models=("a", "b"), log="log", **options):
    """Models by the names of their files; those that begin alike are one."""
    named = tuple((name[0], files / name) for name in models)
    both = {"users": files / "users", "items": files / "items", "stream": True, "propensity": "p"}
    return AuditRequest(log=files / log, models=named, **(both | options))


def evaluated(asked, estimators=ESTIMATORS):
    found = gather(asked)
    taken = (
        "metrics", "exclude", "user", "item", "rating", "population", "complete", "missing", "share", "excluded_share"
    )  # fmt: skip
    options = {name: getattr(found.asked, name) for name in taken}
    return ol.evaluate(found.models, found.log, found.propensities, estimators=estimators, **options)


def assert_same(asked, metrics, propensities=None, estimators=ESTIMATORS, log=None, exclude=None):
    found = evaluated(asked, estimators)
    names = [name for name, _ in asked.models]
    models = {name: SCORES[name] for name in dict.fromkeys(names)}
    expected = ol.evaluate(models, log, propensities, metrics=metrics, estimators=estimators, exclude=exclude)
    assert set(found.estimates) == set(expected.estimates)
    for key, estimate in expected.estimates.items():
        same(found[key].value, estimate.value)
        same(found[key].stderr, estimate.stderr)


def test_ratings_are_those_of_memory(files):
    asked = wanted(files, metrics=("mae", "mse"))
    assert isinstance(gather(asked).log, pl.LazyFrame)
    log = ol.read(rows(files.test), **NAMED, propensity="p")  # a whole log, of share 1
    log = ol.Feedback(
        user=files.test.user, item=files.test.item, rating=files.test.rating, propensity=files.test.propensity,
        users=files.test.users, items=files.test.items,
    )  # fmt: skip
    assert_same(asked, ["mae", "mse"], log=log)


def test_parts_of_one_log_have_the_probabilities_of_their_parts(files):
    asked = wanted(files, metrics=("mae",), exclude=files / "train")
    assert_same(asked, ["mae"], log=files.test, exclude=files.train)
    asked = wanted(files, ("a_top", "b_top"), metrics=("recall@5", "dcg@10"), exclude=files / "train")
    assert_same(asked, ["recall@5", "dcg@10"], log=files.test, exclude=files.train)


def test_complete_scores_are_ranked_on_disk(files):
    asked = wanted(files, ("a_all", "b_all"), metrics=("recall@5", "mrr"), exclude=files / "train")
    assert gather(asked).asked.complete
    assert_same(asked, ["recall@5", "mrr"], log=files.test, exclude=files.train)


def test_scores_and_a_list_are_one_model(files):
    asked = wanted(
        files, ("a", "a_top", "b", "b_top"), metrics=("mae", "recall@5"), split="none", exclude=files / "train"
    )
    log = ol.Feedback(
        user=files.test.user, item=files.test.item, rating=files.test.rating, propensity=files.test.propensity,
        users=files.test.users, items=files.test.items,
    )  # fmt: skip
    train = ol.Feedback(
        user=files.train.user, item=files.train.item, rating=files.train.rating, users=log.users, items=log.items
    )
    assert_same(asked, ["mae", "recall@5"], log=log, exclude=train)


@pytest.mark.parametrize(
    ("name", "model", "gamma"),
    [
        ("popularity", ol.propensity.Popularity(), None),
        ("popularity", ol.propensity.Popularity(gamma=1.0), 1.0),
        ("uniform", ol.propensity.Uniform(), None),
    ],
    ids=["popularity", "popularity-gamma", "uniform"],
)
def test_models_of_counts_are_those_of_memory(files, name, model, gamma):
    whole = ol.read(pl.concat([rows(files.test), rows(files.train)]), **NAMED, items=ITEMS.tolist())
    model.fit(whole)
    plain = ["naive", "ips", "snips"]  # a column does not tell the shares of strata in the catalogue
    asked = wanted(files, metrics=("mae",), exclude=files / "train", propensity=name, floor=0.02, gamma=gamma)
    p = ol.Propensities(values=np.maximum(model.predict(files.test).values, 0.02))
    assert_same(asked, ["mae"], p, plain, log=files.test, exclude=files.train)
    found = gather(asked)
    assert found.about_propensity == f"{name}, fitted on log and excluded log together, raised to at least 0.02"


def test_a_split_by_time_leaves_out_what_needs_a_scale(files):
    asked = wanted(files, metrics=("mae",), exclude=files / "train", split="time")
    assert "split by time" in run(asked, "").result.skipped["mae", "ips"]
    alone = run(wanted(files, metrics=("mae",), exclude=files / "train", split="time", estimators=("ips",)), "")
    assert list(alone.result.estimators) == ["naive"]


def test_one_column_serves_ratings_and_rankings_at_once(files):
    asked = wanted(files, ("a_all", "b_all"), metrics=("mae", "recall@5", "dcg@10"), exclude=files / "train")
    found = gather(asked).asked
    assert (found.share, found.excluded_share) == (files.test.share[0], files.train.share[0])
    assert_same(asked, ["mae", "recall@5", "dcg@10"], log=files.test, exclude=files.train)
    assert gather(wanted(files, exclude=files / "train")).asked.lenient  # metrics are those that the models serve


def test_the_population_is_counted(files):
    found = gather(wanted(files, users=None, items=None, metrics=("mae",), exclude=files / "train"))
    whole = pl.concat([rows(files.test), rows(files.train)])
    assert found.asked.population == (whole["uid"].n_unique(), whole["mid"].n_unique())
    assert gather(wanted(files, metrics=("mae",))).asked.population == (U, I)


def test_text_of_digits_is_matched_as_it_is_written(tmp_path):
    pl.DataFrame({"user": ["007", "8"], "item": [1, 2], "rating": [1, 5]}).write_csv(tmp_path / "log.csv")
    for name in "ab":
        pl.DataFrame({"user": ["007", "8"], "item": [1, 2], "score": [1.0, 4.0]}).write_csv(tmp_path / f"{name}.csv")
    models = tuple((name, tmp_path / f"{name}.csv") for name in "ab")
    asked = AuditRequest(log=tmp_path / "log.csv", models=models, propensity="uniform", stream=True, metrics=("mae",))
    assert evaluated(asked, ["naive"])["a", "mae", "naive"].value == 0.5
    assert gather(asked).log.collect_schema()["user"] == pl.String


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"models": ("a.npy", "b")}, "must be a table of pairs"),
        ({"models": ("bias.safetensors", "a")}, "must be a table of pairs"),
        ({"models": ("a_wide.parquet", "b")}, "is a matrix, which is read whole"),
        ({"propensity": "logistic"}, "column, uniform or popularity, and logistic needs"),
        ({"propensity": "naive-bayes=x.csv"}, "and naive-bayes needs"),
        ({"propensity": "popularity", "calibrate": "platt"}, "popularity, calibrated .platt. needs"),
        ({"propensity": "uniform", "quantile": 0.1}, "uniform, the smallest 10 % raised needs"),
        ({"strata": ("region",)}, "--strata region is a column"),
    ],
)
def test_what_needs_memory_is_refused(files, options, told):
    with pytest.raises(InputError, match=told):
        gather(wanted(files, **options))


def test_unknown_ids_are_counted_and_named(files):
    models = tuple((name, files / f"{name}_all") for name in "ab")
    asked = AuditRequest(
        log=files / "log", models=models, propensity="p", stream=True, users=files / "users", metrics=("mae",)
    )
    missing = set(ITEMS) - set(rows(files.test)["mid"])
    assert missing == set()  # every item has a row here
    few = rows(files.test).filter(pl.col("mid") > "m02")
    write(few, files.folder / f"few{files.kind}")
    with pytest.raises(UnknownIdError, match=r"'a' .* 3 items .in 180 rows., .* 'm00', 'm01', 'm02'; pass items="):
        gather(AuditRequest(log=files / "few", models=models, propensity="p", stream=True, users=files / "users"))
    assert gather(asked).asked.population == (U, I)


def test_predictions_that_are_missing_or_none_are_refused_downstream(files, tmp_path):
    short = pl.DataFrame({"uid": [100], "mid": ["m00"], "score": [1.0]})
    write(short, tmp_path / f"a{files.kind}")
    asked = wanted(files, metrics=("mae",))
    models = (("a", tmp_path / f"a{files.kind}"), asked.models[1])
    with pytest.raises(PredictionError, match="'a': no prediction for"):
        evaluated(AuditRequest(log=asked.log, models=models, propensity="p", stream=True, metrics=("mae",)))
    for bad, told in ((None, "1 of 2 values in column 'score'"), ("high", "holds text in 1 of 2 rows.* 'high';")):
        write(
            pl.DataFrame({"uid": [100, 101], "mid": ["m00", "m01"], "score": [bad, "2"]}), tmp_path / f"a{files.kind}"
        )
        with pytest.raises(OpenloopError, match=told):
            evaluated(AuditRequest(log=asked.log, models=models, propensity="p", stream=True, metrics=("mae",)))


def test_rows_are_streamed_where_they_might_not_fit(files, monkeypatch):
    asked = wanted(files, stream=None, metrics=("mae",))
    assert not isinstance(gather(asked).log, pl.LazyFrame)
    monkeypatch.setattr(streaming, "free_memory", lambda: 1000.0)
    found = gather(asked)
    assert isinstance(found.log, pl.LazyFrame)
    assert any("streamed from disk" in note for note in found.notes)
    assert not isinstance(gather(wanted(files, stream=False, metrics=("mae",))).log, pl.LazyFrame)
    assert not isinstance(gather(wanted(files, ("a.npy", "b"), stream=None)).log, pl.LazyFrame)  # it cannot be
    both = wanted(files, stream=None, metrics=("mae", "recall@5"), exclude=files / "train")
    assert isinstance(gather(both).log, pl.LazyFrame)


def test_memory_is_known_here():
    assert 2**20 < streaming.free_memory() <= np.inf


def test_a_split_by_time_has_no_scale_and_raises_no_alarm(files):
    asked = wanted(files, metrics=("mae",), exclude=files / "train", split="time", estimators=("snips",))
    found = run(asked, "openloop audit")
    flags = found.result["a", "mae", "snips"].diagnostics.flags
    assert not any("population" in flag for flag in flags)  # no scale, so none that is off
    assert not any("excluded_share" in note for note in found.notes)


def test_dropped_rows_support_no_choice_as_in_memory(files, tmp_path):
    rows(files.test).head(90).select("uid", "mid", score=pl.lit(3.0)).write_parquet(tmp_path / "a.parquet")
    models = (("a", tmp_path / "a.parquet"), ("b", files / "b"))
    for stream in (True, False):
        asked = replace(wanted(files, metrics=("mae",), missing="drop", stream=stream), models=models)
        found = run(asked, "openloop audit")
        assert found.setting.dropped == len(files.test) - 90, stream
        assert not found.verdict.supported, stream
        assert any("dropped" in reason.text for reason in found.verdict.reasons), stream


def test_clicks_are_streamed_with_their_exposure_and_refuse_a_model_of_it(files):
    frame = rows(files.test).select("uid", "mid", "p")
    write(frame, files / "clicked")
    asked = wanted(files, ("a_all", "b_all"), log="clicked", metrics=("recall@5",))
    log = ol.read(frame, user="uid", item="mid", propensity="p", users=files.test.users, items=files.test.items)
    assert_same(asked, ["recall@5"], estimators=["naive", "snips"], log=log)
    with pytest.raises(UndefinedError, match=facts("--propensity popularity", "positives")):
        gather(wanted(files, log="clicked", propensity="popularity"))
    gather(wanted(files, log="clicked", propensity="uniform"))
