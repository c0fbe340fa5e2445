from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.core.feedback import Feedback
from openloop.data.splitting import folds, split
from openloop.errors import ColumnError, DuplicateError, EmptyError, InputError
from tests.facts import facts

WAYS = [{"by": "row"}, {"by": "user"}, {"by": "leave-k-out", "k": 2}, {"by": "time"}]


def log(n_users=40, n_items=30, density=0.4, seed=0, **columns) -> Feedback:
    rng = np.random.default_rng(seed)
    user, item = np.nonzero(rng.random((n_users, n_items)) < density)
    order = rng.permutation(len(user))
    return Feedback.from_arrays(
        user[order], item[order], rng.integers(1, 6, len(user)), users=n_users + 3, items=n_items + 2,
        propensity=rng.uniform(0.1, 1, len(user)), time=rng.integers(0, 1000, len(user)), **columns,
    )  # fmt: skip


WHOLE = log()


# -- laws of every split -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way["by"])
def test_parts_divide_the_log_and_keep_its_columns(way):
    train, test = split(WHOLE, 0.3, rng=1, **way)
    assert sorted([*train.cell, *test.cell]) == WHOLE.cell.tolist()
    for part in (train, test):
        assert (part.users, part.items) == (WHOLE.users, WHOLE.items)
        assert part.input_rows == WHOLE.input_rows
        at = np.searchsorted(WHOLE.cell, part.cell)
        for name in ("rating", "propensity", "time", "row"):
            np.testing.assert_array_equal(getattr(part, name), getattr(WHOLE, name)[at])
        np.testing.assert_array_equal(part.align(np.arange(len(WHOLE))), part.row)


@pytest.mark.parametrize("way", WAYS[:3], ids=lambda way: way["by"])
def test_shares_are_the_probability_of_landing_there(way):
    # E[1{row in part} / share] = 1 for every row that can land there: the law that weights 1/(p·s) rest on.
    weights = np.zeros(len(WHOLE))
    for seed in range(400):
        _, test = split(WHOLE, 0.3, rng=seed, **way)
        weights[np.searchsorted(WHOLE.cell, test.cell)] += 1 / test.share
    weights /= 400
    assert weights[weights > 0].mean() == pytest.approx(1, abs=0.02)
    assert abs(weights[weights > 0] - 1).max() < 1


# -- each way ------------------------------------------------------------------------------------------------


def test_by_user_keeps_users_whole():
    train, test = split(WHOLE, 0.25, by="user", rng=0)
    assert not set(train.user) & set(test.user)
    present = len(set(WHOLE.user))
    assert len(set(test.user)) == round(0.25 * present)
    np.testing.assert_allclose(test.share, round(0.25 * present) / present)
    np.testing.assert_allclose(train.share, 1 - round(0.25 * present) / present)
    assert len(set(split(WHOLE, 3, by="user", rng=0)[1].user)) == 3


def test_leave_k_out_takes_k_of_each_user_that_has_more():
    sizes = np.array([1, 2, 3, 5])
    user = np.repeat(np.arange(4), sizes)
    item = np.concatenate([np.arange(n) for n in sizes])
    whole = Feedback.from_arrays(user, item, np.ones(len(user)))
    train, test = split(whole, by="leave-k-out", k=2, rng=0)
    assert np.bincount(test.user, minlength=4).tolist() == [0, 0, 2, 2]
    assert np.bincount(train.user, minlength=4).tolist() == [1, 2, 1, 3]
    np.testing.assert_allclose(test.share, np.array([0, 0, 2 / 3, 2 / 5])[test.user])
    np.testing.assert_allclose(train.share, np.array([1, 1, 1 / 3, 3 / 5])[train.user])


def test_by_time_takes_the_latest_and_ties_stay_in_train():
    whole = Feedback.from_arrays(np.zeros(6, int), np.arange(6), np.ones(6), time=[10, 50, 30, 30, 20, 40])
    train, test = split(whole, 2, by="time")
    assert sorted(test.time) == [40, 50]
    train, test = split(whole, 0.5, by="time")  # the third latest shares its time with the fourth
    assert (sorted(train.time), sorted(test.time)) == ([10, 20, 30, 30], [40, 50])
    assert train.share is None
    assert test.share is None
    assert split(test, 1, rng=0)[0].share is None


# -- folds ---------------------------------------------------------------------------------------------------


