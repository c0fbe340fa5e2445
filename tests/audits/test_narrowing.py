"""Without rare items everything is as if the catalogue had never held them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.audits.narrowing import narrowed
from openloop.audits.question import AuditQuestion
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


class Scorer:
    """A recommender by its scores."""

    def __init__(self, scores):
        self.table = scores

    def predict(self, user, item):
        return self.table[user, item]

    def scores(self, users):
        return self.table[users]


def test_estimates_are_those_of_a_catalogue_without_them():
    found = ol.audit(SCORES, TEST, exclude=TRAIN, min_item_rows=15, **ASKED)
    wanted = by_hand({name: scores[:, KEPT] for name, scores in SCORES.items()})
    for key, estimate in wanted.estimates.items():
        assert found.result[key].value == pytest.approx(estimate.value, abs=1e-12)
    assert f"among the {KEPT.sum()} items with at least 15 rows" in found.verdict.headline
    assert found.setting.items == KEPT.sum()


def test_recommenders_factors_and_arrays_agree():
    arrays = ol.audit(SCORES, TEST, exclude=TRAIN, min_item_rows=15, **ASKED).result
    models = {name: Scorer(scores) for name, scores in SCORES.items()}
    found = ol.audit(models, TEST, exclude=TRAIN, min_item_rows=15, **ASKED).result
    for key, estimate in arrays.estimates.items():
        assert found[key].value == estimate.value
    factors = ol.learners.MF(factors=3, rng=0).fit(TRAIN)
    grid = factors.scores(np.arange(U))
    one, two = (
        ol.audit({"f": model, "b": SCORES["b"]}, TEST, exclude=TRAIN, min_item_rows=15, **ASKED).result[
            "f", "recall@5", "snips"
        ]
        for model in (factors, grid)
    )
    assert one.value == pytest.approx(two.value, abs=1e-12)


def test_a_list_moves_up_and_is_known_as_deep_as_every_user_has_it():
    asked = {"metrics": ["recall@3"], "estimators": ["snips"], "exclude": TRAIN, "min_item_rows": 15}
    lists = {name: ranks(scores, keep=25) for name, scores in SCORES.items()}
    found, arrays = (ol.audit(models, TEST, **asked).result for models in (lists, SCORES))
    for name in SCORES:
        assert found[name, "recall@3", "snips"].value == pytest.approx(arrays[name, "recall@3", "snips"].value)
    short = {name: ranks(scores, keep=3) for name, scores in SCORES.items()}
    with pytest.raises(PredictionError, match=facts("model 'a'", "min_item_rows=", "longer lists")):
        ol.audit(short, TEST, **asked)
    some = {name: ranks(scores, keep=14) for name, scores in SCORES.items()}
    with pytest.raises(UndefinedError, match=facts("top", "recall@9")):
        ol.audit(some, TEST, **asked | {"metrics": ["recall@9"]})


def test_propensities_of_every_kind_are_cut_alike():
    grid = np.broadcast_to(P, (U, I)).copy()
    kinds = (None, grid, P[TEST.item], ol.Propensities(values=P[TEST.item]), ol.propensity.Known(grid).fit(LOG))
    found = [
        ol.audit(SCORES, TEST, p, exclude=TRAIN, min_item_rows=15, check=False, **ASKED)
        .result["a", "mae", "snips"]
        .value
        for p in kinds
    ]
    np.testing.assert_allclose(found, found[0], rtol=1e-12)


def test_means_over_all_items_are_not_those_of_the_kept_ones():
    even = ol.propensity.Balanced(ol.propensity.Uniform()).fit(LOG, predictions=SCORES["a"])
    with pytest.raises(UndefinedError, match=facts("min_item_rows=", "'prediction'", "inner_")):
        ol.audit(SCORES, TEST, even, min_item_rows=15, check=False, **ASKED)


def test_groups_and_open_loop_are_cut_too():
    labels = np.where(TEST.item % 2 == 0, "even", "odd")
    sample = Feedback.from_arrays(*np.divmod(np.arange(0, U * I, 7), I), Y.ravel()[::7], users=U, items=I)
    found = ol.audit(
        SCORES, TEST, exclude=TRAIN, min_item_rows=15, groups={"parity": labels}, open_loop=sample, **ASKED
    )
    table = next(t for t in found.strata if t.by == "parity")
    assert sum(line.rows for line in table.strata) == KEPT[TEST.item].sum()
    assert found.open_loop.rows == KEPT[sample.item].sum()


def test_nothing_changes_where_no_item_is_rare():
    few = narrowed(SCORES, TEST, None, AuditQuestion(exclude=TRAIN, min_item_rows=1))
    assert len(few.log) == len(TEST)
    assert few.asked.min_item_rows == 0


def test_what_cannot_be_done_is_refused():
    with pytest.raises(InputError, match=facts("min_item_rows=999", LOG.rows_of_items.max())):
        ol.audit(SCORES, TEST, min_item_rows=999)
    with pytest.raises(InputError, match=facts("min_item_rows=", -1)):
        ol.audit(SCORES, TEST, min_item_rows=-1)
    frame = pl.DataFrame({"user": USER, "item": ITEM, "rating": Y[USER, ITEM]})
    with pytest.raises(InputError, match=facts("min_item_rows=", "ol.read")):
        ol.audit({"a": frame, "b": frame}, frame, min_item_rows=15, user="user", item="item", rating="rating")


def test_an_excluded_part_of_the_scored_log_stays_one():
    part = TRAIN.take(np.arange(len(TRAIN)) % 2 == 0)
    whole = replace(LOG, share=np.ones(1))
    few = narrowed(SCORES, whole, None, AuditQuestion(exclude=part, min_item_rows=15))
    assert few.asked.exclude.origin == few.log.origin


def test_lists_and_their_covariates_are_those_of_the_kept_items():
    X = RNG.normal(size=(I, 3))
    asked = {"metrics": ["recall@5", "similarity@5", "coverage@5"], "exclude": TRAIN}
    found = ol.audit(SCORES, TEST, min_item_rows=15, item_features=X, check=False, **asked)
    code, parts = np.cumsum(KEPT) - 1, []
    for part in (TEST, TRAIN):
        rows = part.take(KEPT[part.item])
        parts.append(Feedback.from_arrays(rows.user, code[rows.item], rows.rating, users=U, items=int(KEPT.sum())))
    cut = {name: scores[:, KEPT] for name, scores in SCORES.items()}
    wanted = ol.evaluate(cut, parts[0], metrics=["similarity@5", "coverage@5"], exclude=parts[1], item_features=X[KEPT])
    assert {key: e.value for key, e in found.result.lists.items()} == pytest.approx(
        {key: e.value for key, e in wanted.lists.items()}
    )
