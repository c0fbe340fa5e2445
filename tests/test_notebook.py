"""Results in a notebook that nbclient executes, drawn by a browser: complete, escaped, readable in light and dark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import page
from tests.pages import Reader
from tests.reporting.test_report_page import CONTRAST

NAME = "<b>fours</b> & co"
CELLS = {
    "world": f"""
import openloop as ol
world = ol.simulate.schnabel_world(60, 40, rng=0)
log = world.observe(rng=1)
given = list(world.predictions.values())
models = {{"ones": given[0], {NAME!r}: given[1]}}""",
    "comparison": 'result = ol.evaluate(models, log, metrics=["mae", "recall@3"], threshold=4, exclude=None)\nresult',
    "audit": 'found = ol.audit(models, log, metrics=["mae"])\nfound',
    "verdict": "found.verdict",
    "estimate": 'result["ones", "mae", "snips"]',
    "kept": 'found.to_json("audit.json")\nkept = ol.Audit.from_json("audit.json")\nkept',
    "changes": "kept.since(found)",
    "check": "ol.propensity.check(ol.propensity.Popularity().fit(log), log)",
    "plan": f'ol.plan(found.contrast("ones", {NAME!r}))',
}
# In a process of its own: the client of a kernel has sockets and a loop, which it leaves to the garbage collector.
EXECUTED = """
import nbclient, nbformat
notebook = nbformat.read("given.ipynb", as_version=4)
nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, "done.ipynb")
"""
LOOKS = {"light": ("white", "#212121"), "dark": ("#111", "#e8e8e8")}
FRAME = (
    "<!DOCTYPE html><meta charset='utf-8'><title>x</title><body style='background:{};color:{};max-width:40em'>{}</body>"
)


@pytest.fixture(scope="module")
def shown(nbclient, tmp_path_factory) -> dict[str, dict[str, str]]:
    """What a notebook shows of each result, by cell and by kind."""
    import nbformat

    folder = tmp_path_factory.mktemp("notebook")
    cells = [nbformat.v4.new_code_cell(code) for code in CELLS.values()]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "given.ipynb")
    subprocess.run([sys.executable, "-W", "ignore", "-c", EXECUTED], cwd=folder, check=True, timeout=300)
    done = nbformat.read(folder / "done.ipynb", as_version=4).cells
    return {name: next((o["data"] for o in c.outputs if "data" in o), {}) for name, c in zip(CELLS, done, strict=True)}


@pytest.mark.parametrize("name", list(CELLS)[1:])
def test_each_result_has_a_compact_and_escaped_page_and_a_text(shown, name):
    html, text = shown[name]["text/html"], shown[name]["text/plain"]
    found = Reader(html)
    assert found.open == []
    assert not found.of("b")
    assert not found.scripts
    assert len(html) < 10_000
    if name in ("comparison", "audit", "kept", "plan"):
        assert NAME in "".join(found.text)
        assert NAME in text
    assert "Estimate(" not in text
    assert "array(" not in text


def test_what_is_read_back_shows_the_same(shown):
    assert shown["kept"] == shown["audit"]


@pytest.mark.parametrize("look", LOOKS)
def test_a_browser_shows_it_readably(shown, chromium, tmp_path: Path, look):
    outputs = "<hr>".join(data["text/html"] for data in shown.values() if data)
    path = tmp_path / "page.html"
    path.write_text(FRAME.format(*LOOKS[look], outputs), encoding="utf-8")
    tab = page(chromium, 800, dark=look == "dark")
    tab.open(path, "document.querySelector('table')")
    contrasts = tab.run(CONTRAST)
    assert len(contrasts) > 50
    assert [found for found in contrasts if found[0] < 4.5] == []
    assert tab.run("document.documentElement.scrollWidth") <= 800
    assert tab.errors() == []
    chromium.call("Target.closeTarget", targetId=tab.target)
