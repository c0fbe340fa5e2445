"""Rows that are joined by ranges of users: the bytes of an audit are those of one range, and so are its refusals."""

from __future__ import annotations

import errno
import subprocess
import sys
import tempfile
from dataclasses import replace

import polars as pl
import pytest

from openloop.audits.auditing import conduct
from openloop.commands.audit.inputs import gather, run
from openloop.commands.audit.request import AuditRequest
from openloop.errors import InputError, OpenloopError
from openloop.sources.frames import parting
from openloop.support import leftovers
from tests.audit_files import audit_files, write

LIMITS = {"PART": 400, "RUN": 200, "GROUP": 20, "JOINED": 50}
CASES = {
    "ratings": {"models": ("a_all", "b_all"), "metrics": ("mae",), "open_loop": "sample"},
    "parts of a log": {"models": ("a_top", "b_top"), "metrics": ("recall@5", "map", "overlap@5"), "exclude": "train",
                       "running": "a"},
    "all scores": {"models": ("a_all", "b_all"), "metrics": ("mae", "recall@5", "coverage@5"), "exclude": "train"},
    "counts": {"models": ("a", "b"), "metrics": ("mae",), "exclude": "train", "propensity": "popularity"},
    "missing": {"models": ("a_top", "b"), "metrics": ("mae",), "missing": "drop"},
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Users are text."""
    made = audit_files(tmp_path_factory.mktemp("parts"), ".parquet")
    for path in made.folder.glob("*.parquet"):
        rows = pl.read_parquet(path)
        if "uid" in rows.columns and "wide" not in path.name:
            write(rows.with_columns(pl.format("u{}", "uid").alias("uid")), path)
    return made


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    """Where rows are put."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return tmp_path


def wanted(files, models=("a", "b"), log="log", **options):
    named = {key: files / options[key] for key in ("exclude", "open_loop") if key in options}
    known = {"users": files / "users", "items": files / "items", "stream": True, "propensity": "p"}
    given = tuple((name[0], files / name) for name in models)
    return AuditRequest(log=files / log, models=given, **(known | options | named))


def in_parts(monkeypatch):
    for name, value in LIMITS.items():
        monkeypatch.setattr(parting, name, value)


@pytest.mark.parametrize("case", CASES)
def test_an_audit_by_ranges_of_users_has_the_same_bytes(case, files, monkeypatch, place):
    asked, made = wanted(files, **CASES[case]), []
    whole = run(asked, "openloop audit").to_json()
    plain = parting.UserParts.each
    monkeypatch.setattr(parting.UserParts, "each", lambda parts, *given: made.append(parts) or plain(parts, *given))
    in_parts(monkeypatch)
    assert run(asked, "openloop audit").to_json() == whole
    assert {len(parts.cuts) > 1 for parts in made} == {True}
    assert list(place.iterdir()) == []


def test_clusters_have_users_of_all_ranges(files, monkeypatch):
    found = []
    for limits in (lambda _: None, in_parts):
        limits(monkeypatch)
        inputs = gather(wanted(files, ("a_all", "b_all"), metrics=("mae",), exclude="train"))
        with inputs.held:
            asked = replace(inputs.asked, max_users=20)
            audited = conduct(inputs.models, inputs.log, inputs.propensities, asked)
        assert any("20 clusters" in note for note in audited.notes)
        found.append(audited.to_json())
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["log", "a", "a_top"])
def test_a_row_that_is_there_twice_is_refused_in_the_same_words(name, files, monkeypatch, place, tmp_path):
    rows = pl.read_parquet(files / name)
    twice = write(pl.concat([rows, rows[3:4], rows[-1:]]), tmp_path / "twice.parquet")
    asked = wanted(files, log=twice)
    if name != "log":
        asked = replace(wanted(files), models=(("a", twice), ("b", files / "b")))
    told = []
    for limits in (lambda _: None, in_parts):
        limits(monkeypatch)
        with pytest.raises(OpenloopError, match="more than once") as error:
            run(asked, "")
        told.append(str(error.value))
    assert told[0] == told[1]
    assert [path.name for path in place.iterdir()] == ["twice.parquet"]


@pytest.mark.parametrize(("number", "told"), [(errno.ENOSPC, OSError), (errno.EACCES, InputError)])
def test_a_full_disk_is_not_taken_for_a_file_that_cannot_be_read(number, told, files, monkeypatch, place):
    in_parts(monkeypatch)

    def refuse(*_given):
        raise OSError(number, "no", str(place))

    monkeypatch.setattr(parting.UserParts, "each", refuse)
    with pytest.raises(told, match=place.name):
        run(wanted(files, metrics=("mae",)), "")
    assert list(place.iterdir()) == []


KILLED = """
import os, signal, sys, tempfile
from openloop.commands.audit.inputs import run
from openloop.commands.audit.request import AuditRequest
from openloop.sources.frames import parting
parting.PART, parting.RUN = 400, 200
plain = parting.UserParts.each
def each(parts, *given):
    plain(parts, *given)
    os.kill(os.getpid(), signal.SIGKILL)
parting.UserParts.each = each
log, a, b = sys.argv[1:]
run(AuditRequest(log=log, models=(("a", a), ("b", b)), propensity="p", stream=True, metrics=("mae",)), "")
"""


def test_what_a_killed_audit_left_goes_with_the_next_one(files, monkeypatch, place):
    words = [sys.executable, "-c", KILLED, *(str(files / name) for name in ("log", "a", "b"))]
    assert subprocess.run(words, env={"TMPDIR": str(place)}, check=False).returncode == -9
    (left,) = place.iterdir()
    assert {path.name for path in left.iterdir()} >= {"joined0", "rows0"}
    in_parts(monkeypatch)
    leftovers._swept.cache_clear()
    run(wanted(files, metrics=("mae",)), "")
    assert list(place.iterdir()) == []
