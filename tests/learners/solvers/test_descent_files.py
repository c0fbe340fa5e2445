from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import FormatError, InputError
from openloop.learners.solvers.descent_files import begun, mark_of, save
from openloop.learners.solvers.projected import Ask, Descent
from tests.facts import facts


def asked(**changes):
    given = {"Q": np.ones((3, 2), np.float32), "c": 3.0, "penalty": np.ones(2), "scale": 1.5}
    return Ask(**given | changes)


@pytest.mark.parametrize("pairs", [0, 2])
def test_what_is_saved_comes_back(tmp_path, pairs):
    ask, path = asked(), tmp_path / "fit.npz"
    mark = mark_of(ask, 10, 0)
    arrays = [np.full((3, 2), k, np.float32) for k in range(pairs)]
    save(path, Descent(Q=2 * ask.Q, steps=arrays, changes=arrays[::-1], values=[5.0, 4.0]), mark)
    back = begun(path, ask, mark)
    assert back.values == [5.0, 4.0]
    assert np.array_equal(back.Q, 2 * ask.Q)
    assert [a.tolist() for a in back.steps] == [a.tolist() for a in arrays]
    assert [a.tolist() for a in back.changes] == [a.tolist() for a in arrays[::-1]]


def test_without_a_file_it_starts(tmp_path):
    ask = asked()
    for path in (None, tmp_path / "none.npz"):
        assert begun(path, ask, "").Q is ask.Q
    save(None, Descent(Q=ask.Q), "")


@pytest.mark.parametrize(
    "other",
    [{"Q": np.zeros((3, 2), np.float32)}, {"c": 2.0}, {"penalty": np.full(2, 2.0)}, {"scale": 1.0}, {"until": 0.1}],
)
def test_a_checkpoint_of_another_fit_is_refused(tmp_path, other):
    path = tmp_path / "fit.npz"
    save(path, Descent(Q=asked().Q, values=[1.0]), mark_of(asked(), 10, 0))
    with pytest.raises(InputError, match=facts("checkpoint", "fit.npz")):
        begun(path, asked(), mark_of(asked(**other), 10, 0))
    for rows, content in ((11, 0), (10, 1)):
        with pytest.raises(InputError, match=facts("checkpoint", "fit.npz")):
            begun(path, asked(), mark_of(asked(), rows, content))


def test_a_file_that_is_none_and_a_folder_that_is_none(tmp_path):
    save(tmp_path / "fit.npz", Descent(Q=asked().Q, values=[1.0]), "mark")
    whole = (tmp_path / "fit.npz").read_bytes()
    for content in (b"no", b"", whole[: len(whole) // 2]):
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(FormatError, match=facts("bad.npz")):
            begun(tmp_path / "bad.npz", asked(), "mark")
    for path in (tmp_path / "none" / "fit.npz", tmp_path):
        with pytest.raises(InputError, match=facts("checkpoint", "folder")):
            begun(path, asked(), "")
    with pytest.raises(InputError, match=facts("MF", "checkpoint", 5)):
        begun(5, asked(), "")
