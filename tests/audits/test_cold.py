"""Cold rows leave the verdict, and are reported apart; by hand, and against audits of the rows by themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.errors import InputError
from tests.facts import facts

U, I = 80, 30
RNG = np.random.default_rng(0)
TASTE = RNG.normal(size=(U, I))
MODELS = {"good": TASTE + 0.3 * RNG.normal(size=(U, I)), "bad": TASTE + 3 * RNG.normal(size=(U, I))}
OPTIONS = {"metrics": ["recall@5"], "estimators": ["naive"]}


def parts():
    """Train lacks the first ten users and four items; test has rows of all."""
    liked = np.random.default_rng(1).random((U, I)) < 0.5 / (1 + np.exp(-3 * TASTE))
    early = np.random.default_rng(2).random((U, I)) < 0.5
    early[:10] = False
    early[:, :4] = False
    whole = [
        ol.Feedback.from_arrays(*np.nonzero(cells), np.ones(cells.sum()), users=U, items=I, positives=True)
        for cells in (liked & early, liked & ~early)
    ]
    return whole[0], whole[1]


TRAIN, TEST = parts()
WARM = np.isin(TEST.user, TRAIN.user) & np.isin(TEST.item, TRAIN.item)


@pytest.fixture(scope="module")
def reported():
    return ol.audit(MODELS, TEST, exclude=TRAIN, cold="report", **OPTIONS)


def test_the_verdict_is_about_the_warm_and_says_so(reported):
    warm = TEST.take(WARM, origin=TEST.fingerprint)
    alone = ol.evaluate(MODELS, warm, exclude=TRAIN, **OPTIONS)
    for model in MODELS:
        assert reported.result[model, "recall@5", "naive"].value == alone[model, "recall@5", "naive"].value
    assert "with training rows" in reported.verdict.headline


def test_the_cold_are_counted_and_reported_apart(reported):
    cold = reported.cold
    assert (cold.rows, cold.warm) == (int((~WARM).sum()), int(WARM.sum()))
    assert (cold.users, cold.items) == (len({*TEST.user} - {*TRAIN.user}), len({*TEST.item} - {*TRAIN.item}))
    assert cold.items == 4
    alone = ol.evaluate(MODELS, TEST.take(~WARM, origin=TEST.fingerprint), exclude=TRAIN, **OPTIONS)
    for model in MODELS:
        assert cold.result[model, "recall@5", "naive"].value == alone[model, "recall@5", "naive"].value
    record = reported.records()["cold"]
    assert (record["rows"], record["warm_rows"]) == (cold.rows, cold.warm)
    assert any(f"{cold.rows:,} of {len(TEST):,} rows" in note for note in reported.notes)


def test_what_models_were_trained_on_need_not_leave_the_rankings():
    found = ol.audit(MODELS, TEST, cold="drop", trained_on=TRAIN, **OPTIONS)
    assert found.cold.rows == int((~WARM).sum())
    assert found.setting.excluded is None


def test_a_part_without_its_cold_rows_has_no_scale():
    log = ol.simulate.movie_lovers(users=40, items=30).observe(rng=0)
    train, test = ol.split(log, 0.5, rng=0)
    train = train.take(train.user > 2, origin=train.origin)
    models = {name: np.random.default_rng(n).normal(3, 1, (40, 30)) for n, name in enumerate("ab")}
    found = ol.audit(models, test, exclude=train, cold="drop", metrics=["mae"], estimators=["snips", "ips"])
    assert ("mae", "ips") in found.result.skipped
    assert "cold rows" in found.result.skipped["mae", "ips"]


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"cold": "reprt", "exclude": TRAIN}, InputError, ("cold='reprt'", "'report'")),
        ({"cold": "drop"}, InputError, ("cold='drop'", "exclude=", "trained_on=")),
    ],
    ids=["option", "no training part"],
)
def test_refusals(options, error, told):
    with pytest.raises(error, match=facts(*told)):
        ol.audit(MODELS, TEST, **OPTIONS, **options)


def test_cold_rows_are_not_reported_beside_a_narrowed_catalogue():
    with pytest.raises(InputError, match=facts("min_item_rows=2", "cold='drop'")):
        ol.audit(MODELS, replace(TEST, min_item_rows=2), **OPTIONS, cold="report", exclude=TRAIN)
