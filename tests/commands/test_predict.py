"""A saved model is asked: pairs come back with scores, users get their best items, ids are those of the log."""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop import learners
from openloop.commands import predict as predicting
from openloop.commands.predict import PredictRequest, predict
from openloop.data.simulate import movie_lovers
from openloop.errors import (
    ColumnError,
    EmptyError,
    FormatError,
    InputError,
    OpenloopError,
    PredictionError,
    UndefinedError,
    UnknownIdError,
)
from tests.facts import facts

WORLD = movie_lovers(users=24, items=18)
IDS = {"numbers": (lambda u: u * 7 + 100, lambda i: i + 5), "text": ("u{:02}".format, "m{:02}".format)}


def named(kind, side, codes):
    return [IDS[kind][side](code) for code in codes.tolist()]


@pytest.fixture(scope="module", params=IDS)
def told(request, tmp_path_factory):
    """Kind of ids, folder, log and the saved model of it."""
    kind, folder, seen = request.param, tmp_path_factory.mktemp("predicting"), WORLD.observe(3)
    log = pl.DataFrame({
        "user": named(kind, 0, seen.user), "item": named(kind, 1, seen.item), "rating": seen.rating,
    })  # fmt: skip
    log.write_csv(folder / "log.csv")
    model = learners.PureSVD(factors=3).fit(ol.read(folder / "log.csv"))
    model.save(folder / "m.safetensors")
    return kind, folder, log, model


def ask(told, out, **options):
    return predict(PredictRequest(model=told[1] / "m.safetensors", out=out, **options))


def read_back(path) -> pl.DataFrame:
    match path.suffix:
        case ".csv" | ".tsv":
            return pl.read_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
        case ".parquet":
            return pl.read_parquet(path)
    return pl.read_ndjson(path)


# -- pairs ---------------------------------------------------------------------------------------------------


@pytest.fixture
def pairs(told, tmp_path):
    """Pairs in no order, one of them twice, with other columns."""
    kind, _, log, _ = told
    rows = log.sample(30, shuffle=True, seed=2)
    rows = pl.concat([rows, rows.head(1)])
    return rows.select("item", code=pl.Series([f"{k:03}" for k in range(31)]), who="user"), kind


@pytest.mark.parametrize("out", ["out.csv", "out.tsv", "out.parquet", "out.jsonl"])
@pytest.mark.parametrize("given", ["pairs.csv", "pairs.tsv", "pairs.parquet", "pairs.jsonl"])
def test_pairs_come_back_with_their_scores(told, pairs, tmp_path, given, out):
    rows, kind = pairs
    writers = {"csv": rows.write_csv, "parquet": rows.write_parquet, "jsonl": rows.write_ndjson}
    writers["tsv"] = lambda path: rows.write_csv(path, separator="\t")
    writers[given.partition(".")[2]](tmp_path / given)
    done = ask(told, tmp_path / out, pairs=tmp_path / given, user="who")
    found, model = read_back(tmp_path / out), told[3]
    assert found.columns == ["item", "code", "who", "score"]
    if "csv" not in out and "tsv" not in out:
        assert found["code"].dtype == pl.String
        assert found.drop("score").equals(rows)
    assert found["who"].to_list() == rows["who"].to_list()
    assert found["item"].to_list() == rows["item"].to_list()
    codes = model.users_.codes(np.array(rows["who"].to_list(), object if kind == "text" else None))
    items = model.items_.codes(np.array(rows["item"].to_list(), object if kind == "text" else None))
    np.testing.assert_allclose(found["score"], model.predict(codes, items), rtol=1e-6 if "jsonl" in out else 0)
    assert (done.rows, done.unknown, done.kind, done.users, done.items) == (31, 0, "PureSVD", 24, 18)


def strange_pairs(told, path):
    """Every second pair has an unknown user or item."""
    kind, _, log, _ = told
    known = log.head(6).select("user", "item")
    other = {"numbers": (9999, -1), "text": ("nobody", "nothing")}[kind]
    users, items = known["user"].to_list(), known["item"].to_list()
    users[1], items[3], users[5], items[5] = other[0], other[1], *other
    pl.DataFrame({"user": users, "item": items, "n": range(6)}).write_csv(path)
    return other


