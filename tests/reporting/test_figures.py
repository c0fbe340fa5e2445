"""Figures: valid charts that hold the numbers of the check, and files written whole or not at all."""

from __future__ import annotations

import itertools
import json
import re
import struct
from functools import cache

import numpy as np
import pytest

from openloop.core.covariates import Covariates
from openloop.core.weights import WeightSummary
from openloop.data.simulate import World
from openloop.errors import InputError
from openloop.propensity.checks.checking import Check, check
from openloop.propensity.known import Known
from openloop.propensity.uniform import Uniform
from openloop.reporting.figures import (
    calibration_curve,
    check_figures,
    love_plot,
    margins_plot,
    overlap_plot,
    save,
)
from openloop.reporting.weight_figures import carried_by, propensity_bins
from tests.facts import facts

CHARTS = [calibration_curve, love_plot, overlap_plot, margins_plot, check_figures]

draw = np.random.default_rng(0)
X = draw.normal(size=(60, 2))
P = 1 / (1 + np.exp(1.5 - 0.8 * X[:, :1] - draw.normal(0, 0.6, 40)))
LOG = World(ratings=np.ones(P.shape), propensities=P).observe(1)
USERS = Covariates(values=X, names=("age", "income"), ids=LOG.users)


@cache
def known() -> Check:
    return check(Known(P).fit(LOG), LOG, (USERS, None))


@cache
def column() -> Check:
    """Neither held-out cells nor a grid."""
    return check(Known().fit(LOG), LOG)


def uniform() -> Check:
    return check(Uniform().fit(LOG), LOG)


def data(chart) -> list[dict]:
    """Every row of data in a chart, wherever it stands."""

    def walk(node):
        if isinstance(node, dict):
            found = node.get("data", {}).get("values", []) if isinstance(node.get("data"), dict) else []
            return found + [row for value in node.values() for row in walk(value)]
        return [row for value in node for row in walk(value)] if isinstance(node, list) else []

    return walk(chart.to_dict())


def marks(chart) -> list[dict]:
    return [layer["mark"] for layer in chart.to_dict()["layer"]]


@pytest.mark.parametrize("draw_chart", CHARTS)
@pytest.mark.parametrize("make", [known, column, uniform])
def test_every_chart_is_valid_and_has_a_title(draw_chart, make):
    chart = draw_chart(make())
    content = chart.to_dict(validate=True)
    assert "vega-lite" in content["$schema"]
    assert '"title"' in json.dumps(content)


def test_the_calibration_curve_holds_the_bins_and_a_diagonal_on_log_axes():
    chart = calibration_curve(known())
    points = [row for row in data(chart) if "predicted" in row]
    curve = known().calibration.curve
    assert {row["predicted"] for row in points} == {b.predicted for b in curve}
    assert {row["share"] for row in points} == {b.observed for b in curve}
    ends = [row["at"] for row in data(chart) if set(row) == {"at"}]
    assert ends[0] < min(b.predicted for b in curve)
    assert ends[1] > max(b.predicted for b in curve)
    layers = chart.to_dict()["layer"]
    assert {layer["encoding"][a]["scale"]["type"] for layer in layers[2:] for a in "xy"} == {"log"}
    assert layers[0]["mark"]["strokeDash"]


def test_the_love_plot_holds_each_covariate_twice_and_lines_at_a_tenth():
    chart = love_plot(known())
    points = {(row["covariate"], row["rows"]): row["difference"] for row in data(chart) if "rows" in row}
    assert len(points) == 2 * 4
    for d in known().balance:
        assert points[d.name, "rows as they are"] == d.before
        assert points[d.name, "rows weighted by 1/p"] == d.after
    assert sorted({row["at"] for row in data(chart) if set(row) == {"at"}}) == [-0.1, 0, 0.1]
    assert [mark.get("strokeDash") for mark in marks(chart)][:2] == [None, [5, 4]]


# Files


def test_html_needs_no_network(tmp_path):
    path = tmp_path / "check.html"
    save(check_figures(known()), path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "Calibration on held-out cells" in text
    head = re.findall(r"<(?:script|link)\b[^>]*>", text)
    assert head
    assert not [tag for tag in head if "http" in tag or "src=" in tag]
    assert "cdn." not in text


def test_svg_png_pdf_and_json_are_what_they_say(tmp_path):
    for kind in ("svg", "png", "pdf", "json"):
        save(love_plot(known()), tmp_path / f"love.{kind}")
    assert (tmp_path / "love.svg").read_text(encoding="utf-8").startswith("<svg")
    image = (tmp_path / "love.png").read_bytes()
    assert image.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", image[16:24])
    assert 600 < width < 2000
    assert 400 < height < 2000
    assert json.loads((tmp_path / "love.json").read_text(encoding="utf-8")) == love_plot(known()).to_dict()
    assert (tmp_path / "love.pdf").read_bytes().startswith(b"%PDF")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["love.json", "love.pdf", "love.png", "love.svg"]


@pytest.mark.parametrize(("name", "hint"), [("check.pgn", "'.png'"), ("check", "'.html'")])
def test_an_unknown_extension_is_refused_before_anything_is_written(tmp_path, name, hint):
    with pytest.raises(InputError, match=facts(name, "extension", hint)):
        save(love_plot(known()), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind_when_writing_fails(tmp_path):
    class Broken:
        def save(self, path, **options):
            with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123, half a file
                file.write("half")
            raise RuntimeError("no more ink")

    old = tmp_path / "check.svg"
    old.write_text("what was there", encoding="utf-8")
    with pytest.raises(RuntimeError, match="no more ink"):
        save(Broken(), old)
    assert [p.name for p in tmp_path.iterdir()] == ["check.svg"]
    assert old.read_text(encoding="utf-8") == "what was there"


@pytest.mark.parametrize("spread", [0.0, 0.5, 4.0, 12.0])
def test_the_bars_of_a_histogram_hold_all_rows_and_all_weight(spread):
    w = np.exp(spread * np.random.default_rng(0).random(500))
    bins = propensity_bins(WeightSummary.of(w))
    assert len(bins) <= 41
    assert sum(b["share of rows"] for b in bins) == pytest.approx(1)
    assert sum(b["share of weight"] for b in bins) == pytest.approx(1)
    assert bins[-1]["from"] <= 1 / w.max()
    assert bins[0]["to"] >= 1 / w.min()
    assert all(a["from"] == b["to"] for a, b in itertools.pairwise(bins))


def test_concentration_by_hand():
    # 90 rows of weight 1 and 10 of weight 9 (each right to the histogram's 4.4 %): a tenth carries half
    summary = WeightSummary.of(np.repeat([1.0, 9.0], [90, 10]))
    assert carried_by(summary, 0.1) == pytest.approx(0.5, abs=0.02)
    assert carried_by(summary, 0.05) == pytest.approx(0.25, abs=0.01)
    assert carried_by(summary, 1.0) == pytest.approx(1.0)
