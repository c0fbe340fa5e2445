"""Recommenders of other ids: found by id, never by position, with an error, zeros or a note for what they lack."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.core.protocols import FactorModel
from openloop.errors import AlignmentError, UnknownIdError
from openloop.moments.recoding import PartlyRecoded, Recoded, RecodedFactors, by_id, partly_by_id, told
from tests.elsewhere import ITEMS, LOG, METRICS, USERS, I, U, V, W, evaluated
from tests.facts import facts

MORE = Vocabulary.of([*USERS.ids, "u05b", "zoe"]), Vocabulary.of([1, 110, *ITEMS.ids])
WIDE = Feedback.from_arrays(
    MORE[0].codes(USERS.ids[LOG.user]), MORE[1].codes(ITEMS.ids[LOG.item]), LOG.rating, users=MORE[0], items=MORE[1]
)
CODES = MORE[0].codes(USERS.ids), MORE[1].codes(ITEMS.ids)
KINDS = ("factors", "linked", "no factors")


@cache
def fitted(kind):
    if kind == "factors":
        return ol.learners.MF(factors=2, reg=1.0, rng=0).fit(WIDE)
    if kind == "no factors":
        return ol.learners.Popularity().fit(WIDE)
    binary = Feedback.from_arrays(WIDE.user, WIDE.item, WIDE.rating >= 4, users=WIDE.users, items=WIDE.items)
    return ol.learners.MF(factors=2, loss="logistic", rng=0).fit(binary)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_knows_more_is_asked_by_id(kind):
    model = fitted(kind)
    found = by_id("m", model, LOG.users, LOG.items)
    assert isinstance(found, Recoded)
    assert isinstance(found, FactorModel) == isinstance(model, FactorModel)
    np.testing.assert_array_equal(found.scores(np.arange(U)), model.scores(CODES[0])[:, CODES[1]])
    np.testing.assert_array_equal(found.predictions(np.arange(3)), model.predictions(CODES[0][:3])[:, CODES[1]])
    pairs = LOG.user, LOG.item
    np.testing.assert_array_equal(found.predict(*pairs), model.predict(CODES[0][pairs[0]], CODES[1][pairs[1]]))
    assert found.linked == getattr(model, "linked", False)
    if found.linked:
        np.testing.assert_array_equal(found.linear(*pairs), model.linear(CODES[0][pairs[0]], CODES[1][pairs[1]]))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_evaluated_as_its_scores_are(kind, tmp_path):
    model = fitted(kind)
    model.save(tmp_path / "m.safetensors")
    wanted = evaluated(model.scores(CODES[0])[:, CODES[1]], metrics=["ndcg@3"])
    for given in (model, ol.load(tmp_path / "m.safetensors")):
        found = evaluated(given, metrics=["ndcg@3"])
        np.testing.assert_allclose(found["m", "ndcg@3", "naive"].value, wanted["m", "ndcg@3", "naive"].value, rtol=1e-6)


def test_an_audit_without_rare_items_and_with_cold_rows_finds_models_by_id():
    train, test = ol.split(LOG, test=0.4, rng=1)
    models = {
        "a": fitted("factors"),
        "b": ol.wrap(fitted("factors"), unknown="zero"),
        "c": ol.learners.Bias().fit(train),
    }
    p = np.full((U, I), 0.5)
    few = ol.audit(models, replace(test, min_item_rows=3), p, metrics=["mae", "ndcg@3"], exclude=train, rng=0).result
    apart = ol.audit(models, test, p, metrics=["mae"], exclude=train, cold="report", rng=0).result
    for result in (few, apart):
        for metric in result.metrics:
            np.testing.assert_allclose(*(result[name, metric, "snips"].value for name in ("a", "b")), rtol=1e-6)


def test_an_imputation_is_found_by_id():
    found, wanted = (
        ol.evaluate({"m": np.full((U, I), 3.0)}, LOG, np.full((U, I), 0.5), metrics=["mae"], estimators=[ol.dr(given)])[
            "m", "mae", "dr"
        ].value
        for given in (fitted("factors"), fitted("factors").scores(CODES[0])[:, CODES[1]])
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_the_same_ids_need_no_codes():
    model = fitted("factors")
    assert by_id("m", model, WIDE.users, WIDE.items) is model
    assert partly_by_id("m", model, WIDE.users, WIDE.items) == (model, "")
    plain = object()
    assert by_id("m", plain, USERS, ITEMS) is plain  # without ids of its own it is taken to be in the log's codes


def test_ids_that_it_lacks_are_refused_with_the_remedy():
    model = ol.learners.Bias().fit(LOG)
    with pytest.raises(UnknownIdError, match=facts("'m'", 2, "32 users", "'u05b'", "'zoe'", "ol.wrap", "like=")):
        evaluated(model, WIDE)
    with pytest.raises(UnknownIdError, match=facts("'m'", 2, "14 items", 1, 110, "ol.wrap")):
        evaluated(model, Feedback.from_arrays(LOG.user, LOG.item, LOG.rating, users=USERS, items=MORE[1]))
    wrapped = ol.wrap(lambda users, _: np.ones(len(users)), users=USERS, items=ITEMS)
    with pytest.raises(UnknownIdError, match=facts("'m'", "32 users", 'unknown="zero" where it is wrapped')):
        evaluated(wrapped, WIDE)


def test_what_it_lacks_may_be_zero_and_is_noted():
    model = ol.wrap(ol.learners.Bias().fit(LOG), unknown="zero")
    found = evaluated(model, WIDE)
    notes = [note for note in found.notes if "model 'm'" in note]
    assert any("2 of 32 users" in note for note in notes)
    assert any("2 of 14 items" in note for note in notes)
    assert told("m", by_id("m", model, *MORE))
    np.testing.assert_allclose(
        found["m", "mae", "naive"].value, evaluated(model, metrics=["mae"])["m", "mae", "naive"].value
    )
    narrow = ol.audit({"m": model, "n": np.zeros((U + 2, I + 2))}, replace(WIDE, min_item_rows=2),
                      np.full((U + 2, I + 2), 0.5), metrics=["mae"], rng=0)  # fmt: skip
    assert any("2 of 32 users" in note for note in narrow.result.notes)


def test_ids_of_another_kind_are_refused_whatever_is_asked():
    model = ol.learners.Bias().fit(LOG)
    numbers = Feedback.from_arrays(LOG.user, LOG.item, LOG.rating, users=U, items=ITEMS)
    for given in (model, ol.wrap(model, unknown="zero")):
        with pytest.raises(AlignmentError, match=facts("'m'", "none", "30 users", "text", "'u00'", "integers", "cast")):
            evaluated(given, numbers)
    with pytest.raises(AlignmentError, match=facts("'m'", "none", "30 users")):
        partly_by_id("model 'm'", model, numbers.users, numbers.items)


def test_a_command_asks_a_model_that_lacks_ids_about_the_others():
    model = ol.learners.Bias().fit(LOG)
    found, note = partly_by_id("m", model, *MORE)
    assert isinstance(found, PartlyRecoded)
    assert "2 of 32 users and 2 of 14 items" in note
    scores = found.scores(np.arange(U + 2))
    np.testing.assert_array_equal(scores[CODES[0]][:, CODES[1]], model.scores(np.arange(U)))
    assert np.isneginf(scores[MORE[0].codes(["zoe"])]).all()
    assert np.isneginf(scores[:, MORE[1].codes([110])]).all()
    assert not any("-inf" in n for n in evaluated(found, WIDE, metrics=["ndcg@3"]).notes)


def test_rows_without_ids_are_no_model_that_lacks_some():
    numbers = Vocabulary.of(range(1, U + 1)), Vocabulary.range(I)
    padded = np.vstack([np.zeros(3), V])
    for rows in (V, padded):
        with pytest.raises(AlignmentError, match=facts("'m'", f"{len(rows)} rows of users", "users=")):
            partly_by_id("model 'm'", ol.wrap((rows, W)), *numbers)
    found, note = partly_by_id("m", ol.wrap((padded, W), users=range(U + 1)), *numbers)
    np.testing.assert_allclose(found.scores(np.arange(U)), V @ W.T)
    assert note == ""


def test_factors_are_ranked_without_blocks():
    model = ol.learners.Factors(V, W, users=[f"u{u:02}" for u in reversed(range(U))], items=ITEMS.ids)
    assert isinstance(by_id("m", fitted("factors"), USERS, ITEMS), RecodedFactors)
    assert_same(evaluated(model), evaluated((V @ W.T)[::-1]))


def assert_same(found, wanted):
    for metric in METRICS:
        np.testing.assert_allclose(found["m", metric, "naive"].value, wanted["m", metric, "naive"].value, rtol=1e-6)
