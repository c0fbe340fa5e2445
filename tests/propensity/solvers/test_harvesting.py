"""θ from groups: by hand, its influence against reweighted users, and the cut that is named."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.impressions import Impressions
from openloop.data.click_worlds import click_world
from openloop.errors import UndefinedError
from openloop.kernels.harvesting import Cells
from openloop.propensity.solvers.grouping import KEYS, group
from openloop.propensity.solvers.harvesting import harvest, refuse_cut, solve
from tests.facts import facts


def cells(*groups):
    """Cells of groups given as {position from 0: (shown, clicks)}."""
    start = np.append(0, np.cumsum([len(g) for g in groups]))
    position = np.array([k for g in groups for k in g])
    shown, clicks = np.array([v for g in groups for v in g.values()], float).T
    return Cells(start, position, shown, clicks)


def test_one_group_gives_its_ratio_of_rates():
    np.testing.assert_allclose(solve(cells({0: (10, 4), 1: (20, 4)}), 2), [1, 0.5])


def test_one_group_has_the_variance_of_two_poisson_counts():
    # Every row is its own cluster: 1/4 + 1/2, less what e = c − r θ_k takes off each (r = .4).
    clicked = np.zeros(20)
    clicked[[0, 1, 2, 3, 10, 11]] = 1
    log = Impressions.from_arrays(item=np.zeros(20, int), position=np.repeat([1, 2], 10), reward=clicked)
    psi = harvest(log, group(log, KEYS["item"](log))).parts[:, 1]
    assert abs(psi.sum()) < 1e-12
    assert np.square(psi / 20).sum() == pytest.approx(0.6 / 4 + 0.8 / 2)


@pytest.mark.parametrize("by", ["user-item", "item", "assignment"])
def test_the_influence_is_the_slope_in_a_users_weight(by):
    """Groups by item and by assignment cross users."""
    log = click_world(60, 6, 3, logging="two-rankers", base=-0.5).observe(rng=1)
    found = group(log, KEYS[by](log))
    psi = harvest(log, found).parts
    user = log.cluster[log.request[found.row]]
    for u in range(5):
        moved = []
        for step in (1e-4, -1e-4):
            weight = 1 + step * (user == u)
            sums = [
                np.bincount(found.cell, w, minlength=len(found.cells.shown))
                for w in (weight, weight * log.reward[found.row])
            ]
            moved.append(np.log(solve(Cells(*found.cells[:2], *sums), log.depth)))
        np.testing.assert_allclose(psi[u], log.n_clusters * (moved[0] - moved[1]) / 2e-4, rtol=1e-4, atol=1e-4)


def test_nothing_identified_is_refused():
    with pytest.raises(UndefinedError, match=facts("Examination", "randomised")):
        refuse_cut(Cells(np.zeros(1, int), np.empty(0, int), np.empty(0), np.empty(0)), 2)


CUTS = {
    "apart": ([{0: (9, 1), 1: (9, 1)}, {2: (9, 1), 3: (9, 1)}], ("1, 2", "3, 4", "no group with a click")),
    "no click below": ([{0: (9, 1), 1: (9, 1), 2: (9, 0)}], ("1, 2", "3", "has a click at 3")),
    "no click at the first": ([{0: (9, 0), 1: (9, 1)}], ("positions 1", "2", "has a click at 1")),
    "never shown": ([{0: (9, 1), 2: (9, 1)}], ("1, 3", "2", "no group with a click")),
}


@pytest.mark.parametrize("case", CUTS)
def test_a_cut_is_named(case):
    groups, told = CUTS[case]
    depth = 1 + max(k for g in groups for k in g)
    with pytest.raises(UndefinedError, match=facts("Examination", *told)):
        refuse_cut(cells(*groups), depth)
