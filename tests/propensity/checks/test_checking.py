"""check: the truth passes, wrong models are flagged for what is wrong, and what is undefined has a reason."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.special import expit

from openloop.core.feedback import Feedback
from openloop.data.simulate import World
from openloop.data.splitting import split
from openloop.propensity.checks.checking import Check, check
from openloop.propensity.known import Known
from tests.facts import facts

draw = np.random.default_rng(0)
X, Z = draw.normal(size=(300, 2)), draw.normal(size=(200, 1))
WORLD = World(
    ratings=np.ones((300, 200)),
    propensities=expit(0.7 * X[:, :1] + draw.normal(0, 0.4, (300, 1)) + 0.7 * Z[:, 0] + draw.normal(0, 0.4, 200) - 2.5),
)
LOG = WORLD.observe(1)
TRUE = WORLD.propensities


def checked(P, log: Feedback = LOG, **options) -> Check:
    return check(Known(P).fit(log), log, (X, Z), **options)


def test_the_truth_passes():
    found = checked(TRUE)
    assert found.flags == ()
    assert found.not_computed == {}
    assert found.calibration.error < 0.1 * found.calibration.mean_observed
    assert found.weights.mass == pytest.approx(1.0, abs=0.05)
    moved = {d.name: d for d in found.balance}
    for name in ("user_0", "item_0"):
        assert moved[name].before > 0.4
        assert abs(moved[name].after) < 0.06
    assert all(m.correlation > 0.9 for m in found.margins)
    assert (found.model, found.rows, found.users, found.items) == ("Known", len(LOG), 300, 200)


def test_a_part_of_a_log_passes_with_the_truth_of_the_whole():
    part, _ = split(LOG, test=0.4, rng=0)
    found = checked(TRUE, part)
    assert found.flags == ()
    assert found.weights.mass == pytest.approx(1.0, abs=0.06)
    assert found.margins[0].count == pytest.approx(len(LOG))


def test_cells_that_nothing_speaks_for_and_thin_support_are_flagged():
    # The log has no cell of the second half of the items, whose p are tiny, and none of the rarest of the others.
    P = np.where(np.arange(200) < 100, TRUE, 1e-9)
    log = WORLD.observe(1)
    log = log.take(log.item < 100)
    flags = check(Known(P).fit(log), log, folds=None).flags
    assert any(re.search(facts("51%", "grid", "below"), flag) for flag in flags)
    low = np.full((300, 200), 0.5)
    low[LOG.user[0], LOG.item[0]] = 1e-6
    found = check(Known(low).fit(LOG), LOG, folds=None)
    assert any(re.search(facts("one row", "99%"), flag) for flag in found.flags)
    thin = facts(f"{len(LOG):,} rows", f"{found.weights.effective_size:.1f}")
    assert any(re.search(thin, flag) for flag in found.flags)
    assert (found.heaviest[0].user, found.heaviest[0].item) == (LOG.user[0], LOG.item[0])


def test_poor_overlap_is_flagged():
    P = np.where(np.arange(200) < 180, 0.001, 0.9) * np.ones((300, 1))
    log = World(ratings=np.ones((300, 200)), propensities=P).observe(0)
    found = check(Known(P).fit(log), log, folds=None)
    assert found.overlap.coefficient < 0.3
    assert any(re.search(facts("overlap", f"{found.overlap.coefficient:.0%}"), flag) for flag in found.flags)


def test_what_is_not_defined_has_its_reason():
    found = check(Known().fit(LOG), LOG)
    assert found.calibration is None
    assert found.margins == ()
    assert found.overlap.grid is None
    assert set(found.not_computed) == {"calibration", "margins", "overlap"}
    assert all("observed cells" in reason for reason in found.not_computed.values())
    assert found.weights.mass == pytest.approx(1.0, abs=0.1)
