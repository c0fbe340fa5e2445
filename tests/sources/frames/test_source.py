"""Frames that stay where they are give the numbers that arrays give, on every engine."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.errors import EmptyError, InputError, PredictionError, PropensityError, RatingError, UndefinedError
from openloop.sources.frames import collecting, summing
from openloop.sources.frames import rows as frame_rows
from tests.engines import EAGER, converter
from tests.examples import CELL, METRICS, small_world
from tests.facts import facts

ESTIMATORS = (
    "naive", "ips", "snips", "snips_user", "ips_eq3", "clipped", "clipped@2", "stratified@3",
    "stratified@2:width", "stratified@3:observed",
)  # fmt: skip
NAMES = {"user": "uid", "item": "mid", "rating": "stars"}


class Case:
    """A small world as Feedback and as Polars frames: the log, and each model's full scores."""

    def __init__(self, users=30, items=12):
        self.world = small_world(users, items)
        self.log = self.world.observe(3)
        self.population = self.world.ratings.shape
        self.frame = pl.DataFrame(
            {"uid": self.log.user, "mid": self.log.item, "stars": self.log.rating, "p": self.log.propensity}
        )
        u, i = np.indices(self.population).reshape(2, -1)
        self.scores = {
            name: pl.DataFrame({"uid": u.astype(np.int32), "mid": i.astype(np.int32), "score": values.ravel()})
            for name, values in self.world.predictions.items()
        }

    def ranks(self, name, depth=None):
        """A model's ranking as a list; ties are broken by item, so that ranks are distinct."""
        ranked = self.scores[name].with_columns(
            rank=pl.col("score").rank("ordinal", descending=True).over("uid").cast(pl.Int64)
        )
        return ranked.drop("score") if depth is None else ranked.drop("score").filter(pl.col("rank") <= depth)

    def evaluate(self, into=lambda frame: frame, models=None, **options):
        models = {name: into(frame) for name, frame in (models or self.scores).items()}
        options = {"population": self.population, "threshold": 4} | NAMES | options
        return ol.evaluate(models, into(self.frame), "p", **options)


@pytest.fixture(scope="module")
def case():
    return Case()


def agree(found, wanted):
    assert set(found.estimates) == set(wanted.estimates)
    for key, reference in wanted.estimates.items():
        other = found[key]
        # A gain that is 0 for every row leaves rounding of sums near 0.
        np.testing.assert_allclose(other.value, reference.value, rtol=1e-10, atol=1e-14, err_msg=str(key))
        np.testing.assert_allclose(other.stderr, reference.stderr, rtol=1e-10, atol=1e-14, err_msg=str(key))
        assert (other.cell_variance is None) == (reference.cell_variance is None)
        if reference.cell_variance is not None:
            np.testing.assert_allclose(other.cell_variance, reference.cell_variance, rtol=1e-9, atol=1e-16)
        assert other.diagnostics.quantiles == pytest.approx(reference.diagnostics.quantiles)
        assert other.diagnostics.flags == reference.diagnostics.flags
    for key, pair in wanted.pairs.items():
        assert found.pairs[key].parts == pytest.approx(pair.parts, rel=1e-10)
        if pair.cell_variance is not None:
            assert found.pairs[key].cell_variance == pytest.approx(pair.cell_variance, rel=1e-9)


@pytest.mark.parametrize("engine", EAGER)
def test_every_metric_and_estimator_agrees_with_arrays_on_every_engine(case, engine):
    options = {"metrics": METRICS, "estimators": ESTIMATORS}
    wanted = ol.evaluate(case.world.predictions, case.log, threshold=4, **options)
    found = case.evaluate(converter(engine), complete=True, **options)
    agree(found, wanted)
    assert found.skipped.keys() == wanted.skipped.keys()


@pytest.mark.slow
def test_every_estimator_agrees_with_arrays_on_spark(case, spark):
    options = {"metrics": ("mae", "adg", "ndcg@3", "map"), "estimators": ESTIMATORS}
    predictions = {"a": case.world.predictions["a"]}
    wanted = ol.evaluate(predictions, case.log, threshold=4, **options)
    found = case.evaluate(converter("spark", spark), {"a": case.scores["a"]}, complete=True, distinct=True, **options)
    agree(found, wanted)


