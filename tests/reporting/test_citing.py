"""`cite` knows where everything that it is shown comes from, and refuses what it does not know."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace

import pytest

import openloop as ol
from openloop.core.lists import LISTS
from openloop.core.metric import Metric
from openloop.errors import InputError
from openloop.estimators import naming as estimators
from openloop.estimators import shown
from openloop.metrics import naming as metrics
from openloop.reporting.citing import AUDIT, ESTIMATORS, METRICS, MODELS, SETTINGS
from openloop.reporting.references import REFERENCES
from tests.audit_cases import comparison, small_audit
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


def test_settings_are_those_that_models_have():
    for name, attribute, value in SETTINGS:
        package, _, kind = name.partition(".")
        model = getattr(getattr(ol, package), kind)
        if attribute.endswith("_"):
            assert attribute in model.fit.__code__.co_names
        else:
            assert attribute in inspect.signature(model).parameters
            assert str(value) in str(inspect.signature(model).parameters[attribute].annotation) or value is True


# -- what is cited -------------------------------------------------------------------------------------------


def test_openloop_itself():
    [(kind, key, fields)] = entries(ol.cite())
    assert (kind, key) == ("misc", "openloop")
    assert fields["author"] == "{The openloop contributors}"
    assert fields["note"] == f"Version {ol.__version__}"


def test_a_comparison_has_the_papers_of_its_metrics_and_estimators():
    found = cited(comparison())
    assert {"schnabel2016", "jarvelin2002", "jadidinejad2021", "ionides2008", "horvitz1952"} <= set(found)
    assert not {"lim2015", "holm1979", "robins1994"} & set(found)


def test_each_paper_is_cited_once():
    found = cited(comparison(), comparison(), ol.propensity.NaiveBayes(), ol.propensity.Logistic())
    assert len(found) == len(set(found))


def test_an_audit_adds_what_it_did():
    audit = small_audit()
    assert {*AUDIT, "zhao2019", "conover1999", *cited(audit.result)} == set(cited(audit))
    bare = replace(audit, curves=(), strata=(), paradoxes=(), open_loop=None, friedman=None)
    assert cited(bare) == [*cited(audit.result), *AUDIT]


def test_parameters_of_names_do_not_matter():
    e = comparison()["ones", "mae", "snips"]
    assert cited(replace(e, method="clipped@20")) == ["ionides2008", "schnabel2016"]
    assert cited(replace(e, method="stratified@5:width:observed")) == ["jadidinejad2021"]
    assert cited(ol.metric("rbp:0.9")) == cited(ol.metric("rbp")) == ["moffat2008", "mcsherry2008"]
    assert cited(ol.metric("adg")) == ["lim2015", "mcsherry2008"]


def test_a_metric_of_your_own_has_no_paper_here():
    own = Metric(name="mine", on="prediction", kind="cell", gain=lambda x: x.rating, better="lower")
    assert cited(own) == []


def test_settings_of_a_model_add_theirs():
    learners = ol.learners
    assert cited(learners.MF()) == ["schnabel2016"]
    assert cited(learners.MF(loss="logistic")) == ["schnabel2016", "jaakkola2000"]
    assert cited(learners.DR()) == ["wang2019"]
    assert cited(learners.DR(weights="mrdr", targeted=True)) == ["guo2021", "li2023"]


def test_the_method_of_a_fitted_examination_counts():
    exam = ol.propensity.Examination(by="known", theta=[1.0, 0.5])
    assert cited(exam) == []
    log = ol.simulate.click_world(60, 6, 3, logging="shuffled", shuffle=1.0).observe(rng=0)
    assert cited(ol.propensity.Examination().fit(log)) == ["joachims2017"]


def test_models_inside_a_model_count():
    learners, propensity = ol.learners, ol.propensity
    stack = learners.Stack([learners.MF(), (learners.WMF(), 0.5), learners.Exposure()])
    assert cited(stack) == ["wolpert1992", "schnabel2016", "hu2008", "musco2015"]
    balanced = propensity.Balanced(propensity.LowRank())
    assert cited(balanced) == ["deville1992", "davenport2014", "ma2019"]


def test_a_popular_item_is_no_propensity():
    assert cited(ol.learners.Popularity()) == []
    assert "clauset2009" in cited(ol.propensity.Popularity())


def test_a_class_of_your_own_has_the_papers_of_what_it_inherits_from():
    class Mine(ol.learners.MF):
        pass

    assert cited(Mine()) == ["schnabel2016"]


def test_a_selection_has_its_winner():
    assert cited(ol.Selection(model=ol.learners.WMF(), table=None)) == ["hu2008"]


@pytest.mark.parametrize("other", ["snips", None, 3, ol.simulate])
def test_anything_else_is_refused(other):
    with pytest.raises(InputError, match=type(other).__name__):
        ol.cite(other)
