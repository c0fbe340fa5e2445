"""Yahoo! R3's shape: ratings set aside are not tested, and p of rows is enough for those who run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.data.datasets import Data
from openloop.errors import UndefinedError
from openloop.studies.race import yahoo
from openloop.studies.race.entrants import raced


@pytest.fixture
def songs(ground):
    return Data(name="yahoo-r3", log=replace(ground.log, propensity=None), open_loop=ground.test, notes=("made up",))


def test_a_twentieth_is_set_aside(songs):
    ground = yahoo.yahoo_ground(songs, 0)
    assert len(ground.test) == 456  # of 480
    assert ground.p.shape == (len(songs.log),)
    assert all(np.ptp(ground.p[songs.log.rating == star]) == 0 for star in np.unique(songs.log.rating))
    assert "made up" in ground.notes


@pytest.fixture
def bare(songs):
    """p of rows alone, and no covariates."""
    return yahoo.yahoo_ground(songs, 0).given


@pytest.mark.parametrize("name", yahoo.NAMES)
def test_who_runs_needs_neither_covariates_nor_p_of_all_cells(bare, name):
    found = raced(bare, entrant=name, label=0, seed=0, quick=True)["prediction"]
    assert found.shape == bare["test_user"].shape
    assert np.ptp(found) > 0.1
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("name", "error", "about"),
    [("Stack + Exposure + Features", KeyError, "user_covariates"), ("TDR", UndefinedError, "p of all cells")],
)
def test_those_who_need_them_could_not_run(bare, name, error, about):
    with pytest.raises(error, match=about):
        raced(bare, entrant=name, label=0, seed=0, quick=True)


def test_a_small_run_has_every_table(songs, run, monkeypatch):
    monkeypatch.setattr(type(run), "load", lambda *_: songs)
    result = yahoo.yahoo(run)
    assert [table.name for table in result.tables] == [
        "race-yahoo-settings", "race-yahoo-3", "race-yahoo-3-differences", "race-yahoo-4", "race-yahoo-4-differences",
    ]  # fmt: skip
    assert [row[0] for row in result.tables[1].rows] == list(yahoo.NAMES)
    assert len(result.claims) == 1
