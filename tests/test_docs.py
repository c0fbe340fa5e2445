"""Every Python block of README and the guide runs as it is printed, in the order of the page."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest

from tests.engines import EAGER, converter

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
TOUR = ROOT / "docs" / "tour.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The code of these writes files that the page shows (docs/hooks/executed.py).
MAKERS = {"figures.md", "gallery.md"}
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


EXTRA = re.compile(r"^(?:import|from) (implicit|torch)\b", re.MULTILINE)


def blocks(page, *extras):
    """The code of a page, less the blocks that import an extra which is not among these."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [code for code in found if set(EXTRA.findall(code)) <= set(extras)]


def run(page, *extras):
    names = {}
    for code in blocks(page, *extras):
        exec(compile(code, str(page), "exec"), names)  # noqa: S102 (the pages are this repository's own)
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_python_block_runs_and_links_lead_somewhere(page, tmp_path, monkeypatch, capsys, data_dir):
    if any("OPENLOOP_DATA" in code for code in blocks(page)):
        monkeypatch.setenv("OPENLOOP_DATA", str(data_dir("coat").parent))
    monkeypatch.chdir(tmp_path)
    run(page)
    places = [page.parent, tmp_path] if page.name in MAKERS else [page.parent]
    assert [target for target in links(page) if not any((place / target).exists() for place in places)] == []


def links(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)#:]+)[^):]*\)", prose)


@pytest.mark.filterwarnings("ignore:OpenBLAS is configured:RuntimeWarning")  # which implicit says of any BLAS
def test_the_tour_runs_with_a_model_of_implicit_and_two_towers_of_torch(tmp_path, monkeypatch, implicit, torch):
    monkeypatch.chdir(tmp_path)
    names = run(TOUR, "implicit", "torch")
    assert names["found"].verdict.winner == "als"
    assert len(blocks(TOUR, "implicit", "torch")) == len(blocks(TOUR)) + 2


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    with contextlib.chdir(tmp_path_factory.mktemp("tour")):  # a page may write files
        return run(TOUR)


def same_numbers_elsewhere(names, into):
    """The last part of the tour, with its frames in another engine."""
    code = blocks(TOUR)[-1]
    moved = names | {"ratings": into(names["ratings"]), "into": into}
    code = code.replace(
        "ol.evaluate(\n    predictions,", "ol.evaluate(\n    {n: into(f) for n, f in predictions.items()},"
    )
    assert "into(f)" in code
    exec(compile(code, "tour.md", "exec"), moved)  # noqa: S102 (the page is this repository's own)
    for key, estimate in names["there"].estimates.items():
        assert moved["there"][key].value == pytest.approx(estimate.value, rel=1e-10)
        assert moved["there"][key].stderr == pytest.approx(estimate.stderr, rel=1e-10)


@pytest.mark.parametrize("engine", EAGER)
def test_frames_that_stay_where_they_are_give_the_same_numbers(tour, engine):
    same_numbers_elsewhere(tour, converter(engine))


def test_frames_that_stay_in_spark_give_the_same_numbers(tour, spark):
    same_numbers_elsewhere(tour, converter("spark", spark))
