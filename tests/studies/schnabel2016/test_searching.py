"""The search for λ ends where both neighbours are worse, or at an end of the grid, and asks for no λ twice."""

from __future__ import annotations

import pytest

from openloop.studies.schnabel2016.searching import OutwardSearch, Validated, searched

GRID = tuple(float(2**k) for k in range(9))


def search(start):
    return OutwardSearch(regs=GRID, start=start, tol=1e-4, sweeps=10)


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
    best = searched(asking(curve, asked), search(start))
    assert best.reg == GRID[least]
    assert best.model == f"model of {best.reg:g}"
    assert len(asked) == len(set(asked))  # none twice
    assert {GRID[k] for k in (least - 1, least + 1) if 0 <= k < 9} <= set(asked)


def test_on_a_plateau_the_search_ends():
    assert searched(asking([2.0, 1.0] + [0.5] * 7, []), search(1)).reg == GRID[2]
