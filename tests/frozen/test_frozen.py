"""The numbers are those that were frozen: every case in memory, some on each engine, few on Spark.

`python -m tests.frozen --spark` compares all of them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.frozen import comparing
from tests.frozen.calls import engine, on_spark
from tests.frozen.cases import GONE, SUMS, Case, cases

# Minutes of processor time would buy little more.
SLOW = ("check/boosted", "check/low-rank", "propensity/boosted")
ELSEWHERE = {
    "polars": (
        "evaluate/full-excluded", "evaluate/missing-worst", "evaluate/own", "audit/full-fitted", "audit/sample",
        "shown/everything",
    ),
    "lazy": (
        "evaluate/full-part", "evaluate/counts-excluded", "audit/positives",
        "propensity/logistic-features",
    ),
    "pandas": ("evaluate/errors-text", "evaluate/level-99", "shown/reordered", "propensity/naive-bayes"),
    "arrow": (
        "evaluate/errors-columns", "evaluate/lists-text", "audit/errors-part", "shown/theta", "propensity/balanced",
    ),
    "duckdb": (
        "evaluate/errors-popularity", "evaluate/full-threshold", "audit/errors-text", "shown/rows",
        "propensity/logistic",
    ),
    "files": (
        "evaluate/errors-population", "evaluate/lists-excluded", "audit/counts", "shown/propensity",
        "propensity/popularity",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def frozen():
    return comparing.read()


@pytest.mark.parametrize("name", [name for name in cases() if name not in SLOW])
def test_numbers_in_memory_are_those_that_were_frozen(name, frozen):
    agrees(name, engine("arrays"), frozen)


@pytest.mark.parametrize(("at", "name"), [(at, name) for at, names in ELSEWHERE.items() for name in names])
def test_numbers_of_engines_are_those_that_were_frozen(at, name, frozen):
    agrees(name, engine(at), frozen)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in cases().items() if "spark" in case.engines])
def test_numbers_on_spark_are_those_that_were_frozen(name, frozen, spark):
    agrees(name, on_spark(spark), frozen)


def agrees(name, at, frozen):
    case = cases()[name]
    wrong = comparing.differences(case, at.name, comparing.answer(case, at), frozen[name])
    assert list(wrong) == []


def test_every_case_is_frozen_on_its_engines_and_no_other(frozen):
    engines = {name: set(found) for name, found in frozen.items() if name not in GONE}
    assert {name: set(case.engines) for name, case in cases().items()} == engines


CASE = Case(name="made up", ask=lambda _: {}, rtol=SUMS)
FROZEN = {
    "arrays": {"a": [1.0, None], "b holm": 2.0},
    "lazy": {"a": [1.5, 1.0], "without": ["b holm"]},
    "spark": comparing.REFUSAL,
}


@pytest.mark.parametrize(
    ("at", "numbers", "wrong"),
    [
        ("arrays", {"a": [1.0 + 1e-10, 7.0], "b holm": 2.0001}, 0),  # what was not known may be known
        ("arrays", {"a": [1.0 + 1e-8, None], "b holm": 2.01}, 2),
        ("arrays", {"a": [1.0], "b holm": 2.0}, 1),
        ("arrays", {"a": [1.0, None], "new": 3.0}, 1),  # b is missing
        ("arrays", comparing.REFUSAL, 1),
        ("lazy", {"a": [1.5, 1.0]}, 0),
        ("lazy", {"a": [1.0, 3.0], "b holm": 2.0}, 0),  # now as in memory
        ("lazy", {"a": [1.2, 1.0], "b holm": 3.0}, 2),
        ("spark", comparing.REFUSAL, 0),
        ("spark", {"a": [1.0, 1.0]}, 0),
        ("spark", {"a": [2.0, 1.0]}, 1),
    ],
)  # fmt: skip
def test_what_differs_is_told(at, numbers, wrong):
    assert len(list(comparing.differences(CASE, at, numbers, FROZEN))) == wrong


def test_what_repeats_is_kept_once():
    found = {"arrays": {"a": 1.0, "b": 2.0}, "polars": {"a": 1.0 + 1e-12, "b": 2.0}, "lazy": {"a": 1.5}}
    short = {"arrays": found["arrays"], "polars": {}, "lazy": {"a": 1.5, "without": ["b"]}}
    refused = {"spark": comparing.REFUSAL}
    case = replace(CASE, engines=(*found, "spark"))
    assert comparing.updated({}, found | refused, case) == short | refused
