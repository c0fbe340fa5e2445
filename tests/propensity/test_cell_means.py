"""Functions of predictions: by hand, block by block, over fewer cells and drawn users; what is no prediction of all."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.errors import PredictionError
from openloop.learners import Bias
from openloop.propensity.cell_means import CellMeans
from tests.facts import facts

LOG = Feedback.from_arrays([0, 0, 1, 2], [0, 1, 1, 0], [1, 5, 5, 3], users=3, items=2)
F = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]], np.float32)
G = np.array([[1.0, 4.0], [3.0, 1.0], [5.0, 3.0]])


def test_functions_by_hand():
    found = CellMeans.of(F, G, LOG)
    assert found.names == ("prediction", "prediction²", "|prediction − imputed|", "(prediction − imputed)²")
    np.testing.assert_allclose(found.means, [15 / 6, 55 / 6, 8 / 6, 22 / 6])
    np.testing.assert_allclose(found.columns(LOG), [[1, 1, 0, 0], [2, 4, 2, 4], [4, 16, 3, 9], [5, 25, 0, 0]])
    mu = np.array([1.0, 0.5, 2.0, -1.0])
    np.testing.assert_allclose(found.tilt(LOG, mu), found.columns(LOG) @ mu)
    np.testing.assert_allclose(found.sums.sum(axis=0), found.means * 6)


@pytest.mark.parametrize(
    ("predictions", "imputed", "told"),
    [
        (F.T, None, ("predictions", "(2, 3)", "3 users")),
        ({"a": F, "b": F[:2]}, None, ("predictions['b']", "(2, 2)")),
        (F, G[:, :1], ("imputed", "(3, 1)")),
        (np.where(F == 4, np.nan, F), None, ("predictions", "1 of 6")),
        ({"a": F}, np.where(G == 3, np.inf, G), ("imputed", "2 of 6")),
        (Bias, None, ("predictions", "Bias", "3 × 2")),
        ("mf", None, ("predictions", "str")),
    ],
    ids=["shape", "one of two", "imputed shape", "NaN", "imputed inf", "class", "text"],
)
def test_what_does_not_predict_all_cells_is_refused(predictions, imputed, told):
    with pytest.raises(PredictionError, match=facts(*told)):
        CellMeans.of(predictions, imputed, LOG)


def test_fewer_cells_and_drawn_users():
    found = CellMeans.of(F, None, LOG)
    rest = found.without(LOG.user, LOG.item)  # cells (1, 0) and (2, 1) are left
    assert rest.cells == 2
    np.testing.assert_allclose(rest.means, [1.5, 4.5])
    assert found.without(LOG.user[:0], LOG.item[:0]) is found
    draw = np.array([2, 2, 1])
    drawn, again = found.drawn(draw), CellMeans.of(F[draw], None, LOG)
    np.testing.assert_array_equal(drawn.sums, again.sums)
    np.testing.assert_array_equal(drawn.columns(LOG), again.columns(LOG))
    np.testing.assert_array_equal(drawn.drawn(draw).columns(LOG), CellMeans.of(F[draw][draw], None, LOG).columns(LOG))
