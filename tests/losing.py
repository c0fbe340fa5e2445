"""Evaluation, propensities, a fit and its ranks in a local cluster that loses executors and Python workers.

Run as a script by test_losing.py, with a folder, where told.json says what came out.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import polars as pl

import openloop as ol
from openloop.learners.blocks import spark as spark_blocks
from openloop.moments.source import BlockSource
from openloop.propensity.frames.frame_ids import FrameIds
from tests import propensity_logs
from tests.learners import projected_logs

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "512m",
    "spark.executor.memory": "512m", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF", "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.network.timeout": "600s", "spark.driver.extraJavaOptions": JAVA, "spark.executor.extraJavaOptions": JAVA,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}  # fmt: skip
PATIENCE = 120.0  # seconds until a process that should be there is missed
USERS, ITEMS, ROWS = 100, 50, 2000  # of the log that is evaluated

spark_blocks.BLOCK_ROWS = 150  # four blocks


def main(folder: str) -> None:
    from pyspark.sql import SparkSession

    settings = SETTINGS | {"spark.local.dir": f"{folder}/local", "spark.sql.warehouse.dir": f"{folder}/warehouse"}
    spark = SparkSession.builder.master("local-cluster[2,1,512]").config(map=settings).getOrCreate()
    cluster = Cluster(spark)
    told = {
        "evaluate": evaluations(cluster), "propensities": propensities(cluster), "fit": fits(cluster, folder),
        "lost": cluster.lost, "late": cluster.late, "held": spark.sparkContext._jsc.getPersistentRDDs().size(),
    }  # fmt: skip
    Path(folder, "told.json").write_text(json.dumps(told), "utf-8")
    spark.stop()


# -- who can be lost -----------------------------------------------------------------------------------------


def processes() -> list[tuple[int, int, str]]:
    """Every living process: its id, its parent and its command."""
    command = ["ps", "-ww", "-eo", "pid,ppid,stat,args"]  # whole lines, whatever COLUMNS says
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split(None, 3) for line in lines[1:]]
    return [(int(row[0]), int(row[1]), row[-1]) for row in rows if not row[2].startswith("Z")]


class Cluster:
    """A session whose executors and Python workers can be killed."""

    def __init__(self, spark) -> None:
        self.spark, self.lost, self.late = spark, 0, 0
        self.jvm = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())

    def executors(self) -> list[int]:
        """Processes that this session's JVM started."""
        return [p for p, parent, args in processes() if parent == self.jvm and "CoarseGrainedExecutorBackend" in args]

    def workers(self) -> list[int]:
        """The Python workers of all executors: children of the daemons that executors start."""
        mine, table = self.executors(), processes()
        daemons = [pid for pid, parent, args in table if parent in mine and "pyspark.daemon" in args]
        return [pid for pid, parent, _ in table if parent in daemons]

    def lose(self, found: Callable[[], list[int]]) -> None:
        """Kill the first of them, and wait until it is gone."""
        start = time.monotonic()
        while not (there := found()):
            assert time.monotonic() - start < PATIENCE, f"no process to lose: {found.__name__}"
            time.sleep(0.05)
        os.kill(there[0], signal.SIGKILL)
        while there[0] in found():
            time.sleep(0.05)
        self.lost += 1

    @contextmanager
    def losing(self, found: Callable[[], list[int]] | None) -> Iterator[None]:
        """Lose one of them as soon as a task runs inside the block, or at its end if none was seen to run."""
        if found is None:
            yield
            return
        tracker, over = self.spark.sparkContext.statusTracker(), Event()

        def running() -> bool:
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            return any(stage is not None and stage.numActiveTasks for stage in stages)

        def wait_and_kill() -> None:
            while not (over.is_set() or (running() and found())):
                time.sleep(0.01)
            self.late += over.is_set()
            self.lose(found)

        thread = Thread(target=wait_and_kill)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


# -- what is asked twice -------------------------------------------------------------------------------------