def test_unknown_ids_are_named(told, tmp_path):
    user, item = strange_pairs(told, tmp_path / "pairs.csv")
    with pytest.raises(UnknownIdError, match=facts("pairs.csv", "'user'", "1 ids", "2 of 6", repr(user), "rows 2, 6")):
        ask(told, tmp_path / "out.csv", pairs=tmp_path / "pairs.csv")
    assert not (tmp_path / "out.csv").exists()
    rows = pl.read_csv(tmp_path / "pairs.csv").filter(pl.col("user") != user)
    rows.write_csv(tmp_path / "items.csv")
    with pytest.raises(UnknownIdError, match=facts("items.csv", "'item'", "1 ids", repr(item))):
        ask(told, tmp_path / "out.csv", pairs=tmp_path / "items.csv")


def test_unknown_ids_are_dropped_or_without_a_score(told, tmp_path):
    strange_pairs(told, tmp_path / "pairs.csv")
    for out in ("out.csv", "out.parquet", "out.jsonl"):
        done = ask(told, tmp_path / out, pairs=tmp_path / "pairs.csv", unknown="drop")
        dropped = read_back(tmp_path / out)
        assert dropped["n"].to_list() == [0, 2, 4]
        assert (done.rows, done.unknown) == (3, 3)
        assert re.search(facts("3 rows", "ids"), done.summary())
        ask(told, tmp_path / out, pairs=tmp_path / "pairs.csv", unknown="null")
        kept = read_back(tmp_path / out)
        assert kept["n"].to_list() == list(range(6))
        assert kept["score"].is_null().to_list() == [False, True] * 3
        assert kept["score"].drop_nulls().to_list() == dropped["score"].to_list()


@pytest.mark.parametrize("unknown", ["drop", "null"])
def test_pairs_of_which_none_is_known_are_refused(told, tmp_path, unknown):
    pl.DataFrame({"user": ["x", "y"], "item": ["x", "y"]}).write_csv(tmp_path / "pairs.csv")
    with pytest.raises(EmptyError, match=facts("pairs.csv", "2 rows")):
        ask(told, tmp_path / "out.csv", pairs=tmp_path / "pairs.csv", unknown=unknown)


def test_no_pairs_are_refused(told, tmp_path):
    (tmp_path / "pairs.csv").write_text("user,item,rating\n")
    with pytest.raises(EmptyError, match=facts("pairs.csv", "no rows")):
        ask(told, tmp_path / "out.csv", pairs=tmp_path / "pairs.csv")


def test_the_scores_may_have_another_name(told, tmp_path):
    told[2].head(4).write_csv(tmp_path / "pairs.csv")
    ask(told, tmp_path / "once.csv", pairs=tmp_path / "pairs.csv")
    with pytest.raises(ColumnError, match=facts("once.csv", "'score'", "--column")):
        ask(told, tmp_path / "twice.csv", pairs=tmp_path / "once.csv")
    ask(told, tmp_path / "twice.csv", pairs=tmp_path / "once.csv", column="svd")
    found = pl.read_csv(tmp_path / "twice.csv")
    assert found.columns == ["user", "item", "rating", "score", "svd"]
    assert found["score"].to_list() == found["svd"].to_list()


def test_pairs_without_a_header_are_read_by_position(tmp_path):
    log = WORLD.observe(3)
    learners.Popularity().fit(log).save(tmp_path / "m.safetensors")
    (tmp_path / "pairs.csv").write_text("3,4\n1,2\n")
    predict(PredictRequest(model=tmp_path / "m.safetensors", out=tmp_path / "out.csv", pairs=tmp_path / "pairs.csv"))
    counts = np.bincount(log.item, minlength=18)
    found = pl.read_csv(tmp_path / "out.csv")
    assert found.rows() == [(3, 4, counts[4]), (1, 2, counts[2])]
    assert found.columns == ["user", "item", "score"]


