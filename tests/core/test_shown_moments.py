"""ShownMoments: shapes are checked, parts merge to the whole, clusters by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.core.shown_moments import BY_POSITION, OVER_ROWS, ShownMoments, merged
from openloop.errors import AlignmentError
from openloop.impressions.question import ShownQuestion
from openloop.impressions.source import impression_source
from tests.click_cases import log_of, taken, world
from tests.examples import same
from tests.facts import facts


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
    if robust:
        same((parts[0] + parts[1]).direct, whole.direct)


def by_hand(ids, n, **changes):
    shown = np.array(n, float)[:, None] * np.ones((1, 2))
    given = {
        "kind": "iips", "requests": np.array(n, float), "shown": shown, "wgain": shown, "weight": shown,
        "matches": np.ones(2), "squares": np.ones(2), "clicks": 1.0, "click_squares": 1.0,
        "slope_wgain": np.zeros(2), "slope_wtheta": np.zeros(2), "ids": None if ids is None else np.array(ids),
    }  # fmt: skip
    return ShownMoments(**(given | changes))


def test_parts_that_name_their_clusters_merge_by_name():
    found = by_hand(["a", "c"], [1, 2]) + by_hand(["b", "c"], [5, 7])
    assert found.ids.tolist() == ["a", "b", "c"]
    assert found.requests.tolist() == [1, 5, 9]
    assert found.weight[:, 1].tolist() == [1, 5, 9]
    assert (found.clicks, found.matches.tolist()) == (2.0, [2, 2])


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (by_hand(None, [1]), by_hand(None, [1, 2]), (1, 2, "log")),
        (by_hand(["a"], [1]), by_hand(None, [1]), ("clusters", "names")),
        (by_hand(None, [1]), by_hand(None, [1], kind="rips"), ("kind", "metric", "depth")),
        (by_hand(None, [1]), by_hand(None, [1], metric="ctr"), ("kind", "metric", "depth")),
    ],
    ids=["sizes", "names", "kinds", "metrics"],
)
def test_parts_of_different_things_do_not_merge(a, b, told):
    with pytest.raises(AlignmentError, match=facts(*told)):
        a + b


def test_shapes_are_checked():
    with pytest.raises(AlignmentError, match=facts("weight", (3, 2), (2, 2))):
        by_hand(None, [1, 2], weight=np.ones((3, 2)))
    with pytest.raises(AlignmentError, match=facts("requests", "2 clusters")):
        by_hand(None, [1, 2], requests=np.ones(3))


def test_what_a_value_is_a_mean_over():
    m = by_hand(None, [1, 3])
    assert m.units.tolist() == [1, 3]
    assert replace(m, metric="ctr").units.tolist() == [2, 6]
    assert m.theta.tolist() == [1, 1]
