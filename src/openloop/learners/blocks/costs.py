"""What a projected fit takes in memory, from disk and on Spark: bytes, memory and CPU seconds, by formula.

n rows, U users, I items, K factors, B blocks, numbers of 4 bytes. Q = [W b] has I·(K + 1) of them, the sums of a block
twice as many. Seconds are those of one pass over the rows; a fit has one for each iteration, and a few more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, inf

from openloop.errors import InputError
from openloop.learners.blocks.sizes import AT_ONCE, BATCH, ON_DRIVER, ROW_BYTES, SPARK_ROWS, USER_BYTES, piece_count
from openloop.learners.blocks.user_blocks import count_blocks
from openloop.learners.solvers.projected import MEMORY
from openloop.support.arguments import is_whole

# Seconds of CPU, by `python -m bench.plan` on one machine: two cores of a busy x86-64 server.
PER_ROW, PER_ROW_FACTOR = 2.0e-8, 2.36e-9
PER_USER, PER_USER_FACTOR = 8.3e-7, 8.4e-9
PER_SUM_BYTE = 8.4e-10  # of a block's sums in memory: set to zero, summed and added
PER_SENT_BYTE = 7.9e-9  # beside that, of those that leave a Python worker: Arrow, JVM, shuffle
PER_NUMBER = 4.5e-8  # of Q: what L-BFGS does between two passes, on one core
PER_JOB = 0.17  # what Spark takes for a pass of any size

# Bytes, by the same command.
WORKER_BASE, WORKER = 350 * 2**20, 24  # of a Python worker: what it imports, and per number of Q
DRIVER_BASE, DRIVER = 260 * 2**20, 160  # of the driver's Python: likewise; most of it are L-BFGS's pairs
CHECKPOINT = 4 * (1 + 2 * MEMORY)  # per number of Q

# Copies of Q at once: the pairs of L-BFGS, the gradient and its like in float64; and the sums of each thread.
COPIES, THREAD_COPIES = 2 * MEMORY + 20, 4

STORED = 0.6  # spark.memory.fraction: the part of an executor's memory in which blocks are kept
JVM = 2**30  # what a JVM takes beside
USUAL_CORES = 16  # of an executor, by default


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSize:
    """A fit that is planned: its rows, and the cores that it may use."""

    rows: int
    users: int
    items: int
    factors: int
    cores: int
    executors: int = 0  # 0: one for each 16 cores
    passes: int = 50
    network: float | None = None  # bytes a second that each machine sends and receives

    def __post_init__(self) -> None:
        for name in ("rows", "users", "items", "factors", "cores", "executors", "passes"):
            value, least = getattr(self, name), 0 if name == "executors" else 1
            if not (is_whole(value) and value >= least):
                raise InputError(f"plan: {name} must be a whole number from 1, got {value!r}; write '{name}=1000'.")
        if not self.executors:
            object.__setattr__(self, "executors", ceil(self.cores / USUAL_CORES))
        self._check_bounds()

    def _check_bounds(self) -> None:
        cells, fewer = self.users * self.items, min(self.users, self.items)
        for name, most, what, remedy in (
            ("rows", cells, f"users × items, {cells:,}, as a pair occurs once", "more users or items"),
            ("factors", fewer, f"the smaller of users and items, {fewer:,}", "fewer"),
            ("executors", self.cores, f"the cores, {self.cores:,}, as each has one", "fewer"),
        ):
            if getattr(self, name) > most:
                raise InputError(f"plan: {name} must be at most {what}, got {getattr(self, name):,}; pass {remedy}.")
        if self.network is not None and not 0 < self.network < inf:
            raise InputError(
                f"plan: network must be bytes a second above 0, got {self.network!r}; write 'network=1e9'."
            )

    @property
    def numbers(self) -> int:
        """I·(K + 1), the numbers of Q."""
        return self.items * (self.factors + 1)

    @property
    def row_bytes(self) -> int:
        """Item, rating and weight of each row; id and first row of each user."""
        return 12 * self.rows + 16 * self.users

    @property
    def row_seconds(self) -> float:
        """n·(A + B·K) + U·(C + D·K)."""
        own = self.rows * (PER_ROW + PER_ROW_FACTOR * self.factors)
        return own + self.users * (PER_USER + PER_USER_FACTOR * self.factors)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitCost:
    """What a fit takes somewhere; bytes and seconds of a pass."""

    where: str
    blocks: int
    memory: Mapping[str, int]
    disk: Mapping[str, int]
    moved: Mapping[str, int] = field(default_factory=dict[str, int])
    cpu: float
    clock: float  # on all cores, without disk and network
    network: float | None = None  # seconds
    settings: Mapping[str, str] = field(default_factory=dict[str, str])


def local_memory(vectors: int, users: int, threads: int, batch: int = BATCH) -> int:
    """What a fit from disk holds: `vectors` bytes of Q as often as it needs them, ids of users, and a batch of rows."""
    return (COPIES + THREAD_COPIES * threads) * vectors + users * USER_BYTES + batch * ROW_BYTES


def in_memory(size: FitSize) -> FitCost:
    """Rows as Feedback and sorted by user, and a vector for each user."""
    blocks, vectors = count_blocks(size.rows, size.items), 4 * size.numbers
    held = {
        "rows": 12 * size.rows + size.row_bytes,
        "users' vectors": 4 * size.users * (size.factors + 1),
        "items' vectors": (COPIES + THREAD_COPIES * size.cores) * vectors,
    }
    cpu, clock = _seconds(size, blocks)
    return FitCost(where="memory", blocks=blocks, memory=held, disk=_checkpoint(size), cpu=cpu, clock=clock)


def from_disk(size: FitSize) -> FitCost:
    """Blocks in files, a few of which are open at a time; while they are made, rows are there thrice."""
    blocks = count_blocks(size.rows, size.items)
    held = {"process": DRIVER_BASE + local_memory(4 * size.numbers, size.users, size.cores)}
    files = {"blocks": size.row_bytes, "blocks while made": 2 * 16 * size.rows + size.row_bytes}
    cpu, clock = _seconds(size, blocks)
    return FitCost(where="disk", blocks=blocks, memory=held, disk=files | _checkpoint(size), cpu=cpu, clock=clock)


def on_spark(size: FitSize) -> FitCost:
    """Blocks on the executors; Q goes there and sums come back, added by the driver or first by the executors."""
    blocks, sums = count_blocks(size.rows, size.items, SPARK_ROWS), 8 * size.numbers
    whole = blocks * sums
    apart = piece_count(size.items, whole, ON_DRIVER, AT_ONCE) > 1
    moved = {
        "Q to the executors": 4 * size.numbers * size.executors,
        "sums between executors": whole if apart else 0,
        "sums to the driver": sums if apart else whole,
    }
    shuffled = {"shuffle of an executor, each pass": whole // size.executors} if apart else {}
    waves = ceil(blocks / size.cores)  # a task works on one block
    task = (size.row_seconds + (PER_SUM_BYTE + PER_SENT_BYTE) * whole) / blocks
    alone = PER_NUMBER * size.numbers + PER_JOB
    return FitCost(
        where="Spark", blocks=blocks, moved=moved, memory=(held := _spark_memory(size, blocks, moved)),
        disk=_checkpoint(size) | shuffled, cpu=task * blocks + alone, clock=waves * task + alone,
        network=_network(size, moved), settings=_settings(size, held, moved["sums to the driver"]),
    )  # fmt: skip


def _seconds(size: FitSize, blocks: int) -> tuple[float, float]:
    """CPU time of a pass, and clock time on all cores."""
    cpu, alone = size.row_seconds + PER_SUM_BYTE * blocks * 8 * size.numbers, PER_NUMBER * size.numbers
    waves = ceil(blocks / size.cores)  # a thread works on one block
    return cpu + alone, cpu * waves / blocks + alone


def _checkpoint(size: FitSize) -> dict[str, int]:
    return {"checkpoint": CHECKPOINT * size.numbers}


def _spark_memory(size: FitSize, blocks: int, moved: Mapping[str, int]) -> dict[str, int]:
    """Of one executor, one worker and the driver; an executor has a Python worker for each of its cores."""
    each, block = ceil(size.cores / size.executors), size.row_bytes // blocks
    worker = WORKER_BASE + block + WORKER * size.numbers
    if moved["sums between executors"]:
        worker = max(worker, WORKER_BASE + 3 * AT_ONCE)  # who adds holds a piece as it came, as arrays, and as a sum
    return {
        "Python worker": worker,
        "Python workers of an executor": each * worker,
        "JVM of an executor": JVM + ceil(size.row_bytes / size.executors / STORED) + 2 * each * block,
        "driver's Python": DRIVER_BASE + DRIVER * size.numbers + 3 * (moved["sums to the driver"] - 8 * size.numbers),
        "driver's JVM": JVM + 3 * moved["sums to the driver"],
    }


def _network(size: FitSize, moved: Mapping[str, int]) -> float | None:
    """Executors send Q on to each other, and each has its part of the sums between them."""
    if size.network is None:
        return None
    own = 4 * size.numbers + moved["sums between executors"] / size.executors + moved["sums to the driver"]
    return own / size.network


def _settings(size: FitSize, held: Mapping[str, int], result: int) -> dict[str, str]:
    """What to pass to spark-submit as --conf; GiB are rounded up."""
    return {
        "spark.executor.instances": str(size.executors),
        "spark.executor.cores": str(ceil(size.cores / size.executors)),
        "spark.executor.memory": _gib(held["JVM of an executor"]),
        "spark.executor.memoryOverhead": _gib(held["Python workers of an executor"]),
        "spark.driver.memory": _gib(held["driver's JVM"]),
        "spark.driver.maxResultSize": _gib(1.1 * result),
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
        "spark.executorEnv.NUMBA_CACHE_DIR": "/tmp/numba",  # noqa: S108 (an executor's own, of compiled code alone)
    }


def _gib(size: float) -> str:
    return f"{max(1, ceil(size / 2**30))}g"
