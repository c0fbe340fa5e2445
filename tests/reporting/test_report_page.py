"""The report in a real browser: drawn without errors or requests, sortable, safe, and readable on any screen."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import openloop as ol
from openloop.audits.results import Audit
from openloop.commands.table_files import FORMULA
from openloop.reporting.figures import check_figures, save
from openloop.reporting.html import report
from openloop.studies.kit.page import html
from openloop.studies.kit.results import Result
from openloop.studies.kit.running import Reproduction
from tests.audit_cases import HOSTILE, METRICS, SCRIPTS, checked, comparison, small_audit
from tests.browser import Page, page
from tests.cli.running import run
from tests.facts import facts
from tests.pages import Reader
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


def test_no_label_of_a_chart_is_cut_on_a_wide_page(show):
    tab = show("audit")
    tab.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
    texts = tab.run("[...document.querySelectorAll('.chart text')].map((text) => text.textContent)")
    assert "stratified by catalogue" in texts
    assert [text for text in texts if text.endswith("…")] == []


def test_a_heading_of_a_column_keeps_its_arrow_beside_it(show):
    tab = show("shown")
    heads = "[...document.querySelectorAll('thead button')]"
    heads += ".filter((b) => b.checkVisibility() && !/\\s/.test(b.textContent))"
    assert tab.run(f"{heads}.length") > 3
    assert tab.run(f"{heads}.filter((b) => b.clientHeight > 40).map((b) => b.textContent)") == []


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
    opened = "document.querySelectorAll('details:not([open], .numbers)').length"
    assert tab.run(opened) > 0
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert tab.run(opened) == 0
    shown = "[...document.querySelectorAll('.tools, header button, .numbers')].filter((e) => e.checkVisibility())"
    shown += ".map((e) => e.outerHTML)"
    assert tab.run(shown) == []
    assert tab.run("document.querySelectorAll('.chart svg').length") > 20
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


# -- tables and charts as files ------------------------------------------------------------------------------


def downloaded(tab: Page, folder: Path, name: str) -> bytes:
    """A file that a click saved, once it is whole."""
    for _ in range(2000):
        if (folder / name).is_file():
            return (folder / name).read_bytes()
        tab.run("new Promise((done) => setTimeout(done, 20))")
    raise AssertionError(f"{name} never came; there are {[p.name for p in folder.iterdir()]}")


@pytest.fixture
def saved(chromium, tmp_path):
    """The folder that downloads go to."""
    chromium.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    return tmp_path


def test_a_long_table_is_filtered_by_words_and_copied_as_it_is_shown(show):
    tab = show("audit")
    long = "[...document.querySelectorAll('main table')].find((t) => t.tBodies[0].rows.length > MANY)"
    rows = tab.run(f"{long}.tBodies[0].rows.length")
    field = f"{long}.parentElement.previousElementSibling.querySelector('input')"
    tab.run(f"{long}.closest('details').open = true")
    word = tab.run(f"{long}.tBodies[0].rows[0].cells[0].textContent.trim()")
    tab.run(f"{field}.value = {json.dumps(word.upper())}; {field}.dispatchEvent(new Event('input'))")
    shown = tab.run(f"[...{long}.tBodies[0].rows].filter((r) => r.checkVisibility()).map((r) => r.textContent)")
    left = len(shown)
    assert 0 < left < rows
    assert all(word in text for text in shown)
    assert tab.run(f"{field}.nextElementSibling.textContent") == f"{left} of {rows} rows"
    assert len(tab.run(f"csv({long})").strip().split("\r\n")) == 1 + left
    tab.run(f"{field}.value = 'no such row'; {field}.dispatchEvent(new Event('input'))")
    assert tab.run(f"{field}.nextElementSibling.textContent") == f"0 of {rows} rows"
    tables = "[...document.querySelectorAll('main table')].map((t) => t.tBodies[0].rows.length > MANY)"
    assert sum(tab.run(tables)) == tab.run("document.querySelectorAll('input').length")


def test_a_table_as_csv_has_full_numbers_and_small_print_in_columns_of_its_own(show):
    tab = show("audit")
    found = pl.read_csv(tab.run(f"csv({FIRST})").encode())
    result = comparison()
    assert found["model"].to_list() == list(result.ranking("mae", "snips"))
    assert found["snips"].to_list() == [result[m, "mae", "snips"].value for m in found["model"]]
    assert "…" in found["snips, in small print"][0]
    assert found["ahead of"].dtype.is_numeric()


def test_a_spreadsheet_computes_no_name_from_the_data(show):
    tab = show("audit")
    text = ["=1+1", "+a", "-b", "@sum", "\t=1", "＝1"]
    assert tab.run(f"{json.dumps(text)}.map(field)") == [f"'{field}" for field in text]
    plain = ["plain", "-0.5", "1e-3", "−0.5", ""]
    assert tab.run(f"{json.dumps(plain)}.map(field)") == plain
    quoted = ['"', "a,b", "line\nbreak"]
    assert tab.run(f"{json.dumps(quoted)}.map(field)") == ['""""', '"a,b"', '"line\nbreak"']
    alike = [chr(n) for n in [*range(128), 0xFF0B, 0xFF0D, 0xFF1D, 0xFF20, 0x2212]]
    assert tab.run(f"{json.dumps(alike)}.map((c) => FORMULA.test(c))") == [bool(re.search(FORMULA, c)) for c in alike]


