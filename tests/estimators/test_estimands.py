"""Every estimate names what it is an estimate of."""

from __future__ import annotations

import pytest

from openloop.estimators.estimands import estimand
from openloop.metrics.naming import metric


@pytest.mark.parametrize(
    ("name", "estimator", "share", "words"),
    [
        ("mae", "snips", "catalogue", "per cell"),
        ("dcg@10", "clipped@20", "catalogue", "per cell"),
        ("precision@5", "ips", "catalogue", "per cell"),
        ("recall@10", "snips", "catalogue", "per relevant item"),
        ("adg", "stratified@10", "catalogue", "per relevant item"),
        ("atop", "snips_user", "catalogue", "per user"),
        ("mae", "naive", "catalogue", "on what was seen"),
        ("recall@10", "stratified@2:width:observed", "observed", "on what was seen"),
        ("ndcg@10", "snips", "catalogue", "on what was seen"),
        ("auc", "stratified", "catalogue", "on what was seen"),
        ("adg", "ips_eq3", "catalogue", "on what was seen"),
    ],
)
def test_what_each_estimate_is_of(name, estimator, share, words):
    assert estimand(metric(name), estimator, share) == words
