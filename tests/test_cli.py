"""The commands as people and programs call them."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import openloop as ol
from openloop import cli, demonstration, diagnosis
from openloop.data.simulate import movie_lovers

SMALL = ("demo", "--users", "60", "--items", "120", "--seed", "3")
INSTALLED = Path(sys.executable).parent / "openloop"

NUMBERS = {"type": "number"}
ESTIMATE = {
    "type": "object",
    "properties": {
        "model": {"type": "string"},
        "metric": {"enum": ["mae", "dcg@50"]},
        "estimator": {"enum": ["naive", "ips", "snips", "stratified"]},
        **dict.fromkeys(("truth", "value", "low", "high"), NUMBERS),
        "covers": {"type": "boolean"},
    },
    "additionalProperties": False,
    "minProperties": 8,
}
ORDER = {"type": "object", "required": ["metric", "estimator", "pairs", "wrong", "right"]}
DEMO = {
    "type": "object",
    "required": ["world", "level", "interval_over", "estimates", "orders", "findings"],
    "properties": {
        "world": {"type": "object", "additionalProperties": NUMBERS},
        "estimates": {"type": "array", "items": ESTIMATE, "minItems": 40, "maxItems": 40},
        "orders": {"type": "array", "items": ORDER, "minItems": 8, "maxItems": 8},
        "findings": {"type": "array", "items": {"type": "string"}, "minItems": 3},
    },
}
PART = {"type": "object", "required": ["name", "version", "ok", "problem", "remedy"]}
DOCTOR = {
    "type": "object",
    "required": ["ok", "openloop", "python", "platform", "core", "optional", "machine"],
    "properties": {
        "ok": {"type": "boolean"},
        "core": {"type": "array", "items": PART, "minItems": 10},
        "optional": {"type": "array", "items": PART, "minItems": 6},
        "machine": {"type": "object", "required": ["cores", "memory_gib", "numba_threads", "thread_pools"]},
    },
}


def run(*words, **env):
    """The result of a command on a terminal of 80 columns without colour."""
    return CliRunner().invoke(cli.app, words, env={"COLUMNS": "80", "NO_COLOR": "1", "FORCE_COLOR": None} | env)


@pytest.fixture(scope="module")
def page():
    return run(*SMALL)


# -- demo ----------------------------------------------------------------------------------------------------


def test_demo_prints_truth_and_marks(page):
    assert page.exit_code == 0
    assert page.stderr == ""  # no progress bar where there is no terminal
    lines = page.stdout.splitlines()
    heads = [line.split() for line in lines if line.startswith("model")]
    assert heads == [["model", "truth", "naive", "ips", "snips", "stratified"]] * 2
    ones = [line for line in lines if line.startswith("REC_ONES")]
    assert len(ones) == 2
    assert all(line.count("±") == 4 and line.count("✓") + line.count("✗") == 4 for line in ones)
    verdicts = [line for line in lines if line.startswith("in order?")]
    assert all(line.count("of 10 wrong") == 4 for line in verdicts)
    assert "✗" in verdicts[0].split("wrong")[0]


def test_demo_shows_the_numbers_of_its_result(page):
    shown = demonstration.demonstrate(60, 120, seed=3)
    judged = shown["ROTATE", "mae", "ips"]
    row = next(line for line in page.stdout.splitlines() if line.startswith("ROTATE"))
    assert f"{judged.truth:.3f}" in row
    assert f"{judged.value:.3f}±{(judged.high - judged.low) / 2:.3f}" in row
    told = " ".join(page.stdout.split())
    assert all(finding in told for finding in shown.findings())


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_demo_fits_the_terminal(columns):
    lines = [line.rstrip() for line in run(*SMALL, COLUMNS=str(columns)).stdout.splitlines()]
    assert max(map(len, lines)) <= min(columns, 100)
    assert sum(line.startswith(("REC_", "ROTATE", "SKEWED", "COARSENED")) for line in lines) >= 10
    assert "…" not in "".join(lines)


def test_demo_json_is_valid_and_alone_on_stdout():
    result = run(*SMALL, "--json", "-")
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    jsonschema.validate(content, DEMO)
    assert content["world"]["users"] == 60


def test_demo_json_goes_to_a_file_beside_the_tables(tmp_path, page):
    target = tmp_path / "demo.json"
    result = run(*SMALL, "--json", str(target))
    assert result.stdout == page.stdout
    assert target.read_text(encoding="utf-8") == run(*SMALL, "--json", "-").stdout
    assert list(tmp_path.iterdir()) == [target]


def test_the_installed_command_gives_the_same_bytes_on_one_thread():
    threads = dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    command = [INSTALLED, *SMALL, "--json", "-"]
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, check=True)
    assert done.stdout == run(*SMALL, "--json", "-").stdout_bytes
    assert done.stderr == b""


def test_defaults_are_those_of_the_demonstration():
    ours, theirs = inspect.signature(cli.demo), inspect.signature(demonstration.demonstrate)
    for name in ("users", "items", "seed"):
        assert ours.parameters[name].default == theirs.parameters[name].default


# -- failures ------------------------------------------------------------------------------------------------


def test_openloops_errors_are_one_line_with_exit_code_2():
    result = run("demo", "--users", "3")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == "openloop: demonstrate: users must be at least 10, got 3; choose a larger number.\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("demo", "--users", "many"), ("--users", "whole number", "got 'many'", "digits")),
        (("demo", "--sed", "1"), ("--sed", "--seed")),
        (("dmeo",), ("dmeo", "demo")),
        (("demo", "--json", "no-such-folder/x.json"), ("--json", "no-such-folder", "must exist", "create")),
        (("demo", "--json", "."), ("--json", "must be a file", "file name")),
    ],
)
def test_bad_options_say_what_and_how(words, told):
    result = run(*words, COLUMNS="200")
    assert result.exit_code == 2
    assert [part for part in told if part not in result.stderr] == []
    assert "Traceback" not in result.stderr


def test_interruption_exits_with_130_and_no_traceback(monkeypatch):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(demonstration, "demonstrate", interrupted)
    result = run("demo")
    assert result.exit_code == 130
    assert "Traceback" not in result.output


def test_an_interrupted_demo_leaves_no_file(monkeypatch, tmp_path):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(demonstration, "demonstrate", interrupted)
    run("demo", "--json", str(tmp_path / "demo.json"))
    assert list(tmp_path.iterdir()) == []


# -- propensity ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A log in no order as CSV and Parquet, a uniform sample, and what is known about users and items."""
    folder, rng = tmp_path_factory.mktemp("propensity"), np.random.default_rng(0)
    world = movie_lovers(users=30, items=20)
    log = world.observe(7)
    rows = pl.DataFrame(
        {"user": log.user, "item": log.item, "rating": log.rating, "note": [f"n{k:03}" for k in log.row]}
    )
    rows = rows.sample(fraction=1, shuffle=True, seed=1)
    rows.write_csv(folder / "log.csv")
    rows.write_parquet(folder / "log.parquet")
    user, item = rng.integers(0, 30, 200), rng.integers(0, 20, 200)
    sample = pl.DataFrame({"user": user, "item": item, "rating": world.ratings[user, item]})
    sample.unique(["user", "item"], maintain_order=True).write_csv(folder / "uniform.csv")
    users = {"user_id": range(30), "horror": [int(u < 15) for u in range(30)], "age": rng.integers(18, 80, 30)}
    pl.DataFrame(users).write_csv(folder / "users.csv")
    pl.DataFrame({"item_id": range(20), "genre": ["abc"[i % 3] for i in range(20)]}).write_csv(folder / "items.csv")
    return folder