def test_copying_works_with_a_clipboard_and_without_one(show):
    tab = show("audit")
    copy = f"{FIRST}.parentElement.previousElementSibling.querySelector('button')"
    tab.run("Object.defineProperty(navigator, 'clipboard', { configurable: true, value:"
            " { writeText: async (text) => { window.copied = text; } } })")  # fmt: skip
    tab.run(f"{copy}.focus()")
    tab.press("Enter")
    tab.until("said.textContent")
    assert tab.run("copied") == tab.run(f"csv({FIRST})")
    tab.run(
        "delete navigator.clipboard; Object.defineProperty(navigator, 'clipboard', { value: undefined });"
        "said.textContent = ''; addEventListener('copy', () => { window.copied = document.activeElement.value; })"
    )
    tab.press("Enter")
    tab.until("said.textContent")
    assert "Copied 5 rows" in tab.run("said.textContent")
    assert tab.run("copied").replace("\n", "\r\n") == tab.run(f"csv({FIRST})")
    assert tab.run(f"document.activeElement === {copy}")
    tab.run("document.execCommand = () => false; said.textContent = ''")
    tab.press("Enter")
    tab.until("said.textContent")
    assert "save the file" in tab.run("said.textContent")


def test_charts_and_tables_are_saved_as_files(show, saved):
    tab = show("hostile", dark=True)
    figure = "document.querySelector('#places figure')"
    for name in ("SVG", "PNG", "data"):
        tab.run(f"[...{figure}.querySelectorAll('button')].find((b) => b.textContent === 'Save {name}').click()")
    svg = downloaded(tab, saved, "places-by-mae.svg").decode()
    assert "var(" not in svg  # light colours in place of the page's variables
    assert "rgb(0, 114, 178)" in svg
    drawing = Reader(svg)
    assert HOSTILE[0] in "".join(drawing.text)
    assert {tag for tag, _ in drawing.tags} <= {"svg", "title", "rect", "g", "path", "line", "text"}
    assert downloaded(tab, saved, "places-by-mae.png").startswith(b"\x89PNG")
    data = downloaded(tab, saved, "places-by-mae.csv")
    assert data.startswith(b"\xef\xbb\xbf")
    assert set(pl.read_csv(data)["model"]) == set(HOSTILE)
    assert tab.errors() == []


def test_every_chart_has_its_table_and_its_files(show):
    tab = show("audit")
    lacking = (
        "[...document.querySelectorAll('figure')].filter((f) => !f.querySelector('details table')"
        " && !f.classList.contains('above')).map((f) => f.textContent)"
    )
    assert tab.run(lacking) == []
    texts = "[...document.querySelectorAll('figure > .tools')].map((part) => part.textContent)"
    assert tab.run(texts) == ["Save SVGSave PNGSave data"] * tab.run("document.querySelectorAll('figure').length")


def test_a_wide_table_says_that_it_scrolls(show):
    tab = show("audit", 390)
    wide = tab.run(f"getComputedStyle({FIRST}.caption, '::before').content")
    assert re.search(facts("sideways"), wide)
    tab.size(1280, 900)
    tab.until(f"!{FIRST}.parentElement.classList.contains('wide')")
    assert tab.run(f"getComputedStyle({FIRST}.caption, '::before').content") == "none"


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


def test_axe_finds_what_is_wrong(show, axe_core):
    tab = show("comparison")
    tab.run("document.querySelector('main').innerHTML = '<button></button><p style=\"color: #bbb\">grey</p>'")
    tab.run(f"{axe_core};0")
    assert {name for name, _ in tab.run(f"{VIOLATIONS}({{}})")} == {"button-name", "color-contrast"}
