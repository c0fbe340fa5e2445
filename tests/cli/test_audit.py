"""`openloop audit` as people and programs call it: files in, a verdict, tables, a page and JSON out."""

from __future__ import annotations

import errno
import inspect
import json
import os
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.audits.answers import Assumption, PairAnswer, Reason, Verdict
from openloop.audits.auditing import audit as judge
from openloop.audits.auditing import conduct
from openloop.audits.results import Audit
from openloop.cli import audit as auditing
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
        open_loop=files.sample,
    )  # fmt: skip
    assert_numbers(content, found)
    assert code == (0 if found.verdict.supported else 3)
    assert stdout.replace("\n", " ").startswith(found.verdict.headline[:40])
    begun = f"reading {files / 'log'}, and the predictions of a, b and c"
    assert stderr.splitlines() == [begun, *(f"wrote {path}" for path in (out, *page[1:]))]
    for path in page[1:]:
        assert path.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")


def test_the_model_of_a_column_is_named(files):
    content = json.loads(run(*words(files, *MAE, "--assumes", "logistic", "--json", "-", "--no-check")).stdout)
    assert any(ol.propensity.Logistic.assumes in sentence for sentence in content["verdict"]["sentences"])


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


def test_a_stream_says_what_memory_says(files):
    given = words(files, *MAE, "--exclude", files / "train", "--json", "-", "--no-check")
    here, there = (json.loads(run(*given, way).stdout) for way in ("--no-stream", "--stream"))
    assert set(estimates(here)) == set(estimates(there))
    for key, told in estimates(here).items():
        assert estimates(there)[key]["value"] == pytest.approx(told["value"])
        assert estimates(there)[key]["stderr"] == pytest.approx(told["stderr"])
    assert there["verdict"] == here["verdict"]
    assert there["setting"]["log"].endswith("streamed from disk")


def test_options_reach_the_audit(files, monkeypatch):
    seen = {}

    def spied(models, log, propensities, asked, step):
        seen.update({name: getattr(asked, name) for name in expected}, step=step)
        return conduct(models, log, propensities, asked, step)

    expected = {
        "metrics": ("mae",), "estimators": ["snips", "snips_user", "naive"], "threshold": 3.0, "strata": ("2:width",),
        "level": 0.9, "missing": "drop", "rng": 5, "check": False, "baseline": "b", "min_item_rows": 2,
    }  # fmt: skip
    monkeypatch.setattr("openloop.commands.audit.inputs.conduct", spied)
    numbers = ("--threshold", "3", "--level", "0.9", "--seed", "5", "--strata", "2:width")
    more = (
        *numbers,
        "--missing",
        "drop",
        "--estimator",
        "snips",
        "--no-check",
        "--baseline",
        "b",
        "--min-item-rows",
        "2",
    )
    assert run(*words(files, *MAE, *more)).exit_code in {0, 3}
    assert callable(seen.pop("step"))
    assert seen == expected


def test_a_device_reaches_the_audit(files, monkeypatch):
    seen = []

    def spied(models, log, propensities, asked, step):
        seen.append(asked.device)
        return conduct(models, log, propensities, replace(asked, device=None), step)

    monkeypatch.setattr("openloop.commands.audit.inputs.conduct", spied)
    assert run(*words(files, *MAE, "--no-check", "--device", "cuda")).exit_code in {0, 3}
    assert seen == ["cuda"]


def test_lists_are_shown_beside_the_verdict_from_a_stream_as_from_memory(files):
    given = words(files, *P, "--metric", "recall@5", "--exclude", files / "train", "--running", "b", "--json", "-",
                  models=("a_all", "b_all"))  # fmt: skip
    found = judge(
        {name: SCORES[name] for name in "ab"}, files.test, exclude=files.train, metrics=["recall@5"], running="b"
    )
    for way in ("--no-stream", "--stream"):
        content = json.loads(run(*given, way).stdout)
        told = {(e["model"], e["metric"]): e["value"] for e in content["comparison"]["lists"]}
        assert told == pytest.approx({key: e.value for key, e in found.result.lists.items()})
        assert content["verdict"]["headline"] == found.verdict.headline
    table = run(*given[:-2]).stdout.split("lists of the models")[1]
    assert table.index("coverage@10") < table.index("overlap@10") < table.index("note: ")


