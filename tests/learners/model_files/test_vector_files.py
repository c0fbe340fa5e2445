"""Vector files: what is written scores the same when it is read, also by plain NumPy; bad files are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import (
    FormatError,
    InputError,
    OpenloopError,
)
from openloop.learners.model_files import vector_files
from openloop.learners.model_files.vector_files import write_vectors
from tests.facts import facts

FORMATS = (".npz", ".safetensors", ".parquet", ".pq")
IDS = {"numbers": ([70, 3, 11], [5, 900, 1, 44]), "text": (["u2", "ü", ""], ["m4", "m04", "日", "x y"])}
RNG = np.random.default_rng(0)
V, W, A, B = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 2)), RNG.normal(size=3), RNG.normal(size=4)
ALL = {"user_factors": V, "item_factors": W, "user_bias": A, "item_bias": B, "intercept": np.array(0.5)}


def vectors(kind: str = "numbers", **more: Any) -> dict[str, Any]:
    users, items = IDS[kind]
    return ALL | {"users": np.array(users), "items": np.array(items)} | more


def log(kind: str = "numbers") -> Feedback:
    rng = np.random.default_rng(1)
    cell = np.sort(rng.choice(60, 40, replace=False))
    name = (lambda n: np.arange(n) * 3 + 7) if kind == "numbers" else (lambda n: [f"n{k:02}" for k in range(n)])
    return Feedback.from_arrays(
        cell // 6, cell % 6, rng.integers(0, 2, 40), users=Vocabulary.of(name(10)), items=Vocabulary.of(name(6))
    )


def models() -> list[Any]:
    L = ol.learners
    return [
        L.MF(factors=2, rng=0), L.MF(factors=2, loss="logistic", rng=0), L.WMF(factors=2, rng=0), L.PureSVD(factors=2),
        L.Bias(), L.ADG(factors=2, updates=200, rng=0), L.Recalibrated(L.MF(2, rng=0), form="isotonic", rng=0),
        L.Recalibrated(L.MF(2, rng=0), rng=0),
        L.Factors(RNG.normal(size=(10, 2)), RNG.normal(size=(6, 2)).astype("f4")),
    ]  # fmt: skip


@pytest.fixture(scope="module", params=IDS)
def fitted(request) -> list[Any]:
    seen = log(request.param)
    return [model.fit(seen) for model in models()]


# -- there and back ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_what_is_written_is_read(fitted, ending, tmp_path):
    users = np.arange(10)
    u, i = np.indices((10, 6)).reshape(2, -1)
    for model in fitted:
        if model.linked and ending not in (".npz", ".safetensors"):
            continue
        model.to_vectors(tmp_path / f"v{ending}")
        again = ol.load(tmp_path / f"v{ending}")
        assert again.users_ == model.users_
        assert again.items_ == model.items_
        assert again.linked == model.linked
        # A table has one column for biases in single precision and the intercept in double.
        away = 1e-6 if ending in (".parquet", ".pq") else 0
        np.testing.assert_allclose(again.scores(users), model.scores(users), rtol=0, atol=away)
        np.testing.assert_allclose(again.predict(u, i), model.predict(u, i), rtol=0, atol=away)


def test_plain_numpy_reproduces_the_scores(fitted, tmp_path):
    for model in fitted:
        model.to_vectors(tmp_path / "v.npz")
        with np.load(tmp_path / "v.npz", allow_pickle=False) as z:
            found = z["user_factors"] @ z["item_factors"].T + z["user_bias"][:, None] + z["item_bias"] + z["intercept"]
            np.testing.assert_allclose(found, model.scores(np.arange(10)), rtol=0, atol=1e-6)
            assert z["users"].tolist() == model.users_.ids.tolist()
            assert z["items"].tolist() == model.items_.ids.tolist()
            assert ("output" in z) == model.linked


@given(st.lists(st.text(st.characters(exclude_categories=())), min_size=3, max_size=3, unique=True))
def test_text_ids_come_back_whatever_they_hold(tmp_path_factory, ids):
    file = tmp_path_factory.mktemp("ids") / "v.safetensors"
    write_vectors(file, vectors(users=np.array(ids, object)))
    assert ol.load(file).users_.ids.tolist() == sorted(ids)


def test_ids_that_a_format_would_change_are_refused(tmp_path):
    with pytest.raises(InputError, match=facts("users", "null", ".safetensors")):
        write_vectors(tmp_path / "v.npz", vectors(users=np.array(["a\0", "b", "c"], object)))
    with pytest.raises(InputError, match=facts("Unicode", ".safetensors")):
        write_vectors(tmp_path / "v.parquet", vectors(users=np.array(["\ud800", "b", "c"], object)))
    assert list(tmp_path.iterdir()) == []


# -- refusals ------------------------------------------------------------------------------------------------


def refused(file: Path, error: type[OpenloopError], *told: object) -> None:
    with pytest.raises(error, match=facts(file, *told)) as caught:
        ol.load(file)
    assert "\n" not in str(caught.value)


def test_objects_are_not_unpickled(tmp_path):
    np.savez(tmp_path / "v.npz", **vectors(users=np.array(["a", "b", "c"], object)))
    refused(tmp_path / "v.npz", FormatError, "'users'", "array of str")


def test_arrays_that_would_fill_the_memory_are_refused_before_they_are_unpacked(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "v.npz", **vectors(item_bias=np.zeros(2**20)))
    assert (tmp_path / "v.npz").stat().st_size < 2**15
    monkeypatch.setattr(vector_files, "total_memory", lambda: 2**23)
    refused(tmp_path / "v.npz", FormatError, "v.npz", "unpacks to 8 MiB", "half the memory", ".safetensors")


@pytest.mark.parametrize("ending", FORMATS)
def test_files_that_are_cut_or_of_another_format(tmp_path, ending):
    file = tmp_path / f"v{ending}"
    write_vectors(file, vectors())
    whole = file.read_bytes()
    for part in (b"no vectors at all", whole[: len(whole) // 2], whole[:-40]):
        file.write_bytes(part)
        refused(file, FormatError)
    file.write_bytes(b"")
    refused(file, FormatError, "empty")
    file.unlink()
    refused(file, InputError, "no such file")
