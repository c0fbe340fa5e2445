"""Models to outcomes: arrays, recommenders and tables say the same, and what they cannot say is refused."""

from __future__ import annotations

from functools import cache

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import (
    DeviceError,
    InputError,
    PredictionError,
    UnknownIdError,
)
from tests.examples import same, small_world
from tests.facts import facts

WORLD = small_world()
LOG = WORLD.observe(1)
SCORES = WORLD.predictions["a"]
U, I = SCORES.shape


class Recommender:
    """A recommender of given scores, with a name that must not be mistaken for a table's kind."""

    kind = "user"

    def __init__(self, scores=SCORES):
        self._scores = scores

    def predict(self, user, item):
        return self._scores[user, item]

    def scores(self, users):
        return self._scores[users]


class Factors(Recommender):
    """The same as one matrix product."""

    def factor_arrays(self):
        left, size, right = np.linalg.svd(self._scores, full_matrices=False)
        return left * size, right.T, np.zeros(I)


def table(scores=SCORES, keep=slice(None)):
    user, item = (codes.ravel()[keep] for codes in np.indices(scores.shape))
    return pl.DataFrame({"user": user, "item": item, "score": scores[user, item]})


def top(k):
    order = np.argsort(-SCORES, axis=1)[:, :k]
    rank = np.tile(np.arange(1, k + 1), U)
    return pl.DataFrame({"user": np.repeat(np.arange(U), k), "item": order.ravel(), "rank": rank})


def evaluated(model, metrics=("mae", "ndcg", "auc"), **options):
    return ol.evaluate({"m": model}, LOG, metrics=metrics, estimators=["naive"], **options)


@cache
def of_array():
    return evaluated(SCORES)


def assert_same_as_array(model):
    for key, estimate in evaluated(model).estimates.items():
        same(estimate.value, of_array()[key].value, rtol=1e-6)


# -- all forms of a model agree ------------------------------------------------------------------------------


def test_recommenders_and_factor_models_say_what_their_scores_say():
    assert_same_as_array(Recommender())
    assert_same_as_array(Factors())


ENGINES = {
    "polars": lambda t: t,
    "lazy": lambda t: t.lazy(),
    "pandas": lambda t: t.to_pandas(),
    "pyarrow": lambda t: t.to_arrow(),
    "duckdb": lambda t: duckdb.from_arrow(t.to_arrow()),
}


@pytest.mark.parametrize("convert", ENGINES.values(), ids=ENGINES)
def test_tables_of_any_engine_say_what_their_scores_say(convert):
    assert_same_as_array(convert(table()))


def test_rows_of_a_table_may_come_in_any_order_and_under_other_names():
    mixed = table().sample(fraction=1.0, shuffle=True, seed=0)
    assert_same_as_array(mixed.rename({"user": "userId", "item": "movieId", "score": "prediction"}))


def test_ids_are_those_of_the_vocabularies():
    named = Feedback.from_arrays(
        LOG.user, LOG.item, LOG.rating,
        users=Vocabulary.of([f"u{u:02}" for u in range(U)]), items=Vocabulary.of([100 + i for i in range(I)]),
    )  # fmt: skip
    renamed = table().with_columns(
        pl.format("u{}", pl.col("user").cast(pl.String).str.zfill(2)).alias("user"), item=pl.col("item") + 100
    )
    found = ol.evaluate({"m": renamed}, named, metrics=["mae", "ndcg"], estimators=["naive"])
    for key in found.estimates:
        same(found[key].value, of_array()[key].value, rtol=1e-6)
    with pytest.raises(UnknownIdError, match="model 'm'"):
        ol.evaluate({"m": table()}, named, metrics=["mae"], estimators=["naive"])


def test_precision_is_kept():
    close = 3 + 1e-9 * np.argsort(np.random.default_rng(0).random((U, I)), axis=1)
    by_rank = np.argsort(np.argsort(close, axis=1), axis=1).astype(float)
    wanted = evaluated(by_rank, ["ndcg"])["m", "ndcg", "naive"].value
    for model in (close, Recommender(close), table(close)):
        same(evaluated(model, ["ndcg"])["m", "ndcg", "naive"].value, wanted)


# -- top-k lists ---------------------------------------------------------------------------------------------


