"""`openloop audit` in memory and streamed from disk: the same refusals, exit codes and numbers, of any log."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.running import run
from tests.modes import unlike

U, I = 24, 12
METRICS = (["mae"], ["recall@5", "mae"], ["ndcg@3", "adg"], ["rmse", "dcg@5"], [])
ESTIMATORS = ([], [], [], ["snips"], ["clipped@5", "ips"], ["stratified@3"], ["naive"])
HOSTILE = ("repeat", "nan", "missing", "stranger", "outside", "absent", "half", "prediction")
LOG_FIRST = ("repeat and stranger", "repeat and prediction", "two repeats")  # what is wrong with the log is told


@st.composite
def questions(draw):
    """What an audit is asked, and the seed of the log that it is asked about."""
    metrics = draw(st.sampled_from(METRICS))
    wrong = draw(st.sampled_from([None, None, None, None, *HOSTILE]))  # two wrong things may be told in another order
    return {
        "seed": draw(st.integers(0, 2**16)),
        "ids": draw(st.sampled_from(["whole", "text", "digits"])),
        "format": draw(st.sampled_from([".csv", ".parquet"])),
        "ratings": "stars" if wrong else draw(st.sampled_from(["stars", "continuous", "positives", "liked"])),
        "propensity": draw(st.sampled_from(["propensity", "popularity", "uniform"])),
        "split": draw(st.sampled_from([None, None, "random", "time", "none", "guess"])),
        "metrics": metrics if wrong != "half" else metrics or ["mae"],  # what nobody named is left out one by one
        "estimators": draw(st.sampled_from(ESTIMATORS)),
        "lists": draw(st.booleans()) and metrics != ["mae"],
        "floor": draw(st.sampled_from([None, None, 0.2])),
        "wrong": wrong,
    }


def logs(asked, rng):
    u, i = np.nonzero(rng.random((U, I)) < rng.uniform(0.2, 0.9, I))
    kinds = {"stars": rng.integers(1, 6, len(u)) * 1.0, "continuous": rng.normal(3, 1, len(u)),
             "positives": np.ones(len(u)), "liked": rng.integers(4, 6, len(u)) * 1.0}  # fmt: skip
    log = pl.DataFrame({"user": u, "item": i, "rating": kinds[asked["ratings"]],
                        "propensity": rng.uniform(0.05, 1, len(u))})  # fmt: skip
    first = np.ones(len(u), bool) if asked["split"] is None else rng.random(len(u)) < 0.6
    train = log.filter(pl.Series(~first))
    if asked["split"] == "none":
        train = pl.concat([train, log.filter(pl.Series(first)).head(3)])
    return log.filter(pl.Series(first)), train


def scores(asked, rng, log, train):
    all_cells = {"user": np.repeat(np.arange(U), I), "item": np.tile(np.arange(I), U)}
    found = pl.DataFrame(all_cells | {"score": rng.normal(3, 1, U * I).round(int(rng.integers(0, 4)))})
    if not asked["lists"]:
        return found
    kept = found.join(train, on=["user", "item"], how="anti") if asked["split"] else found
    ranked = kept.sort("user", "score", "item", descending=[False, True, False])
    return (
        ranked.with_columns(rank=pl.int_range(1, pl.len() + 1).over("user")).filter(pl.col("rank") <= 5).drop("score")
    )


def spoiled(asked, log, model):
    """One thing wrong."""
    row = log.sample(1, seed=asked["seed"])
    wrong = {
        "repeat": pl.concat([log, row]), "nan": _with(log, "rating", float("nan")), "missing": _with(log, "user", None),
        "outside": _with(log, "propensity", 1.5), "absent": _with(log, "propensity", None),
    }  # fmt: skip
    wrong |= dict.fromkeys(LOG_FIRST, wrong["repeat"])
    number = "rank" if asked["lists"] else "score"
    models = {
        "stranger": pl.concat([model, model.head(1).with_columns(user=pl.lit(10_000, pl.Int64))]),
        "half": model.filter(pl.col("user") % 2 == 0), "prediction": _with(model, number, None),
        "two repeats": pl.concat([model, model.head(1)]),
    }  # fmt: skip
    models |= {f"repeat and {what}": models[what] for what in ("stranger", "prediction")}
    return wrong.get(asked["wrong"], log), models.get(asked["wrong"], model)


def _with(frame, column, value):
    """The first row with another value in a column."""
    return frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
    )


def written(asked, folder, name, frame):
    names = {"whole": pl.col("user", "item"), "text": pl.format("é{}", "user"), "digits": pl.format("0{}", "user")}
    user = frame if asked["ids"] == "whole" else frame.with_columns(user=names[asked["ids"]])
    path = folder / f"{name}{asked['format']}"
    user.write_csv(path) if asked["format"] == ".csv" else user.write_parquet(path)
    return path


def words(asked, folder):
    rng = np.random.default_rng(asked["seed"])
    log, train = logs(asked, rng)
    tables = {name: scores(asked, rng, log, train) for name in "ab"}
    log, tables["a"] = spoiled(asked, log, tables["a"])
    found = [written(asked, folder, "log", log)]
    found += [f"{name}={written(asked, folder, name, table)}" for name, table in tables.items()]
    found += ["--propensity", asked["propensity"]]
    found += [word for m in asked["metrics"] for word in ("--metric", m)]
    found += [word for e in asked["estimators"] for word in ("--estimator", e)]
    if asked["floor"] is not None:
        found += ["--floor", asked["floor"]]
    if asked["split"] is not None:
        found += ["--exclude", written(asked, folder, "train", train)]
        found += [] if asked["split"] == "guess" else ["--split", asked["split"]]
    return found


@settings(max_examples=12)
@given(questions())
def test_both_modes_give_the_same_answer_or_the_same_refusal(asked):
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that overflow
        code, other = unlike(run, *words(asked, Path(folder)))
    assert code in (0, 2, 3)
    assert other is None, other


PLAIN = {"seed": 5, "ids": "whole", "format": ".csv", "ratings": "stars", "propensity": "propensity", "split": None,
         "metrics": ["mae"], "estimators": [], "lists": False, "floor": None, "wrong": None}  # fmt: skip


@pytest.mark.parametrize("propensity", ["propensity", "popularity"])
@pytest.mark.parametrize("split", [None, "random", "time", "none"])
def test_an_audit_that_is_answered_is_answered_alike(tmp_path, propensity, split):
    asked = PLAIN | {"propensity": propensity, "split": split, "metrics": ["recall@5", "mae"]}
    assert unlike(run, *words(asked, tmp_path)) == (3, None)


@pytest.mark.parametrize("wrong", [*HOSTILE, *LOG_FIRST])
def test_what_is_refused_is_refused_alike(tmp_path, wrong):
    assert unlike(run, *words(PLAIN | {"wrong": wrong}, tmp_path)) == (2, None)


def test_streamed_rows_give_the_same_bytes_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    asked = words(PLAIN | {"propensity": "popularity", "split": "random", "metrics": ["recall@5", "mae"]}, tmp_path)
    once, again = (run("audit", *asked, "--stream", "--json", "-").stdout for _ in range(2))
    assert once == again != ""


def test_an_order_whose_gamma_needs_the_rows_is_otherwise_the_same(tmp_path):
    asked = words(PLAIN | {"metrics": ["ndcg@3"], "estimators": ["snips"], "seed": 6, "split": "random"}, tmp_path)
    assert "could reverse once propensities" in run("audit", *asked, "--no-stream", "--json", "-").stdout
    assert '"gamma of ndcg@3 by snips"' in run("audit", *asked, "--stream", "--json", "-").stdout
    assert unlike(run, *asked) == (3, None)


def test_what_streamed_rows_cannot_tell_is_said(tmp_path):
    asked = words(PLAIN | {"ratings": "positives", "metrics": ["ndcg@3"], "seed": 3}, tmp_path)
    found = run("audit", *asked, "--stream", "--json", "-").stdout
    assert '"bounds of ndcg@3 by snips against gamma"' in found
    assert '"not_computed": {}' in run("audit", *asked, "--no-stream", "--json", "-").stdout
