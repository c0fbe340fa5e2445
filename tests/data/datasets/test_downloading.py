"""Downloads that were cut or damaged: they go on where they were, or begin again, and never become something else."""

from __future__ import annotations

import hashlib
from http.server import BaseHTTPRequestHandler

import pytest

from openloop.data import datasets
from openloop.errors import FormatError, InputError
from tests.data.datasets.fetches import ASIDE, COAT, DATE, ETAG, KEPT, SHA256, fetched, known
from tests.data.datasets.originals import FILES
from tests.data.datasets.serving import Answer, served, zipped
from tests.facts import facts


def cut_then_whole(folder, version, *, other=None, at=100, **archive):
    """A download that is cut, and the same again; what the second request asked for."""
    with served(coat=(answer := Answer(COAT, version=version, cut=at))) as address:
        with pytest.raises(FormatError, match=facts("cut short", f"{at:,} of {len(COAT):,}")) as caught:
            datasets.fetch("coat", folder, accept_terms=True, url=f"{address}/coat")
        kept = {path.name for path in folder.iterdir()}
        answer.cut = None
        if other is not None:
            answer.body, answer.version = other
        try:
            got = datasets.fetch("coat", folder, accept_terms=True, url=f"{address}/coat")
        finally:
            asked = answer.asked[-1]
    assert {path.name for path in folder.iterdir()} == {"coat"}
    return got, asked, kept, str(caught.value)


@pytest.mark.parametrize("version", [ETAG, DATE], ids=["ETag", "date"])
def test_a_download_goes_on_where_it_was_cut(tmp_path, version):
    got, asked, kept, told = cut_then_whole(tmp_path, version)
    assert got.sha256 == SHA256
    assert got.size == len(COAT)
    assert asked["Range"] == "bytes=100-"
    assert asked["If-Range"] == next(iter(version.values()))
    assert kept == set(KEPT)
    assert "continues" in told


def test_what_was_changed_on_the_server_is_fetched_from_its_beginning(tmp_path):
    changed = zipped({f"coat/{path}": text + " " for path, text in FILES["coat"].items()})
    got, asked, _, _ = cut_then_whole(tmp_path, ETAG, other=(changed, {"ETag": '"v2"'}))
    assert asked["If-Range"] == '"v1"'
    assert got.sha256 == hashlib.sha256(changed).hexdigest()


def test_a_part_that_was_damaged_fails_its_check_and_is_put_aside(tmp_path, monkeypatch):
    known(monkeypatch, sha256=SHA256)
    answer = Answer(COAT, version=ETAG, cut=100)
    with served(coat=answer) as address:

        def again():
            return datasets.fetch("coat", tmp_path, accept_terms=True, url=f"{address}/coat")

        with pytest.raises(FormatError):
            again()
        (tmp_path / KEPT[0]).write_bytes(bytes(100))
        answer.cut = None
        with pytest.raises(FormatError, match=facts("SHA256", SHA256, tmp_path / ASIDE[0])):
            again()
        assert {path.name for path in tmp_path.iterdir()} == set(ASIDE)
        assert again().sha256 == SHA256  # from its beginning
    assert "Range" not in answer.asked[-1]


@pytest.fixture
def cut(tmp_path):
    """A download of which 100 bytes came, and what the server answers next."""
    answer = Answer(COAT, version=ETAG, cut=100)
    with served(coat=answer) as address:

        def again():
            return datasets.fetch("coat", tmp_path, accept_terms=True, url=f"{address}/coat")

        with pytest.raises(FormatError):
            again()
        answer.cut = None
        yield answer, again


def test_a_server_that_goes_on_with_another_version_is_asked_for_all_of_it(cut, monkeypatch):
    answer, again = cut
    usual = answer.to

    def ignoring(request):  # what If-Range says
        answer.version = {"ETag": '"v2"'}
        return usual({name: value for name, value in request.items() if name != "If-Range"})

    monkeypatch.setattr(answer, "to", ignoring)
    assert again().sha256 == SHA256
    assert [request.get("Range") for request in answer.asked] == [None, "bytes=100-", None]


def test_a_server_that_sends_less_than_was_asked_for_is_asked_again(cut, tmp_path, monkeypatch):
    answer, again = cut
    span = {"Content-Range": f"bytes 100-149/{len(COAT)}", "Content-Length": "50"} | ETAG
    with monkeypatch.context() as short:
        short.setattr(answer, "to", lambda _request: (206, span, COAT[100:150]))
        with pytest.raises(FormatError, match=facts("cut short", f"150 of {len(COAT):,}", "continues")):
            again()
    assert again().sha256 == SHA256
    assert answer.asked[-1]["Range"] == "bytes=150-"


def test_what_a_server_says_at_length_is_cut(tmp_path, monkeypatch):
    monkeypatch.setitem(BaseHTTPRequestHandler.responses, 404, ("x" * 9000, ""))
    for answer, told in (
        (Answer(status=404), "HTTP 404"),
        (Answer(status=302, headers={"Location": f"ftp://{'x' * 9000}"}), "url must begin with"),
    ):
        with pytest.raises(InputError, match=told) as caught:
            fetched(tmp_path, coat=answer)
        assert "x" * 201 not in str(caught.value)