def test_only_sums_of_users_leave_spark(spark, monkeypatch):
    left = []
    plain = collecting.together

    def counted(frames):
        tables = plain(frames)
        left.extend(len(table) for table in tables)
        return tables

    monkeypatch.setattr(collecting, "together", counted)
    monkeypatch.setattr(frame_rows, "together", counted)
    case = Case(users=60, items=40)
    into = converter("spark", spark)
    case.evaluate(into, {"a": case.scores["a"]}, metrics=["mae"], estimators=["ips", "snips"])
    assert left
    assert max(left) == 60 < len(case.log) / 10  # the users; the weights' histogram has fewer bins


def test_above_a_set_size_only_clusters_of_users_leave_the_engine(case, monkeypatch):
    sizes = []
    plain = summing.reduce_all

    def counted(passes):
        found = plain(passes)
        sizes.extend(len(sums.ids) for sums in found)
        return found

    monkeypatch.setattr(summing, "reduce_all", counted)
    estimators = ["naive", "ips", "snips", "stratified@3", "stratified@3:observed"]
    options = {"metrics": ["mae", "recall@3", "ndcg"], "estimators": estimators, "complete": True}
    whole = case.evaluate(**options)
    sizes.clear()
    found = case.evaluate(max_users=10, **options)
    assert max(sizes) == 10
    assert any("clusters" in note for note in found.notes)
    for key in found.estimates:
        assert found[key].value == pytest.approx(whole[key].value, rel=1e-12)
        assert found[key].n_users == 10
        assert 0.3 < found[key].stderr / whole[key].stderr < 3
    assert ("a", "mae", "snips") in found.estimates
    assert ("a", "recall@3", "snips") in found.estimates
    assert ("a", "recall@3", "stratified@3") in found.estimates  # relevant cells are pooled, with their shares
    assert "max_users=" in found.skipped["recall@3", "stratified@3:observed"]
    assert "max_users=" in found.skipped["ndcg", "snips"]
    assert "max_users=" in found.skipped["recall@3", "naive"]


@pytest.mark.parametrize("engine", ["polars", "pandas", "duckdb"])
def test_excluding_takes_items_from_the_ranking_and_from_the_population(case, engine):
    train, test = ol.split(case.log, test=0.5, rng=0)
    # Of another origin, a part excludes without changing the probability of the scored rows.
    apart = train.take(slice(None), origin=None)
    options = {"metrics": ("dcg@3", "recall@3", "auc", "map"), "estimators": ("naive", "ips", "snips"), "threshold": 4}
    whole = test.take(slice(None), share=np.ones(len(test)))
    wanted = ol.evaluate(case.world.predictions, whole, exclude=apart, **options)
    into = converter(engine)
    parts = [pl.DataFrame({"uid": f.user, "mid": f.item, "stars": f.rating, "p": f.propensity}) for f in (train, test)]
    found = ol.evaluate(
        {name: into(frame) for name, frame in case.scores.items()}, into(parts[1]), "p", exclude=into(parts[0]),
        complete=True, population=case.population, **options, **NAMES,
    )  # fmt: skip
    agree(found, wanted)


def test_what_is_excluded_counts_for_users_without_a_scored_row_and_for_clusters(case):
    train, test = ol.split(case.log, test=0.5, rng=0)
    test = test.take(test.user > 4, share=np.ones((test.user > 4).sum()))
    apart = train.take(slice(None), origin=None)
    options = {"metrics": ["mae", "dcg@3"], "estimators": ["ips", "snips"], "threshold": 4}
    wanted = ol.evaluate(case.world.predictions, test, exclude=apart, **options)
    frames = [pl.DataFrame({"uid": f.user, "mid": f.item, "stars": f.rating, "p": f.propensity}) for f in (train, test)]
    options |= {"complete": True, "population": case.population, "exclude": frames[0]} | NAMES
    agree(ol.evaluate(case.scores, frames[1], "p", **options), wanted)
    clustered = ol.evaluate(case.scores, frames[1], "p", max_users=10, **options)
    for key in wanted.estimates:
        assert clustered[key].value == pytest.approx(wanted[key].value, rel=1e-12)


