"""The methods by name: strata that partition, and weights that match what was held out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.studies.jadidinejad2021 import as_coded, methods, scores
from openloop.studies.jadidinejad2021.models import given_of, places, relevant
from tests.studies.jadidinejad2021 import many


def test_the_five_columns_as_coded():
    held, _, _ = many.held()
    found = methods.coded(held)
    assert list(found) == ["holdout", "ips", "stratified", "q1", "q2"]
    p = as_coded.propensities(held.given["item"], many.ITEMS, many.USERS)
    share = np.mean(as_coded.strata(p[held.rows[1]], 2)[held.shown] == 0)
    assert 0 < share < 1
    q1, q2 = (found[name](None).value for name in ("q1", "q2"))
    assert found["stratified"](None).value == pytest.approx(share * q1 + (1 - share) * q2)
    cells = held.cells.where(held.shown[held.relevant])
    gain = as_coded.ips_gain(p, held.split.order)[cells.item]
    assert found["ips"](10).value == pytest.approx(scores.snips(cells, "coded", 10, gain).value)


def unknown():
    """A held-out part with a user and an item of whom training shows nothing."""
    held, known, _ = many.held()
    given, part = held.given, held.split
    gone = (given["user"][part.train] != 3) & (given["item"][part.train] != 5)
    order = part.order[part.order != 5]
    split = replace(part, train=part.train[gone], order=order)
    found = [placed(given, split, s) for s in known.values()]
    cells = scores.stacked(found, "closed", *relevant(given, split.test), many.USERS)
    return replace(held, split=split, cells=cells)


def placed(given, split, scores):
    columns = [given[name][split.train] for name in ("user", "item", "rating")]
    train = Feedback.from_arrays(*columns, users=many.USERS, items=many.ITEMS)
    return {"closed": places(scores, train, split.order, *relevant(given, split.test))}


def test_as_coded_users_and_items_that_training_does_not_show_do_not_count():
    held = unknown()
    user, item = held.rows
    train = held.given["user"][held.split.train]
    kept = np.isin(user, train) & (item != 5)
    assert 3 not in train
    assert np.any(user == 3)
    assert np.any(item == 5)
    assert held.shown.tolist() == kept.tolist()
    coded, cells = methods.coded(held), held.cells.where(kept[held.relevant])
    assert coded["holdout"](None).value == pytest.approx(scores.holdout(cells, "coded", None).value)
    stratum = held.coded_strata(2)
    assert coded["stratified"].keywords["share"] == pytest.approx([(stratum == 0).mean(), (stratum == 1).mean()])
    # Had the others counted, holdout would have another value; ours count them.
    everyone = scores.holdout(held.cells, "coded", None).value
    assert np.abs(coded["holdout"](None).value - everyone).min() > 1e-4
    assert len(methods.ours(held, {})["holdout"].args[0].user) == len(held.cells.user) > len(cells.user)


def test_strata_as_printed_have_equal_size():
    held, _, log = many.held()
    eq7 = methods.propensity(given_of(log), kind="eq7")["p"]
    found = methods.printed(held, eq7)
    n = [int(found[name].args[0].user.size) for name in ("q1", "q2")]
    assert sum(n) == len(held.cells.user)
    share = found["stratified"].keywords["share"]
    assert share == pytest.approx([0.5, 0.5], abs=0.1)


def test_propensities_expect_the_rows_of_the_log():
    log = many.logs()[1]
    for kind in ("eq7", *methods.PROPENSITIES):
        p = methods.propensity(given_of(log), kind=kind)["p"]
        total = np.broadcast_to(p, (many.USERS, many.ITEMS)).sum()
        assert total == pytest.approx(len(log), rel=0.1 if kind == "calibrated" else 1e-3)


def test_covariates_reach_the_logistic_model():
    rng = np.random.default_rng(0)
    given = given_of(many.logs()[1])
    more = {"user_covariates": rng.normal(size=(many.USERS, 2)), "item_covariates": rng.normal(size=(many.ITEMS, 2))}
    plain, wider = (methods.propensity(g, kind="logistic")["p"] for g in (given, given | more))
    assert np.abs(plain - wider).max() > 1e-6


@pytest.mark.parametrize(("among", "t"), [("all", 0), ("outside", 1)])
def test_a_candidate_is_observed_with_pi(among, t):
    held, _, _ = many.held()
    s, p = held.split.share, np.linspace(0.7, 0.05, many.ITEMS)
    mine = p[held.cells.item]
    by_hand = scores.snips(held.cells, among, None, (1 - mine * (1 - s) * t) / (mine * s))
    found = methods.ours(held, {"popularity": p}, among)["snips, popularity"](None)
    assert found.value == pytest.approx(by_hand.value)


def test_ours_by_name_and_by_rule():
    held, _, _ = many.held()
    p = {"popularity": np.linspace(0.7, 0.05, many.ITEMS)}
    found = methods.ours(held, p, "outside", {"popularity": 3})
    assert list(found) == [
        "holdout", "snips, popularity", "snips of adg, popularity", "5 strata, popularity", "strata by rule, popularity"
    ]  # fmt: skip
    three = methods.catalogued(held, methods.grid_of(held, p["popularity"]), "outside", 3)
    assert found["strata by rule, popularity"](None).value == pytest.approx(three(None).value)


def test_catalogue_shares_count_candidates():
    held, _, _ = many.held()
    grid = methods.grid_of(held, np.where(np.arange(many.ITEMS) < 10, 0.6, 0.1))
    everything = methods.catalogued(held, grid, "all", 2).keywords["share"]
    outside = methods.catalogued(held, grid, "outside", 2).keywords["share"]
    assert everything == pytest.approx([0.75, 0.25])
    assert outside[1] < 0.25  # the often observed items are more often in the training part
