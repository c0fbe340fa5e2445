"""`openloop select` as people and programs call it."""

from __future__ import annotations

import re

import polars as pl
import pytest

import openloop as ol
from openloop import learners
from openloop.data.simulate import movie_lovers
from tests.cli.running import interrupted, run
from tests.facts import facts


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


def test_the_same_seed_gives_the_same_file(folder, tmp_path):
    for name in "ab":
        run(*words(folder, tmp_path / f"{name}.safetensors", "stack", more=("--seed", "7", "--factors", "2,3")))
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


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
