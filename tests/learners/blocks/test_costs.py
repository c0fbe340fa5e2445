"""What a projected fit takes: bytes and seconds by hand, and sizes that are none."""

from __future__ import annotations

import pytest

from openloop.errors import InputError
from openloop.learners.blocks import costs
from openloop.learners.blocks.costs import FitSize, from_disk, in_memory, local_memory, on_spark

SIZES = {"rows": 10**9, "users": 10**8, "items": 10**6, "factors": 64, "cores": 160}
LARGE = FitSize(**SIZES)
NUMBERS = 10**6 * 65
ROWS = 12 * 10**9 + 16 * 10**8


def test_bytes_on_spark_are_those_of_the_formula():
    found = on_spark(LARGE)
    assert found.blocks == 250  # 4 rows for each item
    assert found.disk == {"checkpoint": 60 * NUMBERS, "shuffle of an executor, each pass": 25 * 8 * NUMBERS}
    assert found.moved == {
        "Q to the executors": 10 * 4 * NUMBERS,
        "sums between executors": 250 * 8 * NUMBERS,
        "sums to the driver": 8 * NUMBERS,
    }
    worker = costs.WORKER_BASE + ROWS // 250 + costs.WORKER * NUMBERS
    assert found.memory["Python worker"] == worker
    assert found.memory["Python workers of an executor"] == 16 * worker
    assert found.memory["driver's Python"] == costs.DRIVER_BASE + costs.DRIVER * NUMBERS
    assert found.settings["spark.executor.memoryOverhead"] == f"{-(-16 * worker // 2**30)}g"


def test_a_small_fit_has_one_block_whose_sums_go_to_the_driver():
    found = on_spark(FitSize(rows=10**6, users=20_000, items=5_000, factors=64, cores=2))
    assert found.blocks == 1
    assert found.moved["sums between executors"] == 0
    assert found.moved["sums to the driver"] == 8 * 5_000 * 65
    assert list(found.disk) == ["checkpoint"]


def test_a_driver_that_adds_sums_itself_holds_them():
    found = on_spark(FitSize(rows=4_800_000, users=100_000, items=100_000, factors=64, cores=2))
    assert found.blocks == 4
    assert found.memory["driver's Python"] == costs.DRIVER_BASE + (costs.DRIVER + 3 * 24) * 6_500_000


def test_who_adds_sums_holds_pieces_of_them():
    found = on_spark(FitSize(rows=10**10, users=10**8, items=10**4, factors=8, cores=160))  # small Q, many blocks
    assert found.moved["sums between executors"] > 0
    assert found.memory["Python worker"] == costs.WORKER_BASE + 3 * costs.AT_ONCE


@pytest.mark.parametrize("work", [in_memory, from_disk, on_spark])
def test_seconds_are_those_of_the_constants(work):
    found, spark = work(LARGE), work is on_spark
    rows = 1e9 * (costs.PER_ROW + 64 * costs.PER_ROW_FACTOR) + 1e8 * (costs.PER_USER + 64 * costs.PER_USER_FACTOR)
    blocks = rows + (costs.PER_SUM_BYTE + (costs.PER_SENT_BYTE if spark else 0)) * 250 * 8 * NUMBERS
    alone = costs.PER_NUMBER * NUMBERS + (costs.PER_JOB if spark else 0)
    assert found.cpu == pytest.approx(blocks + alone)
    assert found.clock == pytest.approx(blocks * 2 / 250 + alone)  # 250 blocks on 160 cores: two after each other


def test_the_network_takes_what_its_slowest_link_takes():
    found = on_spark(FitSize(**SIZES, network=1e9))
    assert found.network == pytest.approx((4 + 250 / 10 * 8 + 8) * NUMBERS / 1e9)
    assert on_spark(LARGE).network is None


def test_one_machine_holds_rows_vectors_and_what_threads_need():
    assert in_memory(LARGE).memory == {
        "rows": 12 * 10**9 + ROWS,
        "users' vectors": 4 * 10**8 * 65,
        "items' vectors": (14 + 20 + 4 * 160) * 4 * NUMBERS,
    }
    assert from_disk(LARGE).memory == {"process": costs.DRIVER_BASE + local_memory(4 * NUMBERS, 10**8, 160)}
    assert from_disk(LARGE).disk["blocks"] == ROWS


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"rows": 1.5}, ("rows", "whole number", "1.5")),
        ({"rows": 0}, ("rows", "from 1", "0")),
        ({"rows": 10**15}, ("rows", "users × items", "1,000,000,000,000,000")),
        ({"factors": 2 * 10**6}, ("factors", "1,000,000", "fewer")),
        ({"executors": 161}, ("executors", "160", "fewer")),
        ({"network": -1}, ("network", "above 0", "-1")),
        ({"network": float("inf")}, ("network", "above 0", "inf")),
    ],
)
def test_sizes_that_no_fit_has_are_refused_with_name_rule_and_value(change, told):
    with pytest.raises(InputError) as error:
        FitSize(**(SIZES | change))
    assert [word for word in told if word not in str(error.value)] == []
