"""Metrics and estimators that break the contract are told what is violated; others pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.core.estimate import Estimate
from openloop.estimators.naming import Method
from openloop.estimators.weighted import snips
from openloop.testing import check_estimator, check_metric
from tests.facts import facts

# -- metrics -------------------------------------------------------------------------------------------------


def of_rank(name, function, **keywords):
    return ol.metric(name, **({"on": "rank", "better": "higher"} | keywords))(function)


def by_hand(gain, **keywords):
    return ol.Metric(**({"name": "mine", "on": "rank", "kind": "cell", "gain": gain, "better": "higher"} | keywords))


@pytest.mark.parametrize(
    "metric",
    [
        of_rank("half", lambda rank: 0.5**rank),
        of_rank("half_sum", lambda rank: 0.5**rank, per="cell"),
        of_rank("place", lambda rank: rank, better="lower"),
        ol.metric("square", on="prediction", better="lower")(lambda rating, prediction: (rating - prediction) ** 2),
        *map(ol.metric, ("mae", "accuracy", "dcg@3", "recall@3", "ndcg", "map", "mrr", "hit@2", "auc", "atop")),
    ],
)
def test_metrics_that_keep_the_contract_pass(metric):
    assert check_metric(metric) is None


@pytest.mark.parametrize(
    ("metric", "says"),
    [
        ("ndcg", ("is not a Metric",)),
        (of_rank("place", lambda rank: rank), ("better='higher'", "must be better")),
        (by_hand(lambda x: x.cells * x.relevant / (x.above + 1.0)), ("tied items", "x.by_rank")),
        (by_hand(lambda x: x.cells / (x.above - x.above)), ("inf",)),
        (by_hand(lambda x: x.relevant * x.discount(None) * len(x.rating)), ("other users leave the log",)),
        (of_rank("late", lambda rank: np.where(rank > 11, np.inf, 1.0) if len(rank) < 20 else 1 / rank), ("inf",)),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_metric_is_told(metric, says):
    with pytest.raises(AssertionError, match=facts(*says)):
        check_metric(metric)


# -- estimators ----------------------------------------------------------------------------------------------


def own(function):
    return ol.estimator("mine")(function)


@pytest.mark.parametrize(
    "estimator",
    [
        own(lambda s: s.wgain / s.weight),
        own(lambda s: s.wgain / s.cells),
        own(lambda s: s.gain / s.n),
        own(lambda s: (s.wgain + 20 * 3.0) / (s.weight + 20)),
        *(Method(name=f"their_{e.__name__}", estimate=e) for e in (snips,)),
    ],
)
def test_estimators_that_keep_the_contract_pass(estimator):
    assert check_estimator(estimator) is None


def frozen_denominator(m) -> Estimate:
    """The influence of a ratio whose denominator was taken for a constant, as in other libraries."""
    e = snips(m)
    part = e.columns[:, 0] / e.columns[:, 1].sum()
    return replace(e, influence=len(part) * (part - part.mean()))


def off_centre(m) -> Estimate:
    e = snips(m)
    return replace(e, influence=e.influence + 1.0)


@pytest.mark.parametrize(
    ("estimator", "says"),
    [
        ("snips", ("is not an estimator",)),
        (own(lambda s: 2 * s.wgain / s.weight), ("the truth is",)),
        (own(lambda s: s.wgain / s.n), ("the truth is",)),
        (own(lambda s: s.gain / s.cells), ("the truth is",)),
        (own(lambda s: (s.wgain + 2000 * 3.0) / (s.weight + 2000)), ("the truth is",)),
        (Method(name="frozen", estimate=frozen_denominator), ("'frozen'", "influence is off by")),
        (Method(name="centre", estimate=off_centre), ("'centre'", "mean 0")),
    ],
)
def test_a_broken_estimator_is_told(estimator, says):
    with pytest.raises(AssertionError, match=facts(*says)):
        check_estimator(estimator)