def evaluations(cluster: Cluster) -> list[dict[str, list[float]]]:
    """By Polars, and by Spark, where an executor is lost when the joined blocks are held, before they are summed."""
    summed = BlockSource.reduce

    def reduce(self, *questions):
        cluster.lose(cluster.executors)
        return summed(self, *questions)

    found = [evaluated(lambda frame: frame)]
    BlockSource.reduce = reduce
    found.append(evaluated(lambda frame: there(cluster.spark, frame, "user")))
    BlockSource.reduce = summed
    return found


def evaluated(into: Callable[[pl.DataFrame], Any]) -> dict[str, list[float]]:
    rng = np.random.default_rng(0)
    cells = np.sort(rng.choice(USERS * ITEMS, ROWS, replace=False))
    pairs = {"user": cells // ITEMS, "item": cells % ITEMS}
    log = pl.DataFrame(pairs | {"rating": rng.integers(1, 6, ROWS), "p": rng.uniform(0.1, 0.7, ROWS)})
    models = {name: pl.DataFrame(pairs | {"score": rng.uniform(1, 5, ROWS)}) for name in "ab"}
    result = ol.evaluate(
        {name: into(frame) for name, frame in models.items()},
        ol.scan(into(log), propensity="p", users=USERS, items=ITEMS),
        metrics=["mae"], estimators=["naive", "ips", "snips", "stratified@3"],
    )  # fmt: skip
    return {" ".join(key): [e.value, e.stderr] for key, e in result.estimates.items()}


def there(spark, frame: pl.DataFrame, by: str):
    return spark.createDataFrame(frame.to_arrow()).repartition(4, by)


def propensities(cluster: Cluster) -> list[list[float]]:
    """p by Polars, and by Spark, whose fit loses an executor between two queries, and one before p is computed."""
    rows, counted = propensity_logs.log(), FrameIds.of
    frame = there(cluster.spark, rows, "uid").persist()

    def counting(keyed, key):
        FrameIds.of = counted
        cluster.lose(cluster.executors)
        return counted(keyed, key)

    calm = logistic(rows).with_column(rows).sort("n")["propensity"].to_list()
    FrameIds.of = counting
    column = logistic(frame).with_column(frame)
    cluster.lose(cluster.executors)
    lossy = column.toArrow().sort_by("n").column("propensity").to_pylist()
    frame.unpersist()
    return [calm, lossy]


def logistic(frame) -> ol.propensity.Logistic:
    return ol.propensity.Logistic().fit(frame, **propensity_logs.COLUMNS, distinct=True)


def fits(cluster: Cluster, folder: str) -> dict[str, bool]:
    """Whether a fit and its ranks have the same bits where an executor and a worker are lost in passes 2 and 3."""
    log, w = projected_logs.small_log()
    frame = projected_logs.as_frame(log, w)
    frame.write_parquet(Path(folder, "log.parquet"))
    rows = cluster.spark.read.parquet(str(Path(folder, "log.parquet")))
    held = cluster.spark.createDataFrame(frame.select("uid", "sku").head(100).to_arrow())
    (quiet, ranks), (model, others) = (
        fitted(cluster, rows, held, killed) for killed in ({}, {2: cluster.executors, 3: cluster.workers})
    )
    names = ("item_factors_", "item_bias_", "history_", "intercept_")
    same = all(np.array_equal(getattr(model, name), getattr(quiet, name)) for name in names)
    return {"fit": same, "ranks": others.equals(ranks) and len(ranks) == 100}


def fitted(cluster: Cluster, rows, held, killed) -> tuple[ol.learners.MF, pl.DataFrame]:
    """A fit, some of whose passes lose a process, and the ranks of held-out items, made while an executor is lost."""
    passes, total = [0], spark_blocks.SparkBlocks.total

    def disturbed(self, ask):
        passes[0] += 1
        with cluster.losing(killed.get(passes[0])):
            return total(self, ask)

    spark_blocks.SparkBlocks.total = disturbed
    model = ol.learners.MF(3, 2.0, solver="projected", iterations=2).fit(rows, **projected_logs.COLUMNS)
    spark_blocks.SparkBlocks.total = total
    ranked = model.ranks(held)
    with cluster.losing(killed.get(2)):
        found = pl.from_arrow(ranked.toArrow()).sort("uid", "sku")
    model.release()
    return model, found


if __name__ == "__main__":
    main(sys.argv[1])