# -- the best items ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["top.csv", "top.parquet", "top.jsonl", "top.tsv"])
@pytest.mark.parametrize("block", [1, 40, 10**6])
def test_the_best_items_do_not_depend_on_blocks_or_formats(told, tmp_path, monkeypatch, out, block):
    monkeypatch.setattr(predicting, "BLOCK", block)
    kind, _, _, model = told
    done = ask(told, tmp_path / out, top=4)
    found, scores = read_back(tmp_path / out), model.scores(np.arange(24))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :4]
    assert found.columns == ["user", "item", "score", "rank"]
    assert found["user"].to_list() == np.repeat(model.users_.ids, 4).tolist()
    assert found["item"].to_list() == model.items_.ids[order.ravel()].tolist()
    assert found["rank"].to_list() == [1, 2, 3, 4] * 24
    np.testing.assert_allclose(found["score"], np.take_along_axis(scores, order, 1).ravel(), rtol=1e-6)
    assert found["user"].dtype == (pl.String if kind == "text" else pl.Int64)
    assert (done.rows, done.asked, done.short) == (96, 24, 0)


def test_equal_scores_stand_in_the_order_of_ids(tmp_path):
    log = ol.Feedback.from_arrays([0, 0, 1], [1, 3, 3], [1, 1, 1], users=2, items=5)
    learners.Popularity().fit(log).save(tmp_path / "m.safetensors")
    predict(PredictRequest(model=tmp_path / "m.safetensors", out=tmp_path / "top.csv", top=4))
    assert pl.read_csv(tmp_path / "top.csv")["item"].to_list() == [3, 1, 0, 2] * 2


def test_what_a_log_holds_is_left_out(told, tmp_path):
    _, folder, log, model = told
    done = ask(told, tmp_path / "top.parquet", top=18, exclude=folder / "log.csv")
    found = pl.read_parquet(tmp_path / "top.parquet")
    seen = set(log.select("user", "item").rows())
    assert (
        set(found.select("user", "item").rows())
        == {(u, i) for u in model.users_.ids.tolist() for i in model.items_.ids.tolist()} - seen
    )
    assert (done.excluded, done.rows, done.short) == (len(seen), 24 * 18 - len(seen), 24)
    assert re.search(facts("24 users", "18 items", "fewer"), done.summary())
    ranks = found.group_by("user").agg(pl.col("rank")).sort("user")["rank"].to_list()
    assert all(r == list(range(1, len(r) + 1)) for r in ranks)


