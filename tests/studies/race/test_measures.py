"""The race's metrics: by hand, by scikit-learn, and as functions of how often each user counts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import ndcg_score, roc_auc_score

from openloop.studies.race import measures
from openloop.studies.race.measures import AUC, MAE, MSE, NDCG, RECALL, USER_AUC


def value(form, users):
    return float(form.over(np.ones((1, users)))[0])


def values(user, score, positive, users):
    found = measures.ranking(np.array(user), np.array(score), np.array(positive, bool), users)
    return {name: value(form, users) for name, form in found.items()}


@pytest.fixture(scope="module")
def tested():
    """40 users with 16 cells each, many scores tied; some users lack positives, some negatives."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(40), 16)
    score = np.round(rng.normal(size=len(user)), 1)
    positive = rng.random(len(user)) < np.repeat(rng.uniform(0, 0.9, 40), 16)
    positive[user == 3], positive[user == 7] = False, True
    return user, score, positive


def test_by_hand_with_ties():
    # User 0: cells 9, 5, 5, 1; the positives are one of the tied and the last. User 1 has no positive.
    found = values([0, 0, 0, 0, 1, 1], [9.0, 5.0, 5.0, 1.0, 2.0, 0.0], [0, 1, 0, 1, 0, 0], 2)
    d = 1 / np.log2([2, 3, 4, 5])
    ndcg = ((d[1] + d[2]) / 2 + d[3]) / (d[0] + d[1])
    assert found[NDCG] == pytest.approx(ndcg)
    assert found[RECALL] == 1
    # her pairs: 5 against 9 and 5: 0 and ½; 1 against 9 and 5: 0
    assert found[USER_AUC] == pytest.approx(0.5 / 4)
    # pooled: negatives 9, 5, 2, 0; 5 is above two and ties with one, 1 is above one
    assert found[AUC] == pytest.approx((2.5 + 1) / 8)


def test_scikit_learn_has_the_same(tested):
    user, score, positive = tested
    found = values(*tested, 40)
    assert found[AUC] == pytest.approx(roc_auc_score(positive, score))
    of = [np.flatnonzero(user == u) for u in range(40)]
    both = [rows for rows in of if 0 < positive[rows].sum() < 16]
    some = [rows for rows in of if positive[rows].any()]
    assert len(both) < len(some) < 40
    assert found[USER_AUC] == pytest.approx(np.mean([roc_auc_score(positive[rows], score[rows]) for rows in both]))
    # ndcg_score(ignore_ties=False), the default, averages over orders of tied cells
    ndcg = [ndcg_score([positive[rows].astype(float)], [score[rows]], k=5) for rows in some]
    assert found[NDCG] == pytest.approx(np.mean(ndcg))


def test_a_user_who_counts_twice_is_two_users(tested):
    user, score, positive = tested
    twice = np.append(user, np.full(16, 40)), np.append(score, score[:16]), np.append(positive, positive[:16])
    counts = np.ones((2, 40))
    counts[1, 0] = 2
    found = measures.ranking(user, score, positive, 40)
    again = values(*twice, 41)
    for name, form in found.items():
        assert form.over(counts) == pytest.approx([value(form, 40), again[name]])


def test_errors_are_means_over_cells():
    found = measures.rating(np.array([0, 0, 1]), [1.0, 2.0, 5.0], [1.0, 4.0, 2.0], 2)
    assert value(found[MSE], 2) == pytest.approx((0 + 4 + 9) / 3)
    assert value(found[MAE], 2) == pytest.approx(5 / 3)
    assert found[MSE].over(np.array([[2.0, 1.0]])) == pytest.approx([(8 + 9) / 5])
