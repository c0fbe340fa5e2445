"""The bootstrap by Triton: the CPU's replicates, whatever the shape, and the same bits every time."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import DeviceError, InputError
from openloop.kernels.bootstrap import bootstrap_sums_numpy
from tests.facts import facts


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


def test_sums_of_whole_numbers_are_exact_and_repeat_themselves(kernel):
    X = np.arange(300.0).reshape(150, 2)
    found = kernel.bootstrap_sums(X, 9, 3)
    np.testing.assert_array_equal(found, bootstrap_sums_numpy(X, 9, 3))
    np.testing.assert_array_equal(kernel.bootstrap_sums(X, 9, 3), found)


def test_nobody_adds_up_to_nothing(kernel):
    np.testing.assert_array_equal(kernel.bootstrap_sums(np.zeros((0, 2)), 3, 0), np.zeros((3, 2)))


def test_what_is_no_table_and_no_replicate_are_refused(kernel):
    with pytest.raises(InputError, match=facts("columns", (3,))):
        kernel.bootstrap_sums(np.zeros(3), 2, 0)
    with pytest.raises(InputError, match=facts("replicates", 0)):
        kernel.bootstrap_sums(np.zeros((3, 1)), 0, 0)


def test_memory_that_is_too_small_is_told(kernel, monkeypatch):
    monkeypatch.setattr("openloop.kernels.cuda.devices.free_bytes", lambda _: 2**20)
    with pytest.raises(DeviceError, match=facts("bootstrap_sums", "10,000", "1,000", "GiB")):
        kernel.bootstrap_sums(np.zeros((1000, 2)), 10_000, 0)
