"""What an audit is asked, and what it chooses where it is not told."""

from __future__ import annotations

import pytest

from openloop.audits.question import LISTED, METRICS, STRATA, AuditQuestion, for_clicks
from openloop.errors import InputError, NameFormatError
from openloop.sources.question import within_lists
from tests.facts import facts


def test_without_a_word_an_audit_chooses_what_the_models_can_serve():
    asked = AuditQuestion()
    assert asked.metrics == (*METRICS, *LISTED)
    assert asked.lenient
    assert tuple(asked.estimators) == ("snips", "snips_user", "ips", "stratified", "naive")
    assert not AuditQuestion(metrics=["mae"]).lenient


def names(asked):
    return [m.name for m in asked.list_measures]


def test_lists_are_shown_beside_rankings_and_those_named_instead():
    assert names(AuditQuestion(metrics=["mae"])) == []
    assert names(AuditQuestion(metrics="recall@5")) == list(LISTED)
    assert names(AuditQuestion(metrics=["recall@5", "gini@3"])) == ["gini@3"]
    assert names(AuditQuestion(running="a", item_features=[[1]])) == [*LISTED, "similarity@10", "overlap@10"]
    assert names(AuditQuestion(metrics=["mae", "overlap@3"], running="a")) == ["overlap@3"]
    assert names(AuditQuestion(metrics=["mae"], running="a")) == ["overlap@10"]


def test_an_audit_that_names_lists_alone_chooses_what_it_judges():
    asked = AuditQuestion(metrics=["coverage@5"])
    assert (tuple(m.name for m in asked.measures), names(asked), asked.lenient) == (METRICS, ["coverage@5"], True)
    assert names(for_clicks(asked)) == ["coverage@5"]


def test_metrics_that_nobody_named_are_cut_where_lists_end():
    short = within_lists(AuditQuestion(running="a"), 3)
    assert [m.name for m in short.measures] == ["recall@3", "dcg@3", "mae", "mse"]
    assert names(short) == ["coverage@3", "gini@3", "popularity@3", "novelty@3", "new@3", "overlap@3"]
    assert [m.name for m in within_lists(for_clicks(AuditQuestion()), 3).measures] == ["recall@3", "adg"]
    named = within_lists(AuditQuestion(metrics=["coverage@20"]), 3)
    assert (named.measures[0].name, names(named)) == ("recall@3", ["coverage@20"])
    assert within_lists(AuditQuestion(metrics=["recall@9"]), 3).measures[0].name == "recall@9"
    assert [m.name for m in within_lists(AuditQuestion(), 50).measures] == list(METRICS)


def test_naive_is_always_there_to_compare_with():
    assert list(AuditQuestion(estimators=["snips"]).estimators) == ["snips", "snips_user", "naive"]
    assert list(AuditQuestion(estimators="naive").estimators) == ["naive"]


def test_an_average_over_relevant_items_has_that_over_users_beside_it_and_not_the_reverse():
    assert list(AuditQuestion(estimators=["ips", "clipped@20"]).estimators) == [
        "ips",
        "clipped@20",
        "snips_user",
        "naive",
    ]
    assert list(AuditQuestion(estimators=["snips_user"]).estimators) == ["snips_user", "naive"]
    assert list(AuditQuestion(estimators=["ips"]).estimators) == ["ips", "naive"]


def test_a_plain_stratified_has_the_first_strata():
    assert list(AuditQuestion(estimators=["stratified"], strata=STRATA).estimators) == [
        "stratified",
        "snips_user",
        "naive",
    ]
    found = AuditQuestion(estimators=["stratified", "stratified@7"], strata=[3, "2:width"])
    assert list(found.estimators) == ["stratified@3", "snips_user", "stratified@7", "naive"]
    assert list(AuditQuestion(estimators=["stratified"], strata=()).estimators) == ["stratified", "snips_user", "naive"]


def test_groupings_are_strata_in_words_and_groups_by_name():
    found = AuditQuestion(strata="2:width", groups={"region": []}).groupings
    assert found == {"propensity (2 of equal width)": (2, "width"), "region": "region"}
    assert AuditQuestion(strata=()).groupings == {}


def test_strata_that_are_no_numbers_and_levels_beyond_1_are_refused():
    with pytest.raises(NameFormatError, match="observed"):
        _ = AuditQuestion(strata=["5:observed"]).groupings
    with pytest.raises(InputError, match=facts("level", 0, 1, 95)):
        AuditQuestion(level=95)
