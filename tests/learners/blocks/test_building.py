from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.errors import DuplicateError, InputError, UnknownIdError
from openloop.learners.blocks.building import compressed
from tests.facts import facts


def test_what_no_model_can_be_fitted_to_is_refused():
    item, y, w = np.array([1, 1, -1]), np.ones(3), np.array([1.0, 1.0, 0.0])
    _, known = compressed(np.zeros(3, int), 1, item, y, w)
    assert (known.repeats, known.unknown, known.lost) == (1, 1, 1)
    with pytest.raises(UnknownIdError, match=facts("MF", 1, 3)):  # items that are not known all have one code
        known.check("MF")
    with pytest.raises(DuplicateError, match=facts("MF", 1, 3)):
        replace(known, unknown=0).check("MF")
    with pytest.raises(InputError, match=facts("sample_weight", 1, 3)):
        replace(known, repeats=0, unknown=0).check("MF")
    replace(known, repeats=0, unknown=0, lost=0).check("MF")
