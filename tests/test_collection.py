"""Every process collects the same tests, at any second, and nothing is computed to do so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLLECT = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--assert=plain", "-n", "0"]
PLUGINS = ["-p", "no:cacheprovider", "-p", "tests.collecting"]


def collecting(hash_seed: int, temporary: Path) -> subprocess.Popen[str]:
    temporary.mkdir()
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed), "TMPDIR": str(temporary)}
    return subprocess.Popen([*COLLECT, *PLUGINS], cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE)


def listed(process: subprocess.Popen[str]) -> list[str]:
    text, _ = process.communicate()
    assert process.returncode == 0, text[-3000:]
    return [line for line in text.splitlines() if "::" in line]


def test_ids_depend_on_no_time_hash_address_or_path(tmp_path):
    # xdist stops where two workers collect different tests, as they do when an id holds the second of its making.
    first = collecting(1, tmp_path / "one")
    time.sleep(1.1)
    second = collecting(2, tmp_path / "two")
    one, two = listed(first), listed(second)
    assert one == two
    assert len(one) == len(set(one)) > 1000
    assert [name for name in one if str(ROOT) in name or " at 0x" in name] == []


def test_extras_are_asked_for_in_fixtures_alone():
    # Asked for elsewhere, a test would skip without the marker `extra`, or its whole module at import.
    word = "importor" + "skip"
    found = [path for path in (ROOT / "tests").rglob("*.py") if word in path.read_text(encoding="utf-8")]
    assert found == [ROOT / "tests" / "conftest.py"]
