"""What is known of a whole log reaches the estimates of a frame that is a part of it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from openloop.sources.whole import WholeLog


def test_what_nobody_said_is_not_known():
    found = WholeLog(users=np.arange(3), items=np.arange(2), rows=np.array([4, 0]))
    assert (found.p, found.floored, found.kept_weight, found.positives) == (None, None, None, False)
    with pytest.raises(FrozenInstanceError):
        found.positives = True
