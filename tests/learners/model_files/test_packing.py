"""Values to JSON and tensors and back: equal in value, type and bits; what cannot be held is refused by name."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from openloop.core.feedback import Vocabulary
from openloop.errors import UndefinedError
from openloop.learners.model_files.packing import LONG, pack, unpack
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


@given(hnp.arrays(NUMBERS, hnp.array_shapes(min_dims=0, min_side=0)), st.sampled_from("CF"))
def test_arrays_come_back_in_their_bits_type_and_order(array, order):
    array = np.asarray(array, order=order)
    back = through(array)
    assert back.dtype == array.dtype.newbyteorder("=")
    assert back.shape == array.shape
    assert back.flags.c_contiguous == array.flags.c_contiguous
    assert back.tobytes() == array.astype(back.dtype).tobytes()


@given(st.lists(st.text(st.characters(exclude_categories=())), min_size=1))  # lone surrogates too
def test_strings_come_back_whatever_they_hold(words):
    array = np.array([*words, ""], object)
    np.testing.assert_array_equal(through(array), array)
    assert through(Vocabulary.of(array)) == Vocabulary.of(array)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        pytest.param(object(), ("object",), id="object"),
        pytest.param({1: 2}, ("dict", "keys"), id="keys"),
        pytest.param(np.array([1j]), ("complex128 array",), id="complex array"),
        pytest.param(np.array(["2026-01-01"], "M8[D]"), ("datetime64[D] array",), id="dates"),
        pytest.param([1, "a"] * LONG, ("list", "2,000", "int", "str"), id="mixed list"),
    ],
)
def test_what_a_file_cannot_hold_is_refused_by_name(value, told):
    with pytest.raises(UndefinedError, match=facts("save", "x", *told)):
        pack(value, "params.x", {})
