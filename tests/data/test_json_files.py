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
def test_halves_of_surrogate_pairs_and_nuls_are_refused(tmp_path, name):
    for text in ("\\ud800", "a\\ud83dz", "\\udc00", "\\u0000"):
        path = _written(tmp_path, name, ["here", "b"])
        path.write_text(path.read_text(encoding="utf-8").replace("here", text), encoding="utf-8")
        with pytest.raises(InputError, match=facts(name)):
            read(path)
    path = _written(tmp_path, name, ["😀", "b"])  # a whole pair, as json.dumps escapes it
    assert read(path).users.ids.tolist() == ["b", "😀"]


KEYS = {
    "plain": ("user", '"user"'),
    "escaped": ("user", r'"us\u0065r"'),
    "not ASCII": ("usuário", '"usuário"'),
    "not ASCII, escaped": ("usuário", r'"usu\u00e1rio"'),
    "with a quote": ('a"b', r'"a\"b"'),
    "with a slash": ("a/b", r'"a\/b"'),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(("column", "key"), KEYS.values(), ids=KEYS)
def test_however_a_key_is_written_its_values_are_of_one_kind(tmp_path, name, column, key):
    for values, told in ((["1", 1], "mixes"), ([1, 2], None)):
        path = _written(tmp_path, name, values, key=column)
        text = path.read_text(encoding="utf-8")
        path.write_text(key.join(text.rsplit(json.dumps(column), 1)), encoding="utf-8")  # in the last record
        if told is None:
            assert read(path, user=column).users.ids.tolist() == values
        else:
            with pytest.raises(FormatError, match=facts(name, told, "row 1", "row 2")):
                read(path, user=column)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("key", ['"user"', r'"us\u0065r"'])
def test_a_record_that_has_a_key_twice_is_refused(tmp_path, name, key):
    path = _written(tmp_path, name, [7, 8, 9])
    path.write_text(path.read_text(encoding="utf-8").replace('"user": 8', f'"user": 8, {key}: 7'), encoding="utf-8")
    with pytest.raises(FormatError, match=facts(name, "row 2", "'user'", "more than once")):
        read(path)


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
