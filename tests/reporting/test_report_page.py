"""The report in a real browser: drawn without errors or requests, sortable, safe, and readable on any screen."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import openloop as ol
from openloop.audits.results import Audit
from openloop.reporting.figures import check_figures, save
from openloop.reporting.html import report
from openloop.studies.kit.page import html
from openloop.studies.kit.results import Result
from openloop.studies.kit.running import Reproduction
from tests.audit_cases import HOSTILE, METRICS, SCRIPTS, checked, comparison, small_audit
from tests.browser import Page, page
from tests.facts import facts
from tests.studies import made_up

DRAWN = "document.documentElement.dataset.drawn"
FIRST = "document.querySelector('#leaderboard table')"
# The sum over RGB after the sRGB curve is undone: luminance, and of two colours their contrast (WCAG 2.2).
CONTRAST = """(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (text) => { const [r, g, b] = rgb(text).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)); return 0.2126*r + 0.7152*g + 0.0722*b; };
  const behind = (e) => { while (e && rgb(getComputedStyle(e).backgroundColor)[3] === 0) e = e.parentElement;
    return getComputedStyle(e || document.documentElement).backgroundColor; };
  const texts = [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() && e.tagName !== 'SCRIPT'
    && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
  return texts.map((e) => { const svg = e.tagName === 'text', s = getComputedStyle(e);
    const [a, b] = [light(svg ? s.fill : s.color), light(behind(e))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), e.tagName, e.textContent.slice(0, 40)]; });
})()"""


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    made = {
        "audit": small_audit(), "hostile": small_audit(HOSTILE, METRICS, winner=False), "comparison": comparison(),
        "shown": shown_audit(),
    }  # fmt: skip
    for name, result in made.items():
        report(result, folder / f"{name}.html")
    (folder / "study.html").write_text(html(study()), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in (*made, "study")}


def shown_audit() -> Audit:
    world = ol.simulate.click_world(400, 6, 3, logging="shuffled")
    log = world.observe(rng=1)
    return ol.audit(world.ranks(log), log, ol.propensity.Examination(by="randomised").fit(log))


def study() -> Reproduction:
    """A made-up study with a table and a picture."""
    result = Result(item="figure1", figures=made_up.figures(7), tables=made_up.printed())
    return Reproduction(
        study="made_up", paper=made_up.PAPER, asked=(), quick=True, seed=0, results=(result,), left_out={}, data={}
    )


@pytest.fixture
def show(chromium, files):
    opened: list[Page] = []

    def show(name: str, width: int = 1280, ready: str = DRAWN, **options) -> Page:
        opened.append(page(chromium, width, **options))
        opened[-1].open(files[name], ready)
        return opened[-1]

    yield show
    for tab in opened:
        chromium.call("Target.closeTarget", targetId=tab.target)


def column(tab: Page, number: int) -> list[str]:
    return tab.run(f"[...{FIRST}.tBodies[0].rows].map((row) => row.cells[{number}].dataset.value)")


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [("audit", 1280, False), ("hostile", 390, False), ("hostile", 1280, True), ("comparison", 1280, False)],
)
def test_every_chart_is_drawn_without_errors_or_requests(show, files, name, width, dark):
    tab = show(name, width, dark=dark)
    marks = tab.run(
        "[...document.querySelectorAll('.chart')].map((box) => box.querySelectorAll('svg .role-mark > *').length)"
    )
    assert len(marks) > 5
    assert min(marks) > 0
    assert tab.errors() == []
    assert tab.requests() == [files[name].as_uri()]


def test_a_phone_need_not_scroll_sideways_but_wide_tables_can(show):
    tab = show("hostile", 390)
    assert tab.run("document.documentElement.scrollWidth") == 390
    wide = tab.run(
        "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.tabIndex)"
    )
    assert wide
    assert set(wide) == {0}
    cut = "[...document.querySelectorAll('.chart svg')].filter((e) => e.getBoundingClientRect().right > 391).length"
    assert tab.run(cut) == 0


def test_hostile_names_stay_text(show):
    tab = show("hostile")
    assert tab.run("document.querySelectorAll('img, main script:not([type])').length") == 0
    shown = set(column(tab, 0))
    assert shown == set(HOSTILE)
    drawn = tab.run("[...document.querySelectorAll('#places .chart text')].map((t) => t.textContent)")
    assert HOSTILE[0] in drawn


@pytest.mark.extra
def test_a_chart_s_page_runs_no_script_from_a_name(chromium, tmp_path):
    check = replace(checked(), balance=tuple(replace(checked().balance[0], name=name) for name in SCRIPTS))
    save(check_figures(check), tmp_path / "check.html")
    tab = page(chromium)
    tab.open(tmp_path / "check.html", DRAWN)
    assert tab.run("document.title").startswith("Known on")
    assert tab.run("document.querySelectorAll('img, main script:not([type])').length") == 0
    drawn = tab.run("[...document.querySelectorAll('.chart text')].map((text) => text.textContent)")
    assert any(label.startswith("</script><script>") for label in drawn)
    assert tab.errors() == []
    assert tab.requests() == [(tmp_path / "check.html").as_uri()]
    chromium.call("Target.closeTarget", targetId=tab.target)


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_has_enough_contrast(show, dark):
    tab = show("audit", dark=dark)
    tab.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
    found = tab.run(CONTRAST)
    assert len(found) > 500
    assert [text for text in found if text[0] < 4.5] == []


def test_without_javascript_the_verdict_and_the_tables_are_there(show):
    tab = show("audit", ready="document.querySelector('footer')", script=False)
    text = tab.run("document.body.innerText")
    assert re.search(facts("beats", "JavaScript"), text)
    assert tab.run("document.querySelectorAll('table').length") > 20
    assert tab.run("document.getElementById('theme').hidden")


# -- for everybody -------------------------------------------------------------------------------------------


# Contrast, also that of text in charts, is tested above: on long pages that takes axe ten seconds.
VIOLATIONS = """((rules) => axe.run(document, { resultTypes: ['violations'], rules })
  .then((found) => found.violations.filter((v) => ['serious', 'critical'].includes(v.impact))
  .map((v) => [v.id, v.nodes.slice(0, 3).map((n) => n.html)])))"""
QUICK = {"color-contrast": {"enabled": False}}


@pytest.mark.parametrize(
    ("name", "width", "dark", "rules"),
    [("audit", 1280, False, QUICK), ("comparison", 390, True, QUICK), ("shown", 390, True, {}),
     ("shown", 1280, False, {}), ("study", 1280, True, {})],
)  # fmt: skip
def test_axe_finds_nothing_serious(show, axe_core, name, width, dark, rules):
    tab = show(name, width, dark=dark)
    tab.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
    tab.run(f"{axe_core};0")
    assert tab.run(f"{VIOLATIONS}({json.dumps(rules)})") == []
