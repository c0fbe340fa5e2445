"""The search for λ ends where both neighbours are worse, or at an end of the grid, and asks for no λ twice."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.schnabel2016.searching import OutwardSearch, Validated, searched

GRID = tuple(float(2**k) for k in range(9))


def search(start, *, whole=False, regs=GRID):
    return OutwardSearch(regs=regs, start=start, tol=1e-4, sweeps=10, whole=whole)


def asking(curve, asked):
    """Cross-validates by a curve over places of the grid."""

    def ask(regs):
        asked.extend(regs)
        best = min(regs, key=lambda reg: curve[GRID.index(reg)])
        return Validated(best, curve[GRID.index(best)], f"model of {best:g}")

    return ask


@pytest.mark.parametrize("least", range(9))
@pytest.mark.parametrize("start", [0, 4, 8])
def test_of_a_curve_with_one_valley_the_search_finds_what_the_whole_grid_does(least, start):
    curve, asked = [abs(k - least) for k in range(9)], []
    best, tried = searched(asking(curve, asked), search(start))
    assert best == searched(asking(curve, []), search(start, whole=True))[0]
    assert best.reg == GRID[least]
    assert best.model == f"model of {best.reg:g}"
    assert len(asked) == len(set(asked)) == tried  # none twice
    assert {GRID[k] for k in (least - 1, least + 1) if 0 <= k < 9} <= set(asked)


def test_a_search_that_starts_in_the_valley_tries_three():
    assert searched(asking([9, 8, 7, 2, 1, 2, 7, 8, 9], []), search(4))[1] == 3


def test_of_two_valleys_the_search_finds_the_one_it_starts_in_and_the_whole_grid_the_deeper():
    curve = [0.0, 3.0, 4.0, 2.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert searched(asking(curve, []), search(4))[0].reg == GRID[4]
    assert searched(asking(curve, []), search(4, whole=True))[0].reg == GRID[0]


def test_on_a_plateau_the_search_ends():
    best, tried = searched(asking([2.0, 1.0] + [0.5] * 7, []), search(1))
    assert (best.reg, tried) == (GRID[2], 4)


@pytest.mark.parametrize("n", [1, 2])
def test_a_grid_of_one_or_two_is_tried_whole(n):
    best, tried = searched(asking(np.arange(9.0), []), search(0, regs=GRID[:n]))
    assert (best.reg, tried) == (GRID[0], n)
