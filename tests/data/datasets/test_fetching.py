"""Downloads from a server on this machine: whole and verified, or nothing at all."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest

from openloop.data import datasets
from openloop.data.datasets import downloading, unpacking
from openloop.errors import FormatError, InputError
from tests.data.datasets.fetches import ASIDE, COAT, ETAG, KEPT, LENGTH, MD5, SHA256, fetched, known
from tests.data.datasets.originals import FILES
from tests.data.datasets.serving import Answer, zipped
from tests.facts import facts


def refused(folder, error, *told, left=(), **options):
    """The download is refused, and leaves nothing behind but what is named."""
    before = {path.name for path in folder.iterdir()} if folder.exists() else set()
    with pytest.raises(error, match=facts(*told)) as caught:
        fetched(folder, **options)
    assert {path.name for path in folder.iterdir()} == before | set(left) if folder.exists() else not before | set(left)
    return str(caught.value)


def test_a_data_set_is_fetched_unpacked_and_loads(tmp_path):
    got = fetched(tmp_path / "data", coat=COAT)
    assert (got.folder, got.size, got.sha256) == (tmp_path / "data" / "coat", len(COAT), SHA256)
    assert got.files == tuple(sorted(FILES["coat"]))
    assert got.verified is None
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["coat"]
    assert len(datasets.load("coat", tmp_path / "data").log) == 3


@pytest.mark.parametrize(("kind", "digest"), [("sha256", SHA256), ("md5", MD5)], ids=["sha256", "md5"])
def test_another_digest_is_refused(tmp_path, monkeypatch, kind, digest):
    known(monkeypatch, **{kind: "0" * 64})
    told = refused(tmp_path, FormatError, "coat", kind.upper(), "0" * 64, digest, "fetch", left=ASIDE, coat=COAT)
    assert f"{str(tmp_path / 'coat.quarantined')!r}" in told
    assert (tmp_path / "coat.quarantined").read_bytes() == COAT
    assert (tmp_path / "coat.quarantined.txt").read_text().strip() == told.partition(" What came")[0]
    refused(tmp_path, FormatError, "coat", coat=COAT)  # once more: it is replaced, not taken


def test_terms_must_be_accepted(tmp_path):
    with pytest.raises(InputError, match=facts("ml-1m", datasets.find("ml-1m").terms, "accept_terms=True")):
        datasets.fetch("ml-1m", tmp_path)
    with pytest.raises(InputError, match=facts("coat", "no terms", "accept_terms=True")):
        datasets.fetch("coat", tmp_path)


def test_a_file_or_link_in_the_way_is_not_touched(tmp_path):
    (tmp_path / "coat").write_text("mine")
    refused(tmp_path, InputError, f"'{tmp_path / 'coat'}'", "exists", coat=COAT)
    (tmp_path / "coat").unlink()
    (tmp_path / "coat").symlink_to(tmp_path / "elsewhere")
    refused(tmp_path, InputError, f"'{tmp_path / 'coat'}'", "exists", coat=COAT)


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        (Answer(status=404), InputError, ("coat", "HTTP 404", "by hand")),
        (Answer(status=503), InputError, ("coat", "HTTP 503", "by hand")),
        (Answer(COAT[:-9], headers={"Content-Length": LENGTH}), FormatError, (f"{len(COAT) - 9:,}", f"{len(COAT):,}")),
        (Answer(COAT[:-9], headers={"Content-Length": None}), FormatError, ("coat.zip", "truncated")),
        (Answer(b"<!DOCTYPE html>"), FormatError, ("coat.zip", "b'<!DOCTYPE html>'")),
        (Answer(zipped({"readme": ""})), FormatError, ("'train.ascii', 'test.ascii'", "'readme'")),
        (Answer(zipped({"../../evil": ""})), FormatError, ("coat.zip", "'../../evil'")),
        (Answer(status=302, headers={"Location": "file:///etc/passwd"}), InputError, ("HTTP 302", "file:///etc/passwd")),
        (Answer(status=302, headers={"Location": "ftp://127.0.0.1/x"}), InputError, ("https://", "'ftp://127.0.0.1/x'")),
        (Answer(status=302, headers={"Location": "/coat"}), InputError, ("HTTP 302", "loop")),
    ],
)  # fmt: skip
def test_a_download_that_goes_wrong_leaves_nothing_or_what_failed_its_check(tmp_path, answer, error, told):
    checked = error is FormatError and answer.headers.get("Content-Length") is None  # else it was cut short
    left = ASIDE if checked else ()
    refused(tmp_path / "data", error, *told, left=left, coat=answer)
    refused(tmp_path, error, *told, left=(*left, *(("data",) if left else ())), coat=answer)


def test_more_than_the_limit_or_the_disk_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(downloading, "MOST", 100)
    refused(tmp_path, InputError, "coat", f"{len(COAT):,} bytes", 100, "by hand", coat=COAT)
    unsaid = Answer(COAT, headers={"Content-Length": None})
    refused(tmp_path, FormatError, "coat", "sent", "100 bytes", coat=unsaid)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=50))
    refused(tmp_path, InputError, "coat", f"{len(COAT):,} bytes", "disk", 50, coat=COAT)


def test_a_disk_that_fills_up_is_told_and_the_download_is_kept(tmp_path, monkeypatch):
    def full(_name, _member, source, *_):
        source.close()
        raise OSError(28, "No space left on device")

    answer = Answer(COAT, version=ETAG)
    with monkeypatch.context() as disk:
        disk.setattr(unpacking, "_copy", full)
        refused(tmp_path, InputError, f"'{tmp_path / 'coat'}'", "written", "No space", "kept", left=KEPT, coat=answer)
    assert fetched(tmp_path, coat=answer).size == len(COAT)