def test_a_top_k_list_serves_at_j_up_to_k():
    names = ["ndcg@5", "recall@3", "hit@5", "dcg@5", "prec@4", "precision@5"]
    listed, whole = evaluated(top(5), names), evaluated(SCORES, names)
    for key in whole.estimates:
        same(listed[key].value, whole[key].value)


def test_what_a_list_cannot_serve_is_left_out_for_all_models():
    models = {"list": top(5), "array": SCORES}
    result = ol.evaluate(models, LOG, metrics=["ndcg@5", "ndcg", "mae"], estimators=["naive"])
    assert set(result.skipped) == {("ndcg", "naive"), ("mae", "naive")}
    assert result.metrics == ("ndcg@5",)


# -- missing predictions -------------------------------------------------------------------------------------

GAPS = (LOG.user[[3, 8]], LOG.item[[3, 8]])
KEEP = np.setdiff1d(np.arange(U * I), GAPS[0] * I + GAPS[1])


def test_missing_predictions_may_drop_their_rows_for_all_models():
    result = ol.evaluate(
        {"m": table(keep=KEEP), "whole": SCORES}, LOG, metrics=["mae"], estimators=["naive", "snips"], missing="drop"
    )
    rest = LOG.take(np.setdiff1d(np.arange(len(LOG)), [3, 8]))
    wanted = ol.evaluate({"m": SCORES}, rest, metrics=["mae"], estimators=["naive", "snips"])
    for model in ("m", "whole"):
        for estimator in ("naive", "snips"):
            same(result[model, "mae", estimator].value, wanted["m", "mae", estimator].value)
    assert any("2 rows" in note and "dropped" in note and "bias" in note for note in result.notes)


def test_missing_predictions_may_count_as_the_furthest_rating():
    result = evaluated(table(keep=KEEP), ["mae"], missing="worst")
    delta = np.abs(LOG.rating - SCORES[LOG.user, LOG.item])
    delta[[3, 8]] = np.maximum(LOG.rating[[3, 8]] - 1, 5 - LOG.rating[[3, 8]])
    same(result["m", "mae", "naive"].value, delta.mean())
    assert any("furthest rating: m 2 rows" in note for note in result.notes)


def test_a_recommendation_has_no_furthest_rating():
    chosen = (SCORES > 3).astype(float)
    with pytest.raises(PredictionError, match="0/1"):
        evaluated(table(chosen, KEEP), ["cg@3"], missing="worst")


def test_all_rows_dropped_leave_nothing():
    with pytest.raises(InputError, match="no rows are left"):
        evaluated(table(keep=np.setdiff1d(np.arange(U * I), LOG.cell)[:5]), ["mae"], missing="drop")


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_predictions_that_are_not_finite_are_refused(bad):
    holed = SCORES.copy()
    holed[LOG.user[0], LOG.item[0]] = bad
    for model in (holed, Recommender(holed), table(holed)):
        with pytest.raises(PredictionError, match="not finite"):
            evaluated(model, ["mae"])


def test_only_what_a_model_does_not_know_may_lack_a_prediction():
    class Knowing(Recommender):
        def knows(self, user, item):
            return item != LOG.item[0]

    holed = SCORES.copy()
    holed[:, LOG.item[0]] = np.nan
    gaps = int((LOG.item == LOG.item[0]).sum())
    with pytest.raises(PredictionError, match=f"no prediction for {gaps} of {len(LOG)} scored rows"):
        evaluated(Knowing(holed), ["mae"])
    rest = np.abs(SCORES[LOG.user, LOG.item] - LOG.rating)[LOG.item != LOG.item[0]]
    same(evaluated(Knowing(holed), ["mae"], missing="drop")["m", "mae", "naive"].value, rest.mean())
    holed[:, LOG.item[-1]] = np.nan
    with pytest.raises(PredictionError, match=r"\d+ of \d+ predictions are not finite; repair the model"):
        evaluated(Knowing(holed), ["mae"], missing="drop")


def test_a_score_that_is_no_number_has_no_rank_wherever_it_stands():
    holed = SCORES.copy()
    unseen = np.setdiff1d(np.arange(U * I), LOG.cell)[0]
    holed.flat[unseen] = np.nan
    for model in (holed, Recommender(holed)):
        with pytest.raises(PredictionError, match="NaN"):
            evaluated(model, ["ndcg"])


