"""The same command gives the same bytes in another process, where $SOURCE_DATE_EPOCH is set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from openloop.support.clock import VARIABLE
from tests.audit_files import audit_files


def ran(folder: Path, hash_seed: str, *words: object) -> None:
    """A command of openloop in a process of its own, with another order of sets."""
    here = os.environ | {VARIABLE: "1700000000", "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-m", "openloop", *map(str, words)],
        cwd=folder,
        env=here,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 3), done.stderr


def outputs(folder: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names}


def test_json_and_report_of_an_audit_are_the_same_bytes(tmp_path):
    files = audit_files(tmp_path)
    words = (
        "audit",
        files / "log",
        f"a={files / 'a'}",
        f"b={files / 'b'}",
        "--propensity",
        "p",
        "--metric",
        "mae",
    )
    names = ("x.json", "x.html")
    found = []
    for seed in ("1", "2"):
        ran(tmp_path, seed, *words, "--json", "x.json", "--report", "x.html")
        found.append(outputs(tmp_path, names))
    assert found[0] == found[1]
    setting = json.loads(found[0]["x.json"])["setting"]
    assert (setting["created"], setting["seconds"]) == ("2023-11-14T22:13:20+00:00", 0.0)
    assert b"2023-11-14 22:13 UTC" in found[0]["x.html"]
    assert b"computing time" not in found[0]["x.html"]


def test_the_figures_of_a_check_and_the_demonstration_are_the_same_bytes(tmp_path):
    files = audit_files(tmp_path)
    checks = (
        "propensity",
        files / "log",
        "--model",
        "popularity",
        "--out",
        "p.csv",
        "--json",
        "c.json",
        "--figures",
        "c.html",
    )
    demo = ("demo", "--users", "60", "--items", "50", "--json", "d.json", "--report", "d.html")
    names = ("p.csv", "c.json", "c.html", "d.json", "d.html")
    found = []
    for seed in ("1", "2"):
        ran(tmp_path, seed, *checks)
        ran(tmp_path, seed, *demo)
        found.append(outputs(tmp_path, names))
    assert [name for name in names if found[0][name] != found[1][name]] == []
