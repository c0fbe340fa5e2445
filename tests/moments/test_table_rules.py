"""The rules for predictions: the same situation gives the same error at every door, and the same names open all."""

from __future__ import annotations

import datetime as dt
import re

import polars as pl
import pytest

import openloop as ol
from openloop.commands.audit.model_files import candidate
from openloop.errors import ColumnError, InputError, OpenloopError, PredictionError, UndefinedError
from openloop.moments.table_rules import Coverage, check_missing, missing_note, not_finite, pairs_twice
from openloop.support.columns import OBVIOUS
from tests.engines import converter
from tests.facts import facts

LOG = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 3], "rating": [5.0, 1.0, 4.0, 2.0], "p": [0.5] * 4})
TRAIN = pl.DataFrame({"user": [1, 2], "item": [3, 2], "rating": [1.0, 1.0]})
SCORES = LOG.select("user", "item", score=pl.Series([4.0, 2.0, 4.0, 3.0]))
LISTS = LOG.select("user", "item", rank=pl.Series([1, 2, 1, 2]))


# -- the doors -----------------------------------------------------------------------------------------------


def evaluated(model, log, exclude, **options):
    return ol.evaluate({"m": model}, log, exclude=exclude, estimators=["naive"], **options)


def named(model, score=None, rank=None, **options):
    """A table whose columns of numbers are named, and what else is asked."""
    table = model if score is None and rank is None else ol.predictions(model, score=score, rank=rank)
    return table, options


def in_memory(model, log, exclude, tmp_path, *, into=lambda frame: frame, **options):
    feedback = ol.read(log, propensity="p")
    train = None if exclude is None else ol.read(exclude.with_columns(rating=1.0), like=feedback)
    model, options = named(into(model), **options)
    return evaluated(model, feedback, train, **options)


def from_files(model, log, exclude, tmp_path, *, score=None, rank=None, **options):
    feedback = ol.read(log, propensity="p")
    model.write_parquet(tmp_path / "m.parquet")
    columns = {"user": log.columns[0], "item": log.columns[1], "score": score, "rank": rank}
    read = candidate("m", [tmp_path / "m.parquet"], columns, [])
    train = None if exclude is None else ol.read(exclude.with_columns(rating=1.0), like=feedback)
    return evaluated(read, feedback, train, **options)


def scanned(engine):
    def door(model, log, exclude, tmp_path, **options):
        into = converter(engine) if engine != "pandas" else pl.DataFrame.to_pandas  # which keeps types of no rows
        model, options = named(into(model), **options)
        train = None if exclude is None else into(exclude)
        return evaluated(model, ol.scan(into(log), propensity="p", users=2, items=3), train, **options)

    return door


DOORS = {
    "memory": in_memory,
    "pandas memory": lambda *a, **o: in_memory(*a, into=lambda frame: frame.to_pandas(), **o),
    "files": from_files,
    **{engine: scanned(engine) for engine in ("polars", "pandas", "duckdb")},
}


def refused(door, model, tmp_path, metrics=("mae",), exclude=None, **options):
    """The error of a door, without the path that a file's has."""
    with pytest.raises(OpenloopError) as caught:
        DOORS[door](model, LOG, exclude, tmp_path, metrics=list(metrics), **options)
    return type(caught.value), re.sub(r" \([^()]*\.parquet\)", "", str(caught.value))


# -- the same errors -----------------------------------------------------------------------------------------

