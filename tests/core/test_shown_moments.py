"""ShownMoments: shapes are checked, parts merge to the whole, clusters by name."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.shown_moments import BY_POSITION, OVER_ROWS, ShownMoments, merged
from openloop.sources.impressions.question import ShownQuestion
from openloop.sources.impressions.source import impression_source
from tests.click_cases import log_of, taken, world
from tests.examples import same


def moments(log, kind="pbm", robust=False):
    asked = ShownQuestion(metrics="clicks", estimators=["pbm_dr"], imputation=np.full(log.n_items, 0.2))
    return impression_source(world().ranks(log), log, world().theta, asked).moments("a", kind, robust=robust)


def assert_same(a: ShownMoments, b: ShownMoments):
    for name in (*BY_POSITION, *OVER_ROWS, "requests"):
        same(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("kind", ["sips", "rips", "iips", "pbm", "pi"])
@pytest.mark.parametrize("robust", [False, True])
def test_halves_merge_to_the_whole(kind, robust):
    log = log_of()
    half = np.arange(log.n_requests) % 3 == 0
    parts = [moments(taken(log, keep[log.request]), kind, robust) for keep in (half, ~half)]
    whole = moments(log, kind, robust)
    assert_same(merged(parts), whole)
