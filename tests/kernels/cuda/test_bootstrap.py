"""The bootstrap by Triton has the replicates of the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels.bootstrap import bootstrap_sums_numpy


@pytest.fixture
def kernel(triton):
    from openloop.kernels.cuda import bootstrap

    return bootstrap


# Users that fill no word, more columns than one pass takes, more replicates than one tile has; and a seed of 64 bits.
@pytest.mark.parametrize(
    ("users", "columns", "replicates", "seed"), [(203, 2, 70, 5), (64, 19, 3, 2**63 + 1), (5, 1, 1, 0)]
)
def test_replicates_are_those_of_the_cpu(kernel, users, columns, replicates, seed):
    X = np.random.default_rng(users).normal(size=(users, columns))
    found = kernel.bootstrap_sums(X, replicates, seed)
    np.testing.assert_allclose(found, bootstrap_sums_numpy(X, replicates, seed), rtol=1e-12, atol=1e-12)
