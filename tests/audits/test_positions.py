"""Positions: click rates are counted, examination stands beside them, and the sharpest check of several counts once."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.audits.positions import positions_of


@pytest.fixture(scope="module")
def log():
    return ol.simulate.click_world(400, 6, 3, logging="shuffled").observe(rng=0)


def test_a_check_by_several_labels_counts_its_least_p_so_many_times(log):
    exam = ol.propensity.Examination(by="randomised").fit(log)
    ranks = {"one": log.position.astype(np.int32), "two": log.item.astype(np.int32) + 1}
    found = positions_of(log, exam, 0.95, ranks)
    alone = [exam.check(log, label)["items above"].pvalue for label in (None, *ranks.values())]
    assert found.checks["items above"].pvalue == pytest.approx(min(1.0, 3 * min(alone)))
    assert found.checks["reaction"].pvalue == exam.check(log)["reaction"].pvalue  # ranks do not enter


def test_what_an_estimator_assumes_decides_which_check_speaks_against_it():
    cascade = ol.simulate.click_world(2000, 6, 3, model="cascade", logging="shuffled")
    shown = cascade.observe(rng=0)
    exam = ol.propensity.Examination(by="randomised").fit(shown)
    ranks = {name: table["rank"].to_numpy().astype(np.int32) for name, table in cascade.ranks(shown).items()}
    users = shown.user[shown.request]
    at = users * shown.n_items + shown.item  # the tables hold each user's items in order
    found = positions_of(shown, exam, 0.95, {name: rank[at] for name, rank in ranks.items()})
    assert found.against("snpbm").name == "items above"
    assert found.against("sniips").name == "items above"
    assert found.against("snrips") is None
