"""Without rare items everything is as if the catalogue had never held them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.errors import InputError, PredictionError, UndefinedError
from tests.facts import facts

RNG = np.random.default_rng(5)
U, I = 60, 40
P = np.where(np.arange(I) < 25, 0.5, 0.08)
SEEN = RNG.random((U, I)) < P
USER, ITEM = np.nonzero(SEEN)
Y = RNG.integers(1, 6, (U, I)).astype(np.float32)
LOG = Feedback.from_arrays(USER, ITEM, Y[USER, ITEM], users=U, items=I, propensity=P[ITEM])
TRAIN, TEST = ol.split(LOG, test=0.5, rng=0)
NARROW = replace(TEST, min_item_rows=15)  # as ol.read(min_item_rows=15) would have it
SCORES = {"a": Y + RNG.normal(0, 1, Y.shape), "b": Y + RNG.normal(0, 2, Y.shape)}
KEPT = LOG.rows_of_items >= 15
ASKED = {"metrics": ["recall@5", "mae"], "estimators": ["snips", "naive"]}


def ranks(scores, keep=10):
    """The first of each user's candidates."""
    masked = scores.copy()
    masked[TRAIN.user, TRAIN.item] = -np.inf
    order = np.argsort(-masked, axis=1)[:, :keep]
    user, place = np.indices(order.shape)
    return pl.DataFrame({"user": user.ravel(), "item": order.ravel(), "rank": place.ravel() + 1})


def by_hand(models):
    """The same with the catalogue cut beforehand."""
    code = np.cumsum(KEPT) - 1
    parts = []
    for part in (TEST, TRAIN):
        rows = part.take(KEPT[part.item])
        parts.append(
            Feedback.from_arrays(rows.user, code[rows.item], rows.rating, users=U, items=int(KEPT.sum()),
                                 propensity=rows.propensity, share=rows.share, origin="one")
        )  # fmt: skip
    return ol.evaluate(models, parts[0], exclude=parts[1], **ASKED)


def test_estimates_are_those_of_a_catalogue_without_them():
    found = ol.audit(SCORES, NARROW, exclude=TRAIN, **ASKED)
    wanted = by_hand({name: scores[:, KEPT] for name, scores in SCORES.items()})
    for key, estimate in wanted.estimates.items():
        assert found.result[key].value == pytest.approx(estimate.value, abs=1e-12)
    assert f"among the {KEPT.sum()} items with at least 15 rows" in found.verdict.headline
    assert found.setting.items == KEPT.sum()


def test_a_list_moves_up_and_is_known_as_deep_as_every_user_has_it():
    asked = {"metrics": ["recall@3"], "estimators": ["snips"], "exclude": TRAIN}
    lists = {name: ranks(scores, keep=25) for name, scores in SCORES.items()}
    found, arrays = (ol.audit(models, NARROW, **asked).result for models in (lists, SCORES))
    for name in SCORES:
        assert found[name, "recall@3", "snips"].value == pytest.approx(arrays[name, "recall@3", "snips"].value)
    short = {name: ranks(scores, keep=3) for name, scores in SCORES.items()}
    with pytest.raises(PredictionError, match=facts("model 'a'", "min_item_rows=", "longer lists")):
        ol.audit(short, NARROW, **asked)
    some = {name: ranks(scores, keep=14) for name, scores in SCORES.items()}
    with pytest.raises(UndefinedError, match=facts("top", "recall@9")):
        ol.audit(some, NARROW, **asked | {"metrics": ["recall@9"]})


def test_propensities_of_every_kind_are_cut_alike():
    grid = np.broadcast_to(P, (U, I)).copy()
    kinds = (None, grid, P[TEST.item], ol.Propensities(values=P[TEST.item]), ol.propensity.Known(grid).fit(LOG))
    found = [
        ol.audit(SCORES, NARROW, p, exclude=TRAIN, check=False, **ASKED).result["a", "mae", "snips"].value
        for p in kinds
    ]
    np.testing.assert_allclose(found, found[0], rtol=1e-12)


def test_what_cannot_be_done_is_refused():
    with pytest.raises(InputError, match=facts("min_item_rows=999", LOG.rows_of_items.max())):
        ol.audit(SCORES, replace(TEST, min_item_rows=999))
    with pytest.raises(InputError, match=facts("min_item_rows=", -1)):
        ol.audit(SCORES, replace(TEST, min_item_rows=-1))
