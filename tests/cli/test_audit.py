"""`openloop audit` as people and programs call it: files in, a verdict, tables, a page and JSON out."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.audits.answers import Assumption, PairAnswer, Reason, Verdict
from openloop.audits.auditing import audit as judge
from openloop.audits.results import Audit
from tests.audit_files import ITEMS, NAMED, SCORES, USERS, audit_files, rows, write
from tests.cli.running import INSTALLED, interrupted, run
from tests.facts import facts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return audit_files(tmp_path_factory.mktemp("cli"))


def words(files, *more, models=("a", "b", "c"), log="log"):
    """The words of a command on models by the names of their files."""
    ids = ("--users", files / "users", "--items", files / "items")
    return ("audit", files / log, *(f"{name[0]}={files / name}" for name in models), *ids, *more)


P = ("--propensity", "p")
MAE = (*P, "--metric", "mae")


def estimates(content):
    return {(e["model"], e["metric"], e["estimator"]): e for e in content["comparison"]["estimates"]}


def assert_numbers(content, found: Audit):
    told = estimates(content)
    assert set(told) == set(found.result.estimates)
    for key, estimate in found.result.estimates.items():
        assert told[key]["value"] == pytest.approx(estimate.value, rel=1e-10)
        assert told[key]["stderr"] == pytest.approx(estimate.stderr, rel=1e-10)
    assert content["verdict"]["headline"] == found.verdict.headline
    assert len(content["contrasts"]) == sum(map(len, found.contrasts.values()))


# -- end to end ----------------------------------------------------------------------------------------------


def installed(*words):
    """What the installed program answers: exit code, stdout, stderr."""
    env = {"PATH": os.environ["PATH"], "COLUMNS": "80", "NO_COLOR": "1"}
    done = subprocess.run([INSTALLED, *map(str, words)], capture_output=True, text=True, check=False, env=env)
    return done.returncode, done.stdout, done.stderr


def here(*words):
    """The same in this process, which has its imports behind it."""
    done = run(*words)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize(("kind", "answer"), [(".csv", installed), (".parquet", here), (".jsonl", here)])
def test_the_command_gives_the_numbers_of_the_library(tmp_path, kind, answer):
    files = audit_files(tmp_path, kind)
    out = tmp_path / "found.json"
    page = ("--report", tmp_path / "r.html") if kind == ".csv" else ()
    more = (*P, "--exclude", files / "train", *page, "--json", out, "--metric", "ndcg@5", "--metric", "mae",
            "--strata", "3", "--strata", "region", "--open-loop", files / "sample")  # fmt: skip
    code, stdout, stderr = answer(*words(files, *more, models=("a_all", "b.npy", "c_wide.parquet")))
    assert code in {0, 3}, stderr
    content = json.loads(out.read_text(encoding="utf-8"))
    region = np.array(["north" if u % 3 else "south" for u in files.test.user])
    found = judge(
        SCORES, files.test, exclude=files.train, metrics=["ndcg@5", "mae"], strata=[3], groups={"region": region},
        sample=files.sample,
    )  # fmt: skip
    assert_numbers(content, found)
    assert code == (0 if found.verdict.supported else 3)
    assert stdout.replace("\n", " ").startswith(found.verdict.headline[:40])
    begun = f"reading {files / 'log'}, and the predictions of a, b and c"
    assert stderr.splitlines() == [begun, *(f"wrote {path}" for path in (out, *page[1:]))]
    for path in page[1:]:
        assert path.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")


def test_a_model_file_and_a_fitted_propensity_model_are_judged(files, tmp_path):
    done = run(
        *words(files, "--propensity", "popularity", "--metric", "mae", "--json", "-", "--no-check", "--exclude",
               files / "train", models=("a", "bias.safetensors"))
    )  # fmt: skip
    content = json.loads(done.stdout)
    whole = ol.read(
        pl.concat([rows(files.test), rows(files.train)]), **NAMED, items=ITEMS.tolist(), users=USERS.tolist()
    )
    model = ol.propensity.Popularity().fit(whole)
    found = judge(
        {"a": SCORES["a"], "b": ol.load(files / "bias.safetensors")}, files.test, model, exclude=files.train,
        metrics=["mae"], check=False,
    )  # fmt: skip
    assert_numbers(content, found)
    assert content["propensity_check"] is None
    assert content["setting"]["propensity"] == "popularity, fitted on log and excluded log together"


def test_scores_and_a_list_under_one_name_are_one_model(files):
    done = run(
        *words(files, *P, "--metric", "mae", "--metric", "recall@10", "--exclude", files / "train", "--json", "-",
               models=("a", "a_top", "b", "b_top")), "--estimator", "snips", "--estimator", "naive",
    )  # fmt: skip
    found = judge(
        {name: SCORES[name] for name in "ab"}, files.test, exclude=files.train, metrics=["mae", "recall@10"],
        estimators=["snips", "naive"],
    )  # fmt: skip
    assert_numbers(json.loads(done.stdout), found)


def test_scanned_files_say_what_memory_says(files, monkeypatch):
    given = words(files, *MAE, "--exclude", files / "train", "--json", "-", "--no-check")
    here = json.loads(run(*given).stdout)
    monkeypatch.setattr("openloop.commands.audit.scans.free_memory", lambda: 0)
    there = json.loads(run(*given).stdout)
    assert set(estimates(here)) == set(estimates(there))
    for key, told in estimates(here).items():
        assert estimates(there)[key]["value"] == pytest.approx(told["value"])
        assert estimates(there)[key]["stderr"] == pytest.approx(told["stderr"])
    assert there["verdict"] == here["verdict"]
    assert there["setting"]["log"].endswith("scanned")


# -- what is said --------------------------------------------------------------------------------------------


def test_json_is_alone_on_stdout(files, tmp_path):
    given = words(files, *MAE, "--json", "-", "--report", tmp_path / "r.html")
    done = run(*given)
    content = json.loads(done.stdout, parse_constant=pytest.fail)
    assert content["setting"]["log"] == str(files / "log")
    assert content["setting"]["propensity"] == "column 'p' of the log"
    assert re.search(facts("user 'uid'", "item 'mid'", "rating 'stars'"), content["notes"][0])
    assert done.stderr.splitlines()[1:] == [f"wrote {tmp_path / 'r.html'}"]


# -- exit codes ----------------------------------------------------------------------------------------------


def _verdict(level):
    thin = Reason(code="rho", text="too thin")
    remedy = "" if level == "verdict" else "What may help: leaving out rare items by min_item_rows=30."
    given = Assumption(name="rho", holds_to=1.1, flips_at=1.3, required=1.5)  # whose reason a conditional answer is
    pair = PairAnswer(a="x", b="y", better="x", level=level, estimand="per cell", assumption=given)
    return Verdict(
        level=level, headline="So it is.", reasons=() if level == "verdict" else (thin,), remedy=remedy, pairs=(pair,)
    )


@pytest.mark.parametrize(("level", "code"), [("verdict", 0), ("conditional", 3), ("none", 3)])
def test_the_exit_code_says_whether_the_log_supports_a_choice(files, tmp_path, monkeypatch, level, code):
    monkeypatch.setattr("openloop.audits.auditing.decide", lambda _found: _verdict(level))
    done = run(*words(files, *MAE, "--report", tmp_path / "r.html", "--json", tmp_path / "r.json"))
    assert done.exit_code == code
    assert done.stdout.startswith("So it is.")
    assert ("- too thin" in done.stdout) is (level == "none")
    assert ("--min-item-rows 30" in done.stdout) is (level != "verdict")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["verdict"]["level"] == level
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "r.json"]


# -- bad input -----------------------------------------------------------------------------------------------


WRONG = {
    ("--split", "time"): ("--split time", "--exclude"),
    ("--metric", "ndgc@5"): ("ndgc@5",),
    ("--estimator", "dr"): ("--estimator dr", "ol.dr"),
    ("--propensity", "q"): ("--propensity", "'q'", "column"),
    ("--propensity", "naive-bayes"): ("naive-bayes=SAMPLE",),
    ("--propensity", "uniform=x"): ("uniform=x", "naive-bayes"),
    ("--user-features", "u.csv"): ("--user-features", "--item-features"),
    ("--propensity", "uniform", "--gamma", "2"): ("--gamma 2", "popularity"),
    ("--propensity", "p", "--calibrate", "platt"): ("--calibrate platt", "'p'"),
    ("--propensity", "uniform", "--assumes", "logistic"): ("--assumes logistic", "column"),
    ("--strata", "regoin"): ("--strata", "'regoin'", "'region'"),
    ("--rating", "start"): ("--rating", "'start'", "'stars'"),
    ("--level", "2"): ("--level", 0, 1, 2),
    ("--level", "much"): ("--level", "'much'", "number"),
    ("--users", "5"): ("'uid'", "60 ids", "--users"),
    ("--missing", "skip"): ("--missing", "'skip'", "'drop'"),
    ("--exclude", "none.csv"): ("none.csv", "no such"),
    ("--report", "r.pdf"): ("--report", "r.pdf", ".html"),
    ("--report", "none/r.html"): ("--report", "none", "writable"),
    ("--report", "-"): ("--report", ".html"),
    ("c=none.csv",): ("none.csv", "no such"),
    ("c.csv",): ("'c.csv'", "'c=c.csv'"),
}


@pytest.mark.parametrize(("change", "told"), WRONG.items(), ids=map(" ".join, WRONG))
def test_what_is_wrong_is_one_line_and_leaves_no_file(files, tmp_path, monkeypatch, change, told):
    monkeypatch.chdir(tmp_path)
    done = run(*words(files, models=("a", "b")), *change, "--json", "r.json", COLUMNS="300")
    assert done.exit_code == 2, done.output
    assert re.search(facts(*told), done.stderr)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_missing_predictions_are_counted_with_their_users(files, tmp_path):
    short = pl.read_csv(files / "a").filter(pl.col("uid") != 104)
    write(short, tmp_path / "a.csv")
    number = len(rows(files.test).filter(pl.col("uid") == 104))
    given = ("audit", files / "log", f"a={tmp_path / 'a.csv'}", f"b={files / 'b'}", *MAE)
    done = run(*given, COLUMNS="300")
    assert done.exit_code == 2
    told = facts("model 'a'", f"{number} of {len(files.test)}", "users 104", "--missing drop", "worst")
    assert re.search(told, done.stderr)
    for way in ("drop", "worst"):
        assert run(*given, "--missing", way).exit_code in {0, 3}


def test_an_output_that_is_also_read_is_refused(files):
    before = (files / "a").read_bytes()
    done = run(*words(files, *MAE), "--json", files / "a")
    assert done.exit_code == 2
    assert re.search(facts("overwritten", "read"), done.stderr)
    assert (files / "a").read_bytes() == before
    both = run(*words(files, *MAE), "--json", files / "x.html", "--report", files / "x.html")
    assert re.search(facts("x.html", "overwritten", "written"), both.stderr)


@pytest.mark.parametrize("name", ["r.html", "r.json"])
def test_a_full_disk_is_one_line_and_leaves_no_half_file(files, tmp_path, monkeypatch, name):
    original = os.fspath

    def full(self, *_args, **_options):
        if name in original(self):
            self.touch()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written(self, *_args, **_options)

    written = Path.write_text
    monkeypatch.setattr(Path, "write_text", full)
    (tmp_path / name).write_bytes(b"precious")
    done = run(*words(files, *MAE, "--report", tmp_path / "r.html", "--json", tmp_path / "r.json"))
    assert done.exit_code == 1
    assert re.search(facts("openloop", tmp_path / name, os.strerror(errno.ENOSPC)), done.stderr)
    assert "Traceback" not in done.output
    assert (tmp_path / name).read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "r.json"]  # the other one is whole
    assert "lower is better" in done.stdout  # what was found is not lost


@pytest.mark.parametrize("target", ["r.json", "-"])
@pytest.mark.parametrize("problem", [MemoryError(), RuntimeError("of the charts")], ids=lambda e: type(e).__name__)
def test_a_report_that_fails_leaves_the_json(files, tmp_path, monkeypatch, target, problem):
    def fails(*_args, **_options):
        raise problem

    monkeypatch.setattr("openloop.reporting.html.page", fails)
    monkeypatch.chdir(tmp_path)
    done = run(*words(files, *MAE, "--report", "r.html", "--json", target))
    assert done.exit_code == 1
    text = done.stdout if target == "-" else (tmp_path / target).read_text(encoding="utf-8")
    assert json.loads(text)["metric"] == "mae"
    assert not (tmp_path / "r.html").exists()
    if isinstance(problem, MemoryError):
        assert re.search(facts("openloop", "r.html", "out of memory"), done.stderr)


@pytest.mark.parametrize(
    "where",
    [
        "openloop.commands.audit.inputs.gather",
        "openloop.commands.audit.inputs.conduct",
        "openloop.reporting.html.page",
    ],
)
def test_an_interruption_leaves_what_was_there(files, tmp_path, monkeypatch, where):
    (tmp_path / "r.html").write_text("precious")
    monkeypatch.setattr(where, interrupted)
    done = run(*words(files, *MAE, "--report", tmp_path / "r.html"))
    assert done.exit_code == 130
    assert "Traceback" not in done.output
    assert (tmp_path / "r.html").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1


# -- what nobody would type ----------------------------------------------------------------------------------


def told_of(found):
    """What a command says after it has begun to read."""
    return [line for line in found.stderr.splitlines() if not line.startswith("reading ")]


@pytest.mark.parametrize(
    "options",
    [
        ("--user", "9" * 30), ("--user", "9" * 5000), ("--strata", "9" * 30), ("--strata", "9" * 5000),
        ("--metric", "recall@" + "9" * 30), ("--metric", "recall@" + "9" * 5000), ("--threshold", "nan"),
        ("--threshold", "1e999"), ("--separator", "\udcff"), ("--comment", "\udcff"), ("--test", "9" * 5000),
        ("--positive", "1e300"), ("--skip", "9" * 30),
    ],
    ids=lambda options: f"{options[0]} {options[1][:40]!r}",
)  # fmt: skip
def test_numbers_and_text_beyond_all_bounds_are_refused_in_one_line(files, options):
    found = run(*words(files, "--time", "stars", *options))
    assert found.exit_code == 2
    (line,) = told_of(found)
    assert line.startswith("openloop: ")
    assert len(line) < 1500