def test_excluded_users_without_a_scored_row_belong_to_the_population(case):
    train, test = ol.split(case.log, test=0.5, rng=0)
    test = test.take(test.user > 4)
    frames = [pl.DataFrame({"uid": f.user, "mid": f.item, "stars": f.rating, "p": f.propensity}) for f in (train, test)]
    options = {"metrics": ["dcg@3"], "estimators": ["ips"], "complete": True, "exclude": frames[0]} | NAMES
    found = ol.evaluate(case.scores, frames[1], "p", **options)
    assert found["a", "dcg@3", "ips"].n_users == case.population[0]
    with pytest.raises(InputError, match="population= has 26 users, the log 30"):
        ol.evaluate(case.scores, frames[1], "p", population=(26, 12), **options)


def test_a_whole_ranking_serves_every_metric(case):
    options = {"metrics": ("dcg", "adg", "map", "mrr", "auc"), "estimators": ("naive", "snips")}
    found = case.evaluate(models={"a": case.ranks("a")}, complete=True, **options)
    agree(found, ol.evaluate({"a": case.world.predictions["a"]}, case.log, threshold=4, **options))


WHOLE = ("dcg", "adg", "atop", "ndcg", "map", "mrr", "auc", "recall@3", "hit@3", "dcg@3", "ndcg@3", "precision@3")


def counts(case, name):
    """How many items are above each scored one, and tied with it: model b has many ties."""
    score = pl.col("score")
    counted = case.scores[name].with_columns(
        above=(score.rank("min", descending=True).over("uid") - 1).cast(pl.Int64),
        tied=pl.len().over("uid", "score").cast(pl.Int64),
    )
    return counted.drop("score").join(case.frame.select("uid", "mid"), on=["uid", "mid"], how="semi")


@pytest.mark.parametrize("engine", EAGER)
def test_counts_of_scored_rows_give_what_all_scores_give(case, engine):
    options = {"metrics": WHOLE, "estimators": ("naive", "ips", "snips", "snips_user", "stratified@3:observed")}
    tables = {name: counts(case, name) for name in case.scores}
    assert tables["b"]["tied"].max() > 3
    wanted = ol.evaluate(case.world.predictions, case.log, threshold=4, **options)
    found = case.evaluate(converter(engine), tables, complete=True, **options)
    agree(found, wanted)
    for key, e in wanted.estimates.items():
        np.testing.assert_allclose(found[key].value, e.value, rtol=1e-12, atol=1e-14, err_msg=str(key))


def test_counts_give_what_all_scores_give_on_spark(case, spark):
    options = {"metrics": ["adg", "map"], "estimators": ["naive", "snips"]}
    wanted = ol.evaluate({"b": case.world.predictions["b"]}, case.log, threshold=4, **options)
    agree(case.evaluate(converter("spark", spark), {"b": counts(case, "b")}, complete=True, **options), wanted)


def test_counts_are_of_candidates_in_the_population_and_hold_no_lists(case):
    table = {"b": counts(case, "b")}
    log = case.frame.filter(pl.col("mid") < 11)
    with pytest.raises(InputError, match=facts("'b'", 12, 11, "population=")):
        ol.evaluate(table, log, "p", metrics=["adg"], complete=True, population=(30, 11), **NAMES)
    with pytest.raises(UndefinedError, match=facts("coverage@3", "'b'", "lists")):
        case.evaluate(models=table, metrics=["coverage@3"], complete=True)
    # Counted among all items, where a user's candidates are fewer.
    last = counts(case, "b").with_columns(above=pl.lit(11.0), tied=pl.lit(1.0))
    left_out = case.frame.select("uid", "mid").head(1)
    with pytest.raises(InputError, match=facts("'b'", 13, 12, "exclude=")):
        ol.evaluate(
            {"b": last}, case.frame.slice(1), exclude=left_out, metrics=["adg"], estimators=["naive"], complete=True,
            population=case.population, threshold=4, **NAMES,
        )  # fmt: skip


@pytest.mark.parametrize("engine", EAGER)
def test_a_rank_column_serves_without_scores(case, engine):
    options = {"metrics": ("ndcg@3", "recall@2", "hit@3", "dcg@3"), "estimators": ("naive", "snips", "stratified@3")}
    lists = {"a": case.ranks("a", depth=3)}
    wanted = ol.evaluate({"a": lists["a"].rename({"uid": "user", "mid": "item"})}, case.log, threshold=4, **options)
    agree(case.evaluate(converter(engine), lists, **options), wanted)


