"""A page replaces only what an earlier run of it wrote, and appears with its pictures or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from openloop.errors import InputError
from openloop.studies.kit import page_files
from openloop.studies.kit.page_files import MANIFEST, manifest, write_page
from openloop.studies.kit.running import reproduce
from tests.facts import facts
from tests.studies import made_up

DOCS = Path(__file__).resolve().parents[3] / "docs" / "studies"


@pytest.fixture
def found(study, tmp_path):
    """A page with two pictures."""
    whole = reproduce(study, ["table1"], data=tmp_path, workers=0)
    (figure,) = made_up.figures(6960)
    both = (figure, replace(figure, name="figure2"))
    return replace(whole, results=(replace(whole.results[0], figures=both),))


def with_pictures(found, *names):
    (result,) = found.results
    return replace(found, results=(replace(result, figures=tuple(f for f in result.figures if f.name in names)),))


def files(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def test_a_page_is_written_with_its_pictures_beside_it(found, tmp_path):
    written = write_page(found, tmp_path / "page.md")
    assert written.files == [tmp_path / "page.md", *(tmp_path / "page" / f"figure{n}.svg" for n in (1, 2))]
    assert "![figure1](page/figure1.svg)" in written.files[0].read_text()
    assert written.files[1].read_text().startswith("<svg")
    assert set(manifest(tmp_path / "page")) == {"figure1.svg", "figure2.svg"}
    assert write_page(found, tmp_path / "page.html").files == [tmp_path / "page.html"]


def test_pictures_of_an_earlier_run_that_the_page_no_longer_shows_go(found, tmp_path):
    write_page(found, tmp_path / "page.md")
    written = write_page(with_pictures(found, "figure2"), tmp_path / "page.md")
    assert set(files(tmp_path / "page")) == {"figure2.svg", MANIFEST}
    assert written.kept == []
    write_page(with_pictures(found), tmp_path / "page.md")
    assert not (tmp_path / "page").exists()


def test_files_of_the_user_survive(found, tmp_path):
    (tmp_path / "page").mkdir()
    own = {"old.svg": b"<svg>mine</svg>", "notes.txt": b"mine"}
    for name, content in own.items():
        (tmp_path / "page" / name).write_bytes(content)
    for shown in (("figure1", "figure2"), ("figure1",), ()):
        write_page(with_pictures(found, *shown), tmp_path / "page.md")
        assert own.items() <= files(tmp_path / "page").items()
    assert files(tmp_path / "page") == own


def test_a_picture_that_was_changed_since_is_kept_and_named(found, tmp_path):
    write_page(found, tmp_path / "page.md")
    (tmp_path / "page" / "figure1.svg").write_text("<svg>retouched</svg>")
    written = write_page(with_pictures(found, "figure2"), tmp_path / "page.md")
    assert written.kept == [tmp_path / "page" / "figure1.svg"]
    assert (tmp_path / "page" / "figure1.svg").read_text() == "<svg>retouched</svg>"
    assert set(manifest(tmp_path / "page")) == {"figure2.svg"}


@pytest.mark.parametrize("ending", [".md", ".html"])
def test_a_page_that_openloop_did_not_write_is_refused(found, tmp_path, ending):
    page = tmp_path / f"page{ending}"
    page.write_text("My thesis.\nIts tables were written by openloop reproduce.\n")
    before = page.read_text()
    with pytest.raises(InputError, match=facts(page.name, "openloop reproduce", "another name")):
        write_page(found, page)
    assert page.read_text() == before
    page.write_text("")  # nothing is lost
    for _ in range(2):  # nor by writing it again
        assert page in write_page(found, page).files


@pytest.mark.parametrize("fails", [1, 2, 3, 4, 5])
def test_a_failure_halfway_leaves_the_old_page_whole(found, tmp_path, monkeypatch, fails):
    write_page(with_pictures(found, "figure1"), tmp_path / "page.md")
    before = (tmp_path / "page.md").read_text(), files(tmp_path / "page")
    begun, replacing = [], page_files.replacing

    def failing(path):
        begun.append(path)
        if len(begun) == fails:
            raise OSError("no space left")
        return replacing(path)

    monkeypatch.setattr(page_files, "replacing", failing)
    with pytest.raises(OSError, match="no space left"):
        write_page(found, tmp_path / "page.md")
    assert ((tmp_path / "page.md").read_text(), files(tmp_path / "page")) == before


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_the_pictures_of_committed_pages_are_those_of_their_manifests(page):
    folder = page.with_suffix("")
    here = {name for name in files(folder) if name != MANIFEST} if folder.is_dir() else set()
    assert set(manifest(folder)) == here
    assert all(page_files._digest(folder / name) == digest for name, digest in manifest(folder).items())
