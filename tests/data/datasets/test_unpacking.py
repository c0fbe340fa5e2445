"""Archives: their formats, and what they must not do."""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile

import pytest

from openloop.data.datasets import unpacking
from openloop.data.datasets.unpacking import unpack
from openloop.errors import FormatError, InputError
from tests.data.datasets.serving import tarred, zipped
from tests.facts import facts

FILES = {"a.txt": "one", "deep/b.txt": "two"}


def unpacked(tmp_path, name, body):
    archive, folder = tmp_path / "download", tmp_path / "content"
    archive.write_bytes(body)
    folder.mkdir()
    unpack(archive, name, folder)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("name", "make"), [("x.zip", zipped), ("x.tar.gz", tarred), ("x.tgz", tarred)])
@pytest.mark.parametrize("around", ["", "top/", "a.txt/"])
def test_a_folder_around_all_of_it_is_left_out(tmp_path, name, make, around):
    assert unpacked(tmp_path, name, make({around + path: text for path, text in FILES.items()})) == FILES


@pytest.mark.parametrize("path", ["../evil", "/evil", "top/../../evil", "..\\evil", "C:evil", "top/.."])
@pytest.mark.parametrize(("name", "make"), [("x.zip", zipped), ("x.tar.gz", tarred)])
def test_a_path_that_leaves_the_folder_is_refused(tmp_path, name, make, path):
    with pytest.raises(FormatError, match=facts(name, "inside", repr(path))):
        unpacked(tmp_path, name, make({"good": "1", path: "2"}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["content", "download"]
    assert not (tmp_path.parent / "evil").exists()


def test_links_are_refused(tmp_path):
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(FormatError, match=facts("x.zip", "'link'", "device")):
        unpacked(tmp_path, "x.zip", zipped({link: "/etc/passwd"}))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path, kind):
    entry = tarfile.TarInfo("link")
    entry.type, entry.linkname = kind, "/etc/passwd"
    with pytest.raises(FormatError, match=facts("x.tar.gz", "'link'", "device")):
        unpacked(tmp_path, "x.tar.gz", tarred({"link": entry}))


def test_a_member_that_stands_twice_is_refused(tmp_path):
    body = tmp_path / "twice"
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("a", "1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a", "2")
    with pytest.raises(FormatError, match=facts("x.zip", "'a'", "twice")):
        unpacked(tmp_path, "x.zip", body.read_bytes())


@pytest.mark.parametrize(
    ("name", "body", "why"),
    [
        pytest.param("x.zip", b"<!DOCTYPE html><p>moved", "b'<!DOCTYPE html><p>moved'", id="page as zip"),
        pytest.param("x.tar.gz", b"<html>moved", "b'<html>moved'", id="page as tar"),
        pytest.param("x.csv", b"\n <!doctype html>", "HTML", id="page as text"),
        pytest.param("x.csv.gz", b"1,2,3\n", repr(b"1,2,3\n"), id="text as gzip"),
        pytest.param("x.csv.gz", gzip.compress(b"1,2\n" * 999)[:20], "truncated", id="cut gzip"),
        pytest.param("x.zip", zipped(FILES)[:-30], "truncated", id="cut zip"),
        pytest.param("x.tar.gz", tarred(FILES)[:-30], "truncated", id="cut tar"),
        pytest.param("x.zip", b"", "empty", id="empty zip"),
    ],
)
def test_what_is_no_archive_is_refused(tmp_path, name, body, why):
    with pytest.raises(FormatError, match=facts(name, why, "fetch")):
        unpacked(tmp_path, name, body)


@pytest.mark.parametrize("name", ["x.zip", "x.csv.gz"])
def test_more_than_the_limit_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr(unpacking, "MOST", 10)
    body = gzip.compress(b"0" * 11) if name.endswith("gz") else zipped({"a": "0" * 11})
    with pytest.raises(InputError, match=facts(name, "11 bytes", 10)):
        unpacked(tmp_path, name, body)


# -- archives that were made to fill the disk ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("x.zip", lambda text: zipped({"a.txt": text})),
        ("x.tar.gz", lambda text: tarred({"a.txt": text})),
        ("x.csv.gz", lambda text: gzip.compress(text.encode())),
    ],
)
def test_what_is_packed_too_well_is_refused(tmp_path, monkeypatch, name, make):
    monkeypatch.setattr(unpacking, "HARMLESS", 2**16)
    with pytest.raises(FormatError, match=facts(name, "200 times", "by hand")):
        unpacked(tmp_path, name, make("0" * 2**22))