def words(files, model, out, *more, log="log.csv"):
    """The command that fits a model with all that it takes."""
    side = {
        "naive-bayes": ("--uniform", str(files / "uniform.csv")),
        "logistic": ("--user-features", str(files / "users.csv"), "--item-features", str(files / "items.csv")),
    }
    side["boosted"] = side["logistic"]
    given = ("propensity", str(files / log), "--model", model, "--out", str(out))
    return (*given, *side.get(model, ()), *more)


def by_hand(files, model, log):
    """The propensities of a log as the library gives them."""
    features = {
        "user_features": ol.covariates(files / "users.csv", log.users),
        "item_features": ol.covariates(files / "items.csv", log.items),
    }
    match model:
        case "popularity":
            fitted = ol.propensity.Popularity().fit(log)
        case "naive-bayes":
            fitted = ol.propensity.NaiveBayes().fit(log, uniform=ol.read(files / "uniform.csv", uniform=True))
        case "logistic":
            fitted = ol.propensity.Logistic(rng=4).fit(log, **features)
        case "low-rank":
            fitted = ol.propensity.LowRank(rng=4).fit(log)
        case "boosted":
            fitted = ol.propensity.Boosted(rng=4).fit(log, **features)
    return fitted.predict(log).values


@pytest.mark.parametrize("model", ["popularity", "naive-bayes", "logistic", "low-rank", "boosted"])
def test_propensity_writes_what_the_model_says_beside_the_untouched_rows(files, tmp_path, model):
    for log, out in (("log.csv", "out.csv"), ("log.parquet", "out.parquet")):
        result = run(*words(files, model, tmp_path / out, "--seed", "4", log=log))
        assert result.exit_code == 0, result.output
        before = ol.read(files / log)
        after = ol.read(tmp_path / out, propensity="propensity")
        np.testing.assert_array_equal(after.row, before.row)
        np.testing.assert_array_equal(after.propensity, by_hand(files, model, before))
        reader = pl.read_parquet if out.endswith("parquet") else pl.read_csv
        found = reader(tmp_path / out)
        assert found.columns == ["user", "item", "rating", "note", "propensity"]
        assert found.drop("propensity").equals(reader(files / log))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.parquet"]