def test_minus_infinity_is_a_last_place():
    pushed = SCORES.copy()
    pushed[:, 0] = -np.inf
    last = SCORES.copy()
    last[:, 0] = -1e9
    same(evaluated(pushed, ["ndcg"])["m", "ndcg", "naive"].value, evaluated(last, ["ndcg"])["m", "ndcg", "naive"].value)


@pytest.mark.parametrize("shape", [(I, U), (U, I + 1), (U * I,), (U, I, 1)])
def test_an_array_has_the_shape_of_the_grid(shape):
    with pytest.raises(PredictionError, match="shape"):
        evaluated(np.ones(shape))


def test_a_recommenders_answers_have_the_shape_that_was_asked_for():
    class Short(Recommender):
        def predict(self, user, item):
            return np.ones(3)

        def scores(self, users):
            return np.ones((len(users), I - 1))

    with pytest.raises(PredictionError, match=r"predict gave shape \(3,\)"):
        evaluated(Short(), ["mae"])
    with pytest.raises(PredictionError, match=r"scores\(users\) gave shape"):
        evaluated(Short(), ["ndcg"])


@pytest.mark.parametrize(("metric", "asked"), [("mae", f"{len(LOG):,} pairs"), ("ndcg", r"\d+ users?")])
def test_what_a_recommender_raises_is_an_error_that_names_it(metric, asked):
    class Broken(Recommender):
        def predict(self, user, item):
            return {}["weights"]

        def scores(self, users):
            return {}["weights"]

    with pytest.raises(PredictionError, match=rf"model 'm': asked about {asked} it raised KeyError: 'weights'; repair"):
        evaluated(Broken(), [metric])


@pytest.mark.parametrize("kind", [str, object, complex])
def test_scores_that_are_no_numbers_are_refused(kind):
    for model in (SCORES.astype(kind), Recommender(SCORES.astype(kind))):
        with pytest.raises(PredictionError, match=r"'m': scores must be numbers, got .*; cast them to floats"):
            evaluated(model, ["ndcg"])


@pytest.mark.parametrize("columns", [{"stars": "rating"}, {"score": "rating", "stars": "rating"}, {}])
def test_columns_of_a_log_have_roles(columns):
    rows = pl.DataFrame({"user": LOG.user, "item": LOG.item, "rating": LOG.rating})
    with pytest.raises(
        PredictionError, match=r"model 'm': columns of the log are named by 'score'.* got ('stars'|none)"
    ):
        ol.evaluate({"m": columns}, ol.scan(rows), metrics=["mae"], estimators=["naive"])


def test_half_a_recommender_is_enough_for_half_the_metrics():
    class OnlyPredicts:
        def predict(self, user, item):
            return SCORES[user, item]

    class OnlyScores:
        def scores(self, users):
            return SCORES[users]

    same(evaluated(OnlyPredicts(), ["mae"])["m", "mae", "naive"].value, of_array()["m", "mae", "naive"].value)
    same(evaluated(OnlyScores(), ["ndcg"])["m", "ndcg", "naive"].value, of_array()["m", "ndcg", "naive"].value)
    with pytest.raises(PredictionError, match="has predict but no scores"):
        evaluated(OnlyPredicts(), ["ndcg"])
    with pytest.raises(PredictionError, match="has scores but no predict"):
        evaluated(OnlyScores(), ["mae"])


@pytest.mark.parametrize("thing", [5, [[1, 2]], None])
def test_other_things_are_no_models(thing):
    with pytest.raises(PredictionError, match="neither a recommender"):
        evaluated(thing)


def test_rows_of_unknown_users_are_left_out_and_of_unknown_items_keep_their_ranks():
    more = {"user": [99, 0], "item": [0, 99]}
    found = evaluated(pl.concat([table(), pl.DataFrame({**more, "score": [1.0, 1.0]})]), ["mae"])
    same(found["m", "mae", "naive"].value, of_array()["m", "mae", "naive"].value)
    assert any("model 'm': 1 rows of users" in note and "1 rows of items" in note for note in found.notes)
    of_first = top(5).filter(pl.col("user") == 0)
    moved = pl.concat([
        top(5).filter(pl.col("user") > 0),
        of_first.with_columns(rank=pl.col("rank") + 1),
        pl.DataFrame({"user": [0], "item": [99], "rank": [1]}),
    ])  # fmt: skip
    lists = [evaluated(t, ["dcg@5"])["m", "dcg@5", "naive"] for t in (moved, top(5))]
    assert lists[0].value < lists[1].value