def test_an_excluded_log_may_know_more_than_the_model_and_repeat_itself(told, tmp_path):
    kind, folder, log, _ = told
    extra = pl.DataFrame({"user": named(kind, 0, np.array([900])), "item": named(kind, 1, np.array([3]))})
    both = pl.concat(
        [log.select("user", "item"), log.select("user", "item"), extra.cast(log.select("user", "item").schema)]
    )
    both.write_csv(tmp_path / "more.csv")
    done = ask(told, tmp_path / "a.csv", top=5, exclude=tmp_path / "more.csv")
    ask(told, tmp_path / "b.csv", top=5, exclude=folder / "log.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert done.unknown == 1
    assert re.search(facts("1 rows", "ids"), done.summary())


@pytest.mark.parametrize(
    "content",
    ["user\n{0}\n{1}\n{0}\n", "id\n{0}\n{1}\n", "{0}\n{1}\n", "age,user\n7,{0}\n8,{1}\n", "user,age\n{0},7\n{1},8\n"],
)
@pytest.mark.parametrize("name", ["users.csv", "users.txt"])
def test_only_some_users_may_be_asked_for(told, tmp_path, content, name):
    kind = told[0]
    two = named(kind, 0, np.array([5, 2]))
    (tmp_path / name).write_text(content.format(*two))
    done = ask(told, tmp_path / "some.parquet", top=3, users=tmp_path / name)
    ask(told, tmp_path / "all.parquet", top=3)
    some, everyone = pl.read_parquet(tmp_path / "some.parquet"), pl.read_parquet(tmp_path / "all.parquet")
    assert some["user"].to_list() == [two[0]] * 3 + [two[1]] * 3
    assert some.sort("user", "rank").equals(everyone.filter(pl.col("user").is_in(two)))
    assert done.asked == 2


def test_unknown_users_are_named_or_dropped(told, tmp_path):
    kind = told[0]
    (tmp_path / "users.csv").write_text("user\n{}\n{}\n".format(*named(kind, 0, np.array([5, 777]))))
    with pytest.raises(UnknownIdError, match=facts("users.csv", {"numbers": 5539, "text": "'u777'"}[kind])):
        ask(told, tmp_path / "top.csv", top=3, users=tmp_path / "users.csv")
    done = ask(told, tmp_path / "top.csv", top=3, users=tmp_path / "users.csv", unknown="drop")
    assert (done.asked, done.unknown, done.rows) == (1, 1, 3)


def test_columns_are_called_as_in_the_log(told, tmp_path):
    _, folder, log, _ = told
    log.rename({"user": "uid", "item": "mid"}).write_csv(tmp_path / "log.csv")
    ask(told, tmp_path / "a.csv", top=3, exclude=tmp_path / "log.csv", user="uid", item="mid", column="svd")
    ask(told, tmp_path / "b.csv", top=3, exclude=folder / "log.csv")
    a, b = pl.read_csv(tmp_path / "a.csv"), pl.read_csv(tmp_path / "b.csv")
    assert a.columns == ["uid", "mid", "svd", "rank"]
    assert a.rows() == b.rows()


@pytest.mark.parametrize("out", ["top.csv", "top.parquet"])
def test_the_list_is_a_model_that_evaluate_takes(told, tmp_path, out):
    _, folder, _, _ = told
    train, test = ol.split(ol.read(folder / "log.csv"), test=0.3, rng=0)
    model = learners.PureSVD(factors=3).fit(train)
    model.save(tmp_path / "m.safetensors")
    pl.DataFrame({
        "user": train.users.ids[train.user].tolist(), "item": train.items.ids[train.item].tolist(),
    }).write_csv(tmp_path / "train.csv")  # fmt: skip
    predict(PredictRequest(model=tmp_path / "m.safetensors", out=tmp_path / out, top=5, exclude=tmp_path / "train.csv"))
    result = ol.evaluate(
        {"model": model, "list": read_back(tmp_path / out)}, test, metrics=["recall@5", "ndcg@5"],
        estimators=["naive"], exclude=train,
    )  # fmt: skip
    for metric in ("recall@5", "ndcg@5"):
        assert result["list", metric, "naive"].value == pytest.approx(result["model", metric, "naive"].value)
        assert result["list", metric, "naive"].value > 0


def test_the_list_can_be_judged_where_the_rows_are(told, tmp_path):
    _, folder, log, model = told
    ask(told, tmp_path / "top.csv", top=5)
    metrics = {"metrics": ["recall@5"], "estimators": ["naive"], "threshold": 4}
    there = ol.evaluate({"list": pl.read_csv(tmp_path / "top.csv")}, log, population=(24, 18), **metrics)
    here = ol.evaluate({"model": model}, ol.read(folder / "log.csv"), **metrics)
    assert there["list", "recall@5", "naive"].value == pytest.approx(here["model", "recall@5", "naive"].value)


# -- what is told --------------------------------------------------------------------------------------------


def test_json_says_what_the_summary_says(told, tmp_path):
    done = ask(told, tmp_path / "top.csv", top=3)
    text = done.to_json(tmp_path / "told.json")
    assert (tmp_path / "told.json").read_text(encoding="utf-8") == text + "\n"
    content = json.loads(text)
    assert (content["kind"], content["rows"], content["top"], content["asked"]) == ("PureSVD", 72, 3, 24)
    first, second = done.summary().splitlines()
    assert re.search(facts(told[1] / "m.safetensors", "PureSVD", "24 users × 18 items"), first)
    assert re.search(facts(3, "24 users", "72 rows"), second)


def test_steps_are_told_in_order(told, tmp_path, monkeypatch):
    monkeypatch.setattr(predicting, "BLOCK", 18 * 10)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    steps = []
    wanted = PredictRequest(model=told[1] / "m.safetensors", out=tmp_path / "top.csv", top=3)
    predict(wanted, lambda what, done: steps.append((what, done)))
    assert [what for what, _ in steps] == ["reading the model", "reading the tables", *["ranking the items"] * 3]
    shares = [done for _, done in steps]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1] < 1


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        pytest.param({}, facts("--pairs FILE", "--top K"), id="nothing asked"),
        pytest.param({"pairs": "p.csv", "top": 3}, facts("--pairs FILE", "--top K"), id="two questions"),
        pytest.param({"top": 0}, facts("--top", 1, 0), id="top 0"),
        pytest.param(
            {"pairs": "p.csv", "users": "u.csv"}, facts("--users u.csv", "--top", "--pairs"), id="users of pairs"
        ),
        pytest.param(
            {"pairs": "p.csv", "exclude": "l.csv"},
            facts("--exclude l.csv", "--top", "--pairs"),
            id="exclude from pairs",
        ),
        pytest.param(
            {"pairs": "p.csv", "unknown": "nul"}, facts("--unknown", "'nul'", "'null'"), id="misspelt unknown"
        ),
        pytest.param(
            {"top": 3, "unknown": "drop"}, facts("--unknown drop", "--top", "--users"), id="drop without users"
        ),
        pytest.param({"top": 3, "users": "u.csv", "unknown": "null"}, facts("--unknown null", "user"), id="null user"),
        pytest.param({"top": 3, "column": ""}, facts("--column", "empty"), id="empty column"),
        pytest.param({"top": 3, "column": "rank"}, facts("--out", "'rank'", "two columns"), id="scores called rank"),
        pytest.param({"top": 3, "user": "x", "item": "x"}, facts("--out", "'x'", "two columns"), id="ids share a name"),
        pytest.param({"top": 3, "out": "top.xls"}, facts("--out", "'top.xls'", "'.xls'", "'.csv'"), id="excel"),
        pytest.param({"top": 3, "out": "m.safetensors"}, facts("--out", "'.safetensors'", "'.csv'"), id="out a model"),
        pytest.param({"pairs": "p.csv", "out": "p.csv"}, facts("p.csv", "overwritten", "read"), id="pairs overwritten"),
    ],
)
def test_what_cannot_work_is_refused_before_any_file_is_opened(options, refusal):
    with pytest.raises(OpenloopError, match=refusal):
        PredictRequest(**({"model": "m.safetensors", "out": "out.csv"} | options))


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "m.safetensors").write_bytes(b"not a model")
    with pytest.raises(FormatError, match=r"m\.safetensors"):
        predict(PredictRequest(model=tmp_path / "m.safetensors", out=tmp_path / "out.csv", top=3))
    with pytest.raises(InputError, match=facts("none.safetensors", "no such")):
        predict(PredictRequest(model=tmp_path / "none.safetensors", out=tmp_path / "out.csv", top=3))


