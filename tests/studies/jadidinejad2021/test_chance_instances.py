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


def test_dealt_gains_have_other_models_ahead_and_the_rest_as_it_was():
    item = np.array([7, 3, 7, 9, 3])
    gain = np.array([[1.0, 10.0, 3.0, 50.0, 14.0], [0.0, 1.0, 0.0, 5.0, 1.0], [4.0, 2.0, 4.0, 5.0, 2.0]])
    found = dealt(gain, item, np.random.default_rng(0))
    (before, rest_before), (now, rest) = (by_item(x, item) for x in (gain, found))
    assert rest == pytest.approx(rest_before)
    assert now.mean(axis=1) == pytest.approx(before.mean(axis=1))  # how much models gain on an item
    assert now.std(axis=1) == pytest.approx(before.std(axis=1))  # and how far they differ there
    assert np.sort(standardised(now), axis=0) == pytest.approx(np.sort(standardised(before), axis=0))
    assert not np.allclose(now, before)


def test_an_item_on_which_all_models_gain_the_same_is_dealt_nothing():
    item, gain = np.array([1, 2, 2]), np.array([[0.5, 0.25, 0.5], [0.5, 0.75, 1.0]])
    for seed in range(4):
        assert dealt(gain, item, np.random.default_rng(seed))[:, 0].tolist() == [0.5, 0.5]


def by_item(gain, item):
    """The models' mean gains, (items, M), and what is left of each cell."""
    means = np.array([gain[:, item == i].mean(axis=1) for i in (3, 7, 9)])
    return means, gain - means[np.searchsorted([3, 7, 9], item)].T


def standardised(means):
    return (means - means.mean(axis=1, keepdims=True)) / means.std(axis=1, keepdims=True)


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


def steep(rng, users=120, items=100, models=10):
    """As `skewed`, and the four items are at the top of all rankings, where a step of rank makes more difference."""
    user, item = np.nonzero(rng.random((users, items)) < np.where(np.arange(items) < 4, 0.75, 0.08))
    level, spread = np.where(np.arange(items) < 4, [[0.5], [0.25]], [[0.2], [0.06]])
    by_item = level + spread * rng.normal(size=(models, items))
    return user, item, by_item[:, item] + 0.02 * rng.normal(size=(models, len(item))), item < 4


def as_many_ratings(rng, item, head):
    """A Q2 of single ratings."""
    return rng.permutation(head)


def as_many_items(rng, item, head):
    """A Q2 of as many items, which have fewer ratings where the real ones have many."""
    items = np.unique(item)
    return np.isin(item, rng.permutation(items)[: len(np.unique(item[head]))])


def other_strata(choose):
    """A null that draws another Q2."""
    return lambda rng, user, item, gain, head: n_instances(user, gain, ~choose(rng, item, head)).sum()


def raw_means(rng, user, item, gain, head):
    """A null that deals the items' means as they are, and so their spread over models too."""
    items, at = np.unique(item, return_inverse=True)
    mean = np.array([gain[:, item == i].mean(axis=1) for i in items]).T  # (M, items)
    return n_instances(user, gain + (mean[:, rng.permutation(len(items))] - mean)[:, at], ~head).sum()


@pytest.mark.parametrize(
    ("world", "other"),
    [(alike, other_strata(as_many_ratings)), (skewed, other_strata(as_many_items)), (steep, raw_means)],
    ids=["alike", "skewed", "steep"],
)
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
        others = [other(rng, user, item, gain, head) for _ in range(19)]
        claimed += ChanceCounts(found=found, drawn=np.array(drawn)).pvalue <= 0.05
        by_other += ChanceCounts(found=found, drawn=np.array(others)).pvalue <= 0.05
    allowed = binom.ppf(0.999, tries, 0.05)
    assert some > tries / 5
    assert claimed <= allowed < by_other, (claimed, by_other)
