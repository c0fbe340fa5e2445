"""What can be asked of the evidence: who is ahead, what is the same, who is a witness."""

from __future__ import annotations

import numpy as np

from openloop.audits.evidence import off_scale, stem
from openloop.core.weights import Diagnostics
from tests.verdicts import METRIC, comparison, evidence

USERS = np.arange(40.0)
VALUES = {"a": USERS + 1, "b": USERS}


def test_the_better_direction_is_the_metrics():
    assert evidence(comparison(VALUES)).ahead(0.5)
    assert evidence(comparison(VALUES, better="lower")).ahead(-0.5)
    assert not evidence(comparison(VALUES)).ahead(0.0)


def test_a_contrast_is_found_in_either_order():
    found = evidence(comparison(VALUES))
    assert found.between("b", "a").value == -found.between("a", "b").value == -1
    assert found.between("a", "c") is None
    assert [c.b for c in found.of("b")] == ["a"]


def test_the_subject_names_estimand_and_population():
    assert evidence(comparison(VALUES)).subject == "recall@10, per relevant item"
    narrow = evidence(comparison(VALUES), population="among the 7 items with at least 30 rows")
    assert narrow.subject == "recall@10, per relevant item, among the 7 items with at least 30 rows"


def test_ties_have_no_first():
    found = evidence(
        comparison(VALUES, estimators=["snips", "naive"], other={(METRIC, "naive"): {"a": USERS, "b": USERS}})
    )
    assert (found.first("snips"), found.first("naive")) == ("a", None)


def test_witnesses_say_something_of_their_own_about_the_same():
    other = {
        (METRIC, "stratified"): {"a": USERS + 2, "b": USERS},
        (METRIC, "clipped@5"): {"a": USERS + 3, "b": USERS},
        (METRIC, "naive"): {"a": USERS + 4, "b": USERS},
    }
    names = ["snips", "ips", "stratified", "clipped@5", "naive"]
    found = evidence(comparison(VALUES, estimators=names, other=other))
    assert found.witnesses == ("clipped@5",)  # ips is snips again, stratified too, and naive is biased
    per_user = {(METRIC, "snips_user"): {"a": USERS + 2, "b": USERS}}
    assert evidence(comparison(VALUES, estimators=["snips", "snips_user"], other=per_user)).witnesses == ()
    seen = comparison(VALUES, metrics=["ndcg@10"], estimators=["snips", "clipped@5"],
                      other={("ndcg@10", "clipped@5"): {"a": USERS + 2, "b": USERS}})  # fmt: skip
    assert evidence(seen).witnesses == ()  # what no weights debias has no debiased witness


def test_names_have_stems_and_masses_ranges():
    assert [stem(name) for name in ("snips", "clipped@20", "stratified@3:width")] == ["snips", "clipped", "stratified"]
    assert [off_scale(Diagnostics(n=1, users=1, mass=m)) for m in (None, 1.0, 0.5, 2.0)] == [False, False, True, True]


def test_equal_weights_are_told_by_the_effective_size():
    assert evidence(comparison(VALUES, n=40, effective_size=40.0)).evenly_weighted
    assert not evidence(comparison(VALUES, n=40, effective_size=30.0)).evenly_weighted