def test_a_top_k_list_serves_only_up_to_k(case):
    lists = {"a": case.ranks("a", depth=3)}
    found = case.evaluate(models=lists, metrics=["ndcg@3", "ndcg@4", "ndcg"], estimators=["naive"])
    assert set(found.metrics) == {"ndcg@3"}
    assert "top-3" in found.skipped["ndcg@4", "naive"]
    assert "top-3" in found.skipped["ndcg", "naive"]


def test_models_may_be_columns_of_the_log(case):
    joined = case.frame
    for name, scores in case.scores.items():
        joined = joined.join(scores.rename({"score": name}), on=["uid", "mid"], how="left")
    options = {"metrics": CELL[:4], "estimators": ("naive", "ips", "snips", "stratified@3")}
    found = ol.evaluate({"a": "a", "b": "b"}, joined, "p", population=case.population, threshold=4, **options, **NAMES)
    agree(found, ol.evaluate(case.world.predictions, case.log, threshold=4, **options))


def test_rows_in_any_order_and_lazy_rows_give_the_same(case):
    options = {"metrics": ["mae", "adg"], "estimators": ["snips", "stratified@3"], "complete": True}
    first = case.evaluate(**options)
    case.frame = case.frame.sample(fraction=1, shuffle=True, seed=1)
    agree(case.evaluate(**options), first)


def test_text_ids_work_like_numbers(case):
    text = {name: f.with_columns(pl.col("uid").cast(str), pl.col("mid").cast(str)) for name, f in case.scores.items()}
    frame = case.frame.with_columns(pl.col("uid").cast(str), pl.col("mid").cast(str))
    options = {"metrics": ["mae", "ndcg"], "estimators": ["naive", "snips"], "threshold": 4, "complete": True}
    found = ol.evaluate(text, frame, "p", population=case.population, **options, **NAMES)
    wanted = case.evaluate(**options)
    for key in wanted.estimates:
        assert found[key].value == pytest.approx(wanted[key].value, rel=1e-12)
        assert found[key].stderr == pytest.approx(wanted[key].stderr, rel=1e-12)


def test_unsigned_and_single_precision_columns_do_not_wrap_or_round(case):
    frame = case.frame.with_columns(pl.col("stars").cast(pl.UInt8), pl.col("p").cast(pl.Float64))
    options = {"metrics": ["mae", "mse"], "estimators": ["ips", "snips"]}
    wanted = case.evaluate(**options)
    found = ol.evaluate(case.scores, frame, "p", population=case.population, **options, **NAMES)
    agree(found, wanted)


def test_without_a_population_the_log_is_taken_and_it_says_so(case):
    found = case.evaluate(metrics=["mae"], estimators=["ips"], population=None)
    assert any("population" in note for note in found.notes)


def change(case, column, value):
    return case.frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 5).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
    )


@pytest.mark.parametrize("engine", EAGER)
@pytest.mark.parametrize(
    ("column", "value", "error", "words"),
    [
        ("stars", None, RatingError, "1 of .* missing or infinite rating in column 'stars'"),
        ("stars", float("nan"), RatingError, "missing or infinite rating"),
        ("stars", float("inf"), RatingError, "missing or infinite rating"),
        ("p", 1e-200, PropensityError, r"outside \(0, 1\]"),
        ("p", None, PropensityError, "missing or infinite propensity in column 'p'"),
        ("p", 0.0, PropensityError, r"outside \(0, 1\]"),
        ("p", 1.5, PropensityError, r"outside \(0, 1\]"),
    ],
)
def test_what_no_engine_may_sum_over_is_refused(case, engine, column, value, error, words):
    into = converter(engine)
    scores = {"a": into(case.scores["a"])}
    with pytest.raises(error, match=words):
        ol.evaluate(scores, into(change(case, column, value)), "p", metrics=["mae"], estimators=["snips"],
                    population=case.population, **NAMES)  # fmt: skip


