"""Sums over cells by item are those over the whole grid, cell by cell."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from openloop.core.propensities import part_probability
from openloop.sources.frames import item_cells
from openloop.sources.frames.item_cells import ItemCells, weight_on_rare
from openloop.sources.whole import WholeLog
from tests.examples import same

U, I = 6, 5
P = np.array([0.1, 0.2, 0.4, 1.0, 0.2])
ROWS = np.array([3, 40, 2, 50, 0])
IDS = np.array(["a", "b", "c", "d", "e"], object)
GONE = np.array([[0, 1], [0, 3], [2, 0], [5, 4]])
WHOLE = WholeLog(users=np.arange(U), items=IDS, rows=ROWS, p=P)


def cells(*, excluded):
    log = pl.DataFrame({"u": [0, 1, 1, 4], "i": IDS[[0, 1, 2, 3]], "w": 1 / P[[0, 1, 2, 3]]})
    pairs = pl.DataFrame({"u": GONE[:, 0], "i": IDS[GONE[:, 1]]})
    frame, out = (nw.from_native(table.lazy()) for table in (log, pairs))  # as commands stream them
    return ItemCells(frame=frame, whole=WHOLE, users=np.ones(U), excluded=out if excluded else None)


def grid(*, excluded):
    found = np.ones((U, I), bool)
    if excluded:
        found[GONE[:, 0], GONE[:, 1]] = False
    return found


@pytest.mark.parametrize("excluded", [True, False])
def test_strata_have_the_cells_that_are_left(excluded):
    edges = (0.15, 0.3)
    found = cells(excluded=excluded).by_stratum(edges, lambda ids: ids.to_numpy())
    stratum = np.searchsorted(edges, P)
    same(found, [[grid(excluded=excluded)[u, stratum == s].sum() for s in range(3)] for u in range(U)])


@pytest.mark.parametrize("excluded", [True, False])
def test_squares_are_those_of_uncertain_cells_that_are_left(excluded, monkeypatch):
    found = cells(excluded=excluded)
    pi = np.broadcast_to(part_probability(P, 0.5, 0.2), (U, I))[grid(excluded=excluded)]
    same(found.inverse_squares(0.5, 0.2), (1 / pi[pi < 1] ** 2).sum())
    certain = np.broadcast_to(P, (U, I))[grid(excluded=excluded)]
    same(found.inverse_squares(1.0, 0.0), (1 / certain[certain < 1] ** 2).sum())
    monkeypatch.setattr(item_cells, "MAX_GRID", U * I - 1)
    assert found.inverse_squares(1.0, 0.0) is None


def test_rare_items_have_a_share_of_the_weight():
    share, others = weight_on_rare(cells(excluded=False).frame, "w", WHOLE, 30)
    same(share, (1 / 0.1 + 1 / 0.4) / (1 / P[:4]).sum())
    assert others == 2
