"""A disk that is full, and folders that are read only: one line, exit code 1 or 2, and the old bytes stay."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.audit_files import audit_files
from tests.faults.harness import ROOT, benches, fill, leftovers, small_disk, tree
from tests.others import as_another

pytestmark = pytest.mark.slow

NAMES = ["train", "propensity", "audit", "reproduce"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    audit_files(folder)
    return folder


def test_a_full_disk_is_one_line_and_leaves_the_old_bytes(tmp_path):
    found = {}
    with benches(tmp_path, NAMES) as all_of_them:
        for bench in all_of_them:
            bench.restore()
            with small_disk(tmp_path) as disk:
                full = {"limit": 400}  # bytes of a file, where no small disk can be made
                if disk is not None:
                    shutil.copytree(bench.folder, disk, dirs_exist_ok=True)
                    bench.folder, full = disk, {}
                    fill(disk)
                before = tree(bench.folder)
                code = bench.nursery.run(bench.folder, bench.words(2), **full)
                lines = [line for line in bench.nursery.stderr.splitlines() if "openloop: " in line]
                found[bench.name] = (code, tree(bench.folder) == before, leftovers(bench.folder), len(lines) > 0)
                assert re.search("full|larger|No space|too large", "\n".join(lines)), bench.nursery.stderr
                assert "Traceback" not in bench.nursery.stderr
    assert found == dict.fromkeys(NAMES, (1, True, [], True))


@pytest.fixture
def open_place():
    """A folder below folders that another user may enter, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def openloop(*words, cwd, **env):
    """A command as another user, who has no home."""
    settings = {
        "HOME": "/nonexistent",
        "NUMBA_CACHE_DIR": "/nonexistent",
        "COLUMNS": "200",
        "XDG_CACHE_HOME": "/nonexistent",
    }
    program = [*as_another(), sys.executable, "-m", "openloop", *map(str, words)]
    return subprocess.run(
        program, capture_output=True, text=True, check=False, cwd=cwd, env=os.environ | settings | env
    )


def fit(inputs, out):
    names = ("--user", "uid", "--item", "mid", "--rating", "stars")
    return ("train", inputs / "log.csv", "--model", "mf", "--factors", "2", *names, "--out", out)


def test_a_folder_that_is_read_only_is_refused_before_the_work(inputs, open_place):
    out = open_place / "m.safetensors"
    out.write_text("old")
    open_place.chmod(0o555)
    done = openloop(*fit(inputs, out), cwd=open_place)
    open_place.chmod(0o755)
    assert done.returncode == 2
    assert "writable" in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name: path.read_text() for path in open_place.iterdir()} == {"m.safetensors": "old"}


def test_an_installation_that_is_read_only_works_without_a_home(inputs, open_place):
    package, work, temporary = (open_place / name for name in ("package", "work", "tmp"))
    shutil.copytree(ROOT / "src", package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (package, *package.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    for folder in (work, temporary):
        folder.mkdir()
        folder.chmod(0o1777)
    env = {"PYTHONPATH": str(package), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    done = openloop(*fit(inputs, work / "m.safetensors"), cwd=work, **env)
    for path in (package, *package.rglob("*")):
        path.chmod(0o755)  # or pytest cannot remove it
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert [path.name for path in work.iterdir()] == ["m.safetensors"]
    assert [path.name.startswith("openloop-numba-") for path in temporary.iterdir()] == [True]
    assert list(package.rglob("*.nbi")) == []
