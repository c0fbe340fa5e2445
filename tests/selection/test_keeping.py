"""Finished folds come back bit for bit, under the name of all they depend on; damaged and foreign files are refused."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import openloop as ol
from openloop.data.simulate import movie_lovers
from openloop.errors import FormatError, InputError
from openloop.learners import MF, Bias
from openloop.selection.keeping import Checkpoint
from tests.facts import facts

LOG = movie_lovers(users=12, items=9).observe(1)


@pytest.fixture
def kept(tmp_path):
    return Checkpoint.of(tmp_path / "kept", metric="mse", seed=0)


def estimate(metric="mse", estimator="snips"):
    found = ol.evaluate({"bias": Bias().fit(LOG)}, LOG, metrics=[metric], estimators=[estimator])
    return next(iter(found.estimates.values())).linear()


@pytest.mark.parametrize(
    ("metric", "estimator"),
    [("mse", "ips"), ("rmse", "snips"), ("adg", "snips"), ("auc", "naive"), ("mae", "stratified")],
)
def test_an_estimate_comes_back_with_the_same_bits(kept, metric, estimator):
    given = estimate(metric, estimator)
    assert kept.read(Bias(), 1) is None
    kept.keep(Bias(), 1, given)
    found = kept.read(Bias(), 1)
    for mean in (lambda x: x, lambda x: (x + given + x) * (1 / 3)):
        a, b = mean(given), mean(found)
        assert a.value == b.value
        np.testing.assert_array_equal(a.stderr, b.stderr)  # nan is itself
        np.testing.assert_array_equal(a.influence, b.influence)
        np.testing.assert_array_equal(a.columns, b.columns)


def test_a_reason_comes_back(kept):
    kept.keep(Bias(), 2, "λ is “odd”; pass another")
    assert kept.read(Bias(), 2) == "λ is “odd”; pass another"


def test_every_difference_has_a_file_of_its_own(tmp_path, kept):
    others = [Checkpoint.of(kept.folder, metric="mae", seed=0), Checkpoint.of(kept.folder, metric="mse", seed=1)]
    files = {kept.file(Bias(), 1), kept.file(Bias(), 2), kept.file(Bias(3.0), 1), kept.file(MF(), 1)}
    files |= {other.file(Bias(), 1) for other in others}
    assert len(files) == 6
    assert Checkpoint.of(tmp_path / "kept", seed=0, metric="mse").file(Bias(), 1) == kept.file(Bias(), 1)


def test_another_version_of_openloop_computes_again(kept, monkeypatch):
    monkeypatch.setattr("openloop.selection.keeping.VERSION", "99")
    assert Checkpoint.of(kept.folder, metric="mse", seed=0).file(Bias(), 1) != kept.file(Bias(), 1)


def cut(file):
    file.write_bytes(file.read_bytes()[:-30])


def flip(file):
    content = bytearray(file.read_bytes())
    at = content.index(np.float64(estimate().value).tobytes())
    content[at] ^= 1
    file.write_bytes(bytes(content))


def swap(file):
    other = Checkpoint.of(file.parent, metric="mse", seed=0)
    other.keep(Bias(7.0), 1, estimate())
    other.file(Bias(7.0), 1).replace(file)


def lengthen(file):
    with np.load(file) as held:
        content = {name: held[name] for name in held.files}
    np.savez(file, **content | {"influence": np.append(content["influence"], 0.0)})


def lack(file):
    with np.load(file) as held:
        content = {name: held[name] for name in held.files if name != "deviations"}
    np.savez(file, **content)


DAMAGES = [cut, flip, swap, lengthen, lack, lambda f: f.write_bytes(b""), lambda f: f.write_text("mine, do not touch")]


@pytest.mark.parametrize("damage", DAMAGES, ids=["cut", "flip", "swap", "lengthen", "lack", "empty", "foreign"])
def test_a_damaged_or_foreign_file_is_refused_and_stays(kept, damage):
    kept.keep(Bias(), 1, estimate())
    file = kept.file(Bias(), 1)
    damage(file)
    before = file.read_bytes()
    with pytest.raises(FormatError, match=facts(file, "delete")):
        kept.read(Bias(), 1)
    assert file.read_bytes() == before


def test_files_of_arrays_of_objects_are_not_run(kept):
    np.savez(kept.file(Bias(), 1), key=np.array([print], object))
    with pytest.raises(FormatError, match=facts("damaged", "delete")):
        kept.read(Bias(), 1)


def test_threads_write_whole_files_with_the_usual_mode(kept):
    mask = os.umask(0)
    os.umask(mask)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda fold: kept.keep(Bias(), fold, estimate()), range(40)))
    assert {stat.S_IMODE(file.stat().st_mode) for file in kept.folder.iterdir()} == {0o666 & ~mask}
    assert os.umask(mask) == mask
    assert len(list(kept.folder.iterdir())) == 40


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match=facts("checkpoint=", tmp_path / "taken", "folder")):
        Checkpoint.of(tmp_path / "taken")
