"""Checkpoint files: what a save holds comes back, and when one is due."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import InputError
from openloop.learners import checkpoints
from openloop.learners.checkpoints import Clock, Progress, check_checkpoint, resumed, save
from tests.facts import facts
from tests.learners.test_chains import Place, Walk, plan


def progress(sweep, kept, watched):
    one = {
        "draws": [{"x": np.full(2, k, np.float32)} for k in range(kept)],
        "traces": [{"x": float(k)} for k in range(watched)],
    }
    return Progress(
        sweep=sweep, states=[Place(np.ones(1)), Place(np.zeros(1))], draws=[list(one["draws"]) for _ in range(2)],
        traces=[list(one["traces"]) for _ in range(2)],
    )  # fmt: skip


def test_what_is_saved_comes_back(tmp_path):
    given = plan(checkpoint=tmp_path / "at.npz")
    save(progress(sweep=8, kept=1, watched=4), given)
    found = resumed(Walk(), given)
    assert found.sweep == 8
    assert [state.x.tolist() for state in found.states] == [[1.0], [0.0]]
    assert [[record["x"].tolist() for record in chain] for chain in found.draws] == [[[0.0, 0.0]]] * 2
    assert found.traces == [[{"x": 0.0}, {"x": 1.0}, {"x": 2.0}, {"x": 3.0}]] * 2


def test_what_an_interrupted_sweep_added_is_left_out(tmp_path):
    given = plan(checkpoint=tmp_path / "at.npz")
    save(progress(sweep=6, kept=1, watched=3), given)  # sweep 7 had begun to add
    found = resumed(Walk(), given)
    assert [len(chain) for chain in found.draws] == [0, 0]
    assert [len(chain) for chain in found.traces] == [2, 2]


def test_without_a_file_chains_begin(tmp_path):
    for path in (None, tmp_path / "none.npz"):
        found = resumed(Walk(), plan(checkpoint=path))
        assert (found.sweep, found.draws, found.traces) == (0, [[], []], [[], []])


@pytest.mark.parametrize(
    ("path", "told"),
    [(3, ("file", 3)), (True, ("file", "True")), ("", ("file", "''")), (".", ("file", "folder")),
     ("nowhere/walk.npz", ("nowhere", "create"))],
)  # fmt: skip
def test_what_cannot_be_a_checkpoint_is_refused(path, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=facts("Walk", "checkpoint", *told)):
        check_checkpoint("Walk", path)


def test_a_checkpoint_may_be_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert check_checkpoint("Walk", "~/walk.npz") == tmp_path / "walk.npz"
    assert check_checkpoint("Walk", None) is None


def test_a_checkpoint_is_due_now_and_then(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    clock = Clock()
    asked = []
    for seconds in (1, 58, 1, 1, 70):
        now[0] += seconds
        asked.append(clock.due())
    assert asked == [False, False, True, False, True]
