"""`openloop train` as people and programs call it."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop import learners
from openloop.commands.recipes import MODELS, recipe_parameters, takes_weights
from openloop.data.simulate import movie_lovers
from openloop.learners import ordinal_mf
from tests.cli.running import interrupted, run
from tests.facts import facts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log with propensities, as CSV and Parquet."""
    found, log = tmp_path_factory.mktemp("train"), movie_lovers(users=30, items=20).observe(7)
    rows = pl.DataFrame({"user": log.user, "item": log.item, "rating": log.rating, "p": log.propensity})
    rows = rows.with_columns(w=1 / pl.col("p")).sample(fraction=1, shuffle=True, seed=1)
    rows.write_csv(found / "log.csv")
    rows.write_parquet(found / "log.parquet")
    return found


def words(folder, out, model, *more, log="log.csv"):
    return ("train", folder / log, "--model", model, "--out", out, *more)


def test_a_factorisation_is_that_of_the_library(folder, tmp_path):
    given = ("--factors", "2", "--reg", "3", "--bias-reg", "0.5", "--loss", "absolute", "--solver", "cholesky")
    more = ("--iterations", "7", "--tol", "0", "--seed", "5", "--threads", "2", "--propensity", "p", "--floor", "0.1")
    result = run(*words(folder, tmp_path / "m.safetensors", "mf", *given, *more))
    assert result.exit_code == 0, result.output
    log = ol.read(folder / "log.csv", propensity="p")
    by_hand = learners.MF(
        2, 3.0, bias_reg=0.5, loss="absolute", solver="cholesky", iterations=7, tol=0.0, rng=5, threads=2
    )
    by_hand.fit(log, sample_weight=1 / np.maximum(log.propensity, 0.1))
    found = learners.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(found.scores(np.arange(30)), by_hand.scores(np.arange(30)))
    first, last = by_hand.history_[[0, -1]]
    assert re.search(facts("objective", f"{first:.6g}", f"{last:.6g}", 7), result.stdout)


def test_a_gpu_that_is_not_there_is_one_line(torch, triton, folder, tmp_path, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    result = run(*words(folder, tmp_path / "m.safetensors", "mf", "--device", "cuda"))
    assert result.exit_code == 2
    assert re.search(facts("MF", "device", 0, "GPUs"), " ".join(result.stderr.split()))
    assert not (tmp_path / "m.safetensors").exists()


@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_learned_saved_and_told(folder, tmp_path, model):
    few = ("--factors", "3") if "factors" in recipe_parameters(model) else ()
    few += ("--sweeps", "20", "--burn", "10", "--thin", "5") if "sweeps" in recipe_parameters(model) else ()
    weights = ("--propensity", "p") if takes_weights(model) else ()
    for log in ("log.csv", "log.parquet"):
        result = run(*words(folder, tmp_path / "m.safetensors", model, *few, *weights, log=log))
        assert result.exit_code == 0, result.output
        assert result.stderr == f"wrote {tmp_path / 'm.safetensors'}\n"  # no bar where there is no terminal
        assert learners.load(tmp_path / "m.safetensors").scores([0]).shape == (1, 20)
        assert f"learned {model}" in result.stdout
        assert re.search(facts("weights", *(("1/p", "'p'") if weights else ("none",))), result.stdout)
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_the_same_seed_gives_the_same_file(folder, tmp_path):
    for name in ("a", "b"):
        run(
            *words(
                folder, tmp_path / f"{name}.safetensors", "auc", "--factors", "3", "--updates", "2000", "--seed", "7"
            )
        )
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_after_an_interruption_a_checkpoint_goes_on(folder, tmp_path, monkeypatch):
    few = ("--factors", "2", "--sweeps", "12", "--burn", "4", "--thin", "4", "--chains", "1")
    whole = run(*words(folder, tmp_path / "whole.safetensors", "ordinal-mf", *few))
    kept, out, own = tmp_path / "kept.npz", tmp_path / "m.safetensors", ordinal_mf.sweep
    monkeypatch.setattr(ordinal_mf, "sweep", lambda *a: interrupted() if a[2].sweep == 7 else own(*a))
    stopped = run(*words(folder, out, "ordinal-mf", *few, "--checkpoint", kept))
    assert stopped.exit_code == 130
    assert re.search(facts(kept, "interrupted"), stopped.stderr)
    monkeypatch.setattr(ordinal_mf, "sweep", lambda *a: pytest.fail("made again") if a[2].sweep < 7 else own(*a))
    went_on = run(*words(folder, out, "ordinal-mf", *few, "--checkpoint", kept))
    assert (went_on.exit_code, went_on.stdout) == (0, whole.stdout)
    assert "raise --sweeps" in went_on.stdout  # the note's keyword, as the command has it
    assert out.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()  # the path is not of the model
    taken = run(*words(folder, out, "ordinal-mf", *few, "--checkpoint", folder / "log.csv"))
    assert taken.exit_code == 2
    assert re.search(facts("log.csv", "overwritten"), taken.stderr)


WRONG = {
    ("--model", "bais"): ("--model", "'bais'", "'bias'"),
    ("--factors", "3"): ("--factors", "bias", "--reg"),
    ("--gamma", "3", "--model", "auc"): ("--gamma", "auc", "--factors"),
    ("--seed", "3"): ("--seed", "bias", "--reg"),
    ("--checkpoint", "kept.npz"): ("--checkpoint", "bias", "--reg"),
    ("--reg", "much"): ("--reg", "number", "'much'"),
    ("--reg", "-1"): ("reg", 0, -1.0),
    ("--model", "mf", "--loss", "absolut"): ("--loss", "absolut", "'absolute'"),
    ("--model", "mf", "--loss", "logistic"): ("--loss", "logistic", "0 and 1"),
    ("--propensity", "p", "--weight", "w"): ("--propensity", "--weight"),
    ("--propensity", "w"): ("propensity", "column 'w'", "(0, 1]"),
    ("--propensity", "q"): ("--propensity", "column 'q'"),
    ("--floor", "0.1"): ("--floor", "--propensity COLUMN"),
    ("--out", "m.csv"): ("--out", "'.csv'", "'.safetensors'"),
    ("--out", "-"): ("--out", "'-'", "'.safetensors'"),
    ("--out", "none/m.safetensors"): ("--out", "none", "exist"),
    ("--json", "m.safetensors"): ("m.safetensors", "overwritten", "written"),
    ("--users", "5"): ("'user'", "25 ids", "--users", "--items"),
    ("--rating", "stars"): ("--rating", "column 'stars'"),
    ("--model", "svd", "--factors", "21"): ("factors", 20, 21),
}


@pytest.mark.parametrize(("more", "told"), WRONG.items(), ids=map(" ".join, WRONG))
def test_what_is_wrong_is_one_line_and_leaves_no_file(folder, tmp_path, monkeypatch, more, told):
    monkeypatch.chdir(tmp_path)
    result = run(*words(folder, "m.safetensors", "bias"), *more, COLUMNS="200")
    assert result.exit_code == 2
    assert re.search(facts(*told), result.stderr)
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["fit", "save"])
def test_an_interruption_leaves_what_was_there(folder, tmp_path, monkeypatch, method):
    out = tmp_path / "m.safetensors"
    out.write_text("precious")
    monkeypatch.setattr(learners.Bias, method, interrupted)
    result = run(*words(folder, out, "bias"))
    assert result.exit_code == 130
    assert "Traceback" not in result.output
    assert out.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]