def test_excluding_everything_leaves_nothing_to_write(tmp_path):
    log = WORLD.everything()
    learners.Popularity().fit(log).save(tmp_path / "m.safetensors")
    pl.DataFrame({"user": log.user, "item": log.item}).write_csv(tmp_path / "log.csv")
    with pytest.raises(EmptyError, match=facts("--exclude", "log.csv", "no item")):
        predict(
            PredictRequest(
                model=tmp_path / "m.safetensors", out=tmp_path / "o.csv", top=3, exclude=tmp_path / "log.csv"
            )
        )


def test_a_model_without_numbers_writes_nothing(told, tmp_path, monkeypatch):
    monkeypatch.setattr(learners.PureSVD, "scores", lambda _self, users: np.full((len(users), 18), np.nan))
    out = tmp_path / "top.csv"
    out.write_text("precious")
    with pytest.raises(PredictionError, match=facts("PureSVD", "scores", "finite")):
        ask(told, out, top=3)
    assert out.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]


def test_of_a_logistic_model_both_ways_give_probabilities(tmp_path):
    seen = WORLD.observe(3)
    labels = ol.Feedback.from_arrays(seen.user, seen.item, (seen.rating >= 3).astype(np.float32), users=24, items=18)
    learners.MF(factors=2, loss="logistic", reg=0.5).fit(labels).save(tmp_path / "m.safetensors")
    top = predict(PredictRequest(model=tmp_path / "m.safetensors", out=tmp_path / "top.csv", top=3))
    assert top is not None
    listed = pl.read_csv(tmp_path / "top.csv")
    assert listed["score"].is_between(0, 1).all()
    listed.select("user", "item").write_csv(tmp_path / "pairs.csv")
    predict(PredictRequest(model=tmp_path / "m.safetensors", out=tmp_path / "scored.csv", pairs=tmp_path / "pairs.csv"))
    np.testing.assert_allclose(pl.read_csv(tmp_path / "scored.csv")["score"], listed["score"], rtol=1e-5)


