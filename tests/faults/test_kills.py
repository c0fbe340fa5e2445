"""Commands that are killed or terminated leave old or new bytes, no temporary files, and a next run that succeeds.

`make faults` does the same fifty times each; here the moments are few, and fixed by a seed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.running import INSTALLED
from tests.faults.attempts import attack
from tests.faults.harness import CASES, alive, benches, leftovers

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench_of(tmp_path_factory):
    """The bench of a command, prepared once."""
    held = {}
    with benches(tmp_path_factory.mktemp("faults"), list(CASES)) as all_of_them:
        for name in CASES:
            held[name] = lambda: next(all_of_them)
        yield lambda name: _kept(held, name)


def _kept(held, name):
    if callable(held[name]):
        held[name] = held[name]()
        assert held[name].name == name
    return held[name]


@pytest.mark.parametrize("name", CASES)
def test_a_command_that_is_hit_leaves_old_or_new_bytes_and_the_next_run_succeeds(bench_of, name):
    counts = dict(attack(bench_of(name), 1, seed=len(name), again=False))
    assert len(counts) == 5
    assert {way: str(count) for way, count in counts.items() if not count.good} == {}


def test_a_program_from_the_shell_ends_in_order_too(tmp_path):
    process = subprocess.Popen(
        [INSTALLED, "demo", "--users", "3000", "--items", "3000", "--report", "r.html"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while "libpolars" not in _mapped(process.pid) and "_polars" not in _mapped(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=100)
    assert (process.returncode, told) == (143, "openloop: ended by SIGTERM\n")
    assert list(tmp_path.iterdir()) == []
    assert not alive(process.pid)


def _mapped(pid):
    """The libraries that a process has loaded."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:  # noqa: PTH123 (no file)
        return maps.read()


def test_what_a_kill_leaves_of_a_fit_on_disk_goes_with_the_next_fit(tmp_path):
    program = """
import os, sys, numpy as np, polars as pl, openloop as ol
from openloop.learners.blocks import disk
if sys.argv[1] == "die":
    disk._sort = lambda *_: os.kill(os.getpid(), 9)
rng = np.random.default_rng(0)
rows = pl.DataFrame({"user": np.repeat(np.arange(40), 10), "item": np.tile(np.arange(10), 40),
                     "rating": rng.integers(1, 6, 400).astype(float)})
ol.learners.MF(factors=2, solver="projected").fit(rows.lazy(), user="user", item="item", rating="rating")
"""
    env = os.environ | {"TMPDIR": str(tmp_path)}
    run = [sys.executable, "-c", program]
    assert subprocess.run([*run, "die"], env=env, check=False).returncode == -9
    assert [path.name.startswith("openloop-blocks.") for path in tmp_path.iterdir()] == [True]
    subprocess.run([*run, "live"], env=env, check=True)
    assert leftovers(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
