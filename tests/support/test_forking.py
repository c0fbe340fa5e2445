"""In the child of a fork Polars has lost its threads: openloop refuses there what would wait for ever."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import multiprocessing, sys
import openloop as ol

def ask(queue, log):
    try:
        queue.put(len(ol.read(log)))
    except Exception as error:
        queue.put(f"{type(error).__name__}: {error}")

def begin(how, log):
    context = multiprocessing.get_context(how)
    queue = context.Queue()
    process = context.Process(target=ask, args=(queue, log))
    process.start()
    print(queue.get())
    process.join()

if __name__ == "__main__":
    log, before, how = sys.argv[1:]
    exec(before)
    begin(how, log)
"""
NOTHING, IMPORTED = "pass", "import polars as pl; pl.DataFrame({'x': [1, 2]})"
READ = "ol.read(log)"
OWN = "import polars as pl; pl.read_csv(log).sort('rating')"  # not by openloop


@pytest.fixture
def asked(tmp_path):
    """What a child says that reads a log, after `before` in its parent."""
    log, program = tmp_path / "log.csv", tmp_path / "program.py"
    log.write_text("user,item,rating\n1,1,5\n1,2,3\n2,1,4\n")
    program.write_text(PROGRAM)

    def ask(before, how):
        words = [sys.executable, program, log, before, how]
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=100).stdout

    return ask


@pytest.mark.parametrize("before", [READ, OWN])
def test_a_child_of_a_fork_is_told_to_spawn_instead_of_waiting_for_ever(asked, before):
    told = asked(before, "fork")
    assert told.startswith("OpenloopError: ")
    assert [word for word in ("Polars", "fork", 'get_context("spawn")') if word not in told] == []


@pytest.mark.parametrize("before", [NOTHING, IMPORTED])
def test_a_child_of_a_fork_before_polars_worked_reads(asked, before):
    assert asked(before, "fork") == "3\n"


def test_a_child_that_was_spawned_reads(asked):
    assert asked(READ, "spawn") == "3\n"
