"""What may be asked."""

from __future__ import annotations

import pytest

from openloop.errors import InputError
from openloop.sources.question import Question


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, float("nan")])
def test_a_level_that_is_none_is_refused(level):
    with pytest.raises(InputError, match=f"level.*{level}"):
        Question(metrics=["mae"], estimators=["naive"], level=level)