def test_propensity_says_what_it_read_what_it_fitted_and_what_it_checked(files, tmp_path):
    out = tmp_path / "out.csv"
    result = run(*words(files, "popularity", out))
    log = ol.read(files / "log.csv")
    model = ol.propensity.Popularity().fit(log)
    share = f"{len(log) / 600:.2%} of the cells"
    first = f"read {files / 'log.csv'}: {len(log):,} rows of 30 users × 20 items ({share}); fitted popularity\n"
    assert result.stdout == f"{first}\n{ol.propensity.check(model, log, rng=0)}\n"
    assert result.stderr == f"wrote {out}\n"


def test_propensity_json_is_valid_and_alone_on_stdout(files, tmp_path):
    result = run(*words(files, "popularity", tmp_path / "out.csv", "--json", "-"))
    content = json.loads(result.stdout, parse_constant=pytest.fail)
    log = ol.read(files / "log.csv")
    assert content == json.loads(ol.propensity.check(ol.propensity.Popularity().fit(log), log, rng=0).to_json())


@pytest.mark.parametrize("picture", ["check.html", "check.svg", "check.png"])
def test_propensity_writes_json_and_figures_beside_the_text(files, tmp_path, picture):
    target, drawn = tmp_path / "check.json", tmp_path / picture
    result = run(*words(files, "popularity", tmp_path / "out.csv", "--json", str(target), "--figures", str(drawn)))
    assert result.exit_code == 0, result.output
    assert json.loads(target.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    begin = {"html": b"<", "svg": b"<svg", "png": b"\x89PNG"}[picture.rpartition(".")[2]]
    assert drawn.read_bytes().lstrip().startswith(begin)
    assert result.stderr.splitlines() == [f"wrote {path}" for path in (tmp_path / "out.csv", target, drawn)]


def test_propensity_takes_columns_by_name_or_position(files, tmp_path):
    pl.read_csv(files / "log.csv").select("note", i="item", r="rating", u="user").write_csv(tmp_path / "log.csv")
    for columns in (("--user", "u", "--item", "i", "--rating", "r"), ("--user", "3", "--item", "1", "--rating", "2")):
        given = ("propensity", str(tmp_path / "log.csv"), "--model", "popularity", "--out", str(tmp_path / "out.csv"))
        assert run(*given, *columns).exit_code == 0
        found = ol.read(tmp_path / "out.csv", user="u", item="i", rating="r", propensity="propensity")
        np.testing.assert_array_equal(found.propensity, by_hand(files, "popularity", ol.read(files / "log.csv")))


def test_propensity_floor_quantile_calibration_and_column_reach_the_file(files, tmp_path):
    more = ("--floor", "0.3", "--quantile", "0.2", "--calibrate", "platt", "--column", "p", "--seed", "2")
    result = run(*words(files, "popularity", tmp_path / "out.csv", *more))
    assert result.exit_code == 0, result.output
    log = ol.read(files / "log.csv")
    model = ol.propensity.Calibrated(ol.propensity.Popularity(), method="platt", floor=0.3, quantile=0.2, rng=2).fit(
        log
    )
    np.testing.assert_array_equal(ol.read(tmp_path / "out.csv", propensity="p").propensity, model.predict(log).used)
    assert f"{np.mean(model.predict(log).values < model.floor_):.1%}" in result.stdout  # the share that was raised


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--model", "popularty"), ("'popularty'", "Did you mean 'popularity'")),
        (("--model", "naive-bayes"), ("--uniform FILE",)),
        (("--uniform", "u.csv"), ("only naive-bayes",)),
        (("--user-features", "u.csv"), ("logistic and boosted",)),
        (("--out", "no-such-folder/out.csv"), ("--out", "no-such-folder", "must exist")),
        (("--out", "out.xlsx"), (".xlsx", ".parquet", "rename")),
        (("--column", "note"), ("column 'note' already", "--column NAME")),
        (("--figures", "check.pdf"), ("--figures", ".svg", "rename")),
        (("--floor", "2"), ("--floor", "[0, 1]", "got 2")),
        (("--seed", "x"), ("--seed", "whole number")),
        (("--rating", "note"), ("rating column 'note'", "are not numbers")),
        (("--rating", "stars"), ("no column 'stars'",)),
        (("--users", "10"), ("are not in the vocabulary",)),
        (("--json", "same.html", "--figures", "same.html"), ("same.html", "is also written")),
    ],
)
def test_propensity_says_what_is_wrong_and_leaves_no_file(files, tmp_path, monkeypatch, more, told):
    monkeypatch.chdir(tmp_path)
    result = run(*words(files, "popularity", "out.csv"), *more, COLUMNS="200")
    assert result.exit_code == 2
    assert [part for part in told if part not in result.stderr] == []
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_propensity_does_not_overwrite_the_log(files):
    before = (files / "log.csv").read_bytes()
    result = run(*words(files, "popularity", files / "log.csv"))
    assert result.exit_code == 2
    assert "would be overwritten" in result.stderr
    assert (files / "log.csv").read_bytes() == before


