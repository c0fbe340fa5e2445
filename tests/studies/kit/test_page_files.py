"""A page replaces only what an earlier run of it wrote, and appears with its pictures or not at all."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from openloop.errors import FormatError, InputError
from openloop.studies.kit import page_files
from openloop.studies.kit.page_files import MANIFEST, check_place, manifest, write_page
from openloop.studies.kit.running import reproduce
from openloop.studies.kit.running import study as study_named
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


def test_a_page_that_has_no_format_or_no_place_is_refused(found, tmp_path):
    with pytest.raises(InputError, match=r"page\.pdf"):
        write_page(found, tmp_path / "page.pdf")
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="taken"):
        write_page(found, tmp_path / "taken.md")


def test_the_same_page_again_has_the_same_bytes(found, tmp_path):
    first = write_page(found, tmp_path / "page.md")
    before = files(tmp_path / "page")
    again = write_page(found, tmp_path / "page.md")
    assert again == first
    assert files(tmp_path / "page") == before


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


@pytest.mark.parametrize("how", ["foreign", "changed", "link", "folder"])
def test_a_file_of_the_user_whose_name_is_needed_is_refused_before_anything_is_written(found, tmp_path, how):
    folder, page = tmp_path / "page", tmp_path / "page.md"
    if how == "changed":
        write_page(with_pictures(found, "figure1"), page)
        (folder / "figure1.svg").write_text("<svg>retouched</svg>")
    else:
        folder.mkdir()
        page.write_text("Written by `openloop reproduce made_up`")
        taken = folder / "figure1.svg"
        {"foreign": lambda: taken.write_text("mine"), "link": lambda: taken.symlink_to("gone"), "folder": taken.mkdir}[
            how
        ]()
    before = page.read_text(), files(folder)
    with pytest.raises(InputError, match=r"figure1\.svg"):
        write_page(found, page)
    assert (page.read_text(), files(folder)) == before


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


def test_a_picture_of_the_users_is_known_by_the_items_before_they_run(tmp_path):
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "figure1_mine.svg").write_text("mine")
    check_place(tmp_path / "page.md", ["figure2", "figure"])
    check_place(tmp_path / "page.html", ["figure1"])
    with pytest.raises(InputError, match=r"figure1_mine\.svg"):
        check_place(tmp_path / "page.md", ["figure1"])


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_pictures_of_studies_have_names_of_their_items(page):
    items = [item.name for item in study_named(page.stem).ITEMS]
    assert all(page_files._is_of(Path(name).stem, items) for name in manifest(page.with_suffix("")))


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


@pytest.mark.parametrize("earlier", [(), ("figure1",), ("figure1", "figure2")])
@pytest.mark.parametrize("stops", range(5))
def test_a_run_that_is_killed_between_two_renames_leaves_nothing_that_the_next_one_refuses(
    found, tmp_path, monkeypatch, earlier, stops
):
    page, folder = tmp_path / "page.md", tmp_path / "page"
    if earlier:
        write_page(with_pictures(replace(found, seed=found.seed + 1), *earlier), page)
        for name in earlier:  # as a run with other numbers drew it
            (folder / f"{name}.svg").write_text(f"<svg>{name}</svg>")
        digests = {f"{name}.svg": page_files._digest(folder / f"{name}.svg") for name in earlier}
        (folder / MANIFEST).write_text(json.dumps({"pictures": digests}))
    done, rename = [], Path.replace

    def dies(self, target):
        done.append(target)
        if len(done) > stops:
            raise SystemExit  # of a kill, what was renamed stays
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", dies)
    with pytest.raises(SystemExit):
        write_page(found, page)
    monkeypatch.setattr(Path, "replace", rename)
    check_place(page, ["figure1", "figure2"])
    write_page(found, page)
    assert set(files(folder)) == {"figure1.svg", "figure2.svg", MANIFEST}
    assert "coming" not in json.loads((folder / MANIFEST).read_text())


def test_a_picture_of_the_users_that_bears_a_name_to_come_stays_the_users(found, tmp_path):
    write_page(found, tmp_path / "page.md")
    file = tmp_path / "page" / MANIFEST
    file.write_text(json.dumps({"pictures": {}, "coming": manifest(tmp_path / "page")}))
    (tmp_path / "page" / "figure1.svg").write_text("<svg>retouched</svg>")
    assert set(manifest(tmp_path / "page")) == {"figure2.svg"}
    with pytest.raises(InputError, match=r"figure1\.svg"):
        write_page(found, tmp_path / "page.md")


@pytest.mark.parametrize("content", ["", "[]", '{"pictures": 3}', json.dumps({"pictures": {"../page.md": "0"}})])
def test_a_manifest_that_is_none_is_refused(found, tmp_path, content):
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / MANIFEST).write_text(content)
    with pytest.raises(FormatError, match=r"\.openloop\.json"):
        write_page(found, tmp_path / "page.md")
    assert not (tmp_path / "page.md").exists()


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_the_pictures_of_committed_pages_are_those_of_their_manifests(page):
    folder = page.with_suffix("")
    here = {name for name in files(folder) if name != MANIFEST} if folder.is_dir() else set()
    assert set(manifest(folder)) == here
    assert all(page_files._digest(folder / name) == digest for name, digest in manifest(folder).items())
