"""Predictions in files: what each kind is read as, and what is wrong with them in words of the files."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.blocks.population import Population
from openloop.commands.audit.model_files import candidate
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import (
    AlignmentError,
    ColumnError,
    DuplicateError,
    PredictionError,
    UnknownIdError,
)
from openloop.moments.inputs import Answerer
from tests.audit_files import ITEMS, USERS, I, U, audit_files

NAMES = {"user": "uid", "item": "mid"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return audit_files(tmp_path_factory.mktemp("candidates"), ".parquet")


def read(log, *paths, name="m", names=NAMES):
    """The model of some files in the codes of a log, a table as it is; and notes on it."""
    notes = []
    found = candidate(name, paths, names, notes)
    return found.of(Population.of(log.users, log.items)) if isinstance(found, Answerer) else found, notes


def evaluated(log, *paths, metric="mae", names=NAMES):
    return ol.evaluate({"m": read(log, *paths, names=names)[0]}, log, metrics=[metric], estimators=["naive"])


def frame(path, **columns):
    pl.DataFrame(columns).write_csv(path)
    return path


def test_ids_of_text_are_not_numbers(tmp_path):
    log = Feedback.from_arrays([0, 1], [0, 1], [1, 2], users=Vocabulary.of(["007", "008"]), items=2)
    names = {"user": "user", "item": "item"}
    path = frame(tmp_path / "m.csv", user=["007", "008"], item=[0, 1], score=[1.0, 2.0])
    assert evaluated(log, path, names=names)["m", "mae", "naive"].value == 0
    pl.DataFrame({"user": [7, 8], "item": [0, 1], "score": [1.0, 2.0]}).write_parquet(tmp_path / "m.parquet")
    with pytest.raises(UnknownIdError, match="the log's user ids are text and these integers; cast one of them"):
        evaluated(log, tmp_path / "m.parquet", names=names)


def test_a_wide_table_names_every_user_and_item_once(files, tmp_path):
    wide = pl.read_parquet(files / "a_wide.parquet")

    def refused(frame, error, told):
        frame.write_parquet(tmp_path / "w.parquet")
        with pytest.raises(error, match=told):
            read(files.test, tmp_path / "w.parquet")

    refused(wide.drop("m03", "m05"), PredictionError, "lacks 2 of 25 items, as 'm03', 'm05'")
    refused(wide.head(58), PredictionError, "lacks 2 of 60 users")
    refused(pl.concat([wide, wide.head(1)]), DuplicateError, r"user 1\d\d is there more than once")
    refused(wide.rename({"m03": "x03"}), UnknownIdError, "lacks 1 items, such as 'x03'; .* items=")
    refused(wide.with_columns(m03=pl.lit("x")), ColumnError, "must be numbers, which 'm03' are not")


def beyond(files, users=(), items=()):
    """The log on a grid with ids that no model here knows, which stand after all others."""
    known = [Vocabulary.of([*ids.tolist(), *more]) for ids, more in ((USERS, users), (ITEMS, items))]
    return Feedback(
        user=files.test.user, item=files.test.item, rating=files.test.rating, users=known[0], items=known[1]
    )


def test_what_a_model_does_not_know_is_below_tied_and_not_predicted(files):
    model, path = ol.load(files / "bias.safetensors"), files / "bias.safetensors"
    log = beyond(files, users=[900, 901], items=["z0", "z1", "z2"])
    found, notes = read(log, path, name="bias")
    assert "".join(notes) == (
        f"model 'bias' ({path}): does not know 2 of 62 users and 3 of 28 items; all items of such users are tied, such "
        "items rank below all others, and such ratings are not predicted"
    )
    scores = found.scores(np.array([U - 1, U, 0]))
    np.testing.assert_array_equal(scores[[0, 2], :I], model.scores([U - 1, 0]))
    assert np.isneginf(scores[:, I:]).all()
    assert np.isneginf(scores[1]).all()
    pairs = np.array([0, U, 5, U + 1]), np.array([1, 2, I, I + 2])
    np.testing.assert_array_equal(found.knows(*pairs), [True, False, False, False])
    np.testing.assert_array_equal(found.predict(*pairs), [model.predict([0], [1])[0], np.nan, np.nan, np.nan])


def test_a_model_of_other_ids_altogether_is_refused(files):
    some = files.test
    log = Feedback(
        user=some.user, item=some.item, rating=some.rating, users=Vocabulary.of([str(u) for u in USERS]),
        items=Vocabulary(ITEMS),
    )  # fmt: skip
    told = "knows none of the log's 60 users; its own are integers, 100, 101, 102 …, the log's text, '100', '101', "
    with pytest.raises(AlignmentError, match=f"{told}.*cast one of them"):
        read(log, files / "bias.safetensors")


# -- vectors -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bias(files):
    return ol.load(files / "bias.safetensors")


@pytest.mark.parametrize("ending", [".npz", ".parquet", ".safetensors"])
def test_vectors_are_asked_as_the_model_that_they_are_of(files, bias, tmp_path, ending):
    bias.to_vectors(tmp_path / f"v{ending}")
    found, notes = read(files.test, tmp_path / f"v{ending}")
    assert notes == []
    np.testing.assert_allclose(found.scores(np.arange(U)), bias.scores(np.arange(U)), atol=1e-6)
    with pytest.raises(PredictionError, match="is not a table of pairs"):
        read(files.test, files / "a", tmp_path / f"v{ending}")
