"""MovieLens: small files in its three formats, and the real ones where they are."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.data import datasets
from tests.data.datasets.originals import cells, write
from tests.facts import facts


@pytest.mark.parametrize(
    ("name", "rows", "times"),
    [
        ("ml-100k", [(186, 302, 3), (196, 242, 3), (196, 302, 1)], [891717742, 881250949, 878887116]),
        ("ml-1m", [(1, 661, 3), (1, 1193, 5), (2, 661, 4)], [978302109, 978300760, 978298413]),
        ("ml-10m", [(1, 122, 5), (1, 185, 4.5), (2, 122, 0.5)], [838985046, 838983525, 838983392]),
        ("ml-20m", [(1, 2, 3.5), (1, 29, 3.5), (2, 2, 4)], [1112486027, 1112484676, 974820889]),
        ("ml-25m", [(1, 296, 5), (2, 296, 3.5)], [1147880044, 1147868817]),
        ("ml-latest-small", [(1, 31, 2.5), (2, 31, 3)], [1260759144, 1260759179]),
    ],
)
def test_each_version_is_read_in_its_own_format(tmp_path, name, rows, times):
    log = datasets.load(name, write(name, tmp_path)).log
    assert cells(log) == rows
    assert log.time.tolist() == times


@pytest.mark.parametrize(
    ("name", "folder", "shape", "versions"),
    [
        ("ml-100k", "ml-100k", (943, 1_682, 100_000), []),
        ("ml-1m", "ml-1m-half", (2_999, 3_615, 487_650), ["2,999 users"]),
        ("ml-latest-small", "ml-latest-small", (671, 9_066, 100_004), [2016]),
    ],
)
def test_real_files_hold_what_is_documented(data_dir, name, folder, shape, versions):
    data = datasets.load(name, data_dir(folder).parent)
    log = data.log
    assert (log.n_users, log.n_items, len(log)) == shape
    for version, note in zip(versions, data.notes, strict=True):
        assert re.search(facts("version", version), note)
    assert np.isin(log.rating, np.arange(1, 11) / 2).all()
