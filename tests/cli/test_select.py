"""`openloop select` as people and programs call it."""

from __future__ import annotations

import inspect
import json
import re

import jsonschema
import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop import learners
from openloop.cli.select import select
from openloop.cli.train import train
from openloop.commands.log_files import LogRequest
from openloop.commands.select import SelectRequest
from openloop.data.simulate import movie_lovers
from openloop.support.fields import fields_named
from tests.cli.running import interrupted, run
from tests.facts import facts

NUMBER = {"type": ["number", "null"]}
SETTING = {
    "type": "object",
    "properties": {
        "model": {"type": "string"}, "parameters": {"type": "object"}, "value": NUMBER, "stderr": NUMBER,
        "folds": {"type": "array", "items": NUMBER}, "best": {"type": "boolean"},
        "problem": {"type": ["string", "null"]},
    },
    "additionalProperties": False,
    "minProperties": 7,
}  # fmt: skip
TOLD = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("log", "out", "metric", "estimator", "model")},
        **{name: {"type": "integer"} for name in ("rows", "users", "items", "folds", "seed")},
        "weights": {"type": ["object", "null"]}, "settings": {"type": "array", "items": SETTING, "minItems": 1},
        "parameters": {"type": "object"}, "coefficients": {"type": ["array", "null"]},
        "notes": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
    "minProperties": 15,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found, log = tmp_path_factory.mktemp("select"), movie_lovers(users=30, items=20).observe(7)
    rows = pl.DataFrame({"user": log.user, "item": log.item, "rating": log.rating, "p": log.propensity})
    rows.write_csv(found / "log.csv")
    return found


def words(folder, out, *models, more=()):
    return ("select", folder / "log.csv", *(w for m in models for w in ("--model", m)), "--out", out, *more)


def test_settings_are_a_table_and_the_best_is_saved(folder, tmp_path):
    more = ("--factors", "1, 3", "--reg", "0.5,5,1e5", "--propensity", "p", "--seed", "3", "--metric", "mae")
    result = run(*words(folder, tmp_path / "best.safetensors", "mf", "bias", "stack", more=more))
    assert result.exit_code == 0, result.output
    assert result.stderr == f"wrote {tmp_path / 'best.safetensors'}\n"
    lines = [line for line in result.stdout.splitlines() if re.match(r"\s*✓?\s+(mf|bias|stack)\s", line)]
    assert len(lines) == 6 + 3 + 6
    log = ol.read(folder / "log.csv", propensity="p")
    by_hand = ol.select(learners.MF(rng=3), log, grid={"factors": [1, 3], "reg": [0.5, 5.0, 1e5]}, metric="mae", rng=3)
    for line, row in zip(lines, by_hand.table.rows(named=True), strict=False):
        told = ("mf", row["factors"], f"{row['reg']:g}", f"{row['value']:.4f}", f"{row['stderr']:.4f}")
        assert re.search(facts(*told), line)
    (best,) = [line for line in lines if "✓" in line]
    (chosen,) = [line for line in result.stdout.splitlines() if line.startswith("chosen: ")]
    assert chosen.split()[1].strip(",;") == best.split()[1]
    assert "–" in lines[6]  # bias has no factors
    assert learners.load(tmp_path / "best.safetensors").scores([0]).shape == (1, 20)


def test_json_is_valid_and_alone_on_stdout(folder, tmp_path):
    given = words(
        folder, tmp_path / "m.safetensors", "recalibrated", "bias", more=("--propensity", "p", "--folds", "2")
    )
    result = run(*given, "--json", "-")
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    jsonschema.validate(content, TOLD)
    assert [len(each["folds"]) for each in content["settings"]] == [2, 2]
    run(*given, "--json", tmp_path / "told.json")
    assert (tmp_path / "told.json").read_text(encoding="utf-8") == result.stdout


def test_the_same_seed_gives_the_same_file(folder, tmp_path):
    for name in "ab":
        run(*words(folder, tmp_path / f"{name}.safetensors", "stack", more=("--seed", "7", "--factors", "2,3")))
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_a_log_is_read_by_the_options_of_train():
    mine, theirs = (inspect.signature(command).parameters for command in (select, train))
    for name in (*fields_named(LogRequest), "users", "items", "propensity", "weight", "floor", "out", "json"):
        assert mine[name].annotation == theirs[name].annotation
        assert mine[name].default == theirs[name].default


