"""`openloop demo` as people and programs call it."""

from __future__ import annotations

import inspect
import json
import os
import subprocess

import jsonschema
import pytest

from openloop.cli.demo import demo
from openloop.commands.demo import estimates as demonstration
from tests.cli.running import INSTALLED, interrupted, run

SMALL = ("demo", "--users", "60", "--items", "120", "--seed", "3")

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


@pytest.fixture(scope="module")
def page():
    return run(*SMALL)


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
    ours, theirs = inspect.signature(demo), inspect.signature(demonstration.demonstrate)
    for name in ("users", "items", "seed"):
        assert ours.parameters[name].default == theirs.parameters[name].default


def test_an_interrupted_demo_leaves_no_file(monkeypatch, tmp_path):
    monkeypatch.setattr(demonstration, "demonstrate", interrupted)
    run("demo", "--json", str(tmp_path / "demo.json"))
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_without_check_marks_still_gets_the_words():
    done = subprocess.run(
        [INSTALLED, *SMALL], env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, check=True
    )
    assert b"0 of 10 wrong" in done.stdout
    assert done.stderr == b""
