"""The default threshold: what it makes relevant, when that is a warning, and what is proposed instead."""

from __future__ import annotations

import re
import warnings

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.core.metric import default_threshold
from openloop.errors import ThresholdWarning
from openloop.moments.relevance import of_levels
from tests.engines import EAGER, converter
from tests.facts import facts

U, I = 40, 25
USER, ITEM = (part.ravel() for part in np.indices((U, I)))
RANKED = {"metrics": ["recall@5"], "estimators": ["naive"]}


def frame(ratings):
    return pl.DataFrame({"user": USER, "item": ITEM, "rating": np.asarray(ratings, np.float64)})


LISTS = pl.DataFrame({"user": USER, "item": ITEM, "rank": ITEM + 1})
CENT = 50 + np.arange(U * I) % 51  # 50 to 100, of which 80 and more are 21 of 51
FINE = np.linspace(0, 100, U * I)  # more levels than are counted
STARS = 1 + np.arange(U * I) % 5


# -- the rule ------------------------------------------------------------------------------------------------


def test_by_hand():
    found = of_levels(np.array([1.0, 5.0, 9.0]), np.array([1, 90, 9]), 4.0)
    assert (found.rows, found.relevant, found.span) == (100, 99, (1.0, 9.0))
    assert (found.proposal, found.reached) == (9.0, 0.09)
    assert re.search(facts("1 to 9", "threshold 4", "99.0 %", "threshold=9", "9.0 %"), found.warning)


@pytest.mark.parametrize(
    ("relevant", "warned"), [(900, False), (901, True), (1, False), (0, True), (500, False), (1000, True)]
)
def test_over_90_percent_and_under_a_thousandth_are_a_warning(relevant, warned):
    found = of_levels(np.array([2.0, 7.0]), np.array([1000 - relevant, relevant]), 4.0)
    assert (found.warning is not None) == warned


def test_the_level_that_about_a_fifth_of_the_rows_reach_is_proposed():
    found = of_levels(*np.unique(CENT, return_counts=True), 4.0)
    assert np.mean(found.proposal <= CENT) == pytest.approx(found.reached)
    assert found.reached == pytest.approx(0.2, abs=1 / 51)


@pytest.mark.parametrize("ratings", [[4.0, 4.5, 5.0], [3.0], [1.0], [0.0, 1.0]], ids=str)
def test_positives_and_labels_have_no_better_threshold(ratings):
    """Of clicks and of a log that has the best ratings only, every row is relevant, and should be."""
    levels = np.array(ratings)
    counts = np.full(len(levels), 10_000)
    counts[0] = 1
    assert of_levels(levels, counts, default_threshold(levels)).warning is None


# -- where it is told ----------------------------------------------------------------------------------------


def evaluated(engine, ratings, **options):
    into = (lambda table: table) if engine == "memory" else converter(engine)
    log = ol.read(frame(ratings)) if engine == "memory" else into(frame(ratings))
    return ol.evaluate({"m": into(LISTS)}, log, **RANKED | options)


@pytest.mark.parametrize("engine", ["memory", *EAGER])
@pytest.mark.parametrize(("ratings", "proposal"), [(CENT, "threshold=90"), (FINE, "threshold=80"), (FINE / 100, "0.8")])
def test_a_threshold_that_does_not_fit_is_a_warning_and_a_note(engine, ratings, proposal):
    with pytest.warns(ThresholdWarning, match=facts("threshold 4", "threshold=")) as caught:
        found = evaluated(engine, ratings, metrics=["recall@5", "dcg@5"])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert proposal in str(caught[0].message)
    assert any("threshold=" in note for note in found.notes)


@pytest.mark.parametrize("engine", ["memory", "polars", "duckdb"])
@pytest.mark.parametrize(
    ("ratings", "options"),
    [
        (CENT, {"threshold": 80}), (CENT, {"metrics": ["dcg@5"]}), (STARS, {}), (STARS % 2, {}),
        (np.full(U * I, 7.0), {}), (4 + STARS % 2, {}),
    ],
    ids=["chosen", "no relevance", "stars", "labels", "one rating", "positives"],
)  # fmt: skip
def test_what_is_no_warning(engine, ratings, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not any("threshold=" in note for note in evaluated(engine, ratings, **options).notes)


def test_a_metric_that_no_model_serves_is_not_warned_of():
    scores = LISTS.filter(pl.col("item") < 3).select("user", "item", score=1.0)
    log = ol.read(frame(CENT).filter(pl.col("item") < 3), items=I)
    found = ol.evaluate({"m": scores}, log, metrics=["mae", "recall@5"], estimators=["naive"])
    assert ("recall@5", "naive") in found.skipped
    assert not any("threshold=" in note for note in found.notes)


@pytest.mark.parametrize("engine", ["memory", "polars"])
def test_an_audit_has_it_among_its_warnings(engine):
    log = ol.read(frame(CENT)) if engine == "memory" else frame(CENT)
    other = LISTS.with_columns(rank=I - pl.col("item"))
    found = ol.audit({"a": LISTS, "b": other}, log, metrics=["recall@5"], estimators=["naive"])
    assert any("threshold=" in text for text in found.warnings)
    chosen = ol.audit({"a": LISTS, "b": other}, log, metrics=["recall@5"], estimators=["naive"], threshold=80)
    assert not any("threshold=" in text for text in chosen.warnings)
