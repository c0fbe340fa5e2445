"""Plans of large fits: sizes as they are written, what the command prints, and the page that quotes it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from openloop.commands.fit_plan import UNMEASURED, planned
from openloop.errors import InputError
from openloop.learners.blocks import costs
from tests.cli.running import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cluster.md"
GIVEN = ["rows=1e9", "users=1e8", "items=1e6", "factors=64", "cores=160"]


def on_spark(*given):
    return planned(given)["fits"][-1]


def test_a_fit_takes_its_passes_and_the_network_where_it_is_known():
    fit, slow = on_spark(*GIVEN), on_spark(*GIVEN, "network=1e9", "passes=20")
    assert fit["fit_clock"] == pytest.approx(50 * fit["clock"])
    assert slow["fit_clock"] == pytest.approx(20 * (fit["clock"] + slow["network"]))
    assert slow["fit_cpu"] == pytest.approx(20 * fit["cpu"])
    assert UNMEASURED in planned(GIVEN)["limits"]
    assert UNMEASURED not in planned([*GIVEN, "network=1e9"])["limits"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("rows=many", ("rows", "number", "'many'", "'rows=1000'")),
        ("rows=1.5", ("rows", "whole number", "1.5")),
        ("row=5", ("'row=5'", "Did you mean 'rows'")),
        ("5", ("'5'", "rows=1e9")),
    ],
)
def test_what_is_no_size_is_refused_with_name_rule_and_value(change, told):
    kept = [size for size in GIVEN if size.partition("=")[0] != change.partition("=")[0]]
    with pytest.raises(InputError) as error:
        planned([*kept, change])
    assert [word for word in told if word not in str(error.value)] == []


def test_sizes_that_are_missing_or_there_twice_are_named():
    with pytest.raises(InputError, match="'items', 'factors', 'cores'"):
        planned(GIVEN[:2])
    with pytest.raises(InputError, match="rows is there twice"):
        planned([*GIVEN, "rows=5"])


def test_the_command_prints_the_plan_and_the_settings():
    result = run("doctor", "--plan", *GIVEN)
    assert result.exit_code == 0
    for name, value in on_spark(*GIVEN)["settings"].items():
        assert f"--conf {name}={value}" in result.stdout
    assert json.loads(run("doctor", "--plan", "--json", *GIVEN).stdout) == planned(GIVEN)
    assert "on the network" in run("doctor", "--plan", *GIVEN, "network=1e9").stdout


@pytest.mark.parametrize("words", [GIVEN, ["--plan", "rows=5"], ["--plan", *GIVEN, "executors=999"]])
def test_the_command_refuses_with_a_way_out(words):
    result = run("doctor", *words)
    assert result.exit_code == 2
    assert ";" in result.stderr


def test_the_guide_shows_what_the_command_prints():
    shown = re.search(r"```\n\$ openloop (doctor --plan .*)\n((?s:.*?))```", PAGE.read_text(encoding="utf-8"))
    assert shown is not None
    printed = run(*shown[1].split(), COLUMNS="120").stdout
    assert [line.rstrip() for line in printed.strip().splitlines()] == shown[2].strip().splitlines()


def test_the_guide_has_the_constants_of_the_formula():
    text = PAGE.read_text(encoding="utf-8")
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    for name in ("ROW", "ROW_FACTOR", "USER", "USER_FACTOR", "SUM_BYTE", "SENT_BYTE", "NUMBER"):
        digits, power = f"{getattr(costs, f'PER_{name}'):.3g}".split("e")
        assert f"{digits}·10{str(int(power)).translate(raised)}" in text, name
    assert f"| a job of Spark | {costs.PER_JOB} |" in text
    for name in ("WORKER", "DRIVER"):
        assert f"{getattr(costs, f'{name}_BASE') // 2**20} MiB" in text
        assert f"{getattr(costs, name)} N" in text
