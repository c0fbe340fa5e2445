"""Predictions in files: what each kind is read as, and what is wrong with them in words of the files."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.commands.audit.model_files import candidate
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import (
    AlignmentError,
    ColumnError,
    DuplicateError,
    PredictionError,
    UnknownIdError,
)
from tests.audit_files import ITEMS, USERS, I, U, audit_files, write

NAMES = {"user": "uid", "item": "mid"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return audit_files(tmp_path_factory.mktemp("candidates"), ".parquet")


def read(files, *paths, name="m", **names):
    return candidate(name, paths, files.test, NAMES | names)


def frame(path, **columns):
    pl.DataFrame(columns).write_csv(path)
    return path


def test_ids_of_text_are_not_numbers(tmp_path):
    log = Feedback.from_arrays([0, 1], [0, 1], [1, 2], users=Vocabulary.of(["007", "008"]), items=2)
    found, _ = candidate("m", [frame(tmp_path / "m.csv", user=["007", "008"], item=[0, 1], score=[1.0, 2.0])], log, {})
    assert found.user.tolist() == [0, 1]
    pl.DataFrame({"user": [7, 8], "item": [0, 1], "score": [1.0, 2.0]}).write_parquet(tmp_path / "m.parquet")
    with pytest.raises(UnknownIdError, match="the log's are text and these integers, so cast one of them"):
        candidate("m", [tmp_path / "m.parquet"], log, {})


def test_a_wide_table_names_every_user_and_item_once(files, tmp_path):
    wide = pl.read_parquet(files / "a_wide.parquet")

    def refused(frame, error, told):
        frame.write_parquet(tmp_path / "w.parquet")
        with pytest.raises(error, match=told):
            read(files, tmp_path / "w.parquet")

    refused(wide.drop("m03", "m05"), PredictionError, "lacks 2 of 25 items, as 'm03', 'm05'")
    refused(wide.head(58), PredictionError, "lacks 2 of 60 users")
    refused(pl.concat([wide, wide.head(1)]), DuplicateError, r"user 1\d\d is there more than once")
    refused(wide.rename({"m03": "x03"}), UnknownIdError, r"1 item .in 1 row., .* 'x03'; pass items=")
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
    found, note = candidate("bias", [path], log, NAMES)
    assert note == (
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
        candidate("bias", [files / "bias.safetensors"], log, NAMES)


def test_unknown_ids_are_counted_and_named(files, tmp_path):
    path = frame(tmp_path / "m.csv", uid=[100, 7, 7, 8], mid=["m00"] * 4, score=[1.0] * 4)
    told = r"model 'm' \(.*m.csv\): the population lacks 2 users .in 3 rows., .* 7, 8; pass users="
    with pytest.raises(UnknownIdError, match=told):
        read(files, path)
    path = frame(tmp_path / "m.csv", uid=[100], mid=["x"], score=[1.0])
    with pytest.raises(UnknownIdError, match=r"1 item .in 1 row., .* pass items="):
        read(files, path)


@pytest.mark.parametrize("kind", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("role", ["score", "rank"])
def test_words_in_place_of_numbers_are_called_text(files, tmp_path, kind, role):
    words = pl.DataFrame({"uid": [100] * 4, "mid": ITEMS[:4].tolist(), role: ["high", "high", "3", None]})
    with pytest.raises(PredictionError, match=f"column '{role}' holds text in 2 of 4 rows.* 'high';"):
        read(files, write(words, tmp_path / f"m{kind}"))


def test_doubled_predictions_are_named_by_their_ids(files, tmp_path):
    path = frame(tmp_path / "m.csv", uid=[101, 100, 101], mid=["m02", "m00", "m02"], score=[1.0, 2.0, 3.0])
    with pytest.raises(PredictionError, match=r"model 'm' .*: 1 .* pairs .*\(101, 'm02'\)"):
        read(files, path)


# -- vectors -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bias(files):
    return ol.load(files / "bias.safetensors")


@pytest.mark.parametrize("ending", [".npz", ".parquet", ".safetensors"])
def test_vectors_are_asked_as_the_model_that_they_are_of(files, bias, tmp_path, ending):
    bias.to_vectors(tmp_path / f"v{ending}")
    found, note = read(files, tmp_path / f"v{ending}")
    assert note == ""
    np.testing.assert_allclose(found.scores(np.arange(U)), bias.scores(np.arange(U)), atol=1e-6)
    with pytest.raises(PredictionError, match="is not a table of pairs"):
        read(files, files / "a", tmp_path / f"v{ending}")
