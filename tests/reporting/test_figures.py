"""Figures: valid charts that hold the numbers of the check, and files written whole or not at all."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from openloop.core.covariates import Covariates
from openloop.data.simulate import World
from openloop.errors import InputError
from openloop.propensity.checks.checking import Check, check
from openloop.propensity.checks.held_out import Bin
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


def test_a_bin_without_observed_cells_has_a_place_on_the_log_scale():
    none = Bin(predicted=1e-4, observed=0.0, stderr=0.0, weight=1000.0, n=1000)
    curve = (none, *known().calibration.curve)
    chart = calibration_curve(replace(known(), calibration=replace(known().calibration, curve=curve)))
    row = next(row for row in data(chart) if row.get("mark") == "none observed")
    assert row["observed"] == row["low"] > 0
    assert row["high"] == 3 / 1000
    assert row["share"] == 0.0


def test_the_love_plot_holds_each_covariate_twice_and_lines_at_a_tenth():
    chart = love_plot(known())
    points = {(row["covariate"], row["rows"]): row["difference"] for row in data(chart) if "rows" in row}
    assert len(points) == 2 * 4
    for d in known().balance:
        assert points[d.name, "rows as they are"] == d.before
        assert points[d.name, "rows weighted by 1/p"] == d.after
    assert sorted({row["at"] for row in data(chart) if set(row) == {"at"}}) == [-0.1, 0, 0.1]
    assert [mark.get("strokeDash") for mark in marks(chart)][:2] == [None, [5, 4]]


def test_the_furthest_covariates_come_first_and_too_many_are_cut():
    many = Covariates(values=draw.normal(size=(60, 50)), names=tuple(f"x{c}" for c in range(50)), ids=LOG.users)
    found = check(Known(P).fit(LOG), LOG, (many, None), folds=None)
    chart = love_plot(found).to_dict()
    order = chart["layer"][-1]["encoding"]["y"]["scale"]["domain"]
    reach = {d.name: max(abs(d.before), abs(d.after)) for d in found.balance}
    assert len(order) == 30
    assert all(reach[a] >= reach[b] for a, b in pairwise(order))
    assert any(re.search(facts("22 covariates", "left out"), line) for line in chart["title"]["subtitle"])


def test_a_complete_log_has_no_balance_to_draw():
    log = World(ratings=np.ones((6, 5)), propensities=np.full((6, 5), 0.5)).everything()
    chart = love_plot(check(Known(np.full((6, 5), 1.0)).fit(log), log, folds=None))
    assert re.search(facts("every covariate", "the same"), " ".join(row["text"] for row in data(chart)))


def test_the_overlap_plot_holds_both_histograms_on_a_log_axis():
    chart = overlap_plot(known())
    for name, shares in (("rows", known().overlap.observed), ("all cells", known().overlap.grid)):
        assert [row["share"] for row in data(chart) if row["of"] == name] == list(shares)
    assert chart.to_dict()["encoding"]["x"]["scale"]["type"] == "log"
    edges = [(row["from"], row["to"]) for row in data(chart) if row["of"] == "rows"]
    assert edges == list(pairwise(known().overlap.edges))


def test_rows_alone_are_drawn_where_the_grid_is_unknown():
    assert {row["of"] for row in data(overlap_plot(column()))} == {"rows"}


def test_the_margins_plot_holds_users_and_items_with_a_diagonal_each():
    panels = margins_plot(known()).to_dict()["hconcat"]
    assert len(panels) == 2
    for panel, margin in zip(panels, known().margins, strict=True):
        diagonal, points = (layer["data"]["values"] for layer in panel["layer"])
        assert [(row["expected"], row["count"]) for row in points] == [(p.expected, p.count) for p in margin.points]
        assert diagonal[1]["at"] >= max(row["count"] for row in points)


@pytest.mark.parametrize("draw_chart", [calibration_curve, margins_plot])
def test_what_was_not_computed_says_why(draw_chart):
    text = " ".join(row["text"] for row in data(draw_chart(column())))
    assert re.search(facts("Not computed", "Known", "observed cells"), text)


def test_all_figures_stand_in_one_chart():
    content = json.dumps(check_figures(known()).to_dict())
    for title in ("Calibration on held-out cells", "Overlap", "Balance of covariates", "Counts of users"):
        assert title in content
    assert f"Known on {len(LOG):,} rows" in content


def test_the_colours_are_told_apart_in_grey_too():
    content = json.dumps([draw_chart(known()).to_dict() for draw_chart in CHARTS])
    colours = {tuple(int(c[n : n + 2], 16) for n in (1, 3, 5)) for c in re.findall(r"#(?:0072B2|E69F00)", content)}
    light, dark = sorted((0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in colours), reverse=True)
    assert light > 1.5 * dark


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


def test_the_extension_may_be_in_capitals(tmp_path):
    save(love_plot(known()), tmp_path / "LOVE.SVG")
    assert (tmp_path / "LOVE.SVG").read_text(encoding="utf-8").startswith("<svg")


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


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match=facts("folder", f"'{tmp_path / 'nowhere'}'")):
        save(love_plot(known()), tmp_path / "nowhere" / "check.svg")
