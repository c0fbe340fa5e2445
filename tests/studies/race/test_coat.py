"""Coat's tables and claims; its real numbers: tests/studies/test_quick.py."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.data import datasets
from openloop.studies.race import coat
from openloop.studies.race.entrants import RACERS
from openloop.studies.race.measures import AUC, MAE, MSE, NDCG, RANKING, USER_AUC
from openloop.studies.race.user_draws import Resampled

ALL, FRESH = "all 9 test cells", "without 4 of the test cells"


@pytest.fixture(scope="module")
def whole(data_dir):
    return datasets.load("coat", data_dir("coat").parent)


def standing(mse=1.09, mae=0.86, auc=0.80, ndcg=0.67, noise=0.0):
    """Made-up metrics; all share their draws but for `noise`."""
    rng = np.random.default_rng(0)
    shared = np.append(0.0, 0.01 * rng.normal(size=500))
    own = np.append(0.0, noise * rng.normal(size=500))
    values = {**dict.fromkeys(RANKING, 0.5), MSE: mse, MAE: mae, AUC: auc, NDCG: ndcg, USER_AUC: 0.7}
    return {name: Resampled(value + shared + own) for name, value in values.items()}


@pytest.fixture
def found():
    """Everybody as good as MF-IPS, but the winners, and those who are worse; by cells and label."""
    rows = {name: standing() for name in RACERS}
    rows[coat.DOUBLY_ROBUST] = standing(mse=1.2)
    rows["Recalibrated"] = standing(mse=1.06, mae=0.83)
    rows["Stack"] = standing(mse=1.05)
    rows["Stack + Exposure"] = standing(1.01, 0.80, 0.815, 0.725)
    rows["Stack + Exposure + Features"] = standing(1.01, 0.80, 0.815, 0.735)
    return {ALL: {3: dict(rows)}, FRESH: {3: dict(rows)}}


def test_all_claims_hold_where_the_goal_is_reached(found):
    told = list(coat.claims(found))
    assert [claim.text for claim in told if not claim.holds] == []
    assert sum(ALL in claim.text for claim in told) == sum(FRESH in claim.text for claim in told) == 14


def test_both_sets_of_cells_are_counted(whole):
    assert {words: int(cells.sum()) for words, cells in coat.cell_sets(coat.coat_ground(whole)).items()} == {
        "all 4,640 test cells, 366 of them also in the log": 4640,
        "without the 366 test cells that are also in the log": 4274,
    }


def test_a_small_race_has_every_table(ground, run, monkeypatch):
    few = {name: RACERS[name] for name in ("MF naive", "MF-IPS", "Bias-IPS")}
    monkeypatch.setattr(coat, "RACERS", few)
    monkeypatch.setattr(coat, "coat_ground", lambda _: ground)
    monkeypatch.setattr(coat, "claims", lambda _: ())
    monkeypatch.setattr(type(run), "load", lambda *_: None)
    result = coat.coat(run)
    names = [table.name for table in result.tables]
    assert len(names) == len(set(names)) == 9
    assert [row[0] for row in result.tables[0].rows] == list(few)
    assert result.compared() == 0
