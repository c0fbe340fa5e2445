"""`openloop demo` as people and programs call it."""

from __future__ import annotations

import os
import subprocess

from openloop.commands.demo import estimates as demonstration
from tests.cli.running import INSTALLED, interrupted, run

SMALL = ("demo", "--users", "60", "--items", "120", "--seed", "3")


def test_the_installed_command_gives_the_same_bytes_on_one_thread():
    threads = dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    command = [INSTALLED, *SMALL, "--json", "-"]
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, check=True)
    assert done.stdout == run(*SMALL, "--json", "-").stdout_bytes
    assert done.stderr == b""


def test_an_interrupted_demo_leaves_no_file(monkeypatch, tmp_path):
    monkeypatch.setattr(demonstration, "demonstrate", interrupted)
    run("demo", "--json", str(tmp_path / "demo.json"))
    assert list(tmp_path.iterdir()) == []
