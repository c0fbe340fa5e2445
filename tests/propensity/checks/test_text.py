"""A check as text: what it must contain, and that it fits on a screen."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from openloop.core.covariates import Covariates
from openloop.core.feedback import Vocabulary
from openloop.data.simulate import World
from openloop.propensity.calibrated import Calibrated
from openloop.propensity.checks.checking import check
from openloop.propensity.checks.text import number
from openloop.propensity.known import Known
from tests.facts import facts

P = np.random.default_rng(0).uniform(0.02, 0.5, (60, 40))
LOG = World(ratings=np.ones(P.shape), propensities=P).observe(1)


def test_the_text_has_every_part_and_its_numbers():
    found = check(Known(P).fit(LOG), LOG)
    text = str(found)
    title, *lines = text.splitlines()
    assert re.search(facts("Known", f"{len(LOG):,} rows", "60 users", "40 items"), title)
    furthest = found.margins[0].furthest
    for part in (
        facts("calibration", "5 folds"),
        facts("calibration error", number(found.calibration.error)),
        facts("log-likelihood", f"{found.calibration.log_likelihood:.5f}"),
        facts("sums", "counts"),
        facts("user", furthest.id, number(furthest.expected)),
        facts("log count of item"),
        facts(number(found.weights.effective_size), f"{len(LOG):,} rows"),
        facts("mass", f"{found.weights.mass:.3f}"),
        facts("overlap", f"{found.overlap.coefficient:.1%}"),
    ):
        assert any(re.search(part, line) for line in lines), part
    own = {d.name: d.own for d in found.balance}
    assert f"log count of user {own['log count of user']:+.3f}" in " ".join(text.split())
    top = found.heaviest[0]
    row = [str(top.user), str(top.item), number(top.p), number(top.weight), f"{top.share:.2%}"]
    assert row in [line.split() for line in text.splitlines()]


def test_what_was_not_computed_says_why():
    text = " ".join(str(check(Known().fit(LOG), LOG)).split())
    assert text.count("not computed: Known") == 3


def test_notes_and_flags_stand_at_the_end():
    found = check(Calibrated(Known(P), method=None, floor=0.3).fit(LOG), LOG, folds=None)
    tail = [*(f"note: {note}" for note in found.notes), *(f"mind: {flag}" for flag in found.flags)]
    assert len(tail) > 1
    assert " ".join(str(found).split()).endswith(" ".join(tail))


def test_the_share_that_a_floor_raises_is_among_the_weights():
    found = check(Calibrated(Known(P), method=None, floor=0.3).fit(LOG), LOG, folds=None)
    raised = facts("quantiles", "floor", f"{found.weights.clipped_share:.1%}")
    assert any(re.search(raised, line) for line in str(found).splitlines())


def test_a_part_without_share_says_that_there_is_no_mass():
    part = LOG.take(np.arange(len(LOG)) % 2 == 0, share=None)
    lines = str(check(Known(P).fit(part), part)).splitlines()
    assert any(re.search(facts("mass", "no share"), line) for line in lines)


def test_it_fits_on_a_screen_whatever_the_names_are():
    long = [f"a user whose identifier is of quite some length, number {n:03}" for n in range(60)]
    log = replace(LOG, users=Vocabulary(np.array(long, object)), items=Vocabulary(np.array(long[:40], object)))
    names = tuple(f"a covariate with a name that nobody wants to read in full, {c}" for c in range(20))
    values = np.random.default_rng(0).normal(size=(60, 20))
    values[:, 3:6] = 1.0
    users = Covariates(values=values, names=names, ids=log.users)
    text = str(check(Known(P**8).fit(log), log, (users, None)))
    assert max(map(len, text.splitlines())) < 100
    assert "4 with smaller differences" in text  # 17 that vary and two counts, 15 shown
    assert "constant" in text


def test_columns_are_aligned():
    lines = str(check(Known(P).fit(LOG), LOG)).splitlines()
    top = lines.index(next(line for line in lines if line.split() == ["predicted", "observed", "±", "error", "cells"]))
    table = lines[top : top + 11]
    assert len({len(line) for line in table}) == 1


@pytest.mark.parametrize(
    ("x", "text"), [(1234567.8, "1,234,568"), (999.4, "999"), (0.012345, "0.0123"), (0.0, "0"), (1e-7, "1e-07")]
)
def test_numbers_have_three_digits(x, text):
    assert number(x) == text


def test_a_notebook_shows_it_too():
    shown = check(Known(P).fit(LOG), LOG, folds=None)._repr_html_()
    assert shown.startswith("<pre")
    assert ">Known" in shown
