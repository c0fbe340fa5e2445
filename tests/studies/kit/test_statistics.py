"""Student's t, against SciPy, and where a sample has no spread."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from openloop.studies.kit.statistics import mean_of, paired


def test_a_paired_difference_is_students():
    a, b = np.random.default_rng(0).normal(size=(2, 9))
    found = paired(a, b)
    assert found.pvalue == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert found.value == pytest.approx(np.mean(a - b))
    assert found.stderr == pytest.approx(stats.sem(a - b))


def test_the_t_test_is_that_of_scipy():
    x = np.random.default_rng(0).normal(0.3, 1, 20)
    found, theirs = mean_of(x), stats.ttest_1samp(x, 0)
    assert found.pvalue == pytest.approx(theirs.pvalue, rel=1e-10)
    assert found.value / found.stderr == pytest.approx(theirs.statistic, rel=1e-10)
