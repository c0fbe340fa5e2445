"""The section about wrong weights: a curve for each difference, and where the order turns in words."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from openloop.audits.results import Curve
from openloop.reporting import tilts
from openloop.reporting.blocks import FigureBlock, Fold, Heading, Section
from openloop.reporting.sections import Subject
from tests.audit_cases import comparison
from tests.facts import facts


def words(section: Section) -> str:
    return str(section.blocks)


def titles(section: Section) -> list[str]:
    return [b.title for b in section.blocks if isinstance(b, FigureBlock)]


def tilted(audit, against, at, **where):
    values = (0.3, 0.1, -0.1)
    a, b = audit.models[:2]
    return Curve(
        metric=audit.metric, estimator=audit.estimator, a=a, b=b, against=against, at=at, value=values,
        low=tuple(v - 0.15 for v in values), high=tuple(v + 0.15 for v in values), **where,
    )  # fmt: skip


def test_without_curves_there_is_no_section(audit):
    assert list(tilts.sensitivity(Subject.of(comparison()))) == []
    assert list(tilts.sensitivity(Subject.of(replace(audit, curves=())))) == []


def test_each_difference_has_a_curve_and_the_models_share_one(audit, subject):
    (section,) = tilts.sensitivity(subject)
    assert titles(section) == ["fours − ones, if propensities are wrong", "The models, if propensities are wrong"]
    others = [m for m in audit.models if m != audit.curves[0].a]
    pair = next(c for c in audit.curves if c.b is not None)
    many = tuple(replace(pair, b=others[n % len(others)]) for n in range(9))
    (section,) = tilts.sensitivity(Subject.of(replace(audit, curves=many)))
    assert len(titles(section)) == 6
    assert "3 more differences" in words(section)
    (fold,) = (b for b in section.blocks if isinstance(b, Fold))
    assert len(fold.blocks[0].rows) > 20  # which nobody need scroll past


def test_each_tilt_has_its_heading_and_its_turn_in_words(audit):
    curves = (
        tilted(audit, "rho", (1.0, 1.5, 3.0), turns=2.25, turns_low=1.2),
        tilted(audit, "kappa", (0.0, 0.5, 1.0), turns=0.75, turns_low=0.3),
        tilted(audit, "kappa", (0.0, 0.5, 1.0), turns=math.inf, turns_low=math.inf),
    )
    (section,) = tilts.sensitivity(Subject.of(replace(audit, curves=curves)))
    assert len([b for b in section.blocks if isinstance(b, Heading)]) == 2
    alts = [b.alt for b in section.blocks if isinstance(b, FigureBlock)]
    assert re.search(facts("reverses", "ρ* = 2.25×", "1.2×"), alts[0])
    assert re.search(facts("reverses", "κ* = 75 %", "30 %"), alts[1])
    assert re.search(facts("does not reverse"), alts[2])


def test_a_difference_has_the_better_ranked_model_first(audit):
    first, second = audit.result.ranking(audit.metric, audit.estimator)[:2]
    given = replace(tilted(audit, "rho", (1.0, 1.5, 3.0)), a=second, b=first)
    (section,) = tilts.sensitivity(Subject.of(replace(audit, curves=(given,))))
    (figure,) = (b for b in section.blocks if isinstance(b, FigureBlock))
    assert figure.title.startswith(f"{first} − {second}")
    assert "−0.3 at the start" in figure.alt
    low, high = (cell.value for cell in figure.tables[0].rows[0][3:])
    assert (low, high) == (-given.high[0], -given.low[0])


def test_weights_without_a_scale_are_said_to_be_off_themselves(audit):
    family = audit.metric, audit.estimator
    ratio = {family: tuple(replace(c, gamma_form="ratio") for c in audit.contrasts[family])}
    (section,) = tilts.sensitivity(Subject.of(replace(audit, contrasts=audit.contrasts | ratio)))
    assert "every weight may be off" in words(section)
    (section,) = tilts.sensitivity(Subject.of(audit))
    assert "odds" in words(section)
