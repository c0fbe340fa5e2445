"""Every process collects the same tests, at any second, and nothing is computed to do so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLLECT = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--assert=plain", "-n", "0"]
PLUGINS = ["-p", "no:cacheprovider", "-p", "tests.collecting"]


def collected(temporary: Path) -> list[str]:
    """What another process collects: later, with other hashes, and another folder for temporary files."""
    environment = os.environ | {"PYTHONHASHSEED": "1", "TMPDIR": str(temporary)}
    done = subprocess.run(
        [*COLLECT, *PLUGINS], cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_ids_depend_on_no_time_hash_address_or_path(tmp_path, request):
    # xdist stops where two workers collect different tests, as they do when an id holds the second of its making.
    found = collected(tmp_path)
    assert len(found) == len(set(found)) > 1000
    assert [name for name in found if str(ROOT) in name or " at 0x" in name] == []
    here = {item.nodeid for item in request.session.items}  # all, or those that were asked for
    assert here - set(found) == set()


def test_extras_are_asked_for_in_fixtures_alone():
    # Asked for elsewhere, a test would skip without the marker `extra`, or its whole module at import.
    word = "importor" + "skip"
    found = [path for path in (ROOT / "tests").rglob("*.py") if word in path.read_text(encoding="utf-8")]
    assert found == [ROOT / "tests" / "conftest.py"]
