"""Which kinds of weights a log can give, and why not the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openloop.impressions.support import LogSupport

FULL = LogSupport(
    requests=True, gapless=True, propensity=True, exposure=True, prefix=True, slate=True, shuffled=True, pool=True,
    theta=True, affine=False, reorders=False,
)  # fmt: skip
KINDS = ("sips", "rips", "iips", "pi", "pbm", "dcg")


def test_a_full_log_gives_every_kind():
    assert [FULL.refusal(kind) for kind in KINDS] == [None] * 6
    assert all(FULL.refusal(kind, robust=True) is None for kind in ("rips", "iips", "pbm"))
    assert replace(FULL, affine=True).refusal("affine") is None


@pytest.mark.parametrize(
    ("lacks", "refused", "word"),
    [
        ({"requests": False}, {"sips", "rips", "pi"}, "requests"),
        ({"gapless": False}, {"sips", "rips", "pi"}, "position"),
        ({"propensity": False, "exposure": False}, {"iips", "dcg"}, "propensities"),
        ({"prefix": False}, {"rips"}, "prefix="),
        ({"slate": False}, {"sips"}, "slate="),
        ({"shuffled": False}, {"pi"}, "shuffled="),
        ({"pool": False}, {"pi"}, "pool="),
        ({"theta": False}, {"pbm", "dcg"}, "Examination"),
        ({"affine": True}, {"pbm", "dcg"}, "affine"),
        ({"reorders": True}, {"sips", "rips", "iips", "pi"}, "show"),
        ({"reorders": True, "requests": False}, set(KINDS), ""),
        ({"random": "m"}, {"sips", "rips", "dcg"}, "'m'"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_what_a_log_lacks_is_refused(lacks, refused, word):
    support = replace(FULL, **lacks)
    reasons = {kind: support.refusal(kind) for kind in KINDS}
    assert {kind for kind, reason in reasons.items() if reason} == refused
    assert all(word in reason for reason in reasons.values() if reason)


@pytest.mark.parametrize(
    ("lacks", "word"),
    [({"unlisted": "m"}, "'m'"), ({"theta": False}, "θ"), ({"gapless": False}, "lists")],
    ids=["unlisted", "theta", "gapless"],
)
def test_doubly_robust_forms_need_lists_and_theta(lacks, word):
    assert word in replace(FULL, **lacks).refusal("iips", robust=True)


def test_denominators():
    assert FULL.denominator == "exposure"
    assert replace(FULL, exposure=False).denominator == "propensity"
    assert replace(FULL, exposure=False, propensity=False).denominator == "shown"
    assert replace(FULL, reorders=True).denominator == "shown"
    assert [FULL.notes, len(replace(FULL, exposure=False).notes)] == [[], 1]
