"""Scaling curves: inputs that their sides can read, points that are kept, and figures between the marks of the page."""

from __future__ import annotations

import json
import re

import pytest

from bench import logistic, moments, ranks
from bench.harness import Measured, Side
from bench.scaling import curves, inputs, page
from bench.scaling.cases import CASES
from bench.scaling.curves import Curve, ScalingCase
from tests.facts import facts
from tests.test_bench import value_of

pytestmark = pytest.mark.slow

TINY = {"rows": 900, "users": 30, "items": 40, "factors": 2, "covariates": 2, "wanted": 3, "models": 2}


def test_inputs_of_curves_are_what_their_sides_read(tmp_path):
    wants = {
        "rows": ("rows", "users", "items"), "factors": ("wanted", "users", "items", "factors"),
        "cells": ("rows", "users", "items", "covariates"), "counts": ("rows", "users", "items"),
        "log": ("rows", "users", "items", "factors", "models"),
    }  # fmt: skip
    for name, sizes in wants.items():
        inputs.make(tmp_path, json.dumps({"input": name, **{size: TINY[size] for size in sizes}, "threads": 1}))
    assert value_of(moments.ours(tmp_path)) == pytest.approx(value_of(moments.peer(tmp_path)), rel=1e-12)
    assert len(ranks.load(tmp_path)[2]) == TINY["users"] + 1
    assert logistic.load(tmp_path)[0].any(axis=0).all()
    assert value_of(inputs.audited(tmp_path, "2", "2")) in {"verdict", "conditional", "none"}


def small_case():
    """Two curves, and a peer at the first points only."""

    def both(size):
        names = ["openloop", *(["peer"] if size["rows"] == 10 else [])]
        return {name: Side(call=f"nowhere:{name}") for name in names}

    lines = (Curve(axis="rows", values=(10, 100)), Curve(axis="threads", values=(1, 2), at={"rows": 50}))
    return ScalingCase(
        name="small", title="Small", input="rows", base={"rows": 10}, curves=lines, sides=both, words="It grows."
    )


def test_curves_go_on_where_they_were_and_are_put_between_the_marks(tmp_path, monkeypatch):
    asked = []

    def raced(sides, folder, rounds):
        asked.append(rounds)
        return {name: Measured(seconds=(4.0 / len(asked),), cpu=(2.0 * len(asked),), peak=7, value=0) for name in sides}

    monkeypatch.setattr(curves, "race", raced)
    monkeypatch.setattr(curves, "make_input", lambda *_: None)
    case, said = small_case(), []
    monkeypatch.setattr(curves, "free_cores", lambda _: 1.2)
    curves.measured(case, tmp_path, say=said.append)
    assert re.search(facts("left out", "1.2 of 2"), said.pop())
    assert len(page.records(case, curves.read(case, tmp_path))) == 1
    assert curves.complete(case, curves.read(case, tmp_path))
    monkeypatch.setattr(curves, "free_cores", lambda _: 1.9)
    said.pop()
    kept = curves.measured(case, tmp_path, say=said.append)
    assert asked == [curves.ROUNDS, curves.ROUNDS, curves.CLOCK_ROUNDS, curves.CLOCK_ROUNDS]
    assert len(said) == 4
    assert curves.measured(case, tmp_path, say=said.append) == kept  # nothing is measured again
    assert len(said) == 4
    (_, by_rows), (_, by_threads) = page.records(case, kept)
    assert [(row["x"], row["side"], row["time"]) for row in by_rows] == [
        (10, "openloop", 1.0), (10, "peer", 1.0), (100, "openloop", 2.0)
    ]  # fmt: skip
    assert page.told(case.curves[0], by_rows) == "rows: time ~ n^0.30"
    assert page.told(case.curves[1], by_threads) == "threads: 1.33 times as fast with 2"
    path = tmp_path / "page.md"
    path.write_text("before\n{}\nold\n{}\nafter\n".format(*page.MARKS), encoding="utf-8")
    page.written([case], {"small": kept}, path)
    text = path.read_text(encoding="utf-8")
    assert "old" not in text
    assert "It grows." in text
    assert "![small](performance/scaling-small.svg)" in text
    assert (tmp_path / "performance" / "scaling-small.svg").read_text(encoding="utf-8").startswith("<svg")


def test_every_case_says_what_grows_and_its_curves_ascend():
    for case in CASES.values():
        assert case.words
        for curve in case.curves:
            assert list(curve.values) == sorted(curve.values)