def test_sweeps_are_for_the_models_that_make_them(folder, tmp_path):
    out = tmp_path / "m.safetensors"
    given = words(folder, out, "bias", "ordinal-mf", more=("--factors", "2", "--folds", "2"))
    few = json.loads(run(*given, "--sweeps", "20", "--json", "-").stdout)  # fewer than are dropped
    assert [each["problem"] is None for each in few["settings"]] == [True, False]
    assert re.search(facts("sweeps", 20, 540), few["settings"][1]["problem"])
    assert run(*words(folder, out, "bias", more=("--sweeps", "20"))).exit_code == 2
    asked = SelectRequest(log=folder / "log.csv", out=out, model=("bias", "joint-mnar"), sweeps=600)
    assert [asked.common(name).get("sweeps") for name in asked.model] == [None, 600]


def test_after_an_interruption_a_checkpoint_goes_on(folder, tmp_path, monkeypatch):
    out, kept, own, fitted = tmp_path / "m.safetensors", tmp_path / "kept", learners.Bias.fit, []

    def fit(self, *args, **given):
        fitted.append(self)
        return interrupted() if len(fitted) == 4 else own(self, *args, **given)

    given = words(folder, out, "bias", more=("--reg", "1,5", "--threads", "1", "--propensity", "p"))
    plain = run(*given)
    monkeypatch.setattr(learners.Bias, "fit", fit)
    stopped = run(*given, "--checkpoint", kept)
    assert stopped.exit_code == 130
    assert re.search(facts(kept, "interrupted"), stopped.stderr)
    assert "Traceback" not in stopped.output
    assert len(list(kept.iterdir())) == 3
    result = run(*given, "--checkpoint", kept)
    assert (result.exit_code, result.stdout) == (0, plain.stdout)
    assert len(fitted) == 4 + 5 + 1


def test_without_a_checkpoint_an_interruption_promises_nothing(folder, tmp_path, monkeypatch):
    out = tmp_path / "m.safetensors"
    out.write_text("precious")
    monkeypatch.setattr(learners.Bias, "fit", interrupted)
    result = run(*words(folder, out, "bias"))
    assert result.exit_code == 130
    assert result.stderr == "openloop: interrupted\n"
    assert out.read_text() == "precious"


WRONG = {
    ("--model", "bais"): ("--model", "'bais'", "'bias'"),
    ("--factors", "3"): ("--factors", "bias"),
    ("--reg", "1,much"): ("--reg", "number", "'much'"),
    ("--model", "mf", "--factors", "3,2.5"): ("--factors", "whole number", "'2.5'"),
    ("--reg", "1,"): ("--reg", "number", "''"),
    ("--reg", "-1"): ("no setting", "reg", -1.0),
    ("--metric", "coverage@3"): ("coverage@3",),
    ("--estimator", "ips"): ("ips", "--propensity"),
    ("--folds", "1"): ("folds", 1),
    ("--folds", "few"): ("--folds", "whole number", "'few'"),
    ("--threads", "0"): ("threads", 1, 0),
    ("--propensity", "q"): ("--propensity", "column 'q'"),
    ("--out", "m.csv"): ("--out", "'.csv'", "'.safetensors'"),
    ("--json", "m.safetensors"): ("m.safetensors", "overwritten", "written"),
}


@pytest.mark.parametrize(("more", "told"), WRONG.items(), ids=map(" ".join, WRONG))
def test_what_is_wrong_is_one_line_and_leaves_no_file(folder, tmp_path, monkeypatch, more, told):
    monkeypatch.chdir(tmp_path)
    result = run(*words(folder, "m.safetensors", "bias", more=more), COLUMNS="200")
    assert result.exit_code == 2
    assert re.search(facts(*told), result.stderr)
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_is_a_file_is_refused(folder, tmp_path):
    (tmp_path / "kept").write_text("precious")
    result = run(*words(folder, tmp_path / "m.safetensors", "bias", more=("--checkpoint", tmp_path / "kept")))
    assert result.exit_code == 2
    assert re.search(facts("--checkpoint", tmp_path / "kept", "folder"), " ".join(result.stderr.split()))
    assert (tmp_path / "kept").read_text() == "precious"


def test_a_damaged_fold_is_named(folder, tmp_path):
    given = words(folder, tmp_path / "m.safetensors", "bias", more=("--checkpoint", tmp_path / "kept"))
    assert run(*given).exit_code == 0
    file = min((tmp_path / "kept").iterdir())
    file.write_bytes(b"")
    result = run(*given)
    assert result.exit_code == 2
    assert re.search(facts(file, "delete"), result.stderr)
    assert np.size(np.frombuffer(file.read_bytes(), np.uint8)) == 0
