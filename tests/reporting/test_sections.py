"""Sections about the models: for audits and bare comparisons, with words that agree with the numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from openloop.evaluation import evaluate
from openloop.reporting import sections
from openloop.reporting.blocks import FigureBlock, Fold, TableBlock
from openloop.reporting.sections import Subject
from tests.audit_cases import log, small_audit, world


def blocks(found, kind) -> list:
    """All blocks of a kind, in folds too."""
    inner = [b for fold in found if isinstance(fold, Fold) for b in blocks(fold.blocks, kind)]
    return [b for b in found if isinstance(b, kind)] + inner


def test_an_audit_names_its_metric_and_estimator_and_a_comparison_has_the_debiased_one(subject, bare):
    assert (subject.metric, subject.estimator) == ("mae", "snips")
    assert (bare.metric, bare.estimator) == ("mae", "snips")
    plain = evaluate({"a": world().ratings}, log(), metrics=["mae"], estimators=["naive"])
    assert Subject.of(plain).estimator == "naive"


def test_a_comparison_has_the_contrasts_of_an_audit(audit, bare):
    assert bare.contrasts("mae", "snips") == audit.contrasts["mae", "snips"]
    assert bare.best("mae", "snips") == {}


@pytest.mark.parametrize("kind", ["subject", "bare"])
def test_every_metric_has_a_leaderboard_a_forest_plot_and_places(kind, request):
    of = request.getfixturevalue(kind)
    for section in (sections.leaderboard(of), sections.differences(of), sections.places(of)):
        assert len(blocks(section.blocks, FigureBlock)) == len(of.metrics)
    tables = blocks(sections.leaderboard(of).blocks, TableBlock)
    assert [table.order is not None for table in tables] == [True] * len(of.metrics)


def test_every_figure_has_words_with_numbers_and_all_but_those_under_a_table_have_one(subject):
    for section in (sections.differences(subject), sections.places(subject), *sections.strata(subject)):
        for figure in blocks(section.blocks, FigureBlock):
            assert len(figure.alt) > 60
            assert figure.tables or "table above" in figure.alt


def test_the_facts_are_of_the_winner(subject):
    found = {term: (value, words) for term, value, words in sections.facts(subject).items}
    assert found["effective sample"][0] == f"{subject.result['fours', 'mae', 'snips'].diagnostics.effective_size:,.0f}"
    assert found["snips of mae"][1].startswith("fours, per cell; ")
    assert "Γ*" not in found


def test_what_would_change_the_order_is_said_beside_the_verdict(subject, bare):
    ((term, value, words),) = sections.changes(subject)
    assert (term, value) == ("Γ*", "–")  # its difference to the next model covers 0
    assert "covers 0" in words
    assert sections.changes(bare) == []
    known = [replace(c, gamma=1.5, rho=math.inf, better=c.a) for c in subject.contrasts("mae", "snips")]
    found = sections.changes(replace(subject, found={("mae", "snips"): known}))
    assert [(term, value) for term, value, _ in found] == [("Γ*", "1.5×"), ("ρ*", "∞")]
    assert "more than this" in found[0][2]
    assert "does not reverse" in found[1][2]
    unclear = [replace(c, gamma=1.5, rho=math.inf, better=None) for c in subject.contrasts("mae", "snips")]
    ((_, value, _),) = sections.changes(replace(subject, found={("mae", "snips"): unclear}))
    assert value == "–"  # an order that is not there does not reverse


def test_agreement_of_the_estimators_is_said(subject):
    assert "do not agree" in sections.agreement(subject, "mae")
    only = Subject.of(evaluate(world().predictions, log(), metrics=["mae"], estimators=["snips", "ips"]))
    assert "all agree" in sections.agreement(only, "mae")


def test_paradoxes_are_named_and_their_absence_too(subject):
    (calm,) = sections.strata(subject)
    assert any("No paradox" in getattr(b, "text", "") for b in calm.blocks)
    (found,) = sections.strata(Subject.of(small_audit(winner=False)))
    listed = next(b for b in found.blocks if getattr(b, "items", ()))
    assert "1 paradox" in listed.title
    assert "reversal" in listed.items[0]


def test_without_strata_the_section_says_so(audit, bare):
    (section,) = sections.strata(Subject.of(replace(audit, strata=())))
    assert any("Without strata" in getattr(b, "text", "") for b in section.blocks)
    assert list(sections.strata(bare)) == []
