"""An Audit holds together, and writes itself down."""

from __future__ import annotations

import json

import numpy as np
import pytest

import openloop as ol
from tests.examples import small_world

HOSTILE = '<script>alert("x")</script>'
WORLD = small_world(users=60)


@pytest.fixture(scope="module")
def audit():
    models = {"a": WORLD.predictions["a"], HOSTILE: WORLD.predictions["b"]}
    return ol.audit(models, WORLD.observe(1), metrics=["mae", "recall@3"], estimators=["snips", "naive"])


def test_all_of_it_becomes_json(audit, tmp_path):
    text = audit.to_json(tmp_path / "audit.json")
    found = json.loads((tmp_path / "audit.json").read_text())
    assert json.loads(text) == found
    assert found["verdict"]["headline"] == audit.verdict.headline
    assert {c["metric"] for c in found["contrasts"]} == {"mae", "recall@3"}
    assert found["setting"]["rows"] == audit.setting.rows
    kinds = [line["kind"] for line in found["strata"][0]["lines"]]
    assert kinds == sorted(kinds)  # methods before strata
    best = found["probability_of_being_best"][0]
    np.testing.assert_allclose(sum(best["models"].values()), 1)


def test_json_has_no_infinities(audit):
    assert "Infinity" not in audit.to_json()
    assert "NaN" not in audit.to_json()


def test_in_a_notebook_names_are_escaped(audit):
    for page in (audit._repr_html_(), audit.verdict._repr_html_()):
        assert HOSTILE not in page
        assert "&lt;script&gt;" in page
