"""A Comparison finds, pairs, ranks and writes down its estimates."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.core.comparison import Comparison
from openloop.errors import InputError, UndefinedError
from tests.examples import same, small_world
from tests.facts import facts

WORLD = small_world()


@pytest.fixture(scope="module")
def result():
    models = {"a": WORLD.predictions["a"], "<script>alert(1)</script>": WORLD.predictions["b"]}
    return ol.evaluate(models, WORLD.observe(1), metrics=["mae", "adg"], estimators=["naive", "ips", "snips"])


SCRIPT = "<script>alert(1)</script>"


def test_estimates_are_found_by_model_metric_and_estimator(result):
    assert result["a", "mae", "snips"].metric == "mae"
    assert result.models == ("a", SCRIPT)
    assert result.metrics == ("mae", "adg")
    assert result.estimators == ("naive", "ips", "snips")


def test_a_skipped_estimate_gives_its_reason(result):
    with pytest.raises(UndefinedError, match=facts("ips", "adg", "relevant items")):
        _ = result["a", "adg", "ips"]


@pytest.mark.parametrize(
    ("key", "wrong", "neighbour"),
    [(("aa", "mae", "ips"), "aa", "a"), (("a", "mea", "ips"), "mea", "mae"), (("a", "mae", "isp"), "isp", "ips")],
)
def test_a_misspelt_key_gets_its_neighbour(result, key, wrong, neighbour):
    with pytest.raises(InputError, match=facts(repr(wrong), repr(neighbour))):
        _ = result[key]


def test_a_difference_is_paired_and_has_its_own_variance_over_cells(result):
    found = result.difference("a", SCRIPT, metric="mae", estimator="snips")
    a, b = result["a", "mae", "snips"], result[SCRIPT, "mae", "snips"]
    same(found.value, a.value - b.value)
    same(found.influence, a.influence - b.influence)
    assert found.cell_stderr > 0
    turned = result.difference(SCRIPT, "a", metric="mae", estimator="snips")
    assert turned.value == -found.value
    assert turned.cell_variance == found.cell_variance


def test_the_ranking_knows_which_way_is_better(result):
    maes = {m: result[m, "mae", "naive"].value for m in result.models}
    adgs = {m: result[m, "adg", "naive"].value for m in result.models}
    assert result.ranking("mae", "naive") == sorted(maes, key=maes.get)
    assert result.ranking("adg", "naive") == sorted(adgs, key=adgs.get, reverse=True)


def test_estimates_over_different_users_are_no_comparison(result):
    first = next(iter(result.estimates.values()))
    short = replace(first, influence=first.influence[:-1])
    with pytest.raises(InputError, match=facts("users", 29, 30)):
        Comparison(estimates={("a", "mae", "x"): first, ("b", "mae", "x"): short})


# -- as a table, as JSON, as text, as HTML -------------------------------------------------------------------


def test_json_holds_everything_and_no_nan(result, tmp_path):
    path = tmp_path / "result.json"
    text = result.to_json(path)
    assert list(tmp_path.iterdir()) == [path]

    def refuse(name):
        raise AssertionError(name)

    content = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert content == json.loads(text)
    assert [e["value"] for e in content["estimates"]] == [e.value for e in result.estimates.values()]
    assert {(s["metric"], s["estimator"]) for s in content["skipped"]} == {("adg", "ips")}
    assert content["notes"] == list(result.notes)


def test_json_writes_what_is_not_finite_as_null(result):
    found = result["a", "mae", "snips"]
    odd = replace(found, value=math.inf, influence=np.zeros(1), deviations=np.full(1, math.nan))
    content = json.loads(Comparison(estimates={("a", "mae", "snips"): odd}).to_json())
    assert content["estimates"][0]["value"] is None
    assert content["estimates"][0]["stderr"] is None


def test_html_escapes_names(result):
    shown = result._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    tables = len(result.metrics) + bool(result.lists)
    assert shown.count("<table>") == tables
    assert shown.count("<tr>") == tables * (1 + len(result.models))
    assert shown.count("<td") == len(result.estimates) + len(result.lists)


def test_a_printed_comparison_shows_what_a_terminal_would_obey(result):
    first, *_ = result.models
    found = {(f"{m}\x1b[2J\n", *rest): e for (m, *rest), e in result.estimates.items()}
    text = str(replace(result, estimates=found, lists={}, notes=("a\u202eb",)))
    assert f"{first}\\x1b[2J\\n" in text
    assert r"note: a\u202eb" in text
    assert not set(text) & set("\x1b\u202e")
