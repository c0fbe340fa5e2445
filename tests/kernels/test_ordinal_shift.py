"""Shifts of scores and thresholds: their twin, and the law of a draw."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from openloop.kernels import parts
from openloop.kernels.ordinal_shift import draw_shift, shift_system, shift_system_numpy
from openloop.kernels.streams import stream_word
from tests.kernels.test_ordinal import World


def test_the_system_agrees_with_its_twin_in_one_part_or_many(monkeypatch):
    with ThreadPoolExecutor(2) as pool:
        for part in (20_000, 7):
            monkeypatch.setattr(parts, "PART", part)
            w = World(1)
            assert (len(w.sides[0].parts) > 1) == (part == 7)
            for side, partners, scales in ((w.sides[0], w.v, w.scales), (w.sides[1], w.u, w.scales[::-1])):
                given = (side, w.a, partners, scales, w.belief.variance)
                for one, other in zip(shift_system(*given, pool), shift_system_numpy(*given), strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


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
