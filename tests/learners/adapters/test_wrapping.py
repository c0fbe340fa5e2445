"""wrap: pairs of vectors, learners and matrices; what it cannot tell is refused, with what it can."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import AlignmentError, InputError, UnknownIdError
from openloop.learners.adapters.wrapping import family_of
from tests.elsewhere import (
    ITEM_IDS,
    ITEMS,
    LOG,
    SVD,
    USER_IDS,
    USERS,
    Als,
    LightFM,
    V,
    W,
    assert_evaluated_as,
    evaluated,
    in_codes,
)
from tests.facts import facts

SCORES = V @ W.T


def test_vectors_of_two_towers():
    assert_evaluated_as(ol.wrap((V, W), users=USER_IDS, items=ITEM_IDS), in_codes(SCORES))


def test_each_library_is_told_by_what_its_models_have():
    names = {name: family_of(model).name for name, model in (("a", Als()), ("l", LightFM()), ("s", SVD()))}
    assert names == {"a": "implicit", "l": "LightFM", "s": "Surprise"}
    assert family_of(ol.learners.Bias().fit(LOG)) is None
    assert family_of(SVD) is None


@pytest.mark.parametrize(
    "model",
    [ol.wrap(Als(), users=USER_IDS, items=ITEM_IDS), ol.wrap(SVD()), ol.wrap((V, W))],
    ids=["ids", "clip", "positions"],
)
def test_what_has_factors_is_saved_as_it_is(model, tmp_path):
    model.save(tmp_path / "m.safetensors")
    again = ol.load(tmp_path / "m.safetensors")
    assert (again.users_, again.items_, again.clip) == (model.users_, model.items_, model.clip)
    assert (again.users is None) == (model.users is None)
    np.testing.assert_array_equal(again.predictions(range(5)), model.predictions(range(5)))


# -- learners ------------------------------------------------------------------------------------------------

SOME = Feedback.from_arrays(
    LOG.user[LOG.user < 20], LOG.item[LOG.user < 20], LOG.rating[LOG.user < 20],
    users=Vocabulary(USERS.ids[:20]), items=ITEMS,
)  # fmt: skip


def test_learners_are_found_by_id_and_lack_what_they_were_not_fitted_on():
    model = ol.learners.Bias().fit(SOME)
    with pytest.raises(UnknownIdError, match=facts("'m'", 10, "30 users", "'u20'", 'ol.wrap(model, unknown="zero")')):
        evaluated(model)
    found = evaluated(ol.wrap(model, unknown="zero"))
    assert any("'m'" in note and "10 of 30 users" in note for note in found.notes)
    grid = np.vstack([model.scores(range(20)), np.tile(model.item_bias_ + model.intercept_, (10, 1))])
    assert_evaluated_as(ol.wrap(model, unknown="zero"), grid)


# -- matrices of scores --------------------------------------------------------------------------------------


def test_a_matrix_of_scores_has_ids_of_rows_and_columns():
    masked = np.where(SCORES < -1.5, -np.inf, SCORES)
    assert_evaluated_as(ol.wrap(SCORES, users=USER_IDS, items=ITEM_IDS), in_codes(SCORES))
    found = assert_evaluated_as(ol.wrap(masked, users=USER_IDS, items=ITEM_IDS), in_codes(masked), ["ndcg@3"])
    assert any("-inf" in note for note in found.notes)
    with pytest.raises(InputError, match=facts("matrix", "users=", "items=")):
        ol.wrap(SCORES, users=USER_IDS)
    with pytest.raises(AlignmentError, match=facts((12, 30), "30 users", "12 items")):
        ol.wrap(SCORES.T, users=USER_IDS, items=ITEM_IDS)


# -- functions -----------------------------------------------------------------------------------------------


def by_id(users, items):
    return np.array([SCORES[USER_IDS.index(u), ITEM_IDS.index(i)] for u, i in zip(users, items, strict=True)])


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (object(), ("object", "implicit", "LightFM", "LensKit")),
        (SVD, ("SVD", "class")),
        ((V, W, V), ("3", "user vectors")),
        (ol.wrap(by_id, users=USER_IDS, items=ITEM_IDS), ("by_id", "wrapped already")),
    ],
    ids=["object", "class", "three", "wrapped"],
)
def test_what_is_no_model_is_refused(model, told):
    with pytest.raises(InputError, match=facts("wrap", *told)):
        ol.wrap(model)