# -- vectors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".npz", ".parquet", ".safetensors"])
def test_vectors_are_written_and_asked_as_the_model(told, tmp_path, ending):
    done = ask(told, tmp_path / f"v{ending}", vectors=True)
    assert (done.rows, done.factors) == (24 + 18, 3)
    assert re.search(facts("42", "vectors", "3"), done.summary())
    for out, model in (("a.csv", told[1] / "m.safetensors"), ("b.csv", tmp_path / f"v{ending}")):
        asked = predict(PredictRequest(model=model, out=tmp_path / out, top=4))
        assert asked.users == 24
    assert asked.kind == "Factors"
    a, b = pl.read_csv(tmp_path / "a.csv"), pl.read_csv(tmp_path / "b.csv")
    assert a.drop("score").equals(b.drop("score"))
    np.testing.assert_allclose(a["score"], b["score"], atol=1e-6)


def test_a_logistic_model_in_vectors_still_predicts_probabilities(tmp_path):
    seen = WORLD.observe(3)
    log = ol.Feedback.from_arrays(seen.user, seen.item, seen.rating >= 4, users=seen.users, items=seen.items)
    model = learners.MF(factors=2, loss="logistic", rng=0).fit(log)
    model.to_vectors(tmp_path / "v.npz")
    predict(PredictRequest(model=tmp_path / "v.npz", out=tmp_path / "top.parquet", top=3))
    found = pl.read_parquet(tmp_path / "top.parquet")
    wanted = model.predict(model.users_.codes(found["user"].to_numpy()), model.items_.codes(found["item"].to_numpy()))
    np.testing.assert_allclose(found["score"], wanted, atol=1e-6)
    assert found["score"].is_between(0, 1).all()


@pytest.mark.parametrize(
    ("out", "options", "told_of"),
    [
        ("v.csv", {}, (".csv", ".npz")),
        ("v.npz", {"top": 3}, ("--top", "--vectors")),
        ("v.npz", {"users": "u.csv"}, ("--users", "--vectors")),
        ("v.npz", {"exclude": "u.csv"}, ("--exclude", "--vectors")),
    ],
)
def test_what_vectors_do_not_go_with(tmp_path, out, options, told_of):
    with pytest.raises(InputError, match=facts(*told_of)):
        PredictRequest(model=tmp_path / "m.safetensors", out=tmp_path / out, vectors=True, **options)


def test_a_model_without_vectors_is_refused(tmp_path):
    learners.Popularity().fit(WORLD.observe(3)).save(tmp_path / "m.safetensors")
    with pytest.raises(UndefinedError, match=facts("Popularity", "--top")):
        predict(PredictRequest(model=tmp_path / "m.safetensors", out=tmp_path / "v.npz", vectors=True))
