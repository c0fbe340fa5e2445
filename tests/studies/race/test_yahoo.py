"""Yahoo! R3's shape: ratings set aside are not tested, and p of rows is enough for those who run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.data.datasets import Data
from openloop.studies.race import yahoo


@pytest.fixture
def songs(ground):
    return Data(name="yahoo-r3", log=replace(ground.log, propensity=None), open_loop=ground.test, notes=("made up",))


def test_a_twentieth_is_set_aside(songs):
    ground = yahoo.yahoo_ground(songs, 0)
    assert len(ground.test) == 456  # of 480
    assert ground.p.shape == (len(songs.log),)
    assert all(np.ptp(ground.p[songs.log.rating == star]) == 0 for star in np.unique(songs.log.rating))
    assert "made up" in ground.notes


def test_a_small_run_has_every_table(songs, run, monkeypatch):
    monkeypatch.setattr(type(run), "load", lambda *_: songs)
    result = yahoo.yahoo(run)
    assert [table.name for table in result.tables] == [
        "race-yahoo-settings", "race-yahoo-3", "race-yahoo-3-differences", "race-yahoo-4", "race-yahoo-4-differences",
    ]  # fmt: skip
    assert [row[0] for row in result.tables[1].rows] == list(yahoo.NAMES)
    assert len(result.claims) == 1
