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
import pytest
from typer.testing import CliRunner

import openloop as ol
from openloop import cli, demonstration, diagnosis

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
    assert [word for word in ("demo", "doctor", "--version") if word not in run("--help").stdout] == []


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
