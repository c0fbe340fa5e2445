"""Means of a side by hand, tilted weights that have the mean they should, and cells imputed without their fold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import openloop as ol
from openloop.errors import UndefinedError
from openloop.learners.crossing import latin_folds
from openloop.studies.race.study_learners import SideMean, StableMF, crossed, tilted
from tests.facts import facts


@pytest.fixture(scope="module")
def three():
    return ol.Feedback.from_arrays([0, 0, 1], [0, 1, 0], [1.0, 3.0, 5.0], users=3, items=2)


def test_the_mean_of_a_user_is_shrunk_as_by_reg_rows(three):
    model = SideMean("user", reg=1.0).fit(three)
    # c = 3: user 0 has residuals -2 and 0 and weight 2, user 1 residual 2 and weight 1, user 2 no row
    assert model.predict([0, 1, 2], [1, 1, 1]) == pytest.approx([3 - 2 / 3, 3 + 2 / 2, 3])


def test_the_mean_of_an_item_is_weighted(three):
    model = SideMean("item", reg=0.5).fit(three, [1.0, 1.0, 2.0])
    w, c = np.array([1, 1, 2]) / (4 / 3), (1 + 3 + 10) / 4
    of_item = (w[0] * (1 - c) + w[2] * (5 - c)) / (w[0] + w[2] + 0.5)
    assert model.predict([2], [0]) == pytest.approx([c + of_item])
    assert model.scores([0, 1])[:, 0] == pytest.approx([c + of_item] * 2)


def test_tilted_weights_have_the_mean_and_keep_the_order():
    rng = np.random.default_rng(0)
    w, e = rng.uniform(1, 5, 200), rng.exponential(size=200)
    for mean in (0.5, 2.0):
        found = tilted(w, e, mean)
        assert np.average(e, weights=found) == pytest.approx(mean)
        slope = np.diff(np.log(found / w)[np.argsort(e)])
        assert (slope >= -1e-9).all() if mean > np.average(e, weights=w) else (slope <= 1e-9).all()


def test_a_mean_that_no_weights_give_is_refused():
    with pytest.raises(UndefinedError, match=facts("StableMF", 2, 3)):
        tilted(np.ones(2), np.array([1.0, 2.0]), 3.0)


def test_what_is_imputed_for_a_cell_does_not_depend_on_its_rating(ground):
    log = ground.log
    changed = log.rating.copy()
    changed[0] = 6 - changed[0] if changed[0] != 3 else 5
    other = ol.Feedback.from_arrays(log.user, log.item, changed, users=log.n_users, items=log.n_items)
    w = np.ones(len(log))
    a, b = (crossed(ol.learners.MF(2, threads=1), one, w, 3, 0) for one in (log, other))
    latin = latin_folds("test", log, 3, 0)
    same = latin.of(*np.indices(a.shape)) == latin.of(log.user[:1], log.item[:1])[0]
    assert a[same] == pytest.approx(b[same], abs=0)
    assert not np.allclose(a[~same], b[~same])


def test_stable_weights_change_little_and_the_model_is_cloned_with_its_settings(ground):
    log = ground.log
    p = ground.p[log.user, log.item]
    plain = ol.learners.MF(3, 2.0, threads=1).fit(log, 1 / p)
    model = clone(StableMF(3, 2.0, imputation_reg=2.0, rounds=1, folds=2)).fit(log, 1 / p)
    assert model.get_params()["rounds"] == 1
    assert np.corrcoef(plain.predict(log.user, log.item), model.predict(log.user, log.item))[0, 1] > 0.9
    assert not np.allclose(plain.predict(log.user, log.item), model.predict(log.user, log.item))
    still = StableMF(3, 2.0, imputation_reg=2.0, rounds=0).fit(log, 1 / p)
    assert still.predict(log.user, log.item) == pytest.approx(plain.predict(log.user, log.item))
