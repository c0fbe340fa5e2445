"""Plans of large fits: the arithmetic by hand, what is refused, and the page that quotes it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from openloop.commands.fit_plan import planned
from openloop.errors import InputError
from openloop.learners.blocks import costs
from tests.cli.running import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cluster.md"
GIVEN = ["rows=1e9", "users=1e8", "items=1e6", "factors=64", "cores=160"]


def fits(*given):
    return {fit["where"]: fit for fit in planned(given)["fits"]}


def test_bytes_are_those_of_the_formula():
    spark = fits(*GIVEN)["Spark"]
    numbers = 1_000_000 * 65
    assert spark["blocks"] == 250  # 4 rows for each item
    assert spark["disk"] == {"checkpoint": 60 * numbers}
    assert spark["moved"] == {
        "Q to the executors": 10 * 4 * numbers,
        "sums between executors": 250 * 8 * numbers,
        "sums to the driver": 8 * numbers,
    }
    assert spark["memory"]["driver's Python"] == costs.DRIVER_BASE + costs.DRIVER * numbers


def test_a_small_fit_has_one_block_whose_sums_go_to_the_driver():
    spark = fits("rows=1e6", "users=2e4", "items=5e3", "factors=64", "cores=2")["Spark"]
    assert spark["blocks"] == 1
    assert spark["moved"]["sums between executors"] == 0
    assert spark["moved"]["sums to the driver"] == 8 * 5_000 * 65


def test_seconds_are_those_of_the_constants():
    for where, fit in fits(*GIVEN).items():
        rows = 1e9 * (costs.PER_ROW + 64 * costs.PER_ROW_FACTOR) + 1e8 * 64 * costs.PER_USER_FACTOR
        per_byte = costs.PER_SUM_BYTE + (costs.PER_SENT_BYTE if where == "Spark" else 0)
        blocks = rows + per_byte * 250 * 8 * 65e6
        alone = costs.PER_NUMBER * 65e6 + (costs.PER_JOB if where == "Spark" else 0)
        assert fit["cpu"] == pytest.approx(blocks + alone)
        assert fit["clock"] == pytest.approx(blocks * 2 / 250 + alone)  # 250 blocks on 160 cores: two after each other
        assert fit["fit_clock"] == pytest.approx(50 * fit["clock"])


def test_the_network_counts_where_its_speed_is_given():
    spark = fits(*GIVEN, "network=1e9")["Spark"]
    assert spark["network"] == pytest.approx((4 * 65e6 + 25 * 8 * 65e6 + 8 * 65e6) / 1e9)
    assert spark["fit_clock"] == pytest.approx(50 * (spark["clock"] + spark["network"]))
    assert fits(*GIVEN)["Spark"]["network"] is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("rows=many", ("rows", "number", "'many'")),
        ("rows=1.5", ("rows", "whole number", "1.5")),
        ("rows=0", ("rows", "from 1", "0")),
        ("rows=1e15", ("rows", "users × items", "1,000,000,000,000,000")),
        ("factors=2e6", ("factors", "1,000,000", "fewer")),
        ("executors=161", ("executors", "160", "fewer")),
        ("network=-1", ("network", "above 0", "-1")),
        ("network=inf", ("network", "above 0", "inf")),
        ("row=5", ("'row=5'", "Did you mean 'rows'")),
        ("5", ("'5'", "rows=1e9")),
    ],
)
def test_what_cannot_be_planned_is_refused_with_name_rule_and_value(change, told):
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
    for name, value in fits(*GIVEN)["Spark"]["settings"].items():
        assert f"--conf {name}={value}" in result.stdout
    assert json.loads(run("doctor", "--plan", "--json", *GIVEN).stdout) == planned(GIVEN)


def test_sizes_without_plan_are_refused():
    result = run("doctor", *GIVEN)
    assert result.exit_code == 2
    assert "--plan" in result.stderr


def test_the_guide_shows_what_the_command_prints():
    block = re.search(r"```\n\$ openloop (doctor --plan .*)\n((?s:.*?))```", PAGE.read_text(encoding="utf-8"))
    assert block is not None
    printed = run(*block[1].split(), COLUMNS="100").stdout
    assert [line.rstrip() for line in printed.strip().splitlines()] == block[2].strip().splitlines()
