"""Model files: the same bits after loading, and a clear error for every file that is not one."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import FormatError, InputError
from openloop.learners import MF, Exposure, Features, Recalibrated, Stack
from openloop.learners.adapters.factors import Factors
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


def test_the_header_says_what_the_file_is(tmp_path):
    model_of().save(tmp_path / "model")
    with safe_open(tmp_path / "model", framework="numpy") as file:
        header = json.loads(file.metadata()["openloop"])
    assert header["class"] == "Bias"
    assert header["library"] == ol.__version__
    assert header["format"] == 1
    assert header["params"] == {"reg": 0.5}
    assert header["state"]["users_"] == {"vocabulary": {"strings": "state.users_"}}


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


def test_a_model_that_is_not_finite_is_not_saved(tmp_path):
    model = model_of()
    model.item_bias_[2] = np.nan
    with pytest.raises(InputError, match=facts("Bias", "item_bias_", "finite")):
        model.save(tmp_path / "model")


# -- files that are no models --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"user,item,rating\n1,2,3\n" * 9, pickle.dumps({"a": 1}), b"\0" * 99, b"x", b'{"a": 1}', b"\xff" * 20]
)
def test_files_of_other_formats(tmp_path, content):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(FormatError, match=facts(tmp_path / "model", "not a safetensors")):
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
        pytest.param(put(user_bias_=np.ones(4)), ["user_bias_", (4,), "3 users"], id="biases of 4 users"),
        pytest.param(put(item_factors_=np.ones((4, 1))), ["(U, K)", "(I, K)", (4, 1)], id="more item factors"),
        pytest.param(put(item_bias_=np.array([1, np.inf, 1, 1])), ["item_bias_", "finite"], id="inf"),
        pytest.param(put(items_=np.array([4, 3, 2, 1])), ["Vocabulary", "ids", "sorted"], id="ids unsorted"),
        pytest.param(set_in("state", "intercept_", to={"float": "nan"}), ["intercept_", "finite"], id="nan"),
        pytest.param(set_in("state", "reg", to=3), ["'reg'", "state"], id="parameter in state"),
        pytest.param(set_in("params", "depth", to=3), ["'depth'"], id="parameter unknown"),
        pytest.param(drop("state", "intercept_"), ["Bias", "'intercept_'", "missing"], id="intercept missing"),
        pytest.param(drop("class"), ["KeyError", "'class'"], id="class missing"),
    ],
)
def test_a_file_that_save_would_not_write(tmp_path, change, told):
    with pytest.raises(FormatError, match=facts(tmp_path / "model", *told)):
        ol.load(forged(tmp_path / "model", change))
