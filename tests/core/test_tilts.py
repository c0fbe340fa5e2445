"""Sums under tilted weights: those of a pair in either order."""

from __future__ import annotations

import numpy as np

from openloop.core.tilts import TiltedSums, Tilts

PARTS = np.arange(12.0).reshape(2, 2, 3)  # two clusters, two pairs
SUMS = np.arange(24.0).reshape(2, 4, 3)  # two clusters, Σw and three models, three points
TILTS = Tilts(
    models=("a", "b", "c"),
    pairs=(("a", "b"), ("a", "c")),
    parts=PARTS,
    sums=(TiltedSums(against="rho", grid=(1.0, 2.0, 3.0), sums=SUMS),),
)


def test_a_pair_has_its_parts_in_either_order():
    np.testing.assert_array_equal(TILTS.parts_of("a", "c"), PARTS[:, 1])
    np.testing.assert_array_equal(TILTS.parts_of("c", "a"), [[-3, 5, 4], [-9, 11, 10]])
    assert TILTS.parts_of("b", "c") is None
    assert Tilts(models=("a", "b")).parts_of("a", "b") is None


def test_the_sums_of_a_pair_come_with_those_of_the_weights():
    rho = TILTS.against("rho")
    np.testing.assert_array_equal(TILTS.gains(rho, "c", "a"), SUMS[:, [0, 3, 1]])
    assert TILTS.against("kappa") is None
