"""Joint models of Table 2: trials see no test rating, d is the best on the test set, medians are of the chances."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.schnabel2016 import joint_models, real_data
from openloop.studies.schnabel2016.joint_models import QUICK_SWEEPS


@pytest.fixture(scope="module")
def parts(songs):
    return real_data.yahoo(*songs, seed=0)


class Fixed:
    """A model that gives every cell the same chances."""

    levels_ = np.array([1, 2, 5], np.float32)

    def __init__(self, *chances):
        self.chances = chances

    def predict_proba(self, user, item):
        return np.tile(self.chances, (len(user), 1))


@pytest.mark.parametrize(
    ("chances", "mean", "median"),
    [((0.2, 0.2, 0.6), 3.6, 5), ((0.4, 0.3, 0.3), 2.5, 2), ((0.5, 0.1, 0.4), 2.7, 1), ((1.0, 0.0, 0.0), 1.0, 1)],
)
def test_means_and_medians_of_chances(chances, mean, median):
    found = joint_models._told(Fixed(*chances), {"test_user": np.zeros(2, int), "test_item": np.zeros(2, int)})
    assert found["mean"] == pytest.approx([mean] * 2)
    assert found["median"] == pytest.approx([median] * 2)


def test_a_mixture_has_as_many_components_as_predict_held_out_rows_best():
    rng = np.random.default_rng(0)
    likes = np.arange(80)[:, None] % 2 == np.arange(20) % 2  # two kinds of users, each likes what the other does not
    user, item = np.nonzero(rng.random(likes.shape) < 0.5)
    asked = {"test_user": np.repeat(np.arange(2), 2), "test_item": np.tile(np.arange(2), 2)}
    given = {"user": user, "item": item, "rating": np.where(likes, 5.0, 1.0)[user, item], "shape": np.array([80, 20])}
    found = joint_models.mixture_predicted(given | asked, missing="cpt-v", seed=0, components=(1, 2))
    assert found["median"].tolist() == [5, 1, 1, 5]
    assert np.all(np.diff(found["mean"])[[0, 2]] * [-1, 1] > 1)


def test_a_quick_run_of_all_rivals(parts, run, monkeypatch):
    monkeypatch.setitem(QUICK_SWEEPS, "sweeps", 22)
    found = joint_models.rivals(run, parts, 1, "songs")
    assert [(one.by, one.loss) for one in found.means] == [
        (by, loss) for by in joint_models.RIVALS for loss in ("squared", "absolute")
    ]
    assert {one.loss for one in found.medians} == {"absolute"}
    assert [row[0] for row in found.table.rows] == list(joint_models.RIVALS.values())
    assert set(np.unique(found.medians[0].predictions)) <= {1.0, 2.0, 3.0, 4.0, 5.0}
