"""Downloads from a server on this machine: whole and verified, or nothing at all."""

from __future__ import annotations

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from openloop.data import datasets
from openloop.data.datasets import downloading, finding, unpacking
from openloop.data.datasets.records import Archive
from openloop.errors import FormatError, InputError
from tests.data.datasets.fetches import ASIDE, COAT, ETAG, KEPT, LENGTH, MD5, SHA256, fetched, known
from tests.data.datasets.originals import FILES, write
from tests.data.datasets.serving import Answer, served, tarred, zipped
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


@pytest.mark.parametrize(("digest", "verified"), [({"sha256": SHA256}, "sha256"), ({"md5": MD5}, "md5")])
def test_a_known_digest_is_compared(tmp_path, monkeypatch, digest, verified):
    known(monkeypatch, **digest)
    assert fetched(tmp_path, coat=COAT).verified == verified


@pytest.mark.parametrize(("kind", "digest"), [("sha256", SHA256), ("md5", MD5)], ids=["sha256", "md5"])
def test_another_digest_is_refused(tmp_path, monkeypatch, kind, digest):
    known(monkeypatch, **{kind: "0" * 64})
    told = refused(tmp_path, FormatError, "coat", kind.upper(), "0" * 64, digest, "fetch", left=ASIDE, coat=COAT)
    assert f"{str(tmp_path / 'coat.quarantined')!r}" in told
    assert (tmp_path / "coat.quarantined").read_bytes() == COAT
    assert (tmp_path / "coat.quarantined.txt").read_text().strip() == told.partition(" What came")[0]
    refused(tmp_path, FormatError, "coat", coat=COAT)  # once more: it is replaced, not taken


def test_a_tar_is_unpacked(tmp_path, monkeypatch):
    body = tarred({f"KuaiRand-Pure/{path}": text for path, text in FILES["kuairand"].items()})
    record = replace(datasets.find("kuairand"), archive=Archive(url="https://example.org/KuaiRand-Pure.tar.gz"))
    monkeypatch.setattr(finding, "CATALOGUE", (record,))
    assert len(fetched(tmp_path, name="kuairand", path="x", x=body).files) == 3
    assert len(datasets.load("kuairand", tmp_path).log) == 3


def test_a_single_file_is_kept_under_its_name(tmp_path):
    text = FILES["amazon-games"]["ratings_Video_Games.csv"].encode()
    assert fetched(tmp_path, name="amazon-games", path="x", x=text).files == ("ratings_Video_Games.csv",)
    assert datasets.present("amazon-games", tmp_path)


def test_terms_must_be_accepted(tmp_path):
    with pytest.raises(InputError, match=facts("ml-1m", datasets.find("ml-1m").terms, "accept_terms=True")):
        datasets.fetch("ml-1m", tmp_path)
    with pytest.raises(InputError, match=facts("coat", "no terms", "accept_terms=True")):
        datasets.fetch("coat", tmp_path)


@pytest.mark.parametrize("name", ["yahoo-r3", "netflix", "lastfm-msd"])
def test_what_its_keeper_asks_for_first_is_not_fetched(tmp_path, name):
    refused(tmp_path, InputError, name, "not downloaded", f"'{tmp_path / name}'", "https://", name=name)


def test_an_empty_folder_is_used_and_a_full_one_is_not(tmp_path):
    (tmp_path / "coat").mkdir()
    fetched(tmp_path, coat=COAT)
    refused(tmp_path, InputError, "coat", f"'{tmp_path / 'coat'}'", "not empty", coat=COAT)
    assert (tmp_path / "coat" / "train.ascii").read_text() == FILES["coat"]["train.ascii"]


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


def test_a_redirect_on_the_web_is_followed(tmp_path):
    assert fetched(tmp_path, coat=Answer(status=302, headers={"Location": "/other"}), other=COAT).sha256 == SHA256


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", ("url", "https://", "http://", "''")),
        ("file:///etc/passwd", ("url", "https://", "http://", "'file:///etc/passwd'")),
        ("coat.zip", ("url", "https://", "http://", "'coat.zip'")),
        ("http://127.0.0.1:1/coat.zip", ("coat", "http://127.0.0.1:1/coat.zip", "by hand")),
        ("http://[", ("coat", "http://[", "by hand")),
        ("http://a b/", ("coat", "http://a b/", "by hand")),
    ],
)
def test_an_address_that_does_not_serve_is_refused(tmp_path, url, told):
    with pytest.raises(InputError, match=facts(*told)):
        datasets.fetch("coat", tmp_path, accept_terms=True, url=url)
    assert list(tmp_path.iterdir()) == []


