"""Joint models of Table 2: trials see no test rating, d is the best on the test set, medians are of the chances."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.kit.results import Table
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


def test_what_is_reported_of_chains_is_the_worst():
    found = joint_models._mixed({"a": {"rhat": 1.2, "ess": 50}, "b": {"rhat": 1.1, "ess": 20}})
    assert (float(found["rhat"]), float(found["ess"])) == (1.2, 20)


def test_a_mixture_has_as_many_components_as_predict_held_out_rows_best():
    rng = np.random.default_rng(0)
    likes = np.arange(80)[:, None] % 2 == np.arange(20) % 2  # two kinds of users, each likes what the other does not
    user, item = np.nonzero(rng.random(likes.shape) < 0.5)
    asked = {"test_user": np.repeat(np.arange(2), 2), "test_item": np.tile(np.arange(2), 2)}
    given = {"user": user, "item": item, "rating": np.where(likes, 5.0, 1.0)[user, item], "shape": np.array([80, 20])}
    found = joint_models.mixture_predicted(given | asked, missing="cpt-v", seed=0, components=(1, 2))
    assert int(found["components"]) == 2
    assert found["median"].tolist() == [5, 1, 1, 5]
    assert np.all(np.diff(found["mean"])[[0, 2]] * [-1, 1] > 1)


def test_a_grid_beyond_the_limit_is_looked_at_in_part(parts, monkeypatch):
    asked = []

    class Spy(joint_models.JointMNAR):
        def fit(self, feedback, **_):
            asked.append(self.unobserved)
            return super().fit(feedback)

    monkeypatch.setattr(joint_models, "JointMNAR", Spy)
    monkeypatch.setattr(joint_models, "LOOKED_AT", 4500)  # half of the grid
    joint_models.joint_predicted(parts.given, factors=2, seed=0, sweeps=4, burn=1, thin=1)
    assert asked == [0.5]


def test_d_is_the_best_of_the_first_seed_on_the_test_set_by_each_metric(parts, run, monkeypatch):
    y = parts.test.rating
    away = {5: np.where(np.arange(len(y)) % 4, 0.0, 1.5), 10: np.full(len(y), 0.5)}  # the former has the less MAE
    first = {d: {"mean": y + e, "rhat": 1.0, "ess": 9.0} for d, e in away.items()}
    seen = []
    monkeypatch.setattr(joint_models, "_chains", lambda *args: seen.append(args[-1]) or [first[5]] * len(args[-1]))
    found = {r.loss: r.chosen for r in joint_models._sampled(run, parts, "hl-mar", first, 3, "songs")}
    assert found == {"squared": ("d = 10↑",), "absolute": ("d = 5↓",)}
    assert seen == [[(10, 1), (10, 2)], [(5, 1), (5, 2)]]


def test_a_quick_run_of_all_rivals(parts, run, monkeypatch):
    monkeypatch.setitem(QUICK_SWEEPS, "sweeps", 22)
    found = joint_models.rivals(run, parts, 1, "songs")
    assert [(one.by, one.loss) for one in found.means] == [
        (by, loss) for by in joint_models.RIVALS for loss in ("squared", "absolute")
    ]
    assert {one.loss for one in found.medians} == {"absolute"}
    assert all(isinstance(table, Table) for table in found.tables)
    assert set(np.unique(found.medians[0].predictions)) <= {1.0, 2.0, 3.0, 4.0, 5.0}
