"""Values to JSON and tensors and back: equal in value, type and bits; what cannot be held is refused by name."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from openloop.core.covariates import Covariates
from openloop.core.feedback import Vocabulary
from openloop.errors import InputError, UndefinedError
from openloop.learners.model_files.packing import LONG, as_array, pack, unpack
from tests.facts import facts


def through(value):
    """Packed, written as strict JSON, read and unpacked; every tensor is used."""
    tensors: dict[str, np.ndarray] = {}
    node = json.loads(json.dumps(pack(value, "params.x", tensors), allow_nan=False))
    assert all(array.flags.c_contiguous and array.dtype.isnative for array in tensors.values())
    left = dict(tensors)
    back = unpack(node, left)
    assert not left
    return back


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
NESTED = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner)
    ),
    max_leaves=20,
)  # fmt: skip
NUMBERS = hnp.boolean_dtypes() | hnp.integer_dtypes(endianness="?") | hnp.floating_dtypes(sizes=(16, 32, 64))


@given(NESTED)
def test_plain_values_come_back_as_they_were(value):
    assert repr(through(value)) == repr(value)  # which tells 1 from 1.0 and from True, and -0.0 from 0.0


def test_infinity_and_nan_come_back():
    low, high, nothing = through([-np.inf, np.inf, np.nan])
    assert (low, high) == (-np.inf, np.inf)
    assert np.isnan(nothing)


@given(hnp.arrays(NUMBERS, hnp.array_shapes(min_dims=0, min_side=0)), st.sampled_from("CF"))
def test_arrays_come_back_in_their_bits_type_and_order(array, order):
    array = np.asarray(array, order=order)
    back = through(array)
    assert back.dtype == array.dtype.newbyteorder("=")
    assert back.shape == array.shape
    assert back.flags.c_contiguous == array.flags.c_contiguous
    assert back.tobytes() == array.astype(back.dtype).tobytes()


@given(hnp.arrays(NUMBERS, ()))
def test_scalars_keep_their_type(array):
    value = array.astype(array.dtype.newbyteorder("="))[()]
    back = through(value)
    assert type(back) is type(value)
    assert back.tobytes() == value.tobytes()


@given(st.lists(st.text(st.characters(exclude_categories=())), min_size=1))  # lone surrogates too
def test_strings_come_back_whatever_they_hold(words):
    array = np.array([*words, ""], object)
    np.testing.assert_array_equal(through(array), array)
    assert through(Vocabulary.of(array)) == Vocabulary.of(array)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integer_vocabularies_keep_their_type(dtype):
    known = Vocabulary(np.array([-5, 0, 7], dtype))
    back = through(known)
    assert back == known
    assert back.ids.dtype == dtype
    assert not back.ids.flags.writeable


def test_covariates_keep_their_values_names_ids_and_notes():
    given = Covariates(
        values=[[1.0, 2], [3, 4]], names=("a", "b"), ids=Vocabulary.of(["x", "y"]), notes=("one left out",)
    )
    back = through(given)
    np.testing.assert_array_equal(back.values, given.values)
    assert (back.names, back.ids, back.notes) == (given.names, given.ids, given.notes)
    assert not back.values.flags.writeable


def test_a_view_is_stored_as_what_it_shows():
    array = np.arange(24.0).reshape(4, 6)[::2, 1::3]
    np.testing.assert_array_equal(through(array), array)


@pytest.mark.parametrize("values", [range(LONG + 1), np.linspace(0, 1, LONG + 1).tolist(), ["é", ""] * LONG])
@pytest.mark.parametrize("kind", [list, tuple])
def test_long_lists_leave_the_header(values, kind):
    tensors: dict[str, np.ndarray] = {}
    node = pack(kind(values), "params.x", tensors)
    assert len(json.dumps(node)) < 100
    assert unpack(node, tensors) == kind(values)


@pytest.mark.parametrize("name", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_a_generator_goes_on_where_it_stood(name):
    rng = np.random.Generator(getattr(np.random, name)(3))
    rng.integers(10, size=7, dtype=np.int32)  # which leaves half a word behind
    back = through(rng)
    assert back is not rng
    np.testing.assert_array_equal(back.integers(10, size=99, dtype=np.int32), rng.integers(10, size=99, dtype=np.int32))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        pytest.param(object(), ("object",), id="object"),
        pytest.param(print, ("builtin_function_or_method",), id="function"),
        pytest.param(1j, ("complex",), id="complex number"),
        pytest.param({1: 2}, ("dict", "keys"), id="keys"),
        pytest.param(np.array([1j]), ("complex128 array",), id="complex array"),
        pytest.param(np.array(["2026-01-01"], "M8[D]"), ("datetime64[D] array",), id="dates"),
        pytest.param(np.array([["a"]], object), ("object array", (1, 1)), id="table of text"),
        pytest.param([1, "a"] * LONG, ("list", "2,000", "int", "str"), id="mixed list"),
    ],
)
def test_what_a_file_cannot_hold_is_refused_by_name(value, told):
    with pytest.raises(UndefinedError, match=facts("save", "x", *told)):
        pack(value, "params.x", {})


@pytest.mark.parametrize(
    ("node", "told"),
    [
        pytest.param({"array": "gone"}, ("'gone'", "missing"), id="no tensor"),
        pytest.param({"list": [{"array": "t"}, {"array": "t"}]}, ("'t'", "twice"), id="tensor twice"),
        pytest.param({"object": "os.system"}, ("kind", "'object'"), id="kind"),
        pytest.param([1], ("list",), id="list"),
        pytest.param({"strings": "s"}, ("strings", "'s'"), id="strings"),
        pytest.param(
            {"generator": {"dict": {"bit_generator": "RandomState"}}},
            ("generator", "'RandomState'", "'PCG64'"),
            id="generator",
        ),
    ],
)
def test_a_node_that_pack_would_not_write_is_refused(node, told):
    tensors = {"t": np.ones(2), "s": np.ones(3, np.uint8), "s.ends": np.array([1, 2])}
    with pytest.raises(InputError, match=facts(*told)):
        unpack(node, tensors)


def test_arrays_of_other_libraries_become_arrays():
    class Matrix:  # as implicit's on a GPU
        def to_numpy(self):
            return np.eye(2)

    np.testing.assert_array_equal(as_array(Matrix()), np.eye(2))
    np.testing.assert_array_equal(through(Matrix()), np.eye(2))
    column = np.empty(2, object)
    column[:] = [[1.0, 2.0], [3.0, 4.0]]
    np.testing.assert_array_equal(as_array(column), [[1, 2], [3, 4]])
