"""Results in a notebook that nbclient executes, drawn by a browser: complete, escaped, readable in light and dark."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.pages import Reader

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
