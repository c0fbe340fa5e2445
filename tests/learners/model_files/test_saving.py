"""Model files: the same bits after loading, and a clear error for every file that is not one."""

from __future__ import annotations

import json
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import FormatError, InputError, UndefinedError
from openloop.learners import MF, Exposure, Features, Recalibrated, Stack
from openloop.learners.adapters.factors import Factors
from openloop.learners.base import FactorLearner
from openloop.learners.baselines import Bias, GlobalAverage, Popularity, Random
from openloop.learners.model_files import kinds, saving
from openloop.learners.pure_svd import PureSVD
from tests.facts import facts

IDS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=9, unique=True) | st.lists(
    st.text(st.characters(exclude_categories=())), min_size=2, max_size=9, unique=True
)


@st.composite
def fitted(draw: st.DrawFn) -> Any:
    """A model of any kind, on any ids."""
    users, items = Vocabulary.of(draw(IDS)), Vocabulary.of(draw(IDS))
    U, I, seed = len(users), len(items), draw(st.integers(0, 99))
    rng = np.random.default_rng(seed)
    cell = rng.choice(U * I, max(1, U * I // 2), replace=False)
    log = Feedback.from_arrays(cell // I, cell % I, rng.integers(1, 6, len(cell)), users=users, items=items)
    dtype, order = draw(st.sampled_from(["f2", "f4", "f8", ">f4"])), draw(st.sampled_from("CF"))
    V, W = (np.asarray(rng.normal(size=(n, 3)), dtype, order=order) for n in (U, I))
    models = [
        Random(rng=seed),
        Random(rng=np.random.default_rng(seed)),
        GlobalAverage(),
        Popularity(),
        Bias(reg=seed / 7),
        PureSVD(factors=2, rng=np.random.Generator(np.random.MT19937(seed))),
        Factors(V, W, W[:U, 0] if U <= I else None, W[:, 1], 1 / 3),
        Factors(V, W, users=users.ids[::-1], items=items.ids.tolist(), unknown="zero"),
    ]
    return draw(st.sampled_from(models)).fit(log, rng.exponential(size=len(log)) + 0.1)


def bits(model: Any) -> tuple[Any, ...]:
    """What the model answers, as bytes."""
    U, I = len(model.users_), len(model.items_)
    scores, u, i = model.scores(np.arange(U)), *np.indices((U, I)).reshape(2, -1)
    predicted = model.predict(u, i)
    return scores.dtype, scores.tobytes(), predicted.dtype, predicted.tobytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("models")


def model_of(seed: int = 0) -> Bias:
    users, items = Vocabulary.of(["ada", "ben", "cyd"]), Vocabulary.of([10, 20, 30, 40])
    return Bias(reg=0.5).fit(
        Feedback.from_arrays([0, 1, 2, 2], [0, 1, 2, 3], [1, 5, 3, seed], users=users, items=items)
    )


# -- there and back ------------------------------------------------------------------------------------------


@given(fitted())
def test_a_loaded_model_answers_bit_for_bit(folder, model):
    path = folder / "model.safetensors"
    model.save(path)
    loaded = ol.load(path)
    assert type(loaded) is type(model)
    assert bits(loaded) == bits(model)
    assert loaded.users_ == model.users_
    assert loaded.items_ == model.items_
    assert loaded.notes_ == model.notes_
    assert set(vars(loaded)) == set(vars(model))
    # Saved again it is the same file.
    first = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == first


@given(fitted())
def test_parameters_survive(folder, model):
    model.save(folder / "model.safetensors")
    loaded, unused = ol.load(folder / "model.safetensors"), clone(model)
    log = Feedback.from_arrays([0, 1], [1, 0], [1, 2], users=model.users_, items=model.items_)
    assert bits(clone(loaded).fit(log)) == bits(unused.fit(log))


SMALL = {
    "Exposure": lambda: Exposure(rank=2),
    "Features": lambda: Features(item_features=np.arange(10)[:, None]),
    "OrdinalMF": lambda: ol.learners.OrdinalMF(sweeps=20, burn=10, thin=5),
    "Recalibrated": lambda: Recalibrated(Bias(reg=2.0)),
    "Stack": lambda: Stack([(MF(factors=2), 0.5), Exposure(rank=1)]),
}


@pytest.mark.parametrize("name", sorted(set(kinds.SAVED) - {"Factors"}))
def test_every_learner_can_be_saved(name, tmp_path):
    rng = np.random.default_rng(0)
    u, i = np.nonzero(rng.random((12, 10)) < 0.6)
    users, p = Vocabulary.of([f"é{n}" for n in range(12)]), np.full(len(u), 0.6)  # p for those that need it
    log = Feedback.from_arrays(u, i, rng.integers(1, 6, len(u)), users=users, items=10, propensity=p)
    model = SMALL.get(name, getattr(ol.learners, name))()
    if "factors" in model.get_params():
        model.set_params(factors=3)
    model.fit(log, **({"propensities": np.full(len(log), 0.5)} if model.takes_weights else {}))
    model.save(tmp_path / "model")
    assert bits(ol.load(tmp_path / "model")) == bits(model)


def test_learned_arrays_may_be_written_and_vocabularies_may_not(tmp_path):
    model_of().save(tmp_path / "model")
    loaded = ol.load(tmp_path / "model")
    loaded.user_bias_[0] = 1
    assert not loaded.users_.ids.flags.writeable


def test_many_ids_are_held_outside_the_header(tmp_path):
    n = 50_000
    users = Vocabulary.of([f"user-{u:07}" for u in range(n)])
    log = Feedback.from_arrays([0, n - 1], [0, 1], [1, 2], users=users, items=2)
    Popularity().fit(log).save(tmp_path / "model")
    size = struct.unpack("<Q", (tmp_path / "model").read_bytes()[:8])[0]
    assert size < 2000
    assert ol.load(tmp_path / "model").users_ == users


def test_the_header_says_what_the_file_is(tmp_path):
    model_of().save(tmp_path / "model")
    with safe_open(tmp_path / "model", framework="numpy") as file:
        header = json.loads(file.metadata()["openloop"])
    assert header["class"] == "Bias"
    assert header["library"] == ol.__version__
    assert header["format"] == 1
    assert header["params"] == {"reg": 0.5}
    assert header["state"]["users_"] == {"vocabulary": {"strings": "state.users_"}}


def test_factors_that_were_not_fitted_are_saved_in_the_order_of_their_ids(tmp_path):
    model = Factors(np.eye(2), np.ones((3, 2)), users=["b", "a"])
    model.save(tmp_path / "model")
    loaded = ol.load(tmp_path / "model")
    assert loaded.users_.ids.tolist() == ["a", "b"]
    assert bits(loaded) == bits(model)
    assert loaded.users == ["b", "a"]


def test_the_home_folder_is_known(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    model_of().save("~/model")
    assert (tmp_path / "model").exists()
    assert bits(ol.load("~/model")) == bits(model_of())


# -- writing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, error):
    path = tmp_path / "model"
    model_of().save(path)
    before = path.read_bytes()

    def half(_tensors, file, metadata):
        Path(file).write_bytes(b"half")
        raise error

    monkeypatch.setattr("safetensors.numpy.save_file", half)
    with pytest.raises(error):
        model_of(2).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError, match=facts("Bias", "fit(feedback)")):
        Bias().save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


class Own(FactorLearner):
    """A learner of another package."""


class Named(Bias):
    """It takes the name of one of ours."""


def test_models_of_other_packages_cannot_be_saved(tmp_path):
    Named.__name__ = "Bias"
    cornac = object.__new__(ol.learners.CornacModel)
    for model in (Own(), Named(), object(), cornac):
        with pytest.raises(UndefinedError, match=facts(type(model).__name__, "PureSVD", "ol.learners.Factors")):
            saving.save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_parameter_that_no_file_can_hold_is_named(tmp_path):
    model = model_of()
    model.reg = print
    with pytest.raises(UndefinedError, match=facts("save", "reg", "builtin_function_or_method")):
        model.save(tmp_path / "model")


def test_a_model_that_is_not_finite_is_not_saved(tmp_path):
    model = model_of()
    model.item_bias_[2] = np.nan
    with pytest.raises(InputError, match=facts("Bias", "item_bias_", "finite")):
        model.save(tmp_path / "model")


@pytest.mark.parametrize(("path", "why"), [("no/model", "not exist"), (".", "folder")])
def test_a_place_that_takes_no_file_is_refused(tmp_path, monkeypatch, path, why):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=facts((tmp_path / path).resolve(), why)):
        model_of().save(path)


# -- files that are no models --------------------------------------------------------------------------------


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=facts(tmp_path / "model", "model.save(path)")):
        ol.load(tmp_path / "model")
    with pytest.raises(InputError, match=facts(tmp_path, "folder")):
        ol.load(tmp_path)


@pytest.mark.parametrize(
    "content", [b"user,item,rating\n1,2,3\n" * 9, pickle.dumps({"a": 1}), b"\0" * 99, b"x", b'{"a": 1}', b"\xff" * 20]
)
def test_files_of_other_formats(tmp_path, content):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(FormatError, match=facts(tmp_path / "model", "not a safetensors")):
        ol.load(tmp_path / "model")


def test_a_pipe_is_not_called_empty(tmp_path):
    os.mkfifo(tmp_path / "m.safetensors")
    with pytest.raises(InputError, match=facts("m.safetensors", "ordinary file", "pipe", "save it first")):
        ol.load(tmp_path / "m.safetensors")


def test_an_empty_file(tmp_path):
    (tmp_path / "model").touch()
    with pytest.raises(FormatError, match=facts(tmp_path / "model", "0 bytes")):
        ol.load(tmp_path / "model")


@pytest.fixture(scope="module")
def written(folder) -> bytes:
    model_of().save(folder / "whole")
    return (folder / "whole").read_bytes()


@given(st.data())
def test_a_truncated_file(folder, written, data):
    (folder / "cut").write_bytes(written[: data.draw(st.integers(9, len(written) - 1))])
    with pytest.raises(FormatError, match=facts(folder / "cut", "cut off")):
        ol.load(folder / "cut")


@given(st.data())
@settings(max_examples=300)
def test_one_flipped_bit_anywhere_is_noticed(folder, written, data):
    damaged = bytearray(written)
    damaged[data.draw(st.integers(0, len(written) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    (folder / "damaged").write_bytes(damaged)
    with pytest.raises(FormatError, match=facts(folder / "damaged")):
        ol.load(folder / "damaged")


def test_a_flipped_bit_of_a_number_is_a_checksum_that_does_not_match(folder, written):
    damaged = bytearray(written)
    damaged[-9] ^= 4
    (folder / "damaged").write_bytes(damaged)
    with pytest.raises(FormatError, match=facts(folder / "damaged", "checksum")):
        ol.load(folder / "damaged")


def test_a_safetensors_file_of_another_program(tmp_path):
    save_file({"user.weight": np.eye(2)}, tmp_path / "model", metadata={"format": "pt"})
    with pytest.raises(FormatError, match=facts("'user.weight'", "user_factors", "ol.learners.Factors")):
        ol.load(tmp_path / "model")
    save_file({"user.weight": np.eye(2)}, tmp_path / "model")
    with pytest.raises(FormatError, match=facts("'user.weight'", "user_factors")):
        ol.load(tmp_path / "model")


def forged(path: Path, change: Any) -> Path:
    """A model file whose header and tensors are changed, and its checksum made to match."""
    header, tensors = saving._packed(model_of())
    change(header, tensors)
    header["blake2b"] = saving._checksum(header, tensors)
    save_file(tensors, path, metadata={"openloop": saving._text(header)})
    return path


def set_in(*keys: str, to: Any) -> Any:
    def change(header: Any, _tensors: Any) -> None:
        for key in keys[:-1]:
            header = header[key]
        header[keys[-1]] = to

    return change


def test_a_file_of_a_newer_format_says_who_wrote_it(tmp_path):
    def newer(header, _tensors):
        header.update(format=2, library="9.1.0")

    told = facts("openloop 9.1.0", "format 2", f"openloop {ol.__version__}", "upgrade")
    with pytest.raises(FormatError, match=told):
        ol.load(forged(tmp_path / "model", newer))


@pytest.mark.parametrize("version", [0, -1, "1", None, 1.5])
def test_a_format_is_a_whole_number_from_one(tmp_path, version):
    with pytest.raises(FormatError, match=facts("header", f"format {version!r}")):
        ol.load(forged(tmp_path / "model", set_in("format", to=version)))


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '"model"', "[" * 10**5])
def test_a_header_that_is_no_object(tmp_path, text):
    save_file({"a": np.eye(2)}, tmp_path / "model", metadata={"openloop": text})
    with pytest.raises(FormatError, match=facts(tmp_path / "model", "header")):
        ol.load(tmp_path / "model")


def test_a_class_is_never_looked_up_outside_the_learners(tmp_path):
    for name in ("os.system", "CornacModel", "load", "zoo", "__doc__"):
        with pytest.raises(FormatError, match=facts("class", f"'{name}'")):
            ol.load(forged(tmp_path / "model", set_in("class", to=name)))
    with pytest.raises(FormatError, match=facts("class", "'Biass'", "'Bias'")):
        ol.load(forged(tmp_path / "model", set_in("class", to="Biass")))


def put(**arrays: Any) -> Any:
    return lambda _header, tensors: tensors.update({f"state.{name}": array for name, array in arrays.items()})


def drop(*keys: str) -> Any:
    def change(header: Any, _tensors: Any) -> None:
        for key in keys[:-1]:
            header = header[key]
        del header[keys[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(
            lambda _, tensors: tensors.pop("state.user_bias_"), ["'state.user_bias_'", "missing"], id="no tensor"
        ),
        pytest.param(put(more_=np.ones(2)), ["1 tensors", "'state.more_'"], id="tensor too many"),
        pytest.param(put(user_bias_=np.ones(4)), ["user_bias_", (4,), "3 users"], id="biases of 4 users"),
        pytest.param(put(item_factors_=np.ones((5, 0))), ["item_factors_", (5, 0)], id="factors of 5 items"),
        pytest.param(put(item_factors_=np.ones((4, 1))), ["(U, K)", "(I, K)", (4, 1)], id="more item factors"),
        pytest.param(put(user_bias_=np.ones((3, 1))), ["(U, K)", "(I, K)", (3, 1)], id="biases in a table"),
        pytest.param(put(item_bias_=np.array([1, np.inf, 1, 1])), ["item_bias_", "finite"], id="inf"),
        pytest.param(put(items_=np.array([4, 3, 2, 1])), ["Vocabulary", "ids", "sorted"], id="ids unsorted"),
        pytest.param(set_in("state", "intercept_", to={"float": "nan"}), ["intercept_", "finite"], id="nan"),
        pytest.param(set_in("state", "items_", to={"array": "state.items_"}), ["items_", "vocabulary"], id="bare ids"),
        pytest.param(set_in("state", "user_factors_", to="abc"), ["'state.user_factors_'"], id="factors of text"),
        pytest.param(set_in("state", "reg", to=3), ["'reg'", "state"], id="parameter in state"),
        pytest.param(set_in("state", "__class__", to="x"), ["'__class__'", "state"], id="class in state"),
        pytest.param(set_in("params", "depth", to=3), ["'depth'"], id="parameter unknown"),
        pytest.param(set_in("params", to=[1]), ["AttributeError"], id="parameters in a list"),
        pytest.param(drop("state", "intercept_"), ["Bias", "'intercept_'", "missing"], id="intercept missing"),
        pytest.param(drop("state", "notes_"), ["Bias", "'notes_'", "missing"], id="notes missing"),
        pytest.param(drop("class"), ["KeyError", "'class'"], id="class missing"),
        pytest.param(drop("state"), ["KeyError", "'state'"], id="state missing"),
    ],
)
def test_a_file_that_save_would_not_write(tmp_path, change, told):
    with pytest.raises(FormatError, match=facts(tmp_path / "model", *told)):
        ol.load(forged(tmp_path / "model", change))


@pytest.mark.parametrize("kind", ["BF16", "F8_E4M3", "F8_E5M2"])
def test_tensors_of_types_that_numpy_lacks_are_named(tmp_path, kind):
    path = tmp_path / "model"
    model_of().save(path)
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    name = next(name for name in header if name != "__metadata__")
    first, last = header[name]["data_offsets"]
    header[name] |= {"dtype": kind, "shape": [(last - first) // (2 if kind == "BF16" else 1)]}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :])
    with pytest.raises(FormatError, match=facts(path, f"'{name}'", kind, "float32")):
        ol.load(path)


def test_a_header_with_nan_is_damaged(tmp_path):
    path = tmp_path / "model"
    save_file({"x": np.ones(2)}, path, metadata={"openloop": '{"format": 1, "a": NaN}'})
    with pytest.raises(FormatError, match=facts(path, "NaN", "damaged")):
        ol.load(path)
