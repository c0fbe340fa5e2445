"""An estimate that a file kept has the numbers of the one that was written, and refuses what needs its users."""

from __future__ import annotations

import math

import numpy as np
import pytest

import openloop as ol
from openloop.audits.restoring import KeptEstimate
from openloop.core.estimate import Estimate
from openloop.errors import InputError, UndefinedError
from tests.audit_cases import comparison, log, world
from tests.facts import facts


def kept(e: Estimate, level: float = 0.95) -> KeptEstimate:
    return KeptEstimate(
        value=e.value, method=e.method, metric=e.metric, estimand=e.estimand, diagnostics=e.diagnostics, units=e.units,
        p_taken=e.p_taken, root=e.root, kept_stderr=e.stderr, kept_df=e.df, kept_level=level,
        kept_interval=e.limits(level),
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole():
    return comparison()["ones", "mae", "snips"]


@pytest.mark.parametrize("written", [0.95, 0.8])
@pytest.mark.parametrize("metric", ["mae", "rmse"])
def test_its_numbers_are_those_that_were_written_at_any_level(metric, written):
    models = dict(list(world().predictions.items())[:1])
    result = ol.evaluate(models, log(), metrics=[metric], estimators=["snips"])
    (e,) = result.estimates.values()
    one = kept(e, written)
    assert (one.value, one.stderr, one.df, one.limits(written)) == (e.value, e.stderr, e.df, e.limits(written))
    for level in (0.5, 0.8, 0.95, 0.999):
        np.testing.assert_allclose(one.interval(level), e.interval(level), rtol=1e-12)
    np.testing.assert_allclose(one.pvalue, e.pvalue, rtol=1e-12)
    assert str(one) == str(e)
    assert one._repr_html_() == e._repr_html_()


def test_what_has_no_interval_has_none(whole):
    one = KeptEstimate(
        value=1.0, method="naive", metric="mae", kept_stderr=math.nan, kept_df=math.nan, kept_level=0.95,
        kept_interval=whole.limits(0.95),
    )  # fmt: skip
    assert math.isnan(one.limits(0.9).low)
    with pytest.raises(UndefinedError):
        one.interval(0.9)


@pytest.mark.parametrize(
    "use",
    [
        lambda e, o: e - o, lambda e, o: e + o, lambda e, o: o - e, lambda e, _: 2 * e, lambda e, _: -e,
        lambda e, o: e.lift(o), lambda e, o: o.lift(e), lambda e, _: e.linear(), lambda e, _: e.without(3),
        lambda e, _: e.cell_stderr, lambda e, _: e.interval(over="cells"),
    ],
)  # fmt: skip
def test_what_needs_the_users_parts_is_refused(whole, use):
    with pytest.raises(UndefinedError, match=facts("snips of mae", "user", "audit again")):
        use(kept(whole), whole)


def test_another_level_must_be_one(whole):
    with pytest.raises(InputError, match=facts("level", 2)):
        kept(whole).interval(2)
