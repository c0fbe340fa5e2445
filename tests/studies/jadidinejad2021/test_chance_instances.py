"""Instances by chance: counted as the detector counts, with dealt gains, and no more often found than 5 %."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from openloop.studies.jadidinejad2021.chance_instances import (
    ChanceCounts,
    chance_counts,
    dealt,
    more_in_most,
    n_instances,
    null_stream,
)
from openloop.studies.jadidinejad2021.instances import search
from openloop.studies.jadidinejad2021.method_rows import CODED, method_rows
from tests.studies.jadidinejad2021 import many, worlds


def real_strata(held):
    """The users of relevant cells as coded, the discounts, and which cells are in Q1."""
    cells = held.cells.where(held.shown[held.relevant])
    return cells.user, cells.discounts(CODED, None), held.coded_strata(2)[held.relevant[held.shown]] == 0


@pytest.mark.parametrize("world", ["paradox", "many"])
def test_with_the_real_gains_it_counts_what_the_detector_finds(world):
    fits = worlds.fits() if world == "paradox" else many.some_experiment(3).fits
    for split in range(2):
        found = search(fits.models, method_rows(fits, split, CODED), holm=True)
        kinds = [sum(one.kind == kind for one in found) for kind in ("reversal", "masking")]
        assert n_instances(*real_strata(fits.held_out(split))).tolist() == kinds


def test_dealt_gains_have_the_items_means_in_another_order_and_the_rest_as_it_was():
    item = np.array([7, 3, 7, 9, 3])
    gain = np.array([[1.0, 10.0, 3.0, 50.0, 14.0], [0.0, 1.0, 0.0, 5.0, 1.0]])
    mean = {7: (2.0, 0.0), 3: (12.0, 1.0), 9: (50.0, 5.0)}
    found = dealt(gain, item, np.random.default_rng(0))
    now = {i: tuple(found[:, item == i].mean(axis=1)) for i in mean}
    assert sorted(now.values()) == sorted(mean.values())  # both models' means move together
    assert now != mean
    for i in mean:
        rest, before = (x[:, item == i] - x[:, item == i].mean(axis=1, keepdims=True) for x in (found, gain))
        assert rest == pytest.approx(before)


def test_the_real_gains_are_one_of_the_deals():
    assert ChanceCounts(found=3, drawn=np.array([0, 3, 5, 2])).pvalue == pytest.approx(3 / 5)


def counts(found, drawn, deals=39):
    return ChanceCounts(found=found, drawn=np.full(deals, drawn))


@pytest.mark.parametrize(
    ("splits", "holds"),
    [
        ([counts(1, 0)], True),  # 1 of 40 is 2.5 %
        ([counts(1, 0, deals=38)], False),
        ([counts(0, 0)], False),
        ([counts(1, 0), counts(1, 0), counts(1, 2)], True),
        ([counts(1, 0), counts(1, 2)], False),  # half is not most
    ],
)
def test_most_splits_must_have_more_than_chance_gives_each_at_half_of_5_percent(splits, holds):
    assert more_in_most(splits) is holds


def test_where_a_few_items_hide_the_others_there_are_more_instances_than_by_chance():
    held = worlds.fits().held_out(0)
    either, reversals = chance_counts(held, null_stream(0, 0))
    assert either.found >= max(1, reversals.found)
    assert (reversals.drawn <= either.drawn).all()
    assert more_in_most([either])
    again, _ = chance_counts(held, null_stream(0, 0))
    assert either.drawn.tolist() == again.drawn.tolist()


# --------------------------------------------------------------- worlds in which strata mean nothing to the models


def alike(rng, users=50, items=16, models=5):
    """All items have as many ratings, and Q2 is a third of them, drawn at random."""
    user, item = np.nonzero(rng.random((users, items)) < 0.4)
    gain = 0.5 + 0.15 * rng.normal(size=(models, items))[:, item] + 0.1 * rng.normal(size=(models, len(item)))
    return user, item, gain, rng.permutation(items)[item] < items // 3


def skewed(rng, users=150, items=120, models=6):
    """Q2 has four items that most users rate, as Coat's; models differ by item, independently of its popularity."""
    user, item = np.nonzero(rng.random((users, items)) < np.where(np.arange(items) < 4, 0.75, 0.05))
    gain = 0.25 + 0.06 * rng.normal(size=(models, items))[:, item] + 0.05 * rng.normal(size=(models, len(item)))
    return user, item, gain, item < 4


def as_many_ratings(rng, item, head):
    """A Q2 of single ratings."""
    return rng.permutation(head)


def as_many_items(rng, item, head):
    """A Q2 of as many items, which have fewer ratings where the real ones have many."""
    items = np.unique(item)
    return np.isin(item, rng.permutation(items)[: len(np.unique(item[head]))])


@pytest.mark.parametrize(("world", "other"), [(alike, as_many_ratings), (skewed, as_many_items)])
def test_strata_that_models_know_nothing_of_are_found_out_no_more_often_than_5_percent(world, other):
    """Instances there are: items differ. The other null would claim too many."""
    tries, some, claimed, by_other = 60, 0, 0, 0
    for seed in range(tries):
        rng = np.random.default_rng(seed)
        user, item, gain, head = world(rng)
        found = n_instances(user, gain, ~head).sum()
        if found == 0:
            continue  # p is 1
        some += 1
        drawn = [n_instances(user, dealt(gain, item, rng), ~head).sum() for _ in range(19)]
        others = [n_instances(user, gain, ~other(rng, item, head)).sum() for _ in range(19)]
        claimed += ChanceCounts(found=found, drawn=np.array(drawn)).pvalue <= 0.05
        by_other += ChanceCounts(found=found, drawn=np.array(others)).pvalue <= 0.05
    allowed = binom.ppf(0.999, tries, 0.05)
    assert some > tries / 5
    assert claimed <= allowed < by_other
