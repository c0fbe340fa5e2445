"""`python -m tests.frozen [PATTERN …]`: whether openloop gives the numbers that were frozen in api.json.

--write keeps the numbers of today; --spark asks Spark, too.
"""

from __future__ import annotations

import fnmatch
import sys

from tests.frozen import comparing
from tests.frozen.calls import IN_MEMORY, Engine, engine, on_spark
from tests.frozen.cases import cases


def main(words: list[str]) -> int:
    patterns = [word for word in words if not word.startswith("--")] or ["*"]
    chosen = {n: c for n, c in cases().items() if any(fnmatch.fnmatch(n, f"*{p}*") for p in patterns)}
    engines = {name: engine(name) for name in IN_MEMORY} | ({"spark": spark()} if "--spark" in words else {})
    frozen = comparing.read()
    compared = differ = 0
    for name, case in chosen.items():
        found = {at: comparing.answer(case, engines[at]) for at in case.engines if at in engines}
        compared += sum(len(numbers) for numbers in found.values())
        if "--write" in words:
            frozen[name] = {at: frozen[name][at] for at in frozen.get(name, {}) if at not in found}
            frozen[name] = comparing.shortened(found, case) | frozen[name]
            continue
        wrong = [
            f"{at}: {line}"
            for at, numbers in found.items()
            for line in comparing.differences(case, at, numbers, frozen.get(name, {}))
        ]
        differ += bool(wrong)
        print("\n    ".join([f"{name}: {len(wrong)} differ", *wrong[:6]]) if wrong else "", end="\n" if wrong else "")
    if "--write" in words:
        comparing.write(frozen)
    print(f"{len(chosen)} cases, {compared:,} numbers: {differ} differ")
    return 1 if differ else 0


def spark() -> Engine:
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR"}
    return on_spark(SparkSession.builder.master("local[2]").config(map=settings).getOrCreate())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