def test_more_than_the_limit_or_the_disk_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(downloading, "MOST", 100)
    refused(tmp_path, InputError, "coat", f"{len(COAT):,} bytes", 100, "by hand", coat=COAT)
    unsaid = Answer(COAT, headers={"Content-Length": None})
    refused(tmp_path, FormatError, "coat", "sent", "100 bytes", coat=unsaid)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=50))
    refused(tmp_path, InputError, "coat", f"{len(COAT):,} bytes", "disk", 50, coat=COAT)


def test_a_server_that_sends_more_than_the_known_size_is_refused(tmp_path, monkeypatch):
    known(monkeypatch, size=len(COAT) - 1)
    unsaid = Answer(COAT, headers={"Content-Length": None})
    refused(tmp_path, FormatError, "coat", "sent", f"{len(COAT) - 1:,} bytes", coat=unsaid)


@pytest.mark.parametrize(("version", "left"), [(None, set()), (ETAG, set(KEPT))])
def test_an_interruption_leaves_only_what_can_be_continued(tmp_path, version, left):
    def interrupt(_what, done):
        if done >= 1:
            raise KeyboardInterrupt

    with served(coat=Answer(COAT, version=version)) as address, pytest.raises(KeyboardInterrupt):
        datasets.fetch("coat", tmp_path / "data", accept_terms=True, url=f"{address}/coat", step=interrupt)
    assert {path.name for path in (tmp_path / "data").glob("*")} == left


def test_progress_is_told_in_rising_shares(tmp_path):
    told = []
    with served(coat=COAT) as address:
        datasets.fetch("coat", tmp_path, accept_terms=True, url=f"{address}/coat", step=lambda *step: told.append(step))
    assert told[-1] == ("unpacking", 1.0)
    assert [share for _, share in told] == sorted(share for _, share in told)


def test_a_folder_that_cannot_be_made_or_written_is_told(tmp_path):
    where = tmp_path / "no" / "where"
    refused(where, InputError, f"'{where}'", "written", coat=COAT)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=facts("folder", f"'{tmp_path / 'file'}'", "a file")):
        fetched(tmp_path / "file", coat=COAT)


def test_what_a_kill_left_beside_a_whole_data_set_goes_when_it_is_fetched_again(tmp_path):
    whole = fetched(tmp_path / "data", coat=COAT).folder
    for name in (".coat.part", ".coat.part.json"):
        (whole.parent / name).write_text("{}")
    with pytest.raises(InputError, match=facts("coat", "not empty")):
        fetched(whole.parent, coat=COAT)
    assert list(whole.parent.iterdir()) == [whole]
    next(path for path in whole.rglob("*") if path.is_file()).unlink()
    (whole.parent / ".coat.part").write_text("")  # it goes on once the folder is moved away
    with pytest.raises(InputError, match=facts("coat", "not empty")):
        fetched(whole.parent, coat=COAT)
    assert (whole.parent / ".coat.part").exists()


def test_a_disk_that_fills_up_is_told_and_the_download_is_kept(tmp_path, monkeypatch):
    def full(_name, _member, source, *_):
        source.close()
        raise OSError(28, "No space left on device")

    answer = Answer(COAT, version=ETAG)
    with monkeypatch.context() as disk:
        disk.setattr(unpacking, "_copy", full)
        refused(tmp_path, InputError, f"'{tmp_path / 'coat'}'", "written", "No space", "kept", left=KEPT, coat=answer)
    assert fetched(tmp_path, coat=answer).size == len(COAT)


def test_another_data_set_in_the_folder_is_left_alone(tmp_path):
    write("ml-100k", tmp_path)
    fetched(tmp_path, coat=COAT)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["coat", "ml-100k"]
