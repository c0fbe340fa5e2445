"""What goes wrong in foreign code is told with its name."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import PredictionError
from openloop.learners.adapters.asking import answers
from tests.facts import facts


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda *_: np.ones(2), ((2,), "3 users", "one score per pair")),
        (lambda *_: np.ones((3, 3)), ((3, 3), "one score per pair")),
        (lambda *_: 1.0, ((), "one score per pair")),
        (lambda *_: {}["ann"], ("KeyError", "ann", "3 pairs")),
        (lambda u: u, ("TypeError", "positional")),
        (lambda *_: ["a", "b", "c"], ("ValueError",)),
    ],
    ids=["few", "grid", "number", "raises", "arguments", "text"],
)
def test_what_goes_wrong_is_told(answer, told):
    with pytest.raises(PredictionError, match=facts("model 'f'", *told)):
        answers("model 'f'", answer, np.arange(3), np.arange(3))
