"""Sums under tilted weights on every engine: those of the arrays."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.data.simulate import schnabel_world
from openloop.evaluation import prepared
from openloop.sources.question import Question
from tests.engines import EAGER, converter
from tests.examples import same

WORLD = schnabel_world(60, 30, 5, alpha=1.0, observed=0.6, rng=0)
LOG = WORLD.observe(1)
NOISE = np.random.default_rng(2).normal(size=(2, *WORLD.ratings.shape))
MODELS = {"a": WORLD.ratings + NOISE[0], "b": WORLD.ratings + 1.5 * NOISE[1]}
NAMES = {"user": "u", "item": "i", "rating": "y", "population": WORLD.ratings.shape, "complete": True}
METRICS = ["mae", "recall@5", "dcg@5"]


def frame(log):
    columns = {"u": log.user, "i": log.item, "y": log.rating.astype(float)}
    return pl.DataFrame(columns | ({} if log.propensity is None else {"p": log.propensity}))


def scores():
    u, i = np.indices(WORLD.ratings.shape).reshape(2, -1).astype(np.int32)
    return {name: pl.DataFrame({"u": u, "i": i, "score": grid.ravel()}) for name, grid in MODELS.items()}


def from_arrays(log, p=None, exclude=None, estimator="snips", metrics=METRICS):
    asked = Question(metrics=metrics, estimators=[estimator], exclude=exclude, threshold=4)
    return prepared(MODELS, log, p, asked).compare("all", tilt=True)


def from_frames(log, into, column="p", exclude=None, estimator="snips", metrics=METRICS, **options):
    given = NAMES | {"exclude": None if exclude is None else into(frame(exclude).select("u", "i"))} | options
    asked = Question(metrics=metrics, estimators=[estimator], threshold=4, **given)
    models = {name: into(table) for name, table in scores().items()}
    return prepared(models, into(frame(log)), column, asked).compare("all", tilt=True)


def agree(found, wanted):
    """The same sums of users who have rows."""
    for name, other in wanted.tilts.items():
        own = found.tilts[name]
        assert own.notes == other.notes
        assert [(s.against, s.grid, s.raked) for s in own.sums] == [(s.against, s.grid, s.raked) for s in other.sums]
        for a, b in zip(own.sums, other.sums, strict=True):
            same(*(x.sums[_with_rows(x)] for x in (a, b)), rtol=1e-9, atol=1e-9)
        if other.parts is not None:
            same(*(x.parts[_with_rows(x.sums[0])] for x in (own, other)), rtol=1e-9, atol=1e-9)


def _with_rows(sums):
    return sums.sums[:, 0, 0] > 0


def check_raked(into, metrics=METRICS):
    wanted = from_arrays(LOG, ol.Propensities(values=LOG.propensity, by_items=True), metrics=metrics)
    assert wanted.tilts["mae"].sums[0].raked
    agree(from_frames(LOG, into, by_items=True, metrics=metrics), wanted)


@pytest.mark.parametrize("engine", EAGER)
def test_every_engine_has_the_sums_of_arrays(engine):
    check_raked(converter(engine))


def test_spark_has_the_sums_of_arrays(spark):
    check_raked(converter("spark", spark), ["mae"])


def test_given_propensities_hold_no_margin_and_a_split_by_time_has_no_odds():
    agree(from_frames(LOG, converter("lazy")), from_arrays(LOG))
    timed = from_frames(LOG, converter("lazy"), scaled=False)
    assert (timed.tilts["mae"].parts[:, :, 0] == 0).all()
    assert timed.pairs["a", "b", "mae", "snips"].form == "ratio"


def test_a_part_of_a_log_tilts_p_with_its_shares():
    train, test = ol.split(LOG, test=0.5, rng=0)
    shares = {"share": float(test.share[0]), "excluded_share": float(train.share[0])}
    found = from_frames(test, converter("lazy"), exclude=train, **shares)
    agree(found, from_arrays(test, exclude=train))


def test_positives_are_tilted_by_the_rows_of_items_in_the_log_and_in_what_is_excluded():
    liked = LOG.take(LOG.rating >= 4, propensity=None)
    train, test = ol.split(liked, test=0.5, rng=0)
    of = {"estimator": "naive", "metrics": ["recall@5"], "exclude": train}
    agree(from_frames(test, converter("lazy"), None, **of), from_arrays(test, **of))
