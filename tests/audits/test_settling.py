"""How many random impressions settle clicks: by hand, by law, and by showing that many in a world that is known."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.audits.settling import impressions

Z = 1.959964 + 0.841621


def test_by_hand():
    assert impressions(0.09, 0.02, 0.1) == pytest.approx(Z**2 * 0.09 / (0.1 * 0.0004), abs=1)
    assert impressions(0.09, -0.02, 0.1) == impressions(0.09, 0.02, 0.1)
    assert impressions(0.09, 0.0, 0.1) is None


def test_so_many_have_the_power_where_the_log_tells_the_spread():
    rng = np.random.default_rng(0)
    liked = rng.random((200, 300)) < 0.1
    gain = rng.choice([-1, 0, 1], p=[0.1, 0.75, 0.15], size=liked.shape)
    true, spread = gain[liked].mean(), gain[liked].var()
    n = impressions(spread, true, liked.mean())
    found = 0
    for _ in range(400):
        cell = rng.integers(0, liked.size, n)
        seen = gain.ravel()[cell[liked.ravel()[cell]]]
        found += seen.mean() / (seen.std(ddof=1) / np.sqrt(len(seen))) > 1.96
    assert 0.74 < found / 400 < 0.86  # 80 % with a binomial error of 2 %


@pytest.fixture(scope="module")
def audits():
    rng = np.random.default_rng(1)
    users, items = 200, 60
    popular = np.linspace(2, -2, items)
    taste = rng.normal(0, 1, (users, items))
    shown = 1 / (1 + np.exp(-(1.5 * popular - 1)))
    user, item = np.nonzero(rng.random((users, items)) < shown * 0.5 / (1 + np.exp(-2 * taste)))
    log = ol.Feedback.from_arrays(user, item, np.ones(len(user)), users=users, items=items, positives=True)
    models = {
        "popular": np.tile(popular, (users, 1)) + 0.3 * taste,
        "taste": taste + 0.2 * rng.normal(size=taste.shape),
        "noise": rng.normal(size=taste.shape),
    }
    return ol.audit(models, log, metrics=["recall@10"])
