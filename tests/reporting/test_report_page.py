"""The report in a real browser: drawn without errors or requests, sortable, safe, and readable on any screen."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from openloop.reporting.figures import check_figures, save
from openloop.reporting.html import report
from tests.audit_cases import HOSTILE, METRICS, SCRIPTS, checked, comparison, small_audit
from tests.browser import Page, page
from tests.cli.running import run
from tests.facts import facts

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
        "audit": small_audit(), "hostile": small_audit(HOSTILE, METRICS, winner=False), "comparison": comparison()
    }  # fmt: skip
    for name, result in made.items():
        report(result, folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in made}


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


def test_the_browser_reports_errors_and_requests(chromium, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text("<img src='other.png'><script>console.error(1); undefined.x</script><p>", encoding="utf-8")
    tab = page(chromium)
    tab.open(path, "true")
    assert len(tab.errors()) >= 2
    assert tab.requests() == [path.as_uri(), (tmp_path / "other.png").as_uri()]
    chromium.call("Target.closeTarget", targetId=tab.target)


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


def test_charts_follow_the_width_of_the_window(show):
    tab = show("audit")
    before = tab.run("document.querySelector('.chart svg').clientWidth")
    tab.size(500, 900)
    tab.until(f"document.querySelector('.chart svg').getAttribute('width') < {before} - 100")
    assert tab.run("document.documentElement.scrollWidth") == 500


def test_a_click_sorts_a_table_and_a_second_one_turns_it(show):
    tab = show("audit")
    assert tab.run(f"{FIRST}.tHead.rows[0].cells[1].ariaSort") == "ascending"
    for direction in ("ascending", "descending"):
        tab.run(f"{FIRST}.querySelectorAll('th button')[5].click()")
        values = [float(text) for text in column(tab, 5)]
        assert tab.run(f"{FIRST}.tHead.rows[0].cells[5].ariaSort") == direction
        assert values == sorted(values, reverse=direction == "descending")
    assert tab.run(f"{FIRST}.querySelectorAll('th[aria-sort]').length") == 1


def test_a_table_is_sorted_by_keyboard_and_by_name(show):
    tab = show("audit")
    tab.run(f"{FIRST}.querySelector('th button').focus()")
    tab.press("Enter")
    assert column(tab, 0) == sorted(column(tab, 0))
    tab.press("Tab")
    assert tab.run("document.activeElement.textContent") == "snips"


def test_hostile_names_stay_text(show):
    tab = show("hostile")
    assert tab.run("document.querySelectorAll('img, main script:not([type])').length") == 0
    shown = set(column(tab, 0))
    assert shown == set(HOSTILE)
    drawn = tab.run("[...document.querySelectorAll('#places .chart text')].map((t) => t.textContent)")
    assert HOSTILE[0] in drawn


def test_hostile_names_stay_text_in_tooltips(show):
    tab = show("hostile")
    tab.run("document.querySelector('#places').scrollIntoView()")
    x, y = tab.run(
        "(() => { const r = document.querySelector('#places .mark-symbol path').getBoundingClientRect();"
        " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
    )
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    tab.until("document.querySelector('#vg-tooltip-element.visible')")
    text = tab.run("document.querySelector('#vg-tooltip-element').textContent")
    assert any(name in text for name in HOSTILE)
    assert tab.run("document.querySelectorAll('#vg-tooltip-element img, #vg-tooltip-element script').length") == 0


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


@pytest.mark.extra
def test_the_figures_of_the_command_run_no_script_from_a_column_s_name(chromium, tmp_path):
    ids = [(f"u{n}", f"i{m}", n % 5 + 1) for n in range(12) for m in range(8) if (n + m) % 3]
    pl.DataFrame(ids, schema=["user", "item", "rating"], orient="row").write_csv(tmp_path / "log.csv")
    columns = {"user": [f"u{n}" for n in range(12)], SCRIPTS[0]: [n % 4 for n in range(12)], SCRIPTS[5]: range(12)}
    pl.DataFrame(columns).write_csv(tmp_path / "users.csv")
    given = ("propensity", str(tmp_path / "log.csv"), "--model", "boosted", "--out", str(tmp_path / "out.csv"))
    result = run(*given, "--user-features", str(tmp_path / "users.csv"), "--figures", str(tmp_path / "check.html"))
    assert result.exit_code == 0, result.output
    tab = page(chromium)
    tab.open(tmp_path / "check.html", DRAWN)
    spec = tab.run("JSON.stringify(JSON.parse(document.querySelector('.chart').nextElementSibling.textContent))")
    assert json.dumps(SCRIPTS[0]) in spec
    assert tab.run("document.title").startswith("Boosted on")
    assert tab.errors() == []
    chromium.call("Target.closeTarget", targetId=tab.target)


def test_a_fold_shows_a_chart_of_full_width(show):
    tab = show("audit")
    tab.run("document.querySelector('#leaderboard details').open = true")
    assert tab.run("document.querySelector('#leaderboard details .chart svg').getBoundingClientRect().width") > 700


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_has_enough_contrast(show, dark):
    tab = show("audit", dark=dark)
    tab.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
    found = tab.run(CONTRAST)
    assert len(found) > 500
    assert [text for text in found if text[0] < 4.5] == []


def test_the_look_follows_the_system_and_can_be_changed(show):
    tab = show("audit", dark=True)
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    mark = "getComputedStyle(document.querySelector('.chart .mark-symbol path')).fill"
    dark = tab.run(ground), tab.run(mark)
    assert tab.run("document.getElementById('theme').textContent") == "Light"
    tab.run("document.getElementById('theme').click()")
    light = tab.run(ground), tab.run(mark)
    assert light == ("rgb(255, 255, 255)", "rgb(0, 114, 178)")
    assert dark[0] != light[0]
    assert dark[1] != light[1]


def test_print_is_light_with_everything_open(show):
    tab = show("audit", dark=True)
    tab.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert tab.run("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    opened = "document.querySelectorAll('details:not([open])').length"
    assert tab.run(opened) > 0
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert tab.run(opened) == 0
    tab.run("dispatchEvent(new Event('afterprint'))")
    assert tab.run(opened) > 0
    pdf = tab.pdf()
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > 5


def test_without_javascript_the_verdict_and_the_tables_are_there(show):
    tab = show("audit", ready="document.querySelector('footer')", script=False)
    text = tab.run("document.body.innerText")
    assert re.search(facts("beats", "JavaScript"), text)
    assert tab.run("document.querySelectorAll('table').length") > 20
    assert tab.run("document.getElementById('theme').hidden")


def test_the_skip_link_is_the_first_stop(show):
    tab = show("audit")
    tab.press("Tab")
    assert tab.run("document.activeElement.textContent").startswith("Skip")
    assert tab.run("document.activeElement.getBoundingClientRect().left >= 0")
