from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.data.json_files import refuse_mixed, scan_json
from openloop.data.reading import read
from openloop.errors import FormatError, InputError
from tests.facts import facts

FORMS = {
    "log.ndjson": lambda rows: "".join(f"{json.dumps(row)}\n" for row in rows),
    "log.json": json.dumps,
}


def _written(folder, name, values, key="user"):
    rows = [{key: value, "item": number, "rating": number % 5} for number, value in enumerate(values)]
    path = folder / name
    path.write_text(FORMS[name](rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([2, True], ()),
        ([2.0, False], ()),
        (["a", True], ("booleans (row 1)", "text (row 0)")),
        (["2", 2], ("numbers (row 1)", "text (row 0)")),
        ([None, "2", 2], ("numbers (row 2)", "text (row 1)")),
        ([True, False], ("Boolean",)),
    ],
)
def test_ids_of_several_kinds_are_refused(tmp_path, name, values, told):
    with pytest.raises(InputError, match=facts(name, *told)):
        read(_written(tmp_path, name, values))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("values", [["2", "true", "1e3"], [1, 0, 7], ["a", "b"], ["n1", "null"]])
def test_ids_of_one_kind_are_read(tmp_path, name, values):
    assert read(_written(tmp_path, name, values)).users.ids.tolist() == sorted(values)


def test_nested_keys_and_text_that_looks_like_json_are_no_mixture(tmp_path):
    path = tmp_path / "log.ndjson"
    rows = [{"user": "2", "item": 1, "rating": 3, "meta": {"user": 2}, "text": '"user": 2'}]
    path.write_text(FORMS["log.ndjson"](rows), encoding="utf-8")
    assert read(path).users.ids.tolist() == ["2"]


@pytest.mark.parametrize("name", FORMS)
def test_halves_of_surrogate_pairs_and_nuls_are_refused(tmp_path, name):
    for text in ("\\ud800", "a\\ud83dz", "\\udc00", "\\u0000"):
        path = _written(tmp_path, name, ["here", "b"])
        path.write_text(path.read_text(encoding="utf-8").replace("here", text), encoding="utf-8")
        with pytest.raises(InputError, match=facts(name)):
            read(path)
    path = _written(tmp_path, name, ["😀", "b"])  # a whole pair, as json.dumps escapes it
    assert read(path).users.ids.tolist() == ["b", "😀"]


@pytest.mark.parametrize("name", FORMS)
def test_a_mark_of_the_encoding_is_passed_over(tmp_path, name):
    path = _written(tmp_path, name, [1, 2])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read(path).users.ids.tolist() == [1, 2]


VALUES = st.one_of(st.booleans(), st.integers(0, 3), st.sampled_from(["0", "1", "true", "x"]))


@given(values=st.lists(VALUES, min_size=1))
def test_a_column_is_refused_exactly_where_its_values_are_of_several_kinds(tmp_path_factory, values):
    for name in FORMS:
        path = _written(tmp_path_factory.mktemp("json"), name, values)
        kinds = {type(value) for value in values}
        try:
            refuse_mixed(path, scan_json(path), ["user"])
            scan_json(path).collect()
        except (FormatError, pl.exceptions.PolarsError):
            assert len(kinds) > 1
        else:
            assert len(kinds) == 1
