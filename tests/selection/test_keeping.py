"""Finished folds come back bit for bit, under the name of all they depend on; damaged and foreign files are refused."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.data.simulate import movie_lovers
from openloop.errors import FormatError
from openloop.learners import Bias
from openloop.selection.keeping import Checkpoint
from tests.facts import facts

LOG = movie_lovers(users=12, items=9).observe(1)


@pytest.fixture
def kept(tmp_path):
    return Checkpoint.of(tmp_path / "kept", metric="mse", seed=0)


def estimate(metric="mse", estimator="snips"):
    found = ol.evaluate({"bias": Bias().fit(LOG)}, LOG, metrics=[metric], estimators=[estimator])
    return next(iter(found.estimates.values())).linear()


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