def test_item_features_tell_how_alike_lists_are_also_beside_a_column_of_propensities(files, tmp_path):
    table = pl.DataFrame({"mid": ITEMS, "x": np.arange(len(ITEMS)) % 3, "y": np.arange(len(ITEMS)) % 2})
    table.write_csv(tmp_path / "items.csv")
    given = words(files, *P, "--metric", "recall@5", "--metric", "similarity@5", "--item-features",
                  tmp_path / "items.csv", "--json", "-", models=("a_all", "b_all"))  # fmt: skip
    found = judge(
        {name: SCORES[name] for name in "ab"}, files.test, metrics=["recall@5", "similarity@5"],
        item_features=ol.covariates(table, files.test.items),
    )  # fmt: skip
    told = json.loads(run(*given).stdout)["comparison"]["lists"]
    assert [e["value"] for e in told] == pytest.approx([e.value for e in found.result.lists.values()])
    assert facts_in(run(*given, "--stream").stderr, "--item-features", "--stream")


def facts_in(text, *parts):
    return re.search(facts(*parts), text)


# -- what is said --------------------------------------------------------------------------------------------


def test_the_page_has_verdict_leaderboard_pairs_and_notes(files):
    done = run(*words(files, *MAE, "--exclude", files / "train"), COLUMNS="100")
    text = done.stdout
    places = [text.index(part) for part in ("mae, lower", "pairs by snips of mae, per cell", "note: ")]
    assert places == sorted(places)
    assert "95 %" in text
    assert "Holm p" in text
    assert "a − c" in text
    assert "--split time" in text.replace("\n", " ")
    assert "user 'uid', item 'mid', rating 'stars'" in text.replace("\n", " ")
    found = judge(SCORES, files.test, exclude=files.train, metrics=["mae"])
    estimate = found.result["a", "mae", "snips"]
    low, high = estimate.interval(0.95)
    shown = re.search(r"^a +([\d.]+) ±([\d.]+)", text, re.MULTILINE)
    half = (high - low) / 2
    assert abs(float(shown[2]) / half - 1) < 0.05  # two digits of it
    assert abs(float(shown[1]) - estimate.value) < 0.05 * half


def test_what_is_left_out_is_told_once_for_each_reason(files):
    text = " ".join(run(*words(files, *P), COLUMNS="100").stdout.split())
    assert text.count("neither ranks") == 1
    assert re.search(facts("left out", "snips, stratified, naive, ips", "recall@10, dcg@10", "model 'a'"), text)


@pytest.mark.parametrize("stream", ["--stream", "--no-stream"])
def test_lists_shorter_than_usual_are_judged_by_what_they_serve(files, tmp_path, stream):
    for name in ("a", "b"):
        write(pl.read_csv(files / f"{name}_top").filter(pl.col("rank") <= 3), tmp_path / f"{name}.csv")
    models = [f"{name}={tmp_path / name}.csv" for name in ("a", "b")]
    given = ("audit", files / "log", *models, "--users", files / "users", "--items", files / "items", *P, stream)
    content = json.loads(run(*given, "--exclude", files / "train", "--json", "-").stdout)
    assert {metric for _, metric, _ in estimates(content)} == {"recall@3", "dcg@3"}
    assert any("top-3" in note for note in content["notes"])
    refused = run(*given, "--exclude", files / "train", "--metric", "recall@20")
    assert refused.exit_code == 2
    assert re.search(facts("recall@20", "model 'a'", "top-3", "recall@3"), refused.stderr)


def test_json_is_alone_on_stdout(files, tmp_path):
    given = words(files, *MAE, "--json", "-", "--report", tmp_path / "r.html")
    done = run(*given)
    content = json.loads(done.stdout, parse_constant=pytest.fail)
    assert content["setting"]["log"] == str(files / "log")
    assert content["setting"]["propensity"] == "column 'p' of the log"
    assert re.search(facts("user 'uid'", "item 'mid'", "rating 'stars'"), content["notes"][0])
    assert done.stderr.splitlines()[1:] == [f"wrote {tmp_path / 'r.html'}"]


