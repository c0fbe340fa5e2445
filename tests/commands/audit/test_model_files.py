"""Predictions in files: what each kind is read as, and what is wrong with them in words of the files."""

from __future__ import annotations

import datetime as dt
import re

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
    FormatError,
    InputError,
    PredictionError,
    UnknownIdError,
)
from openloop.sources.outcomes import prepare
from openloop.sources.predictions import Predictions
from openloop.sources.recoding import Recoded
from tests.audit_files import ITEMS, SCORES, USERS, I, U, audit_files, scores, top, write
from tests.facts import facts

NAMES = {"user": "uid", "item": "mid"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return audit_files(tmp_path_factory.mktemp("candidates"), ".parquet")


def read(files, *paths, name="m", **names):
    return candidate(name, paths, files.test, NAMES | names)


def frame(path, **columns):
    pl.DataFrame(columns).write_csv(path)
    return path


def test_a_table_has_the_codes_of_the_log(files):
    found, note = read(files, files / "a")
    assert isinstance(found, Predictions)
    assert note == ""
    np.testing.assert_array_equal(found.cell, files.test.cell)
    np.testing.assert_array_equal(found.score, SCORES["a"][files.test.user, files.test.item])


def test_obvious_names_serve_where_the_logs_are_missing(files, tmp_path):
    other = scores("a", files.test.user, files.test.item).rename({"uid": "user_id", "mid": "movieId"})
    other.rename({"score": "prediction"}).write_csv(tmp_path / "a.csv")
    found, _ = read(files, tmp_path / "a.csv")
    np.testing.assert_array_equal(found.score, SCORES["a"][files.test.user, files.test.item])


def test_ids_of_text_are_not_numbers(tmp_path):
    log = Feedback.from_arrays([0, 1], [0, 1], [1, 2], users=Vocabulary.of(["007", "008"]), items=2)
    found, _ = candidate("m", [frame(tmp_path / "m.csv", user=["007", "008"], item=[0, 1], score=[1.0, 2.0])], log, {})
    assert found.user.tolist() == [0, 1]
    pl.DataFrame({"user": [7, 8], "item": [0, 1], "score": [1.0, 2.0]}).write_parquet(tmp_path / "m.parquet")
    with pytest.raises(UnknownIdError, match="the log's are text and these integers, so cast one of them"):
        candidate("m", [tmp_path / "m.parquet"], log, {})


def test_scores_and_a_list_go_together(files, tmp_path):
    found, _ = read(files, files / "a_top", files / "a")
    assert found.rank is None
    assert found.listed.depth == 10
    np.testing.assert_array_equal(found.cell, files.test.cell)
    for pair in (("a", "b"), ("a_top", "b_top"), ("a", "a_top", "a")):
        with pytest.raises(PredictionError, match=r"model 'm': several tables of one model must be two.*rank column"):
            read(files, *(files / name for name in pair))
    for other in ("a.npy", "bias.safetensors", "a_wide.parquet"):
        with pytest.raises(PredictionError, match=r"is given more than once, and .* is not a table of pairs"):
            read(files, files / "a", files / other)


def test_matrices_are_users_by_items_in_order_of_id(files, tmp_path):
    found, note = read(files, files / "a.npy")
    assert isinstance(found, np.memmap)
    assert "in order of id" in note
    np.testing.assert_array_equal(read(files, files / "a_wide.parquet")[0], SCORES["a"])
    np.save(tmp_path / "t.npy", SCORES["a"].T)
    with pytest.raises(PredictionError, match=r"has shape \(25, 60\), and the population is 60 users × 25 items"):
        prepare("m", read(files, tmp_path / "t.npy")[0], files.test, {})
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    with pytest.raises(PredictionError, match="must hold numbers"):
        read(files, tmp_path / "text.npy")
    (tmp_path / "no.npy").write_text("no array")
    with pytest.raises(FormatError, match=r"is not an array that numpy\.save wrote"):
        read(files, tmp_path / "no.npy")
    with pytest.raises(FormatError, match="no such file"):
        read(files, tmp_path / "none.npy")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(FormatError, match="no ordinary file"):
        read(files, tmp_path / "folder.npy")


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


def test_a_wide_table_of_numbered_items_is_matched_by_number(tmp_path):
    log = Feedback.from_arrays([0, 1], [0, 2], [1, 2], users=2, items=Vocabulary.of([2, 10, 30]))
    pl.DataFrame({"user": [1, 0], "10": [1.0, 2.0], "2": [3.0, 4.0], "30": [5, 6]}).write_parquet(
        tmp_path / "w.parquet"
    )
    found, _ = candidate("m", [tmp_path / "w.parquet"], log, {})
    np.testing.assert_array_equal(found, [[4.0, 2.0, 6.0], [3.0, 1.0, 5.0]])


def test_a_model_that_knows_more_is_asked_in_the_logs_codes(files):
    model = ol.load(files / "bias.safetensors")
    some = files.test.take(files.test.user < 30)
    log = Feedback(
        user=some.user, item=some.item, rating=some.rating, users=Vocabulary(USERS[:30]), items=Vocabulary(ITEMS)
    )
    found, _ = candidate("bias", [files / "bias.safetensors"], log, NAMES)
    assert isinstance(found, Recoded)
    np.testing.assert_array_equal(found.predict(log.user, log.item), model.predict(some.user, some.item))
    np.testing.assert_array_equal(found.scores(np.arange(30)), model.scores(np.arange(30)))
    assert not isinstance(read(files, files / "bias.safetensors")[0], Recoded)


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


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"items": ["z0"]}, "1 of 26 items; such items rank below all others, and such ratings are not predicted"),
        ({"users": [9, 8]}, "2 of 62 users; all items of such users are tied, and such ratings are not predicted"),
    ],
)
def test_a_note_speaks_of_the_side_that_a_model_lacks(files, more, told):
    _, note = candidate("bias", [files / "bias.safetensors"], beyond(files, **more), NAMES)
    assert note.endswith(f"does not know {told}")


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


