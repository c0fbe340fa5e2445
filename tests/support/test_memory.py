"""Memory that a process may have: as control groups of both versions and `ulimit` say, on made-up machines and here."""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys

import pytest

from openloop.support.memory import free_memory, limits, total_memory

GIB = 2**30
UNLIMITED = 9_223_372_036_854_771_712  # what version 1 says where there is no limit
PAGE = os.sysconf("SC_PAGE_SIZE")


def machine(root, files):
    """A machine of which these files are known, with 100 GiB free."""
    known = {"proc/meminfo": f"MemTotal: 1 kB\nMemAvailable: {100 * 2**20} kB\n"} | files
    for name, text in known.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def group(folder, **values):
    return {f"sys/fs/cgroup/{folder}/{name.replace('__', '.')}": f"{value}\n" for name, value in values.items()}


V2 = {"proc/self/cgroup": "0::/a/b\n"}
V1 = {"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/f00\n"}


def test_without_limits_what_the_system_has_is_free(tmp_path):
    assert free_memory(machine(tmp_path, {})) == 100 * GIB
    none = group(".", memory__current=7) | group("a/b", memory__max="max", memory__high="max", memory__current=5)
    assert free_memory(machine(tmp_path, V2 | none)) == 100 * GIB


def test_a_control_group_of_version_2_leaves_what_is_not_used(tmp_path):
    own = group("a/b", memory__max=8 * GIB, memory__current=5 * GIB, memory__stat=f"anon 1\ninactive_file {GIB}")
    assert free_memory(machine(tmp_path, V2 | own)) == 4 * GIB  # pages of files can be dropped
    assert total_memory(tmp_path) == min(8 * GIB, total_memory())


@pytest.mark.parametrize("tight", ["a/b", "a", "."])
@pytest.mark.parametrize("name", ["memory__max", "memory__high"])
def test_the_tightest_of_nested_groups_counts(tmp_path, tight, name):
    wide = [
        group(folder, memory__max=50 * GIB, memory__high="max", memory__current=GIB) for folder in ("a/b", "a", ".")
    ]
    files = wide[0] | wide[1] | wide[2] | group(tight, **{name: 3 * GIB})
    assert free_memory(machine(tmp_path, V2 | files)) == 2 * GIB


def test_a_control_group_of_version_1(tmp_path):
    own = group("memory/docker/f00", memory__limit_in_bytes=6 * GIB, memory__usage_in_bytes=4 * GIB,
                memory__stat=f"inactive_file 9\ntotal_inactive_file {GIB}")  # fmt: skip
    outer = group("memory", memory__limit_in_bytes=UNLIMITED, memory__usage_in_bytes=90 * GIB)
    assert free_memory(machine(tmp_path, V1 | own | outer)) == 3 * GIB


def test_a_container_sees_its_own_group_as_the_outermost(tmp_path):
    outer = group("memory", memory__limit_in_bytes=2 * GIB, memory__usage_in_bytes=GIB)
    assert free_memory(machine(tmp_path, V1 | outer)) == GIB
    assert free_memory(machine(tmp_path / "v2", V2 | group(".", memory__max=GIB, memory__current=0))) == GIB


def test_more_used_than_allowed_leaves_nothing(tmp_path):
    assert free_memory(machine(tmp_path, V2 | group("a/b", memory__max=GIB, memory__current=2 * GIB))) == 0


@pytest.mark.parametrize("text", ["", "much", "-1", "\x00\xff"])
def test_what_cannot_be_read_is_no_limit(tmp_path, text):
    files = {"proc/self/cgroup": text, "proc/meminfo": text} | group(".", memory__max=text, memory__current=text)
    assert free_memory(machine(tmp_path, files)) == math.inf


def test_ulimits_count_what_is_mapped(tmp_path, monkeypatch):
    given = {resource.RLIMIT_AS: 4 * GIB, resource.RLIMIT_DATA: 3 * GIB}
    monkeypatch.setattr(resource, "getrlimit", lambda which: (given[which], resource.RLIM_INFINITY))
    files = {"proc/self/statm": f"{GIB // PAGE} 9 9 9 0 {2 * GIB // PAGE} 0\n"}
    assert free_memory(machine(tmp_path, files)) == GIB  # 3 - 2 of data, 4 - 1 of addresses
    given[resource.RLIMIT_DATA] = resource.RLIM_INFINITY
    assert free_memory(tmp_path) == 3 * GIB
    assert total_memory(tmp_path) == 4 * GIB


def test_this_machine_says_how_much_there_is():
    assert total_memory() > 2**28
    assert 2**20 < free_memory() <= total_memory()
    code = "from openloop.support.memory import *; print(free_memory(), total_memory())"
    limited = f"ulimit -v {2 * 2**20}; exec {sys.executable} -c '{code}'"
    got = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=True).stdout.split()
    assert float(got[0]) < 2 * GIB == int(got[1])
    assert all(limit.most > 0 for limit in limits())
