"""Equal values have equal marks in every process, and what changes a number changes the mark."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from openloop.core.feedback import Vocabulary
from openloop.data.simulate import movie_lovers
from openloop.errors import InputError
from openloop.learners import MF, Bias
from openloop.selection.marks import log_mark, mark
from tests.facts import facts

VALUES = [
    None, True, 1, 1.0, "1", np.float32(1), np.float64(1), np.array([1.0]), np.array([[1.0]]), np.array([1]), [1], (1,),
    [1, [2]], [[1], 2], {"a": 1}, {"a": 2}, {"b": 1}, np.array(["a"], object), np.random.default_rng(0),
    np.random.default_rng(1), Vocabulary.range(3), Vocabulary.of(["a", "b"]), MF(), MF(3), Bias(), [MF(), (MF(3), 0.5)],
    pl.DataFrame({"a": [1]}), pl.DataFrame({"b": [1]}), "', '",
]  # fmt: skip


def test_marks_of_different_values_differ():
    assert len({mark(value, "x") for value in VALUES}) == len(VALUES)


def test_marks_of_equal_values_are_equal():
    assert mark(MF(3, rng=np.random.default_rng(0)), "x") == mark(MF(factors=3, rng=np.random.default_rng(0)), "x")
    assert mark({"a": 1, "b": 2}, "x") == mark({"b": 2, "a": 1}, "x")
    columns = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert mark(columns, "x") == mark(np.ascontiguousarray(columns), "x")


def test_another_process_says_the_same():
    program = "from openloop.learners import MF; from openloop.selection.marks import mark; print(mark(MF(3), 'x'))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == mark(MF(3), "x")


def test_a_log_is_known_by_all_that_a_fit_may_use():
    log = movie_lovers(users=12, items=9).observe(1)
    half = np.arange(len(log)) % 2 == 0
    changed = [
        log, log.take(half), replace(log, rating=log.rating + 1), replace(log, propensity=None),
        replace(log, propensity=log.propensity / 2), replace(log, weight=log.propensity),
        replace(log, share=0.5), replace(log, positives=True), replace(log, users=Vocabulary.range(log.n_users + 1)),
        replace(log, items=Vocabulary(log.items.ids + 1)),
    ]  # fmt: skip
    assert len(set(map(log_mark, changed))) == len(changed)
    assert log_mark(replace(log, notes=("read twice",))) == log_mark(log)


def test_a_learner_from_elsewhere_is_known_by_the_text_of_its_module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    found = []
    for constant in (1, 2):
        (tmp_path / f"mine{constant}.py").write_text(
            f"from openloop.learners import Bias\nC = {constant}\nclass Mine(Bias):\n    def f(self): return C\n"
        )
        module = __import__(f"mine{constant}")
        module.Mine.__module__, sys.modules["mine"] = "mine", module
        found.append(mark(module.Mine(), "x"))
        del sys.modules["mine"]
    assert found[0] != found[1]


def test_what_has_no_mark_is_refused():
    with pytest.raises(InputError, match=facts("checkpoint=", "MF.rng", "object")):
        mark(MF(rng=object()), "learner")
    with pytest.raises(InputError, match=facts("checkpoint=", "MF.loss", "function")):
        mark(MF(loss=lambda: 0), "learner")
    homeless = type("Homeless", (Bias,), {"__module__": "no_such_file"})
    with pytest.raises(InputError, match=facts("checkpoint=", "Homeless", "no_such_file")):
        mark(homeless(), "learner")
