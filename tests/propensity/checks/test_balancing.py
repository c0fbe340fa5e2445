"""What balancing did: means before and after by hand."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.data.simulate import movie_lovers
from openloop.propensity import Balanced, Uniform
from openloop.propensity.checks.balancing import balancing

WORLD = movie_lovers(users=80, items=30)
LOG = WORLD.observe(1)
SAMPLE = np.random.default_rng(0).choice(WORLD.ratings.ravel(), 200)


def test_means_are_those_of_rows_model_balanced_rows_and_population():
    model = Balanced(Uniform(), functions={"item": (lambda _user, item, _rating: item, 14.5)}).fit(LOG, uniform=SAMPLE)
    p = model.predict(LOG)
    found = balancing(model, LOG, p)
    *levels, mean = found.moved
    assert [m.name for m in levels] == [f"rating {r:g}" for r in model.levels_]
    for m, r, share in zip(levels, model.levels_, model.sample_.shares, strict=True):
        assert (m.rows, m.before) == pytest.approx((np.mean(LOG.rating == r),) * 2)
        assert m.after == pytest.approx(m.target, abs=1e-5)
        assert m.target == pytest.approx(share)
    assert mean.after == pytest.approx(14.5, rel=1e-5)
    assert (found.effective_before, sum(found.before), sum(found.after)) == pytest.approx((len(LOG), 1, 1))
    assert found.effective_after == pytest.approx(p.weights.sum() ** 2 / np.square(p.weights).sum())
    assert len(found.edges) == len(found.before) + 1
