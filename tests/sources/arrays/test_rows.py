"""Rows to sums: by hand, and unchanged by order and by splitting."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import UndefinedError
from openloop.metrics.naming import metric
from openloop.sources.arrays.rows import (
    ArrayColumns,
    Outcome,
    Rows,
    base_sums,
    gains,
    sums,
    weight_summary,
)
from openloop.sources.terms import POWERS, Needed
from tests.examples import METRICS, moments, rows_of, same, small_world

WORLD = small_world()
LOG = WORLD.observe(1)
SCORES = WORLD.predictions["b"]  # with ties
EDGES = (0.4, 0.6)
OUTCOME = Outcome(
    prediction=SCORES[LOG.user, LOG.item],
    above=(SCORES[LOG.user] > SCORES[LOG.user, LOG.item][:, None]).sum(axis=1),
    tied=(SCORES[LOG.user] == SCORES[LOG.user, LOG.item][:, None]).sum(axis=1),
)
ROWS = rows_of(LOG, edges=EDGES, stratum=np.searchsorted(EDGES, LOG.propensity), middles=np.arange(1.5, 5))


def summed(name, keep):
    """Moments of the kept rows; of the relevant ones for a user metric."""
    m = metric(name)
    rows, outcome = ROWS.take(keep), OUTCOME.take(keep)
    if m.kind == "user":
        rows, outcome = rows.take(ROWS.relevant[keep] > 0), outcome.take(ROWS.relevant[keep] > 0)
    return moments(m, rows, outcome, cap=2.0, ideal=name.startswith("ndcg"))


def assert_same_sums(a, b):
    # A user's gain stands on one row where it looks at all of them: weights of that row mean nothing.
    weighted = () if not a.metric.groups else ("wgain", "cutgain")
    for name, values in a.sums.items():
        if name not in weighted:
            same(values, b.sums[name], err_msg=f"{name} of {a.metric.name}")
    if a.powers is not None:
        same(a.powers, b.powers, err_msg=a.metric.name)
        same(a.cut_powers, b.cut_powers, err_msg=a.metric.name)


def test_the_order_of_rows_does_not_matter():
    mixed = np.random.default_rng(0).permutation(len(LOG))
    for name in METRICS:
        assert_same_sums(summed(name, np.arange(len(LOG))), summed(name, mixed))


def test_parts_by_user_merge_to_the_whole():
    part = LOG.user % 3 == 0
    for name in METRICS:
        assert_same_sums(summed(name, part) + summed(name, ~part), summed(name, np.arange(len(LOG))))


def test_parts_by_row_merge_to_the_whole_where_gains_are_sums_over_rows():
    part = np.random.default_rng(1).random(len(LOG)) < 0.5
    for name in [n for n in METRICS if not metric(n).groups and not n.startswith("ndcg")]:
        assert_same_sums(summed(name, part) + summed(name, ~part), summed(name, np.arange(len(LOG))))


@pytest.mark.parametrize("name", ["map", "mrr", "hit@3"])
def test_parts_by_row_do_not_merge_where_gains_look_at_other_rows(name):
    part = np.random.default_rng(1).random(len(LOG)) < 0.5
    with pytest.raises(UndefinedError, match="merge parts that hold whole users"):
        summed(name, part) + summed(name, ~part)


def test_sums_by_user_and_stratum_by_hand():
    rows = Rows(
        user=np.array([0, 0, 2], np.int32), rating=np.array([3.0, 4, 5]), relevant=np.ones(3), cells=np.full(3, 7.0),
        probability=np.array([0.5, 0.2, 0.1]), stratum=np.array([1, 0, 0]), edges=(0.3,),
    )  # fmt: skip
    m = moments(metric("mae"), rows, Outcome(prediction=np.array([1.0, 1.0, 1.0])))
    assert m.sums["n"].tolist() == [[1, 1], [0, 0], [1, 0]]
    assert m.sums["gain"].tolist() == [[3, 2], [0, 0], [4, 0]]
    same(m.sums["wgain"], [[15, 4], [0, 0], [40, 0]])
    same(m.powers[:, 2, 1], [0.8 * 25 * 3 + 0.9 * 100 * 4, 0.5 * 4 * 2])
    assert base_sums(rows)["rows"].tolist() == m.sums["n"].tolist()
    same(base_sums(rows)["mass"], [[5, 2], [0, 0], [10, 0]])
    same(weight_summary(rows).total, 17)


def test_rows_are_grouped_by_user_and_stratum():
    assert ROWS.n_strata == 3
    same(ROWS.group, LOG.user * 3 + np.searchsorted(EDGES, LOG.propensity))


def test_rows_without_probabilities_have_no_weights():
    rows = rows_of(LOG, probability=None)
    assert weight_summary(rows) is None
    assert set(base_sums(rows)) == {"rows"}
    assert ArrayColumns(rows, OUTCOME).weight is None


def test_a_level_is_the_nearest_and_a_midpoint_goes_up():
    x = ArrayColumns(rows_of(LOG, middles=np.array([1.5, 3.0])), Outcome())
    assert x.level(np.array([-9, 1.49, 1.5, 2.9, 3.0, 9])).tolist() == [0, 0, 1, 1, 2, 2]


def test_a_pairs_sums_are_of_the_difference_row_by_row():
    other = Outcome(prediction=WORLD.predictions["a"][LOG.user, LOG.item])
    mae = metric("mae")
    found = sums(
        mae, ROWS, gains(mae, ROWS, OUTCOME) - gains(mae, ROWS, other), Needed(powers=POWERS, pair=True, parts=True)
    )
    d = np.abs(LOG.rating - OUTCOME.prediction) - np.abs(LOG.rating - other.prediction)
    w, p, s = 1 / LOG.propensity, LOG.propensity, ROWS.stratum
    same(found["positive"].sum(), (w * np.maximum(d, 0)).sum())
    same(found["negative"].sum(), (w * np.maximum(-d, 0)).sum())
    same(found["power22"][0], np.bincount(s, (1 - p) * w**2 * d**2))
    assert "gain" not in found