@given(st.integers(2, 12), st.integers(0, 100))
def test_folds_divide_the_rows(k, seed):
    whole = log(4, 6, 0.7)
    parts = list(folds(whole, k, seed))
    assert len(parts) == k
    assert sorted(np.concatenate([validation.cell for _, validation in parts])) == whole.cell.tolist()
    sizes = [len(validation) for _, validation in parts]
    assert max(sizes) - min(sizes) <= 1
    for train, validation in parts:
        assert not set(train.cell) & set(validation.cell)
        np.testing.assert_allclose(train.share, len(train) / len(whole))
        np.testing.assert_allclose(validation.share, len(validation) / len(whole))


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "way", "told"),
    [
        (1e-6, {"by": "row", "rng": 0}, ("test=1e-06", f"{len(WHOLE)} rows", "for test")),
        (1 - 1e-6, {"by": "row", "rng": 0}, ("test=0.999999", f"{len(WHOLE)} rows", "for train")),
        (10**6, {"by": "user", "rng": 0}, ("test=1000000", f"{len(set(WHOLE.user))} users", "for train")),
        (0.2, {"by": "leave-k-out", "k": 1000, "rng": 0}, ("no row", "for test", "test=", "k=")),
    ],
)
def test_no_part_may_be_empty(test, way, told):
    with pytest.raises(EmptyError, match=facts(*told)):
        split(WHOLE, test, **way)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"by": "rows"}, ("by='rows'", "'row'")),
        ({"by": "leave-k-out"}, ("by='leave-k-out'", "k=1")),
        ({"by": "leave-k-out", "k": 0}, ("k=0", "rows", "each user")),
        ({"by": "leave-k-out", "k": 1.5}, ("k=1.5", "rows", "each user")),
        ({"by": "row", "k": 3}, ("k=3", "by='leave-k-out'", "by='row'", "test=")),
    ],
)
def test_ways_that_do_not_exist(options, told):
    with pytest.raises(InputError, match=facts(*told)):
        split(WHOLE, rng=0, **options)


# -- events: rows before repeats are merged ------------------------------------------------------------------

EVENTS = pl.DataFrame({
    "user": ["a", "a", "b", "a", "b", "a", "b", "c"],
    "item": [1, 2, 1, 1, 1, 3, 2, 9],
    "when": [1, 2, 3, 4, 5, 6, 7, 8],
})  # fmt: skip


def pairs(part: Feedback) -> list[tuple[str, int]]:
    return [(part.users.ids[u], int(part.items.ids[i])) for u, i in zip(part.user, part.item, strict=True)]


def test_rows_are_split_by_time_and_repeats_merged_inside_each_part():
    train, test = split(EVENTS, 0.5, time="when", duplicates="first")
    assert pairs(train) == [("a", 1), ("a", 2), ("b", 1)]
    assert train.time.tolist() == [1, 2, 3]
    assert pairs(test) == [("a", 3), ("b", 2), ("c", 9)]  # not (b, 1), which train has
    assert test.time.tolist() == [6, 7, 8]
    assert train.positives
    assert test.positives
    assert train.row.tolist() == [0, 1, 2]
    assert test.align(EVENTS["when"]).tolist() == test.time.tolist()
    assert any("1 of 4 pairs" in note and "repeats='drop'" in note for note in test.notes)
    assert any("1 row repeated" in note for note in train.notes)
    for part in (train, test):
        assert (part.split, part.share) == (("time",), None)
        assert (part.n_users, part.n_items) == (3, 4)
        assert any("before 5" in note for note in part.notes)


def test_every_refusal_of_events_names_what_lets_them_in():
    with pytest.raises(DuplicateError, match=facts("('a', 1)", "rows 1, 4", "duplicates='first'", "'count'")):
        split(EVENTS, 0.5, time="when")
    again = EVENTS.with_columns(user=pl.lit("a"), item=pl.lit(1))
    with pytest.raises(EmptyError, match=facts("1 of 1 pairs", "repeats='keep'", "test=")):
        split(again, 0.5, time="when", duplicates="first")
    assert len(split(again, 0.5, time="when", duplicates="first", repeats="keep")[1]) == 1
    with pytest.raises(ColumnError, match=facts("by='time'", "time=")):
        split(EVENTS, 0.5, by="time", duplicates="first")
    with pytest.raises(EmptyError, match=facts("no row", "for test", "test=")):
        split(EVENTS.with_columns(when=pl.lit(1)), 0.5, time="when", duplicates="first")