RANKED = {"metrics": ("recall@2",)}
SITUATIONS = {
    "no numbers": (SCORES.rename({"score": "points"}), {}, ColumnError, "'m': no column 'score' or 'rank'"),
    "two scores": (
        SCORES.rename({"score": "pred"}).with_columns(est=1.0), {}, ColumnError, "'pred', 'est' may each be the score",
    ),
    "two users": (
        SCORES.rename({"user": "uid"}).with_columns(customer_id=1), {}, ColumnError, "'uid', 'customer_id' may each be",
    ),
    "no users": (
        SCORES.rename({"user": "who"}), {}, ColumnError,
        "'m': no user column found among 'who', 'item', 'score'; call it 'user', or pass user=",
    ),
    "text": (
        SCORES.with_columns(score=pl.Series(["1", "high", "low", "high"])), {}, PredictionError,
        "'m': column 'score' holds text in 3 of 4 rows, such as 'high', 'low';",
    ),
    "text as rank": (
        LISTS.with_columns(rank=pl.Series(["1", "top", "1", "2"])), RANKED, PredictionError,
        "'m': column 'rank' holds text in 1 of 4 rows, such as 'top';",
    ),
    "dates": (
        SCORES.with_columns(score=pl.lit(dt.date(2020, 1, 1))), {}, PredictionError, "column 'score' must hold numbers",
    ),
    "gap": (
        SCORES.with_columns(score=pl.Series([1.0, None, float("inf"), 2.0])), {}, PredictionError,
        "'m': 2 of 4 values in column 'score' are missing or not finite, first in row 2;",
    ),
    "gap in ranks": (
        LISTS.with_columns(rank=pl.Series([1, None, 1, None])), RANKED, PredictionError,
        "'m': 2 of 4 values in column 'rank' are missing or not finite, first in row 2;",
    ),
    "twice": (
        pl.concat([SCORES[::-1], SCORES.head(2)]), {}, PredictionError, r"2 (user, item) pairs .* (1, 1), (1, 2);",
    ),
    "twice in a list": (
        pl.concat([LISTS, LISTS.head(1)]), RANKED, PredictionError, "1 (user, item) pairs .* (1, 1);",
    ),
    "no rows": (SCORES.head(0), {}, PredictionError, "'m': the table has no rows"),
    "no rows in a list": (LISTS.head(0), RANKED, PredictionError, "'m': the table has no rows"),
    "rank 0": (LISTS.with_columns(pl.col("rank") - 1), RANKED, PredictionError, "integers starting at 1"),
    "half a rank": (LISTS.with_columns(pl.col("rank") + 0.5), RANKED, PredictionError, "integers starting at 1"),
    "a rank twice": (LISTS.with_columns(rank=1), RANKED, PredictionError, "integers starting at 1"),
    "too deep": (LISTS.with_columns(pl.col("rank") * 2.0**40), RANKED, PredictionError, "integers starting at 1"),
    "excluded": (
        pl.concat([LISTS, pl.DataFrame({"user": [1], "item": [3], "rank": [3]})]), RANKED | {"exclude": TRAIN},
        PredictionError, "'m': its list ranks 1 excluded cells;",
    ),
    "not predicted": (
        SCORES.head(3), {}, PredictionError, "'m': no prediction for 1 of 4 scored rows, such as those of users 2;",
    ),
    "ranks alone": (LISTS, {}, UndefinedError, "mae: model 'm' has ranks and no scores"),
    "scores alone": (SCORES, RANKED, UndefinedError, "recall@2: model 'm' has neither ranks nor the scores of all"),
    "a short list": (
        LISTS.head(3), {"metrics": ("recall@3",)}, UndefinedError,
        "model 'm' is a top-2 list, which serves only @k with k ≤ 2: ask for recall@2, dcg@2, ndcg@2",
    ),
    "a list that lacks scores": (
        LISTS.head(3).with_columns(score=3.0), {}, UndefinedError,
        "model 'm' lacks predictions of some scored rows;",
    ),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_same_situation_gives_the_same_error_at_every_door(situation, tmp_path):
    model, options, error, told = SITUATIONS[situation]
    found = {door: refused(door, model, tmp_path, **options) for door in DOORS}
    kind, text = found["memory"]
    assert kind is error
    assert re.search(re.escape(told).replace(r"\.\*", ".*"), text), text
    assert {door: answer for door, answer in found.items() if answer != (kind, text)} == {}


@pytest.mark.parametrize("door", DOORS)
def test_numbers_may_be_written_as_text_at_every_door(door, tmp_path):
    written = SCORES.with_columns(score=pl.Series(["4", " 2.0", "4e0", "+3."]))
    found = DOORS[door](written, LOG, None, tmp_path, metrics=["mae"])
    assert found["m", "mae", "naive"].value == pytest.approx(3 / 4)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("missing", "value", "note"), [("drop", 2 / 3, "1 rows .*m 1"), ("worst", (1 + 1 + 0 + 3) / 4, "furthest .*m 1")]
)
def test_missing_predictions_are_dropped_or_worst_at_every_door(door, missing, value, note, tmp_path):
    found = DOORS[door](SCORES.head(3), LOG, None, tmp_path, metrics=["mae"], missing=missing)
    assert found["m", "mae", "naive"].value == pytest.approx(value)
    assert any(re.search(note, text) for text in found.notes)