def test_a_null_user_in_a_table_is_refused():
    for engine in (pd.DataFrame, pl.DataFrame, pa.table):
        with pytest.raises(InputError):
            evaluated(engine({"user": [0, None], "item": [0, 1], "score": [1.0, 2.0]}), ["mae"])


# -- the parts -----------------------------------------------------------------------------------------------


def test_what_is_excluded_speaks_of_the_same_grid():
    other = Feedback.from_arrays([0], [0], [1], users=U, items=I + 1)
    with pytest.raises(InputError, match="like=log"):
        evaluated(SCORES, ["ndcg"], exclude=other)
    with pytest.raises(InputError, match="exclude: give the Feedback"):
        evaluated(SCORES, ["ndcg"], exclude=table())


def test_a_model_that_lacks_users_or_items_is_refused():
    fitted = ol.learners.Popularity().fit(LOG)
    assert ol.evaluate({"m": fitted}, LOG, metrics=["mae"], estimators=["naive"])["m", "mae", "naive"].value > 0
    for side in ("users", "items"):
        n = len(getattr(LOG, side))
        ids = {"users": LOG.users, "items": LOG.items} | {side: Vocabulary(np.arange(n) + 1)}
        other = Feedback(user=LOG.user, item=LOG.item, rating=LOG.rating, **ids)
        told = facts("model 'm'", 1, f"{n} {side}", n, 'ol.wrap(model, unknown="zero")', "like=")
        with pytest.raises(UnknownIdError, match=told):
            ol.evaluate({"m": fitted}, other, metrics=["mae"], estimators=["naive"])


def test_a_class_is_no_model():
    with pytest.raises(PredictionError, match=r"model 'm': MF is a class; give a fitted model, MF\(\)\.fit\(train\)"):
        ol.evaluate({"m": ol.learners.MF}, LOG, metrics=["mae"], estimators=["naive"])


# -- on a GPU ------------------------------------------------------------------------------------------------


def test_ranks_may_be_counted_on_a_gpu(triton):
    log = LOG.take(LOG.user < 6)
    asked = {"metrics": ["ndcg"], "estimators": ["naive"], "exclude": LOG.take(LOG.item % 3 == 0)}
    for model in (SCORES, Recommender(), Factors(SCORES.astype(np.float32))):
        here, there = (ol.evaluate({"a": model}, log, device=device, **asked) for device in (None, "cuda"))
        assert there["a", "ndcg", "naive"].value == here["a", "ndcg", "naive"].value


def test_scores_on_a_gpu_are_ranked_there_and_else_brought_to_the_host(triton, torch):
    class OnGpu(torch.Tensor):
        """A tensor of the CPU that says it lies on a GPU, and cannot become an array."""

        is_cuda = True

        def __array__(self, *_, **__):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

        def cpu(self):
            return self.as_subclass(torch.Tensor)

    class Model:
        def scores(self, users):
            return torch.tensor(SCORES[users]).as_subclass(OnGpu)

        def predict(self, user, item):
            return torch.tensor(SCORES[user, item]).as_subclass(OnGpu)

    log = LOG.take(LOG.user < 6)
    here, there = (
        ol.evaluate({"a": model}, log, metrics=["mae", "ndcg"], estimators=["naive", ol.dr(SCORES)])
        for model in (Recommender(), Model())
    )
    for key, estimate in here.estimates.items():
        assert there[key].value == pytest.approx(estimate.value, rel=1e-12), key


def test_a_device_is_checked_at_the_door(triton, monkeypatch):
    with pytest.raises(InputError, match=facts("device", "'abacus'")):
        ol.evaluate({"a": SCORES}, LOG, metrics=["mae"], device="abacus")
    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(DeviceError, match=facts("device", "'cuda'", 0)):
        ol.evaluate({"a": SCORES}, LOG, metrics=["mae"], device="cuda")
