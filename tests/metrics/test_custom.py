"""Metrics of your own: by law the library's where they are the same function, ties in expectation, Lim's theorem."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.data.scanning import scan
from openloop.errors import InputError, NameFormatError, UndefinedError
from tests.engines import EAGER, converter
from tests.examples import same, small_world
from tests.facts import facts

DISCOUNT = ("naive", "ips", "snips", "snips_user", "clipped@2", "stratified@3")


@ol.metric("halving", on="rank", better="higher")
def halving(rank):
    """Half as much at each rank."""
    return 0.5**rank


@ol.metric("own_adg", on="rank", better="higher")
def own_adg(rank):
    return 1 / np.log2(1 + rank)


@ol.metric("own_recall@3", on="rank", better="higher", per="user")
def own_recall(rank):
    return np.where(rank <= 3, 1.0, 0.0)


@ol.metric("own_rbp", on="rank", better="higher", per="cell")
def own_rbp(rank):
    return 0.2 * 0.8 ** (rank - 1)


@ol.metric("own_precision@3", on="rank", better="higher", per="cell")
def own_precision(rank):
    return np.where(rank <= 3, 1 / 3, 0.0)


@ol.metric("own_mse", on="prediction", better="lower")
def own_mse(rating, prediction):
    return (rating - prediction) ** 2


OWN = (own_adg, own_recall, own_rbp, own_precision, own_mse)
LIBRARY = ("adg", "recall@3", "rbp", "precision@3", "mse")


@pytest.fixture(scope="module")
def world():
    return small_world()


def assert_the_librarys(found, models=("a", "b")):
    """Each metric of OWN has the estimates, errors and differences of its twin in the library."""
    for own, name in zip(OWN, LIBRARY, strict=True):
        for (model, metric, estimator), theirs in list(found.estimates.items()):
            if metric == name:
                ours = found[model, own.name, estimator]
                same([ours.value, ours.stderr, ours.df], [theirs.value, theirs.stderr, theirs.df])
                assert (ours.cell_variance is None) == (theirs.cell_variance is None)
                same(ours.cell_variance or 0.0, theirs.cell_variance or 0.0)
                assert ours.estimand == theirs.estimand
        ours, theirs = (found.difference(*models, metric=m, estimator="snips") for m in (own.name, name))
        same([ours.value, ours.stderr], [theirs.value, theirs.stderr])
        skipped = {estimator for metric, estimator in found.skipped if metric == name}
        assert skipped == {estimator for metric, estimator in found.skipped if metric == own.name}


# -- by law --------------------------------------------------------------------------------------------------


def test_the_same_function_is_the_librarys_metric(world):
    found = ol.evaluate(world.predictions, world.observe(3), metrics=[*OWN, *LIBRARY], estimators=DISCOUNT)
    assert_the_librarys(found)


def test_the_same_function_is_the_librarys_metric_among_candidates(world):
    train, test = ol.split(world.observe(3), test=0.5, rng=0)
    found = ol.evaluate(
        world.predictions, test, metrics=[*OWN, *LIBRARY], estimators=DISCOUNT, exclude=train, threshold=4
    )
    assert_the_librarys(found)


def frames(world):
    log = world.observe(3)
    u, i = np.indices(world.ratings.shape).reshape(2, -1)
    scores = {m: pl.DataFrame({"user": u, "item": i, "score": p.ravel()}) for m, p in world.predictions.items()}
    rows = {"user": log.user.astype(np.int64), "item": log.item.astype(np.int64), "rating": log.rating}
    return pl.DataFrame(rows | {"p": log.propensity}), scores


def evaluate_frames(world, into, models, **options):
    log, _ = frames(world)
    users, items = world.ratings.shape
    scanned = scan(into(log), propensity="p", users=users, items=items)
    given = {"metrics": [*OWN, *LIBRARY], "estimators": DISCOUNT, "threshold": 4}
    return ol.evaluate({m: into(frame) for m, frame in models.items()}, scanned, **(given | options))


@pytest.mark.parametrize("engine", EAGER)
def test_on_every_engine(world, engine):
    """Scores with many ties, of which all are there."""
    found = evaluate_frames(world, converter(engine), frames(world)[1])
    assert_the_librarys(found)
    wanted = ol.evaluate(world.predictions, world.observe(3), metrics=OWN, estimators=DISCOUNT, threshold=4)
    for key, estimate in wanted.estimates.items():
        same([found[key].value, found[key].stderr], [estimate.value, estimate.stderr])


def test_ties_are_the_mean_over_all_orders():
    scores, liked = np.array([2.0, 1.0, 1.0, 1.0, 3.0]), np.array([0, 1, 1, 0, 0], bool)
    orders = [np.array([2.0, *tied, 3.0]) for tied in permutations([1.0, 1.1, 1.2])]
    for metric in (halving, own_rbp, own_precision):
        found = [_value(metric, np.tile(liked, (len(s), 1)), s) for s in (np.array(orders), scores[None, :])]
        same(found[0], found[1])


def _value(metric, liked, scores):
    user, item = np.indices(scores.shape).reshape(2, -1)
    log = ol.Feedback.from_arrays(user, item, np.where(liked, 5.0, 1.0).ravel(), users=len(scores), items=5)
    return ol.evaluate({"m": scores}, log, metrics=[metric], estimators=["naive"])["m", metric.name, "naive"].value


# -- what it is ----------------------------------------------------------------------------------------------


def test_two_of_one_name_are_refused(world):
    other = ol.metric("halving", on="rank", better="higher")(lambda rank: 0.4**rank)
    with pytest.raises(InputError, match="'halving'"):
        ol.evaluate(world.predictions, world.observe(0), metrics=[halving, other])
    found = ol.evaluate(world.predictions, world.observe(0), metrics=[halving, halving], estimators=["naive"])
    assert found.metrics == ("halving",)


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ndcg", "recall@7", "rbp:0.3", "coverage@3", "mae"])
def test_a_name_of_the_library_is_taken(name):
    with pytest.raises(NameFormatError, match=facts(f"'{name}'", "of the library")):
        ol.metric(name, on="rank", better="higher")


@pytest.mark.parametrize("name", ["", "Halving", "half way", "half@", "half@0", "half@k", "1st", 3])
def test_a_name_has_a_form(name):
    with pytest.raises(NameFormatError, match="lower-case"):
        ol.metric(name, on="rank", better="higher")


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"on": "rank"}, "better="),
        ({"better": "higher"}, "on="),
        ({"on": "ranks", "better": "higher"}, "'ranks'"),
        ({"on": "rank", "better": "more"}, "'more'"),
        ({"on": "rank", "better": "higher", "per": "item"}, "'item'"),
        ({"on": "prediction", "better": "lower", "per": "user"}, "per='cell'"),
    ],
)
def test_keywords_say_what_it_is(keywords, says):
    with pytest.raises(InputError, match=facts("'mine'", says)):
        ol.metric("mine", **keywords)


@pytest.mark.parametrize("estimator", ["snips", "clipped@2"])
def test_weights_of_a_user_kind_with_a_normaliser_of_its_own_are_refused(world, estimator):
    """They would be divided by the ideal of nDCG: a sum per user read a twelfth of what it is."""
    summed = ol.Metric(
        name="summed", on="rank", kind="user", gain=lambda x: x.by_rank(own_rbp.by_rank), better="higher",
        per_user=lambda _n, gain, _cells: gain,
    )  # fmt: skip
    with pytest.raises(UndefinedError, match=facts("summed", "pooled=True", "kind='cell'")):
        ol.evaluate(world.predictions, world.observe(0), metrics=[summed], estimators=[estimator])
