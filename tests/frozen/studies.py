"""`python -m tests.frozen.studies [PATTERN …]`: whether quick runs of the studies give the numbers of studies.json.

--write keeps those of today; --monte-carlo allows 3.5 standard errors of both sides, for a study whose trials are drawn
otherwise. A table whose data or packages are not here is not compared.
"""

from __future__ import annotations

import fnmatch
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openloop as ol
from tests.frozen import comparing

STUDIES = Path(__file__).with_name("studies.json")
DATA = os.environ.get("OPENLOOP_DATA", Path(__file__).parents[3] / "shared" / "data")
PAPERS = ("schnabel2016", "lim2015", "jadidinejad2021", "race")
# Trials are the same on one machine with as many threads. On another, a learner stops elsewhere: its objective is as
# near to the optimum as its tolerance says, 1e-5 or so, and its predictions within the root of that. Where
# cross-validation then chooses another setting, a number changes by more, and --monte-carlo is the way to compare.
RTOL = 3e-3
ERRORS = 3.5

LOST = (  # entries of the race
    "popularity", "user mean", "item mean", "Bias naive, of labels", "MF naive, selected naively", "MF-SNIPS",
    "logistic MF naive", "logistic MF-IPS", "MRDR", "DR-MSE", "TDR", "StableDR-like", "RelMF",
    "Stack + Exposure, nothing selected",
)  # fmt: skip
# Patterns of what the studies need not run any more, as it is called in the file.
GONE_BY_DESIGN = (
    "schnabel2016/figure3left/figure3left-lambda/*", "schnabel2016/figure3left/figure3left-checks/*",
    "schnabel2016/figure3right/figure3right-lambda/*",
    "schnabel2016/table2/table2-coat-explored/*", "schnabel2016/table2/table2-coat-mixing/*",
    "schnabel2016/bounds/bounds-erm/* | R of the minimiser", "schnabel2016/bounds/bounds-erm/* | its R − R̂*",
    "schnabel2016/bounds/bounds-inaccurate/* | of the bound: *", "schnabel2016/bounds/bounds drawn/*",
    "lim2015/table1/table1-own/*", "lim2015/table1/table1-ndcg/*", "lim2015/factorial/*",
    *(f"race/coat/race-coat-*/{model} | *" for model in LOST),
    "race/coat/race-coat-* | nDCG@5, without positives 1",
    "race/coat/race-elsewhere/*", "race/as_published/*", "race/leaks/*",
)  # fmt: skip

Table = dict[str, Any]  # numbers, or a value and its error, by the names of row and column


def tables(paper: str) -> dict[str, Table]:
    """The numbers of every table and figure of a quick run, by paper, item and table."""
    with tempfile.TemporaryDirectory() as cache:
        run = ol.reproduce(paper, data=DATA, quick=True, seed=0, workers=0, cache=cache)
    return tables_in(paper, json.loads(run.to_json()))


def tables_in(paper: str, run: dict[str, Any]) -> dict[str, Table]:
    found: dict[str, Table] = {}
    for result in run["results"]:
        for table in result["tables"]:
            found[f"{paper}/{result['item']}/{table['name']}"] = dict(numbers_of(table["rows"]))
        for figure in result["figures"]:
            found[f"{paper}/{result['item']}/{figure['name']} drawn"] = drawn(figure["rows"])
    return {name: table for name, table in found.items() if table}


def numbers_of(rows: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    labels = [str(next(iter(row.values()))) for row in rows]
    for n, row in enumerate(rows):
        label = labels[n] if labels.count(labels[n]) == 1 else f"{labels[n]} #{n}"
        for column, cell in row.items():
            value = [cell["value"], cell["error"]] if isinstance(cell, dict) else cell
            if is_number(value) or (isinstance(value, list) and value != [None, None]):
                yield f"{label} | {column}", comparing.plain(value)


def drawn(rows: list[dict[str, Any]]) -> Table:
    """The numbers of about forty points of a figure."""
    chosen = range(0, len(rows), 1 + len(rows) // 40)
    return {f"point {n}": comparing.plain([v for v in rows[n].values() if is_number(v)]) for n in chosen}


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def alike(found: Any, wanted: Any, *, drawn_anew: bool) -> bool:
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found) == 2 and drawn_anew:
        spread = math.hypot(found[1] or 0.0, wanted[1] or 0.0)
        return found[0] is not None and abs(found[0] - wanted[0]) <= ERRORS * spread + RTOL * abs(wanted[0])
    if isinstance(wanted, list):
        return isinstance(found, list) and all(
            alike(a, b, drawn_anew=drawn_anew) for a, b in zip(found, wanted, strict=True)
        )
    if wanted is None or found is None:
        return wanted is None
    return abs(found - wanted) <= max(RTOL * max(abs(found), abs(wanted)), 1e-9)


def differences(
    found: dict[str, Table], frozen: dict[str, Table], *, drawn_anew: bool
) -> Iterator[tuple[str, list[str]]]:
    """What differs in each table, and what is gone."""
    for name, wanted in frozen.items():
        numbers = found.get(name, {})
        wrong = []
        for key, value in wanted.items():
            if key not in numbers:
                if not any(fnmatch.fnmatchcase(f"{name}/{key}", pattern) for pattern in GONE_BY_DESIGN):
                    wrong.append(f"{key} is gone, was {value}")
            elif not alike(numbers[key], value, drawn_anew=drawn_anew):
                wrong.append(f"{key}: {numbers[key]}, was {value}")
        yield name, wrong


def main(words: list[str]) -> int:
    patterns = [word for word in words if not word.startswith("--")] or ["*"]
    frozen = comparing.read(STUDIES)
    papers = [p for p in PAPERS if any(fnmatch.fnmatch(p, f"*{pattern.partition('/')[0]}*") for pattern in patterns)]
    found = {name: table for paper in papers for name, table in tables(paper).items()}
    if "--write" in words:
        comparing.write(frozen | found, STUDIES)
    chosen = {n: t for n, t in comparing.read(STUDIES).items() if any(fnmatch.fnmatch(n, f"*{p}*") for p in patterns)}
    wrong = dict(differences(found, chosen, drawn_anew="--monte-carlo" in words))
    for name, lines in wrong.items():
        gone = "  (gone by design)" if name not in found and not lines else ""
        if lines or gone:
            told = [f"{name}: {len(lines)} of {len(chosen[name])} differ{gone}", *lines[:6]]
            sys.stdout.write("\n    ".join(told) + "\n")
    differ = sum(bool(lines) for lines in wrong.values())
    sys.stdout.write(f"{len(chosen)} tables, {sum(map(len, chosen.values())):,} numbers: {differ} differ\n")
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
