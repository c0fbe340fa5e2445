"""`cite` knows where everything that it is shown comes from, and refuses what it does not know."""

from __future__ import annotations

import inspect
import itertools

import pytest

import openloop as ol
from openloop.core.lists import LISTS
from openloop.errors import InputError
from openloop.estimators import naming as estimators
from openloop.estimators import shown
from openloop.metrics import naming as metrics
from openloop.reporting.citing import AUDIT, ESTIMATORS, METRICS, MODELS, SETTINGS
from openloop.reporting.references import PLACES, REFERENCES
from tests.audit_cases import comparison
from tests.bibtex import entries


def cited(*used) -> list[str]:
    """The keys of what is cited, openloop left out."""
    (_, own, _), *others = entries(ol.cite(*used))
    assert own == "openloop"
    return [key for _, key, _ in others]


# -- the tables ----------------------------------------------------------------------------------------------


def test_every_key_is_a_reference_and_every_reference_is_used():
    tables = (ESTIMATORS, METRICS, MODELS, SETTINGS)
    named = set(itertools.chain(AUDIT, *(keys for table in tables for keys in table.values())))
    assert named - set(REFERENCES) == set()
    assert set(REFERENCES) - named == {"zhao2019", "conover1999"}  # by what an audit holds


def test_every_estimator_has_its_papers_or_says_that_it_has_none():
    assert set(ESTIMATORS) == {*estimators.PLAIN, *shown.METHODS, LISTS}
    assert {name for name, keys in ESTIMATORS.items() if not keys} == {"naive", LISTS}


def test_every_metric_has_its_papers_or_says_that_it_has_none():
    assert set(METRICS) == {*metrics.PLAIN, *metrics.AT_K, *metrics.OF_LISTS, *shown.METRICS}


def test_every_model_has_its_papers_or_says_that_it_has_none():
    public = {
        f"{package}.{name}"
        for package in ("learners", "propensity")
        for name in getattr(ol, package).__all__
        if inspect.isclass(kind := getattr(getattr(ol, package), name)) and hasattr(kind, "get_params")
    }
    assert set(MODELS) == public


# -- what is cited -------------------------------------------------------------------------------------------


def test_a_comparison_has_the_papers_of_its_metrics_and_estimators():
    found = cited(comparison())
    assert {"schnabel2016", "jarvelin2002", "jadidinejad2021", "ionides2008", "horvitz1952"} <= set(found)
    assert not {"lim2015", "holm1979", "robins1994"} & set(found)


def test_models_inside_a_model_count():
    learners, propensity = ol.learners, ol.propensity
    stack = learners.Stack([learners.MF(), (learners.WMF(), 0.5), learners.Exposure()])
    assert cited(stack) == ["wolpert1992", "schnabel2016", "hu2008", "musco2015"]
    balanced = propensity.Balanced(propensity.LowRank())
    assert cited(balanced) == ["deville1992", "davenport2014", "ma2019"]


@pytest.mark.parametrize("other", ["snips", None, 3, ol.simulate])
def test_anything_else_is_refused(other):
    with pytest.raises(InputError, match=type(other).__name__):
        ol.cite(other)


@pytest.mark.parametrize("key", REFERENCES)
def test_an_entry_parses_to_its_fields(key):
    paper = REFERENCES[key]
    [(kind, parsed_key, fields)] = entries(paper.bibtex())
    assert (kind, parsed_key) == (paper.kind, paper.key) == (paper.kind, key)
    assert fields["author"] == paper.author
    assert fields["title"] == f"{{{paper.title}}}"
    assert fields[PLACES[paper.kind]] == paper.place
    assert fields["year"] == str(paper.year)
    numbers = {name: str(value) for name in ("volume", "number") if (value := getattr(paper, name)) is not None}
    assert {name: fields[name] for name in ("volume", "number") if name in fields} == numbers
