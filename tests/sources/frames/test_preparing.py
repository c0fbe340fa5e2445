"""Notes of frames are those of arrays on the same split."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.errors import InputError
from openloop.evaluation import prepared
from openloop.sources import remarks
from openloop.sources.question import Question
from openloop.sources.whole import WholeLog

LOG = pl.DataFrame({"user": [0, 0, 1], "item": [0, 1, 1], "rating": [1.0, 2.0, 5.0], "p": [0.5, 0.2, 0.1]})
TRAIN = pl.DataFrame({"user": [0, 1], "item": [2, 0]})
MODELS = {"a": LOG.select("user", "item", score="rating").lazy()}
NAMES = {"user": "user", "item": "item", "rating": "rating", "population": (2, 3)}


def notes(train=TRAIN, **options):
    asked = Question(
        metrics=["mae"], estimators=["snips"], exclude=None if train is None else train.lazy(), **NAMES, **options
    )
    return prepared(MODELS, LOG.lazy(), "p", asked).notes


def test_a_split_by_time_has_weights_without_a_scale():
    assert remarks.up_to_factor(remarks.BY_TIME, excluded=True) in notes(scaled=False, excluded_share=0.0)


def test_another_log_is_no_part_of_this_one():
    assert remarks.NO_PART in notes(excluded_share=0.0)
    assert any("pass excluded_share=" in note for note in notes())
    assert notes(train=None) == []


def test_scored_pairs_that_are_excluded_are_told():
    both = pl.DataFrame({"user": [0, 1], "item": [0, 2]})
    assert remarks.still_candidates(1) in notes(train=both)


def test_positives_are_told_where_the_whole_log_is_known():
    whole = WholeLog(users=np.arange(2), items=np.arange(3), rows=np.ones(3, int), positives=True)
    assert notes(train=None, whole=whole) == [remarks.POSITIVES]


def test_propensities_of_a_frame_are_a_column():
    with pytest.raises(InputError, match="name of its column, got ndarray"):
        ol.evaluate(MODELS, LOG.lazy(), np.ones(3), **NAMES)
    with pytest.raises(InputError, match="name their column"):
        ol.evaluate(MODELS, LOG.lazy(), None, share=0.5, **NAMES)
