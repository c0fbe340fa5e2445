"""What may be asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openloop.errors import InputError
from openloop.moments.question import Question


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, float("nan")])
def test_a_level_that_is_none_is_refused(level):
    with pytest.raises(InputError, match=f"level.*{level}"):
        Question(metrics=["mae"], estimators=["naive"], level=level)


def test_names_are_parsed_once_and_each_is_kept_once():
    asked = Question(metrics=["mae", "MAE", "recall@3"], estimators="snips")
    assert [m.name for m in asked.measures] == ["mae", "recall@3"]
    assert [m.name for m in asked.methods] == ["snips"]
    assert asked.kinds == {"prediction", "rank"}
    assert replace(asked, metrics=["mse"]).kinds == {"prediction"}


@pytest.mark.parametrize("options", [{"metrics": []}, {"estimators": []}, {"missing": "zero"}])
def test_what_cannot_be_asked_is_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        Question(**({"metrics": ["mae"], "estimators": ["naive"]} | options))