@pytest.mark.parametrize("bad", ["", "nan", "inf"])
def test_scores_that_are_none_are_counted(files, tmp_path, bad):
    (tmp_path / "m.csv").write_text(f"uid,mid,score\n100,m00,1\n100,m01,{bad}\n")
    told = "1 of 2 values in column 'score' are missing or not finite, first that of user 100 and item 'm01';"
    with pytest.raises(PredictionError, match=told):
        read(files, tmp_path / "m.csv")


@pytest.mark.parametrize("kind", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("role", ["score", "rank"])
def test_words_in_place_of_numbers_are_called_text(files, tmp_path, kind, role):
    words = pl.DataFrame({"uid": [100] * 4, "mid": ITEMS[:4].tolist(), role: ["high", "high", "3", None]})
    with pytest.raises(PredictionError, match=f"column '{role}' holds text in 2 of 4 rows.* 'high';"):
        read(files, write(words, tmp_path / f"m{kind}"))


def test_numbers_may_be_written_as_text_but_not_as_dates(files, tmp_path):
    (tmp_path / "m.csv").write_text("uid,mid,score\n100,m00, 1.5\n100,m01,2 \n")
    assert read(files, tmp_path / "m.csv")[0].score.tolist() == [1.5, 2.0]
    dates = pl.DataFrame({"uid": [100], "mid": ["m00"], "score": [dt.date(2020, 1, 1)]})
    with pytest.raises(PredictionError, match="column 'score' must hold numbers"):
        read(files, write(dates, tmp_path / "m.parquet"))


def test_a_list_with_gaps_or_without_some_users_is_noted_where_it_is_judged(files, tmp_path):
    whole = pl.read_parquet(files / "a_top.parquet")
    write(whole.filter((pl.col("uid") > 103) & ((pl.col("uid") > 110) | (pl.col("rank") != 2))), tmp_path / "l.csv")
    for paths in ([tmp_path / "l.csv"], [files / "a", tmp_path / "l.csv"]):
        found, note = read(files, *paths)
        assert note == ""
        assert re.search(facts("model 'm'", "4 users", "7 users", "gaps"), found.remarks("m", files.test))


def test_doubled_predictions_are_named_by_their_ids(files, tmp_path):
    path = frame(tmp_path / "m.csv", uid=[101, 100, 101], mid=["m02", "m00", "m02"], score=[1.0, 2.0, 3.0])
    with pytest.raises(PredictionError, match=r"model 'm' .*: 1 .* pairs .*\(101, 'm02'\)"):
        read(files, path)


def test_a_table_without_scores_or_rows_is_refused(files, tmp_path):
    with pytest.raises(ColumnError, match=r"no column 'score' or 'rank' .*'points'.*score="):
        read(files, frame(tmp_path / "m.csv", uid=[100], mid=["m00"], points=[1.0]))
    (tmp_path / "m.csv").write_text("uid,mid,score\n")
    with pytest.raises(PredictionError, match="has no rows"):
        read(files, tmp_path / "m.csv")
    with pytest.raises(InputError, match="no such file"):
        read(files, tmp_path / "none.csv")


def test_the_whole_of_a_list_is_kept(files):
    found, _ = read(files, files / "b_top")
    assert len(found.user) == U * 10
    assert found.depth == 10
    best = top("b", 10, files.train)
    assert found.score.sum() == pytest.approx(best["score"].sum())
    assert found.shape == (U, I)


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


def test_vectors_of_other_users_are_matched_by_id(files, bias, tmp_path):
    given = bias.to_vectors()
    some = {name: given[name][::-2] for name in ("user_factors", "user_bias", "users")}
    np.savez(tmp_path / "v.npz", **{**given, **some, "items": given["items"].astype(str)})
    found, note = read(files, tmp_path / "v.npz")
    assert re.search(facts("30 of 60 users", "tied"), note)
    known = np.arange(U)[::-2]
    np.testing.assert_allclose(found.scores(known), bias.scores(known))
    assert np.isneginf(found.scores(np.setdiff1d(np.arange(U), known))).all()


def test_vectors_without_ids_are_numbered_as_all_of_the_logs(tmp_path):
    V, W = np.arange(8.0).reshape(4, 2), np.eye(3, 2)
    np.savez(tmp_path / "v.npz", user_factors=V, item_factors=W)
    log = Feedback.from_arrays([0, 1, 2], [0, 1, 0], [1, 2, 3], users=4, items=3)
    found, _ = candidate("m", [tmp_path / "v.npz"], log, {})
    np.testing.assert_array_equal(found.scores(np.arange(4)), V @ W.T)
    for ids in ([0, 1, 3], [1, 2, 3, 4]):
        log = Feedback.from_arrays([0, 1, 2], [0, 1, 0], [1, 2, 3], users=Vocabulary.of(ids), items=3)
        with pytest.raises(AlignmentError, match=facts("v.npz", "4 rows of users have no ids", "users=")):
            candidate("m", [tmp_path / "v.npz"], log, {})
