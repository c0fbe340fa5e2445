"""What is summed: each term by its formula, and the cap with the least estimated error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openloop.blocks.block import Outcome
from openloop.estimators.clipping import CAPS
from openloop.metrics.naming import metric
from openloop.moments.rows import ArrayColumns, Rows
from openloop.moments.terms import POWERS, Common, Needed, assemble, paired, terms
from tests.examples import same

P = np.array([0.5, 0.25, 1.0, 0.1])
W = 1 / P
DELTA = np.array([1.0, -2.0, 3.0, 0.0])
ROWS = Rows(
    user=np.array([0, 0, 1, 1], np.int32), user_start=np.array([0, 2]), rating=np.zeros(4), relevant=np.ones(4),
    cells=np.full(2, 5.0), probability=P,
)  # fmt: skip


def named(**wanted):
    x = ArrayColumns(ROWS, Outcome(above=np.array([0, 1, 2, 3]), tied=np.ones(4, int)))
    return {name: np.asarray(column) for name, column in terms(x, DELTA, metric("ndcg"), Needed(**wanted))}


def test_the_sums_of_every_estimator():
    found = named()
    assert list(found) == ["n", "gain", "weight", "wgain"]
    same(found["n"], np.ones(4))
    same(found["gain"], DELTA)
    same(found["weight"], W)
    same(found["wgain"], W * DELTA)


def test_powers_are_those_of_the_variance():
    found = named(powers=POWERS, cap=3.0)
    for a, b in POWERS:
        same(found[f"power{a}{b}"], (1 - P) * W**a * DELTA**b)
    for b in range(3):
        same(found[f"cutpower2{b}"], (1 - P) * np.minimum(W, 3) ** 2 * DELTA**b)


def test_cut_weights_and_how_many_were_cut():
    found = named(cap=3.0, ideal=True)
    same(found["cut"], np.minimum(W, 3))
    same(found["cutgain"], np.minimum(W, 3) * DELTA)
    same(found["clipped"], [0, 1, 0, 1])
    ideal = 1 / np.log2(np.array([3, 2, 3, 2]))  # within each user the heavier row comes first
    same(found["ideal"], W * ideal)
    same(found["cutideal"], np.minimum(W, 3) * ideal)


def test_a_pair_sums_the_parts_of_its_difference_and_nothing_by_user():
    found = named(pair=True, parts=True)
    assert set(found) == {"positive", "negative"}
    same(found["positive"].sum(), 2 * 1 + 1 * 3)
    same(found["negative"].sum(), 4 * 2)


def test_candidate_caps():
    found = named(caps=(2.0, 4.0))
    for j, cap in enumerate((2.0, 4.0)):
        cut = np.minimum(W, cap)
        for i, column in enumerate([cut, cut * DELTA, *((1 - P) * W * cut * DELTA**b for b in range(3))]):
            same(found[f"cap{j}_{i}"], column)


def test_without_weights_there_are_two_sums():
    plain = replace(ROWS, probability=None)
    wanted = Needed(powers=POWERS, cap=2.0, caps=CAPS)
    found = terms(ArrayColumns(plain, Outcome()), DELTA, metric("mae"), wanted)
    assert [name for name, _ in found] == ["n", "gain"]


def test_assembling_keeps_users_apart_and_adds_up_the_rest():
    sums = {
        "n": np.array([[2.0], [2.0]]), "gain": np.array([[1.0], [3.0]]), "cut": np.ones((2, 1)),
        "clipped": np.array([[1.0], [2.0]]), "power00": np.array([[1.0], [4.0]]), "cap0_0": np.ones((2, 1)),
        **{f"cap0_{i}": np.full((2, 1), i) for i in range(1, 5)},
    }  # fmt: skip
    common = Common(cells=np.full(2, 5.0), base={"rows": np.full((2, 1), 2.0)}, weights=None)
    m = assemble(metric("mae"), sums, Needed(powers=((0, 0),), cap=3.0, caps=(8.0,)), common)
    assert set(m.sums) == {"n", "gain", "cut", "rows"}
    assert m.powers[0, 0, 0] == 5
    assert m.clipped == 3 / 4
    assert m.caps[8.0].tolist() == [2, 2, 4, 6, 8]
    assert m.cap == 3
    assert m.parts is None


def test_a_pair_has_the_difference_of_its_gains_and_its_own_products():
    common = Common(cells=np.full(2, 5.0), base={}, weights=None)
    a, b = (
        assemble(metric("mae"), {"n": np.ones((2, 1)), "gain": np.full((2, 1), g)}, Needed(), common) for g in (5, 3)
    )
    own = {"fixed": 3.0, "positive": 4.0, "negative": 1.0, "power02": 7.0}
    both = paired(a, b, {name: np.array([[value]]) for name, value in own.items()})
    assert both.sums["gain"].tolist() == [[4]]  # of all users together
    assert both.sums["n"].tolist() == [[2]]
    assert both.parts == (3, 4, 1)
    assert paired(a, b, {name: np.array([[own[name]]]) for name in ("positive", "negative")}).parts == (0, 4, 1)
    assert both.powers[0, 0, 2] == 7
