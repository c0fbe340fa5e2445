"""ShownMoments: shapes are checked, and what a value is a mean over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.core.shown_moments import ShownMoments
from openloop.errors import AlignmentError
from tests.facts import facts


def by_hand(n, **changes):
    shown = np.array(n, float)[:, None] * np.ones((1, 2))
    given = {
        "kind": "iips", "requests": np.array(n, float), "shown": shown, "wgain": shown, "weight": shown,
        "matches": np.ones(2), "squares": np.ones(2), "clicks": 1.0, "click_squares": 1.0,
        "slope_wgain": np.zeros(2), "slope_wtheta": np.zeros(2),
    }  # fmt: skip
    return ShownMoments(**(given | changes))


def test_shapes_are_checked():
    with pytest.raises(AlignmentError, match=facts("weight", (3, 2), (2, 2))):
        by_hand([1, 2], weight=np.ones((3, 2)))
    with pytest.raises(AlignmentError, match=facts("requests", "2 clusters")):
        by_hand([1, 2], requests=np.ones(3))


def test_what_a_value_is_a_mean_over():
    m = by_hand([1, 3])
    assert m.units.tolist() == [1, 3]
    assert replace(m, metric="ctr").units.tolist() == [2, 6]
    assert m.theta.tolist() == [1, 1]
