"""`python -m tests.frozen [PATTERN …]`: whether openloop gives the numbers that were frozen in api.json.

A pattern is a part of a name, such as evaluate/lists@duckdb. --spark asks Spark, too; --write keeps what is found.
"""

from __future__ import annotations

import fnmatch
import sys

from tests.frozen import comparing
from tests.frozen.calls import IN_MEMORY, Engine, engine, on_spark
from tests.frozen.cases import cases


def main(words: list[str]) -> int:
    patterns = [word for word in words if not word.startswith("--")] or ["*"]
    engines = {name: engine(name) for name in IN_MEMORY} | ({"spark": spark()} if "--spark" in words else {})
    frozen = comparing.read()
    asked = compared = differ = 0
    for name, case in cases().items():
        chosen = [at for at in case.engines if at in engines and matches(f"{name}@{at}", patterns)]
        found = {at: comparing.answer(case, engines[at]) for at in chosen}
        asked += bool(found)
        compared += sum(len(numbers) for numbers in found.values())
        if found and "--write" in words:
            frozen[name] = comparing.updated(frozen.get(name, {}), found, case)
            comparing.write(frozen)  # a later case may fail
            continue
        wrong = [
            f"{at}: {line}"
            for at, numbers in found.items()
            for line in comparing.differences(case, at, numbers, frozen.get(name, {}))
        ]
        differ += bool(wrong)
        if wrong:
            sys.stdout.write("\n    ".join([f"{name}: {len(wrong)} differ", *wrong[:6]]) + "\n")
            sys.stdout.flush()
    sys.stdout.write(f"{asked} cases, {compared:,} numbers: {differ} differ\n")
    return 1 if differ else 0


def matches(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatch(name, f"*{pattern}*") for pattern in patterns)


def spark() -> Engine:
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",  # to compile a plan takes longer than to run it on a few rows
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    return on_spark(SparkSession.builder.master("local[2]").config(map=settings).getOrCreate())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
