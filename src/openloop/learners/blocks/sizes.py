"""The parts that projected fits are cut into: blocks and sums on Spark, batches of rows from disk."""

from __future__ import annotations

# On Spark.
SPARK_ROWS = 1_000_000  # or more in a block: a task costs Spark a tenth of a second of its own
ON_DRIVER = 512 * 2**20  # sums of all blocks together that the driver adds itself; above, executors do
AT_ONCE = 256 * 2**20  # sums that an executor then adds at a time

# From disk.
BATCH = 4_000_000  # rows that are dealt to blocks at a time
ROW_BYTES, USER_BYTES = 64, 64  # what a row takes while it is dealt and sorted, and a user's id while it is looked up


def piece_count(items: int, whole: int, on_driver: int, at_once: int) -> int:
    """Into how many ranges of items sums of `whole` bytes are cut to be added on executors; 1: the driver adds them."""
    return 1 if whole <= on_driver else min(items, -(-whole // at_once))
