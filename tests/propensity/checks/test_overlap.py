"""Weights and overlap: by hand on six cells, for parts of a log, and on a grid that does not fit anywhere."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.core.feedback import Feedback, Vocabulary
from openloop.core.propensities import Propensities
from openloop.data.simulate import World
from openloop.errors import UndefinedError
from openloop.propensity.checks.held_out import CELLS
from openloop.propensity.checks.overlap import observed_only, overlap, row_weights, weigh
from openloop.propensity.known import Known
from openloop.propensity.uniform import Uniform
from tests.facts import facts

P = np.array([[0.5, 0.25], [0.5, 0.5], [0.5, 0.01]])
LOG = Feedback(
    user=np.array([0, 0, 1]), item=np.array([0, 1, 0]), rating=np.ones(3), users=Vocabulary.of(["ann", "bob", "eve"]),
    items=Vocabulary.of(["x", "y"]), propensity=np.array([0.5, 0.25, 0.5]),
)  # fmt: skip


def test_weights_by_hand():
    found, heaviest = weigh(LOG, Propensities(values=LOG.propensity))
    # w = 2, 4, 2
    assert found.n == 3
    assert found.effective_size == pytest.approx(64 / 24)
    assert found.mass == pytest.approx(8 / 6)
    assert found.largest_share == 0.5
    assert found.quantiles[1.0] == 4.0
    assert [(h.user, h.item, h.p, h.weight, h.share) for h in heaviest] == [
        ("ann", "y", 0.25, 4.0, 0.5), ("ann", "x", 0.5, 2.0, 0.25), ("bob", "x", 0.5, 2.0, 0.25),
    ]  # fmt: skip
    assert any(re.search(facts("population", 1.33), flag) for flag in found.flags)


def test_a_part_of_a_log_has_weights_over_p_and_share():
    part = LOG.take(np.arange(3), share=np.array([0.5, 0.5, 0.25]))
    np.testing.assert_allclose(row_weights(part, part.propensity), [4, 8, 8])
    _, heaviest = weigh(part, Propensities(values=part.propensity))
    assert [(h.user, h.item, h.p, h.weight) for h in heaviest[:2]] == [("ann", "y", 0.25, 8.0), ("bob", "x", 0.5, 8.0)]


def test_without_a_share_weights_are_up_to_a_factor_and_have_no_mass():
    part = LOG.take(np.arange(3), share=None)
    found, heaviest = weigh(part, Propensities(values=part.propensity))
    assert found.mass is None
    assert heaviest[0].weight == 4.0
    assert not any("population" in flag for flag in found.flags)


def test_a_floor_cuts_the_weights_and_is_counted():
    found, heaviest = weigh(LOG, Propensities(values=LOG.propensity, floor=0.4))
    assert heaviest[0].weight == 2.5
    assert found.clipped_share == pytest.approx(1 / 3)


def test_the_heaviest_rows_of_many_are_named_in_order():
    draw = np.random.default_rng(0)
    world = World(ratings=np.ones((60, 50)), propensities=draw.uniform(0.2, 1.0, (60, 50)))
    log = world.observe(1)
    p = log.propensity.copy()
    p[[700, 33]] = 0.001, 0.01
    _, heaviest = weigh(log, Propensities(values=p))
    assert [(h.user, h.item) for h in heaviest[:2]] == [(log.user[n], log.item[n]) for n in (700, 33)]
    assert len(heaviest) == 5
    assert heaviest[0].share == pytest.approx(1000 / (1 / p).sum())
    assert all(type(value) is int for h in heaviest for value in (h.user, h.item))  # not NumPy's, for JSON


def test_overlap_by_hand():
    found = overlap(Known(P).fit(LOG), LOG, LOG.propensity)
    # rows: ⅓ at 0.25, ⅔ at 0.5; grid: 1/6 at 0.01, 1/6 at 0.25, 4/6 at 0.5
    assert found.coefficient == pytest.approx(1 / 6 + 2 / 3)
    assert found.below == pytest.approx(1 / 6)
    assert found.smallest == 0.25
    assert found.cells == 6
    assert [s for s in found.observed if s] == pytest.approx([1 / 3, 2 / 3])
    assert [s for s in found.grid if s] == pytest.approx([1 / 6, 1 / 6, 2 / 3])
    assert len(found.edges) == len(found.grid) + 1
    assert found.edges[0] == pytest.approx(0.01)
    assert found.edges[-1] == pytest.approx(0.5)


@pytest.mark.parametrize("p", [1.0, 0.15, 1e-7])
def test_one_p_overlaps_with_itself(p):
    found = overlap(Known(np.full((3, 2), p)).fit(LOG), LOG, np.full(3, p))
    assert (found.coefficient, found.below) == (1.0, 0.0)
    assert found.edges[0] < p < found.edges[-1]


def test_a_huge_grid_is_sampled():
    log = Feedback.from_arrays([0, 5, 7], [3, 1, 1], [1, 1, 1], users=200_000, items=20_000)
    found = overlap(Uniform().fit(log), log, np.full(3, 3 / 4e9))
    assert found.cells == CELLS
    assert found.coefficient == 1.0


def test_the_grid_is_unknown_where_p_is_that_of_the_log():
    with pytest.raises(UndefinedError, match=facts("observed cells", "Known(values=)")):
        overlap(Known().fit(LOG), LOG, LOG.propensity)
    found = observed_only(LOG.propensity)
    assert (found.grid, found.coefficient, found.below) == (None, None, None)
    assert [s for s in found.observed if s] == pytest.approx([1 / 3, 2 / 3])


def test_lognormal_propensities_overlap_as_their_spread_says():
    # ln p of cells is N(m, σ²), of rows N(m + σ², σ²): they have 2Φ(−σ/2) in common; σ = 1 is 0.617.
    draw = np.random.default_rng(0)
    P = np.exp(draw.normal(-5, 1, (600, 500))).clip(max=1)
    log = World(ratings=np.ones(P.shape), propensities=P).observe(1)
    assert overlap(Known(P).fit(log), log, log.propensity).coefficient == pytest.approx(0.617, abs=0.03)
