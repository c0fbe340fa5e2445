"""wrap: pairs of vectors, learners and functions; what it cannot tell is refused, with what it can."""

from __future__ import annotations

import subprocess
import sys

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


def test_factors_by_items_are_refused_with_the_remedy():
    with pytest.raises(AlignmentError, match=facts((30, 3), (3, 12), "item_factors.T")):
        ol.wrap((V, W.T))
    with pytest.raises(AlignmentError, match=facts((30, 3), (12, 2))):
        ol.wrap((V, W[:, :2]))


def test_each_library_is_told_by_what_its_models_have():
    names = {name: family_of(model).name for name, model in (("a", Als()), ("l", LightFM()), ("s", SVD()))}
    assert names == {"a": "implicit", "l": "LightFM", "s": "Surprise"}
    assert family_of(ol.learners.Bias().fit(LOG)) is None
    assert family_of(SVD) is None


def test_no_library_is_imported():
    program = """if True:
        import sys
        import openloop as ol
        ol.wrap(([[1.0]], [[2.0]]))
        print(*{"implicit", "lightfm", "surprise", "lenskit", "torch", "faiss"} & set(sys.modules))
    """
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


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


@pytest.mark.parametrize(
    "learner",
    [ol.learners.MF(factors=2, loss="logistic", rng=0), ol.learners.Popularity()],
    ids=["linked", "no factors"],
)
def test_learners_that_are_no_plain_product_keep_their_predictions_and_scores(learner):
    binary = Feedback.from_arrays(SOME.user, SOME.item, SOME.rating >= 4, users=SOME.users, items=SOME.items)
    model = learner.fit(binary)
    wrapped = ol.wrap(model, unknown="zero").placed(USERS, ITEMS)
    np.testing.assert_array_equal(wrapped.scores([3, 1]), model.scores([3, 1]))
    np.testing.assert_array_equal(wrapped.predict([3, 25], [1, 1]), [model.predict([3], [1])[0], 0])


def test_rows_without_ids_stay_without_when_they_are_wrapped_again():
    again = ol.wrap(ol.wrap((V, W)), unknown="zero")
    log = Feedback.from_arrays(LOG.user, LOG.item, LOG.rating, users=Vocabulary.of(range(1, 31)), items=12)
    with pytest.raises(AlignmentError, match=facts("'m'", "30 rows of users", "users=")):
        evaluated(again, log)
    assert_evaluated_as(ol.wrap(ol.wrap((V, W)), users=USER_IDS, items=ITEM_IDS), in_codes(SCORES))
    clipped = ol.wrap(ol.wrap(SVD()), unknown="zero")
    assert clipped.clip == (1, 5)


def test_a_learner_has_ids_and_must_be_fitted():
    with pytest.raises(InputError, match=facts("Bias", "users=")):
        ol.wrap(ol.learners.Bias().fit(LOG), users=USER_IDS)
    with pytest.raises(Exception, match=facts("Bias", "not fitted")):
        ol.wrap(ol.learners.Bias())


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


def test_a_function_may_have_ids_that_it_knows():
    model = ol.wrap(by_id, users=USER_IDS, items=ITEM_IDS, unknown="zero")
    assert_evaluated_as(model, in_codes(SCORES))
    assert model.placed(Vocabulary.of(["u00", "zoe"]), ITEMS).predict([1], [0]).tolist() == [0]
    with pytest.raises(InputError, match=facts("function", "evaluate", "users", "items")):
        ol.wrap(by_id)


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


def test_unknown_is_one_of_two():
    with pytest.raises(InputError, match=facts("unknown='drop'", "zero")):
        ol.wrap((V, W), unknown="drop")