def test_the_command_in_the_report_can_be_repeated(files, tmp_path):
    out = tmp_path / "a b.json"
    given = words(files, *MAE, "--json", out, "--no-check", "--no-stream", "--level", "0.9", "--strata", "3")
    run(*given)
    first = json.loads(out.read_text(encoding="utf-8"))
    said = shlex.split(first["setting"]["command"])
    assert said[:2] == ["openloop", "audit"]
    assert sorted(said[1:]) == sorted(map(str, given))
    out.unlink()
    run(*said[1:])
    again = json.loads(out.read_text(encoding="utf-8"))
    assert estimates(again) == estimates(first)
    assert again["setting"]["command"] == first["setting"]["command"]


def test_names_of_models_stay_text(files):
    done = run(
        "audit", files / "log", f"[red]:cat:={files / 'a'}", f"b={files / 'b'}", "--users", files / "users", "--items",
        files / "items", *MAE, COLUMNS="100",
    )  # fmt: skip
    assert "b − [red]:cat:" in done.stdout


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


def test_few_users_support_nothing(files, tmp_path):
    few = rows(files.test).filter(pl.col("uid") < 120)
    write(few, tmp_path / "few.csv")
    done = run(*words(files, *MAE, log=tmp_path / "few.csv"))
    assert done.exit_code == 3
    assert "20 users" in done.stdout


def test_all_commands_options_have_help():
    assert all(
        parameter.annotation is not inspect.Parameter.empty
        for parameter in inspect.signature(auditing.audit).parameters.values()
    )
    text = run("audit", "--help", COLUMNS="120").stdout
    for option in (
        "--propensity",
        "--exclude",
        "--split",
        "--open-loop",
        "--missing",
        "--stream",
        "--report",
        "--json",
    ):
        assert option in text


# -- bad input -----------------------------------------------------------------------------------------------


