"""Instances: the detector is asked about every pair of models, and sides are counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openloop.studies.jadidinejad2021.instances import Sides, search, sides
from openloop.studies.jadidinejad2021.method_rows import HOLDOUT, OPEN_LOOP, MethodRow, row_of
from tests.studies.jadidinejad2021.worlds import means_of


def open_loop(value, pvalue):
    """What an open loop says of some models."""
    return MethodRow(
        name=OPEN_LOOP, value=np.array(value), error=np.zeros(len(value)), pvalue=pvalue, rows=1, items=1
    )  # fmt: skip


def rows_with(holdout, q1, users=200, rng=0):
    """Rows of models whose values are these, with noise of 0.1 over users."""
    noise = 0.1 * np.random.default_rng(rng).standard_normal((3, len(holdout), users))
    made = {}
    for at, (name, mean, rows) in enumerate(((HOLDOUT, holdout, 100), ("Q1", q1, 90), ("Q2", holdout, 10))):
        centred = noise[at] - noise[at].mean(axis=1, keepdims=True)
        made[name] = row_of(name, means_of(np.asarray(mean)[:, None] + centred), rows, 5)
    return made


def test_reversals_and_maskings_are_found_among_all_pairs():
    models = ["a", "b", "c"]
    rows = rows_with([0.50, 0.40, 0.399], [0.40, 0.50, 0.60])
    found = search(models, rows, holm=False)
    assert {(p.kind, p.preferred, p.other) for p in found} == {
        ("reversal", "b", "a"), ("reversal", "c", "a"), ("masking", "c", "b"),
    }  # fmt: skip


def test_holm_takes_the_number_of_pairs_into_account():
    rows = rows_with([0.5, 0.48], [0.48, 0.5])
    borderline = {name: replace(row, pvalue=np.full((2, 2), 0.03)) for name, row in rows.items()}
    assert len(search(["a", "b"], borderline, holm=True)) == 1
    more = {
        name: replace(row, value=np.append(row.value, row.value + 0.001), pvalue=np.full((4, 4), 0.03))
        for name, row in borderline.items()
    }
    assert search(list("abcd"), more, holm=True) == ()
    assert len(search(list("abcd"), more, holm=False)) == 4


def test_sides_count_who_is_ahead_and_how_clearly():
    models = ["a", "b", "c"]
    found = search(models, rows_with([0.50, 0.40, 0.399], [0.40, 0.50, 0.60]), holm=False)
    row = open_loop([0.3, 0.2, 0.4], np.array([[1, 0.01, 0.5], [0.01, 1, 0.04], [0.5, 0.04, 1]]))
    # b over a: the open loop says a, clearly; c over a: it says c, unclearly; c over b: it says c, clearly.
    assert sides(found, models, row) == Sides(majority=2, aggregate=1, clear_majority=1, clear_aggregate=1)
    assert sides((), models, row).total == 0
