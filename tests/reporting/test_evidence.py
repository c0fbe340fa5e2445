"""Sections about what estimates rest on: there when the audit has it, and saying why when it has not."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from openloop.audits.rankings import Friedman
from openloop.data.simulate import movie_lovers
from openloop.propensity.balanced import Balanced
from openloop.propensity.checks.checking import check
from openloop.propensity.known import Known
from openloop.propensity.uniform import Uniform
from openloop.reporting import evidence
from openloop.reporting.blocks import Code, FigureBlock, Section
from openloop.reporting.sections import Subject
from tests.audit_cases import comparison, log
from tests.facts import facts
from tests.verdicts import comparison as means

OPTIONAL = (evidence.weights, evidence.open_loop, evidence.data)


def words(section: Section) -> str:
    return str(section.blocks)


def titles(section: Section) -> list[str]:
    return [b.title for b in section.blocks if isinstance(b, FigureBlock)]


def test_a_bare_comparison_has_none_of_them_but_notes_and_definitions():
    of = Subject.of(comparison())
    assert [list(part(of)) for part in (*OPTIONAL, evidence.friedman)] == [[]] * 4
    assert "ips of recall@10" in words(evidence.left_out(of))
    assert "mean absolute difference" in words(evidence.computed(of))


def test_an_audit_has_all_figures_of_its_weights_and_check(subject):
    (section,) = evidence.weights(subject)
    assert titles(section) == [
        "Chances of the scored rows", "Concentration of the weights", "Calibration on held-out cells",
        "Balance of covariates", "Overlap", "Counts of users", "Counts of items",
    ]  # fmt: skip
    assert all(figure.alt for figure in section.blocks if isinstance(figure, FigureBlock))


def test_what_was_not_checked_is_said(audit):
    (section,) = evidence.weights(Subject.of(replace(audit, check=None, weights=None)))
    assert re.search(facts("no weights", "No check"), words(section))
    (section,) = evidence.weights(Subject.of(replace(audit, check=check(Known().fit(log()), log()))))
    assert re.search(facts("Calibration", "not computed", "Known"), words(section))
    assert ".." not in words(section)
    found = replace(audit.check, margins=(), not_computed={"margins": "too many cells"})
    (section,) = evidence.weights(Subject.of(replace(audit, check=found)))
    assert re.search(facts("Margins", "not computed", "too many cells"), words(section))


def test_the_open_loop_is_held_against_each_estimator(audit, subject):
    (section,) = evidence.open_loop(subject)
    assert re.search(facts("nearest", "snips"), words(section))
    assert list(evidence.open_loop(Subject.of(replace(audit, open_loop=None)))) == []


def test_many_models_have_a_summary_of_ranks(audit, subject):
    assert list(evidence.friedman(subject)) == []  # five models
    ranks = {f"m{n}": 1.0 + n for n in range(8)}
    found = Friedman(statistic=50.0, pvalue=0.01, users=80, ranks=ranks, critical_difference=1.1, level=0.95)
    (section,) = evidence.friedman(Subject.of(replace(audit, friedman=found)))
    assert re.search(facts("ranks", 1.1), words(section))


def test_the_command_and_the_versions_are_there(audit, subject):
    section = evidence.computed(subject)
    (code,) = (b for b in section.blocks if isinstance(b, Code))
    assert code.text == audit.setting.command
    assert "numpy 2.3.0" in words(section)


def test_notes_stand_once_and_their_absence_is_said(subject):
    assert words(evidence.left_out(subject)).count("threshold 4 was assumed") == 1
    users = np.random.default_rng(0).normal(size=(2, 400))
    bare = means({"a": users[0], "b": users[1]})  # no note, nothing skipped, and nothing to mind
    assert "Nothing" in words(evidence.left_out(Subject.of(bare)))


def test_what_was_balanced_is_shown_beside_the_check(audit):
    rated = movie_lovers(users=40, items=15)
    seen = rated.observe(0)
    model = Balanced(Uniform()).fit(seen, uniform=rated.ratings.ravel()[::3])
    (section,) = evidence.weights(Subject.of(replace(audit, check=check(model, seen, folds=None))))
    assert {"What was balanced", "Weights before and after"} <= set(titles(section))
    assert "rating 5" in words(section)