WRONG = {
    ("--split", "time"): ("--split time", "--exclude"),
    ("--metric", "ndgc@5"): ("ndgc@5",),
    ("--estimator", "dr"): ("--estimator dr", "imputation="),
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
    ("--stream", *P, "--strata", "region"): ("--stream", "--strata region"),
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


def test_one_model_alone_is_refused(files):
    done = run(*words(files, *MAE, models=("a",)))
    assert done.exit_code == 2
    assert re.search(facts("two", "'a'", "NAME=PREDICTIONS"), done.stderr)


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


@pytest.fixture
def shop(tmp_path):
    """A log and a model's predictions of all its rows, whose columns have unusual names."""
    rng = np.random.default_rng(0)
    cells = rng.choice(40 * 30, 600, replace=False)
    log = pl.DataFrame(
        {"Kunde": [f"Kunde {c // 30}" for c in cells], "Buch": [f"B{c % 30}" for c in cells],
         "Sterne": rng.integers(1, 6, 600), "Tag": rng.integers(0, 99, 600)}
    )  # fmt: skip
    log.write_csv(tmp_path / "log.csv")
    told = log.select("Kunde", "Buch", Vorhersage=pl.col("Sterne") + rng.normal(size=600))
    told.write_csv(tmp_path / "a.csv")
    return SimpleNamespace(at=tmp_path, log=log, told=told)


def refusal(shop, model, *options):
    """What an audit of two models says that cannot be made."""
    model.write_csv(shop.at / "b.csv")
    names = ["--user", "Kunde", "--item", "Buch", "--score", "Vorhersage"]
    found = run("audit", shop.at / "log.csv", f"a={shop.at / 'a.csv'}", f"b={shop.at / 'b.csv'}", *names, *options)
    assert found.exit_code == 2
    return found.stderr


def test_a_column_that_predictions_call_otherwise_is_to_be_renamed(shop):
    told = refusal(shop, shop.told.rename({"Kunde": "wer"}), "--rating", "Sterne")
    assert "call it 'Kunde', as in the log" in told
    assert "pass --user" not in told


def test_ratings_that_were_overlooked_are_told_of_where_nothing_can_be_judged(shop):
    assert facts_in(refusal(shop, shop.told), "No column of ratings", "name one with --rating")


def test_missing_predictions_come_first_where_no_metric_was_named(shop):
    told = refusal(shop, shop.told.head(550), "--rating", "Sterne")
    assert told.splitlines()[-1].startswith("openloop: snips, ips, stratified, naive of mae, mse: model 'b' lacks")
    assert "snips_user" not in told
    assert "ips of recall@10 is undefined: the number of relevant items is unknown" in told  # none is cut off


@pytest.mark.parametrize("stream", [[], ["--stream", "--propensity", "popularity"]])
def test_ids_of_which_the_log_has_none_are_written_in_another_way(shop, stream):
    shouted = shop.told.with_columns(pl.col("Kunde").str.to_uppercase())
    told = refusal(shop, shouted, "--rating", "Sterne", "--metric", "mae", *stream)
    assert facts_in(told, "'KUNDE 0'", "'Kunde 0'", "alike")
    assert "--users" not in told


def test_a_list_with_pairs_from_before_the_test_part_has_ways_out_that_work(shop):
    best = pl.DataFrame({"Kunde": shop.log["Kunde"], "Buch": shop.log["Buch"]}).sort("Kunde", "Buch")
    ranked = best.with_columns(Vorhersage=pl.int_range(1, pl.len() + 1).over("Kunde"))
    for name in "ab":
        ranked.write_csv(shop.at / f"{name}.csv")
    words = ["audit", shop.at / "log.csv", *(f"{name}={shop.at / name}.csv" for name in "ab"), "--user", "Kunde",
             "--item", "Buch", "--no-rating", "--rank", "Vorhersage", "--time", "Tag", "--test", "0.3"]  # fmt: skip
    found = run(*words)
    assert facts_in(found.stderr, "excluded", "--test", "--repeats keep")
    assert run(*words, "--repeats", "keep").exit_code == 3


def test_a_model_that_lacks_users_and_items_is_judged_by_the_rest(files, tmp_path):
    known = rows(files.train).filter((pl.col("uid") > 102) & (pl.col("mid") > "m01"))
    write(known, tmp_path / "known.csv")
    for model in ("mf", "bias"):
        trained = run("train", tmp_path / "known.csv", "--model", model, "--out", tmp_path / f"{model}.safetensors")
        assert trained.exit_code == 0, trained.output
    paths = [f"{model}={tmp_path / model}.safetensors" for model in ("mf", "bias")]
    given = ("audit", files / "log", *paths, "--exclude", files / "train", *P, "--no-check")
    done = run(*given, "--metric", "ndcg@5", "--json", "-")
    assert done.exit_code in {0, 3}, done.stderr
    notes = json.loads(done.stdout)["notes"]
    for path in paths:
        name, _, file = path.partition("=")
        told = f"model {name!r} ({file}): does not know 3 of 60 users and 2 of 25 items"
        assert any(note.startswith(told) for note in notes)
    cold = rows(files.test).filter((pl.col("uid") <= 102) | (pl.col("mid") <= "m01"))
    done = run(*given, "--metric", "mae", COLUMNS="300")
    assert done.exit_code == 2
    assert re.search(facts("model 'mf'", f"{len(cold)} of {len(files.test)}", "users 100"), done.stderr)
    for way in ("drop", "worst"):
        assert run(*given, "--metric", "mae", "--missing", way).exit_code in {0, 3}


def test_ratings_alone_are_a_sample(files, tmp_path):
    """Its values are those of the same ratings with users, whose errors are paired with the log's users."""
    write(pl.DataFrame({"stars": files.sample.rating}), tmp_path / "sample.csv")
    given = words(files, "--metric", "mae", "--json", "-", "--no-check", models=("a", "b"))
    alone, whole = (
        estimates(json.loads(run(*given, "--propensity", f"naive-bayes={path}").stdout))
        for path in (tmp_path / "sample.csv", files / "sample")
    )
    assert {key: e["value"] for key, e in alone.items()} == {key: e["value"] for key, e in whole.items()}
    assert {key[2] for key, e in alone.items() if e != whole[key]} == {"snips", "ips"}  # which have the sample's error


def test_users_of_a_sample_are_found_by_their_ids_as_in_python(files):
    words_given = words(files, "--metric", "mae", "--json", "-", "--no-check", models=("a", "b"))
    content = json.loads(run(*words_given, "--propensity", f"naive-bayes={files / 'sample'}").stdout)
    log = ol.read(files / "log", **NAMED, users=USERS.tolist(), items=ITEMS.tolist())
    alone = ol.read(files / "sample", **NAMED, uniform=True)
    model = ol.propensity.NaiveBayes().fit(log, uniform=alone)
    pair = {name: SCORES[name] for name in ("a", "b")}
    assert_numbers(content, judge(pair, log, model, metrics=["mae"], check=False))


def test_lists_with_gaps_are_judged_and_noted(files, tmp_path):
    top = pl.read_csv(files / "a_top")
    write(top.filter((pl.col("uid") > 101) & (pl.col("rank") != 3)), tmp_path / "a.csv")
    given = words(files, *P, "--metric", "recall@5", "--exclude", files / "train", "--json", "-", models=("b_top",))
    done = run(*given, f"a={tmp_path / 'a.csv'}")
    assert done.exit_code in {0, 3}, done.stderr
    told = facts("model 'a'", "2 users", "no list", "58 users", "gaps")
    assert any(re.search(told, note) for note in json.loads(done.stdout)["notes"])


def test_a_score_column_of_words_is_called_text(files, tmp_path):
    write(pl.read_csv(files / "a").with_columns(score=pl.lit("high")), tmp_path / "a.csv")
    done = run(*words(files, *MAE, models=("b", "c")), f"a={tmp_path / 'a.csv'}", COLUMNS="300")
    assert done.exit_code == 2
    number = f"{len(files.test)} of {len(files.test)}"
    assert re.search(facts("column 'score'", "text", number, "'high'"), done.stderr)


def test_an_output_that_is_also_read_is_refused(files):
    before = (files / "a").read_bytes()
    done = run(*words(files, *MAE), "--json", files / "a")
    assert done.exit_code == 2
    assert re.search(facts("overwritten", "read"), done.stderr)
    assert (files / "a").read_bytes() == before
    both = run(*words(files, *MAE), "--json", files / "x.html", "--report", files / "x.html")
    assert re.search(facts("x.html", "overwritten", "written"), both.stderr)


def test_a_log_that_may_not_be_read_is_named(files, monkeypatch):
    def denied(*_args, **_options):
        raise PermissionError(errno.EACCES, "Permission denied", "log.csv")

    monkeypatch.setattr("openloop.commands.audit.inputs.read", denied)
    done = run(*words(files, *MAE))
    assert done.exit_code == 2
    begun, told = done.stderr.splitlines()
    assert begun.startswith("reading ")
    assert re.search(facts("openloop", "log.csv", "Permission denied"), told)


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


def test_a_closed_pipe_does_not_cost_the_report(files, tmp_path, monkeypatch):
    def closed(*_args, **_options):
        raise BrokenPipeError

    monkeypatch.setattr("openloop.cli.audit.say", closed)
    run(*words(files, *MAE, "--report", tmp_path / "r.html", "--json", "-"))
    assert (tmp_path / "r.html").stat().st_size > 10_000


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


@pytest.mark.parametrize("many", ["1000000000000", "9" * 30])
@pytest.mark.parametrize("mode", ["--stream", "--no-stream"])
def test_more_users_than_fit_are_refused_in_one_line(files, many, mode):
    log, a, b = files / "log", f"a={files / 'a'}", f"b={files / 'b'}"
    found = run("audit", log, a, b, "--user", "uid", "--propensity", "p", "--users", many, mode)
    assert found.exit_code == 2
    (line,) = told_of(found)
    assert line.startswith(f"openloop: --users {many}: ")


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


def test_names_of_files_that_are_not_utf8_are_read(files, tmp_path):
    log = Path(os.fsdecode(bytes(tmp_path) + b"/l\xff\xe9.csv"))
    log.write_bytes((files / "log").read_bytes())
    models = (f"a={files / 'a'}", f"b={files / 'b'}")
    words = ("audit", log, *models, "--user", "uid", "--item", "mid", "--rating", "stars")
    written = ("--report", tmp_path / "r.html", "--json", tmp_path / "r.json")
    found = run(*words, "--propensity", "p", "--metric", "mae", *written)
    assert found.exit_code in (0, 3), found.stderr
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["setting"]["log"] == str(log)
    assert r"l\udcff\udce9.csv" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert run(*words, "--propensity", "p", "--metric", "mae", "--stream").exit_code in (0, 3)
