"""Instances by chance: counted as the detector counts, with a Q2 of whole items, and no more often found than 5 %."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from openloop.studies.jadidinejad2021 import chance_instances
from openloop.studies.jadidinejad2021.chance_instances import (
    ChanceCounts,
    chance,
    chance_counts,
    drawn_counts,
    random_items,
)
from openloop.studies.jadidinejad2021.instances import search
from openloop.studies.jadidinejad2021.method_rows import CODED, HOLDOUT, MethodRow, method_rows
from openloop.studies.jadidinejad2021.scores import RankedCells
from tests.studies.jadidinejad2021 import many, worlds


def real_strata(held):
    """The relevant cells as coded, their discounts, and which of them are in Q1."""
    cells = held.cells.where(held.shown[held.relevant])
    return cells, cells.discounts(CODED, None), held.coded_strata(2)[held.relevant[held.shown]] == 0


@pytest.mark.parametrize("world", ["paradox", "many"])
def test_with_the_real_strata_it_counts_what_the_detector_finds(world):
    fits = worlds.fits() if world == "paradox" else many.some_experiment(3).fits
    for split in range(2):
        rows = method_rows(fits, split, CODED)
        found = search(fits.models, rows, holm=True)
        assert chance_instances.n_instances(rows, *real_strata(fits.held_out(split))) == len(found)


def test_a_random_q2_has_whole_items_and_just_enough_cells():
    cells, *_ = real_strata(worlds.fits().held_out(0))
    for seed in range(5):
        taken = random_items(cells, 20, np.random.default_rng(seed))
        inside = set(cells.item[taken].tolist())
        assert not inside & set(cells.item[~taken].tolist())
        sizes = [int(np.sum(cells.item == item)) for item in inside]
        assert sum(sizes) - max(sizes) < 20 <= sum(sizes)


def test_the_real_strata_are_one_of_the_draws():
    assert ChanceCounts(found=3, drawn=np.array([0, 3, 5, 2])).pvalue == pytest.approx(3 / 5)
    assert ChanceCounts(found=1, drawn=np.zeros(19, int)).more  # 1 of 20
    assert not ChanceCounts(found=1, drawn=np.zeros(18, int)).more
    assert not ChanceCounts(found=0, drawn=np.zeros(99, int)).more


def test_where_a_few_items_hide_the_others_there_are_more_instances_than_by_chance():
    fits = worlds.fits()
    rows = method_rows(fits, 0, CODED)
    found = len(search(fits.models, rows, holm=True))
    counts = chance_counts(fits.held_out(0), rows, found, chance(0, 0))
    assert found >= 1
    assert counts.more
    again = chance_counts(fits.held_out(0), rows, found, chance(0, 0))
    assert counts.drawn.tolist() == again.drawn.tolist()


def unrelated(rng, users=50, items=16, models=5):
    """Cells whose Q2 is a third of the items, drawn at random; models differ by item, whatever its stratum."""
    user, item = np.nonzero(rng.random((users, items)) < 0.4)
    gain = 0.5 + 0.15 * rng.normal(size=(models, items))[:, item] + 0.1 * rng.normal(size=(models, len(item)))
    cells = RankedCells(user=user, item=item, places=np.empty((models, 5, len(user))), n_users=users)
    value, pvalue = chance_instances.tested(cells, gain)
    whole = MethodRow(name=HOLDOUT, value=value, error=np.zeros(models), pvalue=pvalue, rows=len(user), items=items)
    return {HOLDOUT: whole}, cells, gain, rng.permutation(items)[item] < items // 3


def test_strata_that_models_know_nothing_of_are_found_out_no_more_often_than_5_percent():
    """Instances there are: items differ. Q2's are like others, and drawn ratings instead of items would not show it."""
    tries, some, claimed, by_ratings = 60, 0, 0, 0
    for seed in range(tries):
        rng = np.random.default_rng(seed)
        rows, cells, gain, head = unrelated(rng)
        found = chance_instances.n_instances(rows, cells, gain, ~head)
        drawn = drawn_counts(rows, cells, gain, int(head.sum()), rng, draws=19)
        ratings = [chance_instances.n_instances(rows, cells, gain, rng.permutation(~head)) for _ in range(19)]
        some += found > 0
        claimed += ChanceCounts(found=found, drawn=drawn).more
        by_ratings += ChanceCounts(found=found, drawn=np.array(ratings)).more
    allowed = binom.ppf(0.999, tries, 0.05)
    assert some > tries / 5
    assert claimed <= allowed < by_ratings
