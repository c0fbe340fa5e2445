"""Vector files: what is written scores the same when it is read, also by plain NumPy; bad files are refused."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import (
    AlignmentError,
    DuplicateError,
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
SCORES = V @ W.T + A[:, None] + B + 0.5  # (3, 4)
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


def test_the_vectors_of_a_model_are_parameters_of_factors():
    model = ol.learners.MF(factors=2, loss="logistic", rng=0).fit(log())
    same = ol.learners.Factors(**model.to_vectors())
    np.testing.assert_array_equal(same.scores([3, 1]), model.scores([3, 1]))
    np.testing.assert_array_equal(same.predict([3, 1], [0, 5]), model.predict([3, 1], [0, 5]))


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_rows_in_any_order_are_found_by_id(kind, ending, dtype, tmp_path):
    given = vectors(kind, user_factors=V.astype(dtype), item_factors=W.astype(dtype))
    if dtype == "f2" and ending in (".parquet", ".pq"):
        given |= {name: given[name].astype("f4") for name in ("user_factors", "item_factors")}  # Polars has no half
    write_vectors(tmp_path / f"v{ending}", given)
    found, (users, items) = ol.load(tmp_path / f"v{ending}"), IDS[kind]
    codes = found.users_.codes(np.array(users, object if kind == "text" else None))
    columns = found.items_.codes(np.array(items, object if kind == "text" else None))
    np.testing.assert_allclose(found.scores(codes)[:, columns], SCORES, atol=1e-2 if dtype == "f2" else 1e-6)


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


def test_the_extension_says_the_format(tmp_path):
    with pytest.raises(FormatError, match=facts("'.csv'", ".npz", ".parquet")):
        ol.learners.Bias().fit(log()).to_vectors(tmp_path / "v.csv")


# -- files of other programs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
@pytest.mark.parametrize(
    ("factors", "bias", "ids"),
    [("factors", "bias", "s"), ("vectors", "biases", "_ids"), ("embeddings", "bias", "_ids")],
)
def test_other_names_are_read(tmp_path, ending, factors, bias, ids):
    arrays = {
        f"user_{factors}": V, f"item_{factors}": W, f"user_{bias}": A, f"item_{bias}": B, "intercept": np.array([0.5]),
        f"user{ids}": np.array(IDS["numbers"][0]), f"item{ids}": np.array(IDS["numbers"][1]), "alpha": np.array(3.0),
    }  # fmt: skip
    saving(tmp_path / f"v{ending}", arrays)
    found = ol.load(tmp_path / f"v{ending}")
    assert found.predict(found.users_.codes([70]), found.items_.codes([900])).item() == pytest.approx(SCORES[0, 1])


def saving(file: Path, arrays: dict[str, Any]) -> Path:
    np.savez(file, **arrays) if file.suffix == ".npz" else save_file(arrays, file)
    return file


def test_without_ids_rows_are_numbered(tmp_path):
    found = ol.load(saving(tmp_path / "v.npz", {"user_factors": V, "item_factors": W}))
    assert (found.users_.ids.tolist(), found.items_.ids.tolist()) == ([0, 1, 2], [0, 1, 2, 3])
    np.testing.assert_allclose(found.scores(range(3)), V @ W.T)
    assert found.users is None


# -- refusals ------------------------------------------------------------------------------------------------

ARRAYS = [
    ({"user_factors": None}, FormatError, ("'user_factors'", "item_factors")),
    ({"user_factors": V[:, :1]}, AlignmentError, ("(3, 1)", "(4, 2)")),
    ({"user_factors": V[0]}, AlignmentError, ("user_factors", "(2,)")),
    ({"item_factors": np.full((4, 2), np.nan)}, InputError, ("8", "item_factors", "finite")),
    ({"user_factors": V[:0], "user_bias": A[:0], "users": np.array([1])[:0]}, InputError, ("user_factors", "no rows")),
    ({"user_bias": A[:2]}, AlignmentError, ("user_bias", "2", "3")),
    ({"intercept": A}, AlignmentError, ("intercept", "(3,)")),
    ({"intercept": np.array(np.inf)}, InputError, ("intercept", "finite")),
    ({"users": np.array([1, 2])}, AlignmentError, ("users", "(2,)", "3")),
    ({"users": np.array([1, 2, 1])}, DuplicateError, ("users", "1")),
    ({"users": np.array([1.0, 2.0, 3.0])}, InputError, ("users", "float64")),
    ({"user_vectors": V}, FormatError, ("user_factors", "user_vectors", "one")),
    ({"user_biasses": A}, FormatError, ("'user_biasses'", "'user_biases'")),
    ({"global_mean": A[:1]}, FormatError, ("'global_mean'",)),
    ({"output": np.ones((3, 2))}, InputError, ("output", "(3, 2)")),
    ({"output": np.array([[1.0, 0.0], [0.0, 1.0]])}, InputError, ("output", "ascending")),
]


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
@pytest.mark.parametrize(("changed", "error", "told"), ARRAYS)
def test_arrays_that_do_not_fit_are_refused_in_one_line(tmp_path, ending, changed, error, told):
    file = tmp_path / f"v{ending}"
    saving(file, {key: value for key, value in (vectors() | changed).items() if value is not None})
    refused(file, error, *told)


def refused(file: Path, error: type[OpenloopError], *told: object) -> None:
    with pytest.raises(error, match=facts(file, *told)) as caught:
        ol.load(file)
    assert "\n" not in str(caught.value)


def test_objects_are_not_unpickled(tmp_path):
    np.savez(tmp_path / "v.npz", **vectors(users=np.array(["a", "b", "c"], object)))
    refused(tmp_path / "v.npz", FormatError, "'users'", "array of str")


def test_text_in_place_of_numbers(tmp_path):
    refused(saving(tmp_path / "v.npz", vectors(user_bias=np.array(list("abc")))), InputError, "user_bias", "numbers")
    refused(saving(tmp_path / "v.npz", vectors(output=np.array("cubic"))), InputError, "output", "'cubic'", "logistic")


def npy(header: bytes, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    "inside",
    [
        npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 1000), }\n"),
        npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (100, 2), }\n", bytes(80)),
        npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), " + b" " * 60000 + b"}\n"),
        npy(b"{'descr': '|O', 'fortran_order': False, 'shape': (3, 2), }\n", bytes(80)),
        npy(b"{'descr': __import__('os'), "),
        b"",
        b"no array",
    ],
    ids=["huge", "cut", "long header", "objects", "code", "empty", "text"],
)
def test_members_that_are_no_arrays(tmp_path, inside):
    file = tmp_path / "v.npz"
    np.savez(file, **vectors())
    whole = zipfile.ZipFile(file)
    with zipfile.ZipFile(tmp_path / "w.npz", "w") as bad:
        for name in whole.namelist():
            bad.writestr(name, inside if name == "item_factors.npy" else whole.read(name))
    refused(tmp_path / "w.npz", FormatError, "item_factors")


def test_arrays_that_would_fill_the_memory_are_refused_before_they_are_unpacked(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "v.npz", **vectors(item_bias=np.zeros(2**20)))
    assert (tmp_path / "v.npz").stat().st_size < 2**15
    monkeypatch.setattr(vector_files, "total_memory", lambda: 2**23)
    refused(tmp_path / "v.npz", FormatError, "v.npz", "unpacks to 8 MiB", "half the memory", ".safetensors")


@pytest.mark.parametrize("ending", FORMATS)
def test_a_name_that_is_not_utf_8_is_a_name(tmp_path, ending):
    file = tmp_path / f"v\udcff{ending}"
    write_vectors(file, vectors())
    assert ol.load(file).users_.ids.tolist() == sorted(vectors()["users"].tolist())


def test_long_names_of_arrays_are_cut(tmp_path):
    np.savez(tmp_path / "v.npz", **vectors(), **{"user_" + "x" * 9000: V})
    with pytest.raises(FormatError, match="user_xxx") as caught:
        ol.load(tmp_path / "v.npz")
    assert "x" * 200 not in str(caught.value)


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


def test_one_array_is_not_a_file_of_vectors(tmp_path):
    file = io.BytesIO()
    np.save(file, V)
    (tmp_path / "v.npz").write_bytes(file.getvalue())
    refused(tmp_path / "v.npz", FormatError, "one array", "numpy.savez")


def test_a_tensor_that_numpy_has_no_type_for(tmp_path):
    ends = {"user_factors": (3, 0, 12), "item_factors": (4, 12, 28)}
    header = json.dumps({
        name: {"dtype": "BF16", "shape": [n, 2], "data_offsets": place} for name, (n, *place) in ends.items()
    }).encode()  # fmt: skip
    (tmp_path / "v.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(28))
    refused(tmp_path / "v.safetensors", FormatError, "BF16", "float32")


def test_damaged_text_ids(tmp_path):
    write_vectors(tmp_path / "v.safetensors", vectors("text"))
    tensors = load_file(tmp_path / "v.safetensors")
    assert tensors["users.ends"].tolist() == [2, 4, 4]
    for ends in ([2, 4, 5], [4, 2, 4], [9, 9, 9]):
        save_file(tensors | {"users.ends": np.array(ends)}, tmp_path / "v.safetensors")
        refused(tmp_path / "v.safetensors", FormatError, "'users'")
    save_file(tensors | {"users": np.array([0xFF] * 4, np.uint8)}, tmp_path / "v.safetensors")
    refused(tmp_path / "v.safetensors", FormatError, "'users'")