def test_missing_ids_are_refused(case):
    frame = change(case, "uid", None).with_columns(a=pl.lit(3.0))
    with pytest.raises(InputError, match=r"1 of .* no user id in column 'uid'"):
        ol.evaluate({"a": "a"}, frame, "p", metrics=["mae"], estimators=["snips"], **NAMES)


def test_an_empty_frame_is_refused(case):
    with pytest.raises(EmptyError, match="no rows"):
        ol.evaluate(case.scores, case.frame.head(0), "p", metrics=["mae"], estimators=["snips"], **NAMES)


def test_a_population_smaller_than_the_log_is_refused(case):
    with pytest.raises(InputError, match=r"population= has 3 users, the log 30"):
        case.evaluate(metrics=["mae"], estimators=["ips"], population=(3, 12))
    with pytest.raises(InputError, match=facts("population=", "3 items", 12)):
        case.evaluate(metrics=["mae"], estimators=["ips"], population=(30, 3))


def test_propensities_must_be_named(case):
    with pytest.raises(InputError, match="name of its column"):
        ol.evaluate(case.scores, case.frame, np.ones(3), metrics=["mae"], **NAMES)
    with pytest.raises(UndefinedError, match="name their column"):
        ol.evaluate(case.scores, case.frame, metrics=["mae"], estimators=["snips"], **NAMES)


def test_the_doubly_robust_estimator_needs_feedback(case):
    found = case.evaluate(metrics=["mae"], estimators=["snips", "dr"])
    assert "ol.read" in found.skipped["mae", "dr"]


# -- parts of a split ----------------------------------------------------------------------------------------

SPLIT = {
    "metrics": ("mae", "dcg@10", "recall@10"),
    "estimators": ("naive", "ips", "snips", "clipped@20", "stratified@3"),
}


def split_frames(log):
    parts = ol.split(log, test=0.4, rng=0)
    frames = [pl.DataFrame({"uid": f.user, "mid": f.item, "stars": f.rating, "p": f.propensity}) for f in parts]
    return (*parts, *frames)


@pytest.mark.parametrize("engine", EAGER)
def test_frames_of_a_split_with_their_shares_give_what_its_parts_give(engine):
    case, into = Case(users=40, items=30), converter(engine)
    train, test, excluded, scored = split_frames(case.log)
    wanted = ol.evaluate(case.world.predictions, test, exclude=train, threshold=4, **SPLIT)
    found = ol.evaluate(
        {name: into(frame) for name, frame in case.scores.items()}, into(scored), "p", exclude=into(excluded),
        share=test.share[0], excluded_share=train.share[0], complete=True, population=case.population, threshold=4,
        **SPLIT, **NAMES,
    )  # fmt: skip
    agree(found, wanted)
    assert found.skipped.keys() == wanted.skipped.keys()


def test_a_share_alone_is_that_of_a_part_of_which_nothing_is_excluded(case):
    _, test, _, scored = split_frames(case.log)
    wanted = ol.evaluate(case.world.predictions, test, threshold=4, **SPLIT)
    options = {"share": test.share[0], "complete": True, "population": case.population, "threshold": 4} | SPLIT | NAMES
    agree(ol.evaluate(case.scores, scored, "p", **options), wanted)


def test_shares_are_those_of_two_parts_of_one_log(case):
    _, test, excluded, scored = split_frames(case.log)
    for shares in ({"share": 0.0}, {"share": 1.5}, {"share": True}, {"share": "half"}, {"excluded_share": 0.5},
                   {"share": 0.6, "excluded_share": 0.5}, {"share": 0.5, "excluded_share": -0.1}):  # fmt: skip
        with pytest.raises(InputError, match="share="):
            ol.evaluate(case.scores, scored, "p", exclude=excluded, **shares, **NAMES)
    with pytest.raises(InputError, match=r"excluded_share= .* exclude="):
        ol.evaluate(case.scores, scored, "p", share=0.5, excluded_share=0.5, **NAMES)
    with pytest.raises(InputError, match="name their column"):
        ol.evaluate(case.scores, scored, share=0.5, estimators=["naive"], **NAMES)
    for shares in ({"share": 0.4}, {"share": 0.4, "excluded_share": 0.6, "exclude": test}):
        with pytest.raises(InputError, match="share= does not apply: the log is a Feedback"):
            ol.evaluate(case.world.predictions, test, **shares)


