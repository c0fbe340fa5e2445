"""Models, a log and propensities to a Comparison: the paradox, the laws, and what is refused at the door."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.data.simulate import movie_lovers
from openloop.errors import (
    AlignmentError,
    InputError,
    LeakError,
    OpenloopError,
    PredictionError,
    PropensityError,
    UndefinedError,
)
from tests.examples import CELL, ESTIMATORS, METRICS, NORMALISED, ORDERED, POOLED, same, small_world
from tests.facts import facts

WORLD = small_world()
LOG = WORLD.observe(1)
MODELS = {"a": WORLD.predictions["a"], "b": WORLD.predictions["b"]}
GUESS = np.full(WORLD.ratings.shape, 3.0)


def imputing(imputation, estimators=ESTIMATORS):
    return [ol.dr(imputation) if name == "dr" else name for name in estimators]


# -- Figure 1 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mae", "accuracy"])
def test_naive_prefers_the_worse_model_and_ips_and_snips_the_better(name):
    world = movie_lovers(users=400, items=80)
    models = {m: world.predictions[m] for m in ("Y1", "Y2")}
    result = ol.evaluate(models, world.observe(0), metrics=[name], estimators=["naive", "ips", "snips", "stratified"])
    truth = ol.evaluate(models, world.everything(), metrics=[name], estimators=["naive"])
    assert truth.ranking(name, "naive") == ["Y1", "Y2"]
    assert result.ranking(name, "naive") == ["Y2", "Y1"]
    assert result.difference("Y1", "Y2", metric=name, estimator="naive").pvalue < 1e-6  # and is sure of it
    for estimator in ("ips", "snips", "stratified"):
        assert result.ranking(name, estimator) == ["Y1", "Y2"]
        difference = result.difference("Y1", "Y2", metric=name, estimator=estimator)
        assert difference.pvalue < 1e-6
        true = truth.difference("Y1", "Y2", metric=name, estimator="naive").value
        assert abs(difference.value - true) < 4 * difference.stderr


# -- laws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CELL)
def test_certain_propensities_and_a_complete_log_make_every_estimator_naive(name):
    estimators = ["ips", "snips", "clipped", "clipped@1", "stratified", "stratified@3:observed", "dr"]
    asked = imputing(GUESS, ["naive", *estimators])
    result = ol.evaluate(MODELS, WORLD.everything(), metrics=[name], estimators=asked)
    for model in MODELS:
        plain = result[model, name, "naive"]
        for estimator in estimators:
            same(result[model, name, estimator].value, plain.value, rtol=1e-9)
            same(result[model, name, estimator].stderr, plain.stderr, rtol=1e-9)


@pytest.mark.parametrize("name", [*POOLED, *NORMALISED, *ORDERED])
def test_the_same_for_user_metrics_where_users_have_as_many_relevant_items(name):
    # Pooled snips averages relevant cells, naive users: one number where |S_u| is the same for all.
    rng = np.random.default_rng(0)
    Y = rng.permuted(np.tile([5, 5, 4, 1, 2, 3, 1, 2], (20, 1)), axis=1)
    everything = replace(WORLD, ratings=Y, propensities=np.ones(Y.shape), predictions={}).everything()
    estimators = ["naive", "snips", "snips_user", "clipped@1", "stratified", "ips_eq3"]
    result = ol.evaluate({"m": rng.random(Y.shape)}, everything, metrics=[name], estimators=estimators)
    values = [estimate.value for estimate in result.estimates.values()]
    assert (
        len(values)
        == {"pooled": 6, "normalised": 5, "ordered": 2}[
            "pooled" if name in POOLED else "normalised" if name in NORMALISED else "ordered"
        ]
    )
    same(values, values[0])


def test_the_order_of_the_input_changes_nothing():
    mix = np.random.default_rng(0).permutation(len(LOG))
    mixed = Feedback.from_arrays(
        LOG.user[mix], LOG.item[mix], LOG.rating[mix], users=30, items=12, propensity=LOG.propensity[mix]
    )
    options = {"metrics": METRICS, "estimators": imputing(GUESS)}
    one, other = (ol.evaluate(MODELS, log, **options) for log in (LOG, mixed))
    for key, estimate in one.estimates.items():
        assert other[key].value == estimate.value
        np.testing.assert_array_equal(other[key].influence, estimate.influence)


def test_renumbering_users_and_items_changes_nothing():
    rng = np.random.default_rng(1)
    users, items = rng.permutation(30), rng.permutation(12)
    moved = Feedback.from_arrays(
        users[LOG.user], items[LOG.item], LOG.rating, users=30, items=12, propensity=LOG.propensity
    )

    def move(grid):
        found = np.empty_like(grid)
        found[np.ix_(users, items)] = grid
        return found

    imputed = WORLD.ratings * 0.5 + 1
    one = ol.evaluate(MODELS, LOG, metrics=METRICS, estimators=imputing(imputed))
    other = ol.evaluate(
        {m: move(s) for m, s in MODELS.items()}, moved, metrics=METRICS, estimators=imputing(move(imputed))
    )
    for key, estimate in one.estimates.items():
        same(other[key].value, estimate.value, err_msg=str(key))
        same(other[key].stderr, estimate.stderr, rtol=1e-8)


def test_items_that_nobody_saw_are_part_of_the_population():
    wider = Feedback.from_arrays(LOG.user, LOG.item, LOG.rating, users=60, items=24, propensity=LOG.propensity)
    scores = {"a": np.pad(MODELS["a"], ((0, 30), (0, 12)))}
    one = ol.evaluate({"a": MODELS["a"]}, LOG, metrics=["mae"], estimators=["naive", "ips", "snips"])
    other = ol.evaluate(scores, wider, metrics=["mae"], estimators=["naive", "ips", "snips"])
    same(other["a", "mae", "ips"].value, one["a", "mae", "ips"].value / 4)
    for estimator in ("naive", "snips"):
        same(other["a", "mae", estimator].value, one["a", "mae", estimator].value)


# -- propensities --------------------------------------------------------------------------------------------


def test_propensities_come_in_many_forms():
    options = {"metrics": ["mae", "dcg@3"], "estimators": ["ips", "snips"]}
    own = ol.evaluate(MODELS, LOG, **options)
    known = ol.propensity.Known(values=WORLD.propensities).fit(LOG)
    bare = replace(LOG, propensity=None)
    for given_ in (
        ol.Propensities(values=LOG.propensity), LOG.propensity, WORLD.propensities, known, known.predict(LOG),
    ):  # fmt: skip
        found = ol.evaluate(MODELS, bare, given_, **options)
        for key in own.estimates:
            assert found[key].value == own[key].value


UNSEEN = ~np.isin(np.arange(360).reshape(30, 12), LOG.cell)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (np.full(len(LOG) - 1, 0.5), AlignmentError),
        (np.full((12, 30), 0.5), AlignmentError),
        (np.zeros(len(LOG)), PropensityError),
        (np.full(len(LOG), np.nan), PropensityError),
        (np.full(len(LOG), 1.5), PropensityError),
        (np.full(len(LOG), -0.5), PropensityError),
        (np.where(UNSEEN, 0, 0.5), PropensityError),
        (np.where(UNSEEN, np.nan, 0.5), PropensityError),
        ("propensity", InputError),
        (0.5, InputError),
    ],
)  # fmt: skip
def test_propensities_of_another_log_or_no_propensities_are_refused(bad, error):
    with pytest.raises(error):
        ol.evaluate(MODELS, LOG, bad, metrics=["mae"], estimators=["ips"])


def test_propensities_made_for_another_log_are_refused():
    other = WORLD.observe(2)
    model = ol.propensity.Known(values=WORLD.propensities).fit(LOG)
    n = min(len(LOG), len(other))
    a, b = LOG.take(np.arange(n)), other.take(np.arange(n))
    with pytest.raises(AlignmentError, match="another Feedback"):
        ol.evaluate(MODELS, a, model.predict(b), metrics=["mae"], estimators=["ips"])


# -- what is refused -----------------------------------------------------------------------------------------


def test_a_uniform_sample_of_a_propensity_model_is_not_scored():
    with pytest.raises(LeakError, match="may not be scored"):
        ol.evaluate(MODELS, replace(LOG, uniform=True), metrics=["mae"], estimators=["naive"])


def test_an_undefined_combination_is_skipped_and_an_error_when_alone():
    result = ol.evaluate(MODELS, LOG, metrics=["adg"], estimators=["ips", "naive"])
    assert "the number of relevant items is unknown" in result.skipped["adg", "ips"]
    with pytest.raises(UndefinedError, match="the number of relevant items is unknown"):
        ol.evaluate(MODELS, LOG, metrics=["adg"], estimators=["ips"])


@pytest.mark.parametrize(
    "options",
    [
        {"models": {}}, {"metrics": []}, {"estimators": []}, {"level": 95}, {"missing": "zero"}, {"pairs": "some"},
        {"pairs": [("a", "zzz")]}, {"errors": "items"}, {"exclude": 5},
    ],
)  # fmt: skip
def test_options_are_checked(options):
    given_ = {"models": MODELS, "metrics": ["mae"], "estimators": ["naive"]} | options
    with pytest.raises(InputError):
        ol.evaluate(given_.pop("models"), LOG, **given_)


# -- any log at all ------------------------------------------------------------------------------------------


@st.composite
def logs(draw):
    """A small log with any pattern of cells, ratings, propensities and scores, ties included."""
    users, items = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    cells = draw(st.lists(st.integers(0, users * items - 1), min_size=1, unique=True))
    rating = st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0, -2.5])
    p = st.one_of(st.sampled_from([1.0, 0.5, 1e-6]), st.floats(1e-12, 1))
    score = st.one_of(st.integers(0, 3).map(float), st.floats(-1e6, 1e6, width=32))
    log = Feedback.from_arrays(
        np.array(cells) // items, np.array(cells) % items, [draw(rating) for _ in cells], users=users, items=items,
        propensity=[draw(p) for _ in cells],
    )  # fmt: skip
    grid = [np.array([draw(score) for _ in range(users * items)]).reshape(users, items) for _ in range(3)]
    return log, {"a": grid[0], "b": grid[1]}, grid[2]


@pytest.mark.filterwarnings("ignore::openloop.errors.ThresholdWarning")  # of ratings drawn at random
@given(logs())
@settings(max_examples=25)
def test_no_valid_log_crashes_any_estimator_of_any_metric(case):
    log, models, imputation = case
    result = ol.evaluate(models, log, metrics=METRICS, estimators=imputing(imputation))
    for key, estimate in result.estimates.items():
        assert np.isfinite(estimate.value), key
        assert np.isfinite(estimate.influence).all(), key
        assert estimate.cell_variance is None or 0 <= estimate.cell_variance < np.inf, key
        if np.isfinite(estimate.stderr):
            low, high = estimate.interval()
            assert low <= estimate.value <= high or np.isclose(low, high, rtol=1e-6), key
        metric = ol.metric(key[1])
        if metric.kind == "user" and key[2] != "ips_eq3":
            assert -1e-9 <= estimate.value <= 1 + 1e-9, key
    assert {k[1:] for k in result.estimates} | set(result.skipped) == {(m, e) for m in METRICS for e in ESTIMATORS}
    assert result.to_json()
    assert str(result)
    assert len(result.to_frame()) == len(result.estimates)


@pytest.mark.filterwarnings("ignore::openloop.errors.ThresholdWarning")  # of ratings drawn at random
@given(logs(), st.data())
@settings(max_examples=40)
def test_no_valid_split_crashes_with_exclusion(case, data):
    log, models, imputation = case
    if len(log) < 2:
        return
    train, test = ol.split(log, test=data.draw(st.integers(1, len(log) - 1)), rng=data.draw(st.integers(0, 9)))
    result = ol.evaluate(models, test, metrics=METRICS, estimators=imputing(imputation), exclude=train)
    for key, estimate in result.estimates.items():
        assert np.isfinite(estimate.value), key
        assert np.isfinite(estimate.influence).all(), key


COLUMNS = ("user", "item", "rating", "propensity")
BREAK = {
    "a rating that is no number": lambda c: c["rating"].__setitem__(0, np.nan),
    "an infinite rating": lambda c: c["rating"].__setitem__(0, np.inf),
    "a propensity of zero": lambda c: c["propensity"].__setitem__(0, 0.0),
    "a negative propensity": lambda c: c["propensity"].__setitem__(0, -0.2),
    "a propensity above one": lambda c: c["propensity"].__setitem__(0, 1.2),
    "a propensity that is no number": lambda c: c["propensity"].__setitem__(0, np.nan),
    "a prediction that is no number": lambda c: c["scores"].__setitem__((c["user"][0], c["item"][0]), np.nan),
    "an infinite prediction": lambda c: c["scores"].__setitem__((c["user"][0], c["item"][0]), np.inf),
    "predictions for another grid": lambda c: c.update(scores=c["scores"][:, :-1]),
    "a pair that stands twice": lambda c: c.update({k: np.append(c[k], c[k][0]) for k in COLUMNS}),
    "a user outside the grid": lambda c: c["user"].__setitem__(0, 99),
    "a negative item": lambda c: c["item"].__setitem__(0, -1),
    "a column that is too short": lambda c: c.update(propensity=c["propensity"][:-1]),
    "a rating too many": lambda c: c.update(rating=np.append(c["rating"], 3.0)),
}  # fmt: skip


@pytest.mark.parametrize("fault", BREAK)
@given(case=logs())
@settings(max_examples=15)
def test_no_invalid_log_gives_a_number(fault, case):
    log, models, imputation = case
    columns = {name: getattr(log, name).copy() for name in COLUMNS} | {"scores": models["a"].copy()}
    BREAK[fault](columns)

    def attempt():
        broken = Feedback.from_arrays(
            columns["user"], columns["item"], columns["rating"], users=log.n_users, items=log.n_items,
            propensity=columns["propensity"],
        )  # fmt: skip
        options = {"metrics": ["mae"], "estimators": ["naive", "ips", "snips", ol.dr(imputation)]}
        return ol.evaluate({"m": columns["scores"]}, broken, **options)

    with pytest.raises(OpenloopError):
        attempt()


def test_a_frame_is_not_mistaken_for_a_model_mapping():
    with pytest.raises(InputError, match="models"):
        ol.evaluate(pl.DataFrame({"user": [0], "item": [0], "score": [1.0]}), LOG, metrics=["mae"])


def test_predictions_are_checked_before_anything_is_summed():
    with pytest.raises(PredictionError, match="model 'b'"):
        ol.evaluate({"a": MODELS["a"], "b": np.full((30, 12), np.nan)}, LOG, metrics=["mae"], estimators=["naive"])


def test_after_a_split_by_user_only_users_are_a_sample():
    test = ol.split(LOG, test=0.5, by="user", rng=0)[1]
    result = ol.evaluate(MODELS, test, metrics=["mae"], estimators=["naive", "ips", "snips", "stratified"])
    gap = result.difference("a", "b", metric="mae", estimator="snips")
    for found in (*result.estimates.values(), gap):
        assert np.isfinite(found.interval()).all()
        with pytest.raises(UndefinedError, match=facts("mae", "cells", "split by user")):
            found.interval(over="cells")
    by_row = ol.split(LOG, test=0.5, rng=0)[1]
    result = ol.evaluate(MODELS, by_row, metrics=["mae"], estimators=["snips"])
    assert result["a", "mae", "snips"].cell_stderr > 0
