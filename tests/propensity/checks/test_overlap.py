"""Weights and overlap: by hand on six cells, and of lognormal p."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.core.feedback import Feedback, Vocabulary
from openloop.core.propensities import Propensities
from openloop.data.simulate import World
from openloop.propensity.checks.overlap import overlap, weigh
from openloop.propensity.known import Known
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


def test_lognormal_propensities_overlap_as_their_spread_says():
    # ln p of cells is N(m, σ²), of rows N(m + σ², σ²): they have 2Φ(−σ/2) in common; σ = 1 is 0.617.
    draw = np.random.default_rng(0)
    P = np.exp(draw.normal(-5, 1, (600, 500))).clip(max=1)
    log = World(ratings=np.ones(P.shape), propensities=P).observe(1)
    assert overlap(Known(P).fit(log), log, log.propensity).coefficient == pytest.approx(0.617, abs=0.03)
