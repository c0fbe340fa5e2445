"""The published code's way, by hand, and beside the programs that it calls."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from openloop.audits.rankings import williams
from openloop.propensity.solvers.power_law import fit_power_law
from openloop.studies.jadidinejad2021 import as_coded


def test_the_codes_ranks_of_distinct_scores_are_the_usual_ones():
    scores = np.random.default_rng(0).random((5, 7))
    user, item = np.repeat(np.arange(5), 7), np.tile(np.arange(7), 5)
    expected = (-scores).argsort(axis=1).argsort(axis=1) + 1
    assert as_coded.ranks(scores, np.arange(7), user, item).tolist() == expected.ravel().tolist()


def test_propensities_are_counts_up_to_x_min_and_their_power_above():
    rng = np.random.default_rng(0)
    counts = np.minimum(rng.zipf(2.5, 300) + 4, 500)
    item = np.repeat(np.arange(300), counts)
    law = fit_power_law(counts.astype(float))
    p = as_coded.propensities(item, 302, 1000)
    above = counts > law.x_min
    assert 0 < above.sum() < 300
    assert p[:300][~above] == pytest.approx(counts[~above])
    assert p[:300][above] == pytest.approx(counts[above] ** law.alpha)
    assert p[300:].tolist() == [0, 0]


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_strata_are_those_of_pandas(n):
    x = np.random.default_rng(n).pareto(1.5, 500)
    assert as_coded.strata(x, n).tolist() == pd.cut(x, n, labels=False).tolist()


def test_the_gain_of_an_item_is_that_of_another():
    # Cornac's items 0, 1 are the items 2, 0: they get the p of the ids 0 and 1. Item 1 is not in training.
    gain = as_coded.ips_gain(np.array([4.0, 2.0, 8.0]), np.array([2, 0]))
    assert gain == pytest.approx([2**0.5 - 1, 1, 2**0.25 - 1])


def test_an_id_without_a_propensity_leaves_the_gain_at_one():
    assert as_coded.ips_gain(np.array([0.0, 2.0]), np.array([1, 0])).tolist() == [pytest.approx(2**0.5 - 1), 1]


def test_its_test_is_one_tail_of_williams():
    t = williams(0.27, 0.1, 0.5, 104).pvalue
    assert 0.05 < t < 0.1
    assert as_coded.differs(0.27, 0.1, 0.5, 104)
    assert as_coded.differs(0.1, 0.27, 0.5, 104)
    assert not as_coded.differs(0.2, 0.1, 0.5, 104)


def _quicksort(v, t, low, high):
    """Sort the indices t[low … high] by v: the median of three in the middle, insertion up to 16 elements."""
    if high - low <= 15:
        t[low : high + 1] = sorted(t[low : high + 1], key=lambda index: v[index])
        return
    middle = low + (high - low) // 2
    for a, b in ((low, middle), (middle, high), (low, middle)):
        if v[t[b]] < v[t[a]]:
            t[a], t[b] = t[b], t[a]
    pivot, i, j = v[t[middle]], low, high - 1
    t[middle], t[j] = t[j], t[middle]
    while True:
        i = next(k for k in range(i + 1, high + 1) if v[t[k]] >= pivot)
        j = next(k for k in range(j - 1, low - 1, -1) if v[t[k]] <= pivot)
        if i >= j:
            break
        t[i], t[j] = t[j], t[i]
    t[i], t[high - 1] = t[high - 1], t[i]
    _quicksort(v, t, low, i - 1)
    _quicksort(v, t, i + 1, high)


@pytest.mark.parametrize("values", [1, 2, 30])
def test_ties_fall_as_a_plain_quicksort_leaves_them_on_every_machine(values):
    scores = np.random.default_rng(values).integers(0, values, (3, 300)).astype(float)
    user, item = np.repeat(np.arange(3), 300), np.tile(np.arange(300), 3)
    found = as_coded.ranks(scores, np.arange(300), user, item).reshape(3, 300)
    for row, ranks in zip(scores.tolist(), found, strict=True):
        order = list(range(300))
        _quicksort(row, order, 0, 299)
        assert ranks[order[::-1]].tolist() == list(range(1, 301))