# -- the same names ------------------------------------------------------------------------------------------

SPELLED = [(role, word) for role in ("user", "item") for word in OBVIOUS[role].split()]
SPELLED += [("score", word) for word in (*OBVIOUS["score"].split(), "Predicted rating")]
SPELLED += [("user", "customer_id"), ("user", "userID"), ("item", "Movie ID")]


@pytest.mark.parametrize(
    ("role", "word"), [*SPELLED, ("user", "customer_id"), ("user", "userID"), ("item", "Movie ID")]
)
def test_an_obvious_name_opens_every_door(role, word, tmp_path):
    model = SCORES if role == "score" else SCORES.with_columns(rank=LISTS["rank"])
    metrics, names = ["mae"] if role == "score" else ["mae", "recall@2"], {role: word}
    plain = in_memory(model, LOG, TRAIN, tmp_path, metrics=metrics)
    for door in ("memory", "files", "polars"):
        log = LOG if door == "memory" else LOG.rename(names, strict=False)  # read has it in its own test
        found = DOORS[door](model.rename(names), log, TRAIN.rename(names, strict=False), tmp_path, metrics=metrics)
        for metric in metrics:
            assert found["m", metric, "naive"].value == plain["m", metric, "naive"].value, door
    other = DOORS["polars"](model.rename(names), LOG, TRAIN.rename(names, strict=False), tmp_path, metrics=metrics)
    assert other["m", "mae", "naive"].value == plain["m", "mae", "naive"].value  # not called as in the log


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("word", OBVIOUS["rank"].split())
def test_a_list_with_an_obvious_name_of_ranks_opens_every_door(door, word, tmp_path):
    found = DOORS[door](LISTS.rename({"rank": word}), LOG, None, tmp_path, metrics=["recall@2"])
    plain = in_memory(LISTS, LOG, None, tmp_path, metrics=["recall@2"])
    assert found["m", "recall@2", "naive"].value == plain["m", "recall@2", "naive"].value


@pytest.mark.parametrize("door", DOORS)
def test_numbers_are_named_at_every_door(door, tmp_path):
    """Columns that were named are taken, whatever the others are called."""
    given = {"score": "points", "rank": "at"}
    odd = SCORES.with_columns(rank=LISTS["rank"]).rename(given).with_columns(score=1.0, rank=pl.Series([2, 1, 2, 1]))
    plain = in_memory(SCORES.with_columns(rank=LISTS["rank"]), LOG, None, tmp_path, metrics=["mae", "recall@1"])
    found = DOORS[door](odd, LOG, None, tmp_path, metrics=["mae", "recall@1"], **given)
    for metric in ("mae", "recall@1"):
        assert found["m", metric, "naive"].value == plain["m", metric, "naive"].value


@pytest.mark.parametrize("door", DOORS)
def test_a_position_beside_scores_is_no_rank(door, tmp_path):
    """It may be where an item was shown; as a rank it would be refused here, since a user has it twice."""
    found = DOORS[door](SCORES.with_columns(position=1), LOG, None, tmp_path, metrics=["mae"])
    assert found["m", "mae", "naive"].value == pytest.approx(3 / 4)


