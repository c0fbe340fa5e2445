"""What is asked of impressions is checked once."""

from __future__ import annotations

import pytest

from openloop.errors import InputError, NameFormatError
from openloop.impressions.question import ShownQuestion
from tests.facts import facts


def test_defaults_and_names():
    asked = ShownQuestion()
    assert asked.measures == ("clicks",)
    assert [method.name for method in asked.methods] == ["snpbm", "sniips"]
    again = ShownQuestion(metrics=["CTR", "ctr"], estimators="PBM", candidates="shown")
    assert (again.measures, [m.name for m in again.methods], again.reorders) == (("ctr",), ["pbm"], True)


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"candidates": "none"}, InputError, ("candidates", "'none'")),
        ({"metrics": []}, InputError, ("metrics",)),
        ({"estimators": []}, InputError, ("estimators",)),
        ({"estimators": ["snips"]}, NameFormatError, ("'snips'",)),
        ({"metrics": ["mae"]}, NameFormatError, ("'mae'",)),
        ({"level": 95}, InputError, ("level", 95)),
    ],
)
def test_what_cannot_be_asked(options, error, told):
    with pytest.raises(error, match=facts(*told)):
        ShownQuestion(**options)
