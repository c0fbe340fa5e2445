"""Shifts of scores and thresholds: the law of a draw."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from openloop.kernels.ordinal_shift import draw_shift, shift_system_numpy
from openloop.kernels.streams import stream_word
from tests.kernels.test_ordinal import World


def test_a_shift_has_the_moments_of_its_normal_law():
    w, off = World(2), World(2).b - [-1.5, -0.5, 0.5, 1.5]
    given = (w.sides[0], w.a, w.v, w.scales, w.belief.variance)
    with ThreadPoolExecutor(1) as pool:
        drawn = [draw_shift(*given, off, stream_word(0, k), pool) for k in range(1500)]
    drawn = np.array([[*mean, c] for mean, c in drawn])
    A, g = shift_system_numpy(*given)
    A = A + np.diag([1, 1, 1, 4])
    g = g - [0, 0, 0, np.sum(off)]
    z = (drawn.mean(axis=0) - np.linalg.solve(A, g)) / np.sqrt(np.diag(np.linalg.inv(A)) / len(drawn))
    assert np.abs(z).max() < 3.5
    np.testing.assert_allclose(np.cov(drawn.T) @ A, np.eye(4), atol=0.2)