def test_models_may_call_their_ids_otherwise_than_each_other():
    """A name that the log has is that of the tables that have it."""
    models = {"a": SCORES, "b": SCORES.rename({"user": "client"})}
    log = ol.scan(LOG.rename({"user": "client"}), user="client")
    found = ol.evaluate(models, log, metrics=["mae"], estimators=["naive"])
    assert found["a", "mae", "naive"].value == found["b", "mae", "naive"].value


@pytest.mark.parametrize("word", OBVIOUS["rating"].split())
def test_obvious_names_of_ratings_are_found_in_frames(word, tmp_path):
    found = DOORS["polars"](SCORES, LOG.rename({"rating": word}), None, tmp_path, metrics=["mae"])
    assert (
        found["m", "mae", "naive"].value
        == in_memory(SCORES, LOG, None, tmp_path, metrics=["mae"])["m", "mae", "naive"].value
    )


def test_two_candidates_for_a_column_of_the_log_are_refused_by_read_and_by_scan(tmp_path):
    twice = LOG.with_columns(customer=1)
    for call in (lambda: ol.read(twice), lambda: DOORS["polars"](SCORES, twice, None, tmp_path, metrics=["mae"])):
        with pytest.raises(ColumnError, match="'user', 'customer' may each be the user column; pass user="):
            call()


# -- metrics that nobody named -------------------------------------------------------------------------------


@pytest.mark.parametrize("door", DOORS)
def test_lists_are_judged_by_default_by_what_they_serve(door, tmp_path):
    found = DOORS[door](LISTS.head(3), LOG, None, tmp_path)
    assert found.metrics == ("recall@2", "dcg@2")
    wanted = DOORS[door](LISTS.head(3), LOG, None, tmp_path, metrics=["recall@2", "dcg@2"])
    assert {key: e.value for key, e in found.estimates.items()} == {k: e.value for k, e in wanted.estimates.items()}
    assert any(re.search(facts("'m'", "top-2", "metrics="), note) for note in found.notes)
    both = DOORS[door](LISTS.with_columns(score=SCORES["score"]), LOG, None, tmp_path)
    assert both.metrics == ("mae", "mse", "recall@2", "dcg@2")
    assert DOORS[door](SCORES, LOG, None, tmp_path).metrics == ("mae", "mse")


def test_metrics_that_were_named_are_not_cut():
    with pytest.raises(UndefinedError, match=facts("recall@3", "top-2", "recall@2")):
        ol.evaluate({"m": LISTS.head(3)}, ol.read(LOG), metrics=["recall@3"], estimators=["naive"])


# -- the parts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coverage", "metric", "served"),
    [
        (Coverage(), "mae", True), (Coverage(), "map", True), (Coverage(scores=False), "mae", False),
        (Coverage(scores=False), "map", True), (Coverage(predicted=False), "mae", False),
        (Coverage(predicted=False), "recall@3", True), (Coverage(ranks=False), "recall@3", False),
        (Coverage(depth=3), "recall@3", True), (Coverage(depth=3), "recall@4", False),
        (Coverage(depth=3), "map", False),
    ],
)  # fmt: skip
def test_what_predictions_cover_decides_which_metrics_they_serve(coverage, metric, served):
    assert (coverage.refusal(ol.metric(metric)) is None) == served


def test_imputation_needs_every_cell():
    assert Coverage(cells=False).refusal(ol.metric("mae")) is None
    assert "every cell" in Coverage(cells=False).refusal(ol.metric("mae"), everywhere=True)


def test_what_is_done_about_missing_predictions_is_noted():
    assert missing_note("drop", {"a": 3, "b": 1}, 4).startswith("4 rows")
    assert "a 3, b 1 rows" in missing_note("worst", {"a": 3, "b": 1}, 0)
    with pytest.raises(InputError, match="'ignore'"):
        check_missing("ignore")


def test_long_ids_and_columns_are_cut():
    said = str(not_finite("model 'm'", "c" * 999, 1, 2, 6))
    assert "c" * 190 in said
    assert "c" * 201 not in said
    assert "first in row 7" in said
    said = pairs_twice("model 'm'", 1, [("u" * 999, 7)])
    assert "u" * 190 in said
    assert "u" * 201 not in said