def test_an_interrupted_propensity_leaves_no_file(files, tmp_path, monkeypatch):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(ol.propensity, "check", interrupted)
    result = run(*words(files, "popularity", tmp_path / "out.csv"))
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


# -- doctor --------------------------------------------------------------------------------------------------


def test_doctor_json_is_valid():
    result = run("doctor", "--json")
    content = json.loads(result.stdout)
    jsonschema.validate(content, DOCTOR)
    assert result.exit_code == 0
    assert content["openloop"] == ol.__version__
    versions = {part["name"]: part["version"] for part in content["core"]}
    assert versions["numpy"] == metadata.version("numpy")
    assert any(pool["kind"] == "blas" and pool["threads"] >= 1 for pool in content["machine"]["thread_pools"])
    assert content["machine"]["cores"] >= 1


def test_doctor_page_names_every_part():
    result = run("doctor")
    assert result.exit_code == 0
    assert [
        name for name in (*diagnosis.CORE, *diagnosis.EXTRAS, "kernel cache", "java") if name not in result.stdout
    ] == []
    assert "Everything needed works." in result.stdout


@pytest.mark.parametrize(
    ("core", "problem", "remedy"),
    [
        ({"no-such-package": "no_such_package"}, "not installed", "pip install openloop"),
        ({"numpy": "no_such_module"}, "ModuleNotFoundError", "pip install --force-reinstall numpy"),
    ],
)
def test_doctor_exits_with_1_when_something_needed_does_not_work(monkeypatch, core, problem, remedy):
    monkeypatch.setattr(diagnosis, "CORE", core)
    result = run("doctor", COLUMNS="100")
    assert result.exit_code == 1
    told = " ".join(result.stdout.split())
    assert problem in told
    assert remedy in told
    assert "✗" in told


def test_doctor_says_how_to_install_what_is_optional(monkeypatch):
    monkeypatch.setattr(diagnosis, "EXTRAS", {"no-such-package": "spark"})
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = run("doctor", "--json")
    assert result.exit_code == 0
    package, java = json.loads(result.stdout)["optional"]
    assert package["remedy"] == "pip install 'openloop[spark]'"
    assert "Java 17" in java["remedy"]


# -- the program ---------------------------------------------------------------------------------------------


def test_version_and_help():
    assert run("--version").stdout == f"openloop {ol.__version__}\n"
    assert [word for word in ("demo", "propensity", "doctor", "--version") if word not in run("--help").stdout] == []


def test_help_loads_nothing_heavy():
    program = "import sys, openloop.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "polars", "narwhals", "numba", "sklearn", "altair", "rich"}
    assert heavy & set(done.stdout.split()) == set()


def test_a_terminal_without_check_marks_still_gets_the_words():
    done = subprocess.run(
        [INSTALLED, *SMALL], env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, check=True
    )
    assert b"0 of 10 wrong" in done.stdout
    assert done.stderr == b""
