"""Files of arrays: what is read is what was written, into this very file, or nothing."""

from __future__ import annotations

import numpy as np

from openloop.studies.kit.kept_arrays import digest_of, keep, kept

ARRAYS = {"x": np.arange(6.0).reshape(2, 3).T, "n": np.array(3), "name": np.array(["a", "é"])}


def test_arrays_come_back(tmp_path):
    assert keep(tmp_path / "a.npz", ARRAYS) is None
    found = kept(tmp_path / "a.npz")
    assert list(found) == list(ARRAYS)
    for name, values in ARRAYS.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype


def test_a_file_that_would_run_code_is_absent(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([object()]), allow_pickle=True)
    assert kept(tmp_path / "a.npz") is None


def test_digests_tell_arrays_apart():
    like = {"x": ARRAYS["x"].copy(order="C"), "n": ARRAYS["n"], "name": ARRAYS["name"]}
    assert digest_of(like) == digest_of(dict(reversed(ARRAYS.items())))
    others = [ARRAYS | {"x": ARRAYS["x"].T}, ARRAYS | {"n": np.array(3.0)}, {"y": ARRAYS["x"]}]
    assert len({digest_of(given) for given in (ARRAYS, *others)}) == 4
