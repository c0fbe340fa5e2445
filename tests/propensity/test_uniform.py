"""p = |O|/(U·I): by hand, for parts of a log, and without memory."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.data.simulate import World
from openloop.errors import UndefinedError
from openloop.propensity.uniform import Uniform
from tests.contracts import PropensityModelContract
from tests.facts import facts


class TestUniform(PropensityModelContract):
    def make(self):
        return Uniform()


def log_of(n: int, **columns) -> Feedback:
    return Feedback.from_arrays(np.arange(n), np.zeros(n, int), np.ones(n), users=10, items=2, **columns)


def test_by_hand():
    # 3 of 10 × 2 cells
    assert Uniform().fit(log_of(3)).p_ == 0.15
    assert Uniform().fit(log_of(3)).predict(log_of(5)).values.tolist() == [0.15] * 5


def test_a_part_tells_the_propensity_of_the_whole_log():
    # 3 rows, each kept with probability 1/4: about 12 of 20 cells were observed.
    assert Uniform().fit(log_of(3, share=np.full(3, 0.25))).p_ == 0.6


def test_a_part_without_share_is_refused():
    with pytest.raises(UndefinedError, match=facts("Uniform", "no share", "whole log")):
        Uniform().fit(log_of(3, share=None))


def test_parts_of_a_log_agree_with_it_on_average():
    rng = np.random.default_rng(3)
    log = World(ratings=np.ones((40, 30)), propensities=np.full((40, 30), 0.3)).observe(rng)
    whole, estimates = Uniform().fit(log).p_, []
    for _ in range(400):
        keep = rng.random(len(log)) < 0.2
        estimates.append(Uniform().fit(log.take(keep, share=np.full(int(keep.sum()), 0.2))).p_)
    spread = np.sqrt(len(log) * 0.2 * 0.8) / (0.2 * 1200) / np.sqrt(400)
    assert abs(np.mean(estimates) - whole) < 4 * spread