# -- relevance -----------------------------------------------------------------------------------------------

LEVELS = [0.1, 0.7, 0.7000000001, 0.6999999, 1.3, 0.7, 2.7, 0.3]
DTYPES = [pl.Float32, pl.Float64, pl.Int64, pl.UInt8, pl.Decimal(10, 2)]


def relevant(rows, threshold, into):
    """How many rows are relevant in a frame and in the Feedback that it is read as."""
    scores = rows.select("user", "item", score=pl.col("item").cast(pl.Float64))
    options = {"metrics": ["hit@3"], "estimators": ["naive"], "threshold": threshold}
    framed = ol.evaluate({"m": into(scores)}, into(rows), complete=True, **options)
    held = ol.evaluate({"m": scores}, ol.read(rows), **options)
    return [found["m", "hit@3", "naive"].diagnostics.n for found in (framed, held)]


@pytest.mark.parametrize("engine", EAGER)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_rating_reaches_the_threshold_in_frames_as_in_feedback(engine, dtype):
    for threshold in (0.7, 0.1, 1, 0.6999999):
        rows = pl.DataFrame({"user": np.zeros(8, int), "item": np.arange(8), "rating": pl.Series(LEVELS).cast(dtype)})
        wanted = int((rows["rating"].cast(pl.Float64).to_numpy().astype(np.float32) >= np.float32(threshold)).sum())
        assert relevant(rows, threshold, converter(engine)) == [wanted, wanted], threshold


def test_a_rating_reaches_the_threshold_on_spark(spark):
    rating = pl.Series(LEVELS).cast(pl.Float32)
    rows = pl.DataFrame({"user": np.zeros(8, int), "item": np.arange(8), "rating": rating})
    assert relevant(rows, 0.7, converter("spark", spark)) == [5, 5]


def test_excluded_items_belong_to_the_catalogue():
    log = pl.DataFrame({"user": [0, 0, 1], "item": [0, 1, 2], "rating": [5.0, 4.0, 5.0]})
    grid = pl.DataFrame({"user": [0] * 4 + [1] * 4, "item": [0, 1, 2, 3] * 2, "score": [4.0, 3, 2, 1] * 2})
    options = {"metrics": ["atop"], "estimators": ["naive"], "complete": True, "threshold": 4}
    retired = pl.DataFrame({"user": [0, 0], "item": [1000, 1001]})
    with pytest.raises(InputError, match=facts("population=", "4 items", 5, "exclude=")):
        ol.evaluate({"m": grid}, log, exclude=retired, population=(2, 4), **options)
    within = ol.evaluate(
        {"m": grid}, log, exclude=pl.DataFrame({"user": [0], "item": [3]}), population=(2, 4), **options
    )
    assert within["m", "atop", "naive"].value == pytest.approx((0.75 + 1 / 3) / 2)


def test_rows_without_ids_are_refused_and_not_taken_for_rows_without_a_prediction():
    log = pl.DataFrame({"user": [0, None, 1], "item": [0, 1, 2], "rating": [5.0, 4.0, 5.0]})
    scores = pl.DataFrame({"user": [0, 1], "item": [0, 2], "score": [4.0, 3.0]})
    for missing in ("error", "drop", "worst"):
        with pytest.raises(InputError, match=facts("1 rows", "user or item id")):
            ol.evaluate({"m": scores}, log, metrics=["mae"], estimators=["naive"], missing=missing, population=(2, 3))


@pytest.mark.parametrize("engine", ["polars", "pandas", "duckdb"])
def test_a_rank_that_a_user_has_twice_is_refused_also_where_nothing_is_scored(engine):
    into = converter(engine)
    log = into(pl.DataFrame({"user": [0, 1], "item": [4, 4], "rating": [5.0, 5.0]}))
    lists = pl.DataFrame({"user": [0] * 5, "item": [0, 1, 2, 3, 4], "rank": [1, 1, 2, 3, 4]})
    with pytest.raises(PredictionError, match=facts("model 'm'", "ranks")):
        ol.evaluate({"m": into(lists)}, log, metrics=["recall@3"], estimators=["naive"], population=(2, 5))
