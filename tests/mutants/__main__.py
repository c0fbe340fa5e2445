"""`python -m tests.mutants --seed S --count N`: breaks N lines of formulas, one by one; tells which no test notices.

All happens in a copy of the tree. A break runs only the tests that reach its function, nearest first, to the first
failure, and at most 60 seconds of processor time. What is known is kept in .mutants, so that a second call goes on:
results while neither the broken file nor the tests that reach it change; which functions a test reaches while its file
does not (remove .mutants/reach.jsonl where functions were renamed or moved).
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import itertools
import json
import marshal
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from pathlib import Path

from tests.mutants.breaks import Break, draw
from tests.mutants.reach import functions, is_compiled, marked, other_names

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".mutants"
TREE = KEPT / "tree"
SECONDS = 60
MEMORY = 8 * 2**30
SELECTED = "not spark and not extra and not slow"
# These compute nothing, or need programs and hours.
WITHOUT_NUMBERS = ("fuzz", "faults", "docs", "site", "packaging", "tutorials", "notebook", "security", "bench")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--again", type=Path, help="the output of an earlier call, whose breaks are made again")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="folders of the tests that may notice")
    parser.add_argument("--output", type=Path, help="where the breaks are written, with the tests that noticed them")
    options = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    copy_tree()
    if options.again:
        earlier = json.loads(options.again.read_text(encoding="utf-8"))
        breaks = [(Break(**{name: one[name] for name in Break.__annotations__}), one["why"]) for one in earlier]
    else:
        breaks = [(broken, "") for broken in draw(ROOT, options.seed, options.count)]
    results = [noticed(broken, options.tests, first) for broken, first in breaks]
    if options.output:
        options.output.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    missed = [result for result in results if not result["noticed"]]
    for result in missed:
        say(f"{result['file']}:{result['line']}: {result['why']}\n  - {result['before']}\n  + {result['after']}")
    say(f"{len(results) - len(missed)} of {len(results)} breaks were noticed.")
    return 1 if missed else 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# -- the copy --------------------------------------------------------------------------------------------------


def copy_tree() -> None:
    """Files that git tracks or would; numba knows a file by its time, so that stays."""
    listed = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True).splitlines()
    names = {name for name in listed if (ROOT / name).is_file()}
    for old in [file for folder in ("src", "tests") for file in (TREE / folder).rglob("*.py")]:
        if str(old.relative_to(TREE)) not in names:
            old.unlink()
    for name in names:
        place = TREE / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_bytes() != (ROOT / name).read_bytes():
            shutil.copy2(ROOT / name, place)


def run(arguments: Iterable[str], seconds: int | None = None, **variables: Path) -> int:
    """The exit status of pytest in the copy, of which no caller's settings change what is imported."""
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONDONTWRITEBYTECODE", "CI"}}
    env |= {"PYTHONPATH": str(TREE / "src"), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "2"}
    env |= {"OPENLOOP_DATA": os.environ.get("OPENLOOP_DATA", str(ROOT.parent / "shared" / "data"))}
    env |= {f"MUTANTS_{name.upper()}": str(path) for name, path in variables.items()}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.reach", "-p", "no:cacheprovider"]
    command += [f"--basetemp={KEPT / 'temporary'}", *arguments]

    def limit() -> None:
        if seconds:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))

    name = "break.log" if seconds else "reach.log"
    with (KEPT / name).open("w", encoding="utf-8") as log:
        return subprocess.run(
            command, cwd=TREE, env=env, stdout=log, stderr=log, check=False, preexec_fn=limit
        ).returncode


# -- which tests reach a function ------------------------------------------------------------------------------


@cache
def reach(*folders: str) -> dict[str, tuple[float, set[str]]]:
    """The seconds of each test, and the functions that it calls; files that are known are not run."""
    known = {}
    for line in lines_of(KEPT / "reach.jsonl"):
        known[line["file"], line["digest"]] = line
    places = [TREE / folder for folder in folders]
    files = [file for place in places for file in (place.rglob("test_*.py") if place.is_dir() else [place])]
    wanted = {
        (str(file.relative_to(TREE)), hashlib.sha256(file.read_bytes()).hexdigest())
        for file in files
        if not any(word in str(file.relative_to(TREE)) for word in WITHOUT_NUMBERS)
    }
    missing = dict(sorted(wanted - set(known)))
    if missing:
        say(f"Finding what {len(missing)} files of tests reach.")
        fresh = KEPT / "fresh.jsonl"
        fresh.unlink(missing_ok=True)
        mark_modules()
        finished = fresh.with_suffix(".finished")
        finished.unlink(missing_ok=True)
        try:
            run(["-m", SELECTED, *missing], reach=fresh)
        finally:
            ran = {line["file"]: line for line in lines_of(fresh)}
            with (KEPT / "reach.jsonl").open("a", encoding="utf-8") as output:
                # In a file that did not run, where all did, no test is selected.
                for file in missing if finished.exists() else ran:
                    empty = {"file": file, "functions": [], "tests": {}}
                    line = ran.get(file, empty) | {"digest": missing[file]}
                    known[file, missing[file]] = line
                    output.write(json.dumps(line) + "\n")
    found = {}
    for line in (known[place] for place in sorted(wanted & set(known))):
        for test, (seconds, numbers) in line["tests"].items():
            found[test] = seconds, {line["functions"][number] for number in numbers}
    return found


def mark_modules() -> None:
    """Modules whose functions tell that they are called; not those on a GPU, which Triton compiles."""
    folder = KEPT / "marked"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file, tree in trees().items():
        if "cuda" not in file.parts:
            code = marked(copy.deepcopy(tree), module(file), file, set(renamed().values()))
            (folder / module(file)).write_bytes(marshal.dumps(code))


@cache
def trees() -> dict[Path, ast.Module]:
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted((TREE / "src").rglob("*.py"))}


@cache
def renamed() -> dict[str, str]:
    """The functions that are compiled under another name, by that name."""
    return {name: function for tree in trees().values() for name, function in other_names(tree).items()}


def lines_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


@cache
def names_used() -> dict[str, tuple[bool, set[str]]]:
    """Of each function, whether it is compiled, and the names in it."""
    found = {}
    for file, tree in trees().items():
        for name, function in functions(tree, module(file)):
            used = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(function)}
            compiled = is_compiled(function) or function.name in renamed().values()
            found[name] = compiled, used | {renamed()[short] for short in used & set(renamed())}
    return found


def module(file: Path) -> str:
    return ".".join(file.relative_to(TREE / "src").with_suffix("").parts).removesuffix(".__init__")


def reaching(function: str) -> set[str]:
    """The function itself, or those outside kernels that call a compiled one."""
    known, found, seen = names_used(), set(), {function}
    waiting = [function]
    while waiting:
        name = waiting.pop()
        if not known[name][0]:
            found.add(name)
            continue
        place, _, short = name.partition(":")
        private = short.startswith("_")
        callers = {n for n, (_, used) in known.items() if short in used and (not private or n.startswith(f"{place}:"))}
        # One that no function names is in a table of its module.
        callers = callers or {n for n, (compiled, _) in known.items() if n.startswith(f"{place}:") and not compiled}
        waiting += callers - seen
        seen |= callers
    return found


def nearest(function: str, folders: Iterable[str], first: str) -> list[str]:
    """Tests that reach a function, files first that reach few modules and take little; then others of these files.

    The others are there because a fixture of several tests is made once, in the first of them.
    """
    names = reaching(function)
    tests = reach(*folders)
    near: dict[str, tuple[int, float]] = {}  # the least modules and seconds of a file's tests that reach it
    for test, (seconds, called) in tests.items():
        if called & names:
            distance = len({name.partition(":")[0] for name in called}), seconds
            near[file_of(test)] = min(near.get(file_of(test), distance), distance)

    def place(test: str) -> tuple[bool, bool, tuple[int, float], str]:
        return test != first, not tests[test][1] & names, near[file_of(test)], file_of(test)

    ordered = sorted((test for test in tests if file_of(test) in near), key=place)
    ends = itertools.accumulate(tests[test][0] for test in ordered)
    return [test for test, end in zip(ordered, ends, strict=True) if test == ordered[0] or end < 2 * SECONDS]


def file_of(test: str) -> str:
    return test.partition("::")[0]


# -- one break -------------------------------------------------------------------------------------------------


def noticed(broken: Break, folders: list[str], first: str) -> dict:
    """The break, and which test noticed it or why none did; `first` is the test to begin with, if it is there."""
    file = file_with(broken)
    if file is None:
        return asdict(broken) | {"noticed": False, "why": "no file has these lines any more"}
    source = file.read_text(encoding="utf-8")
    content, line = broken.applied(source)
    inside = [n for n, f in functions(ast.parse(source), module(file)) if f.lineno <= line <= (f.end_lineno or 0)]
    tests = nearest(inside[0], folders, first)
    digest = hashlib.sha256(json.dumps([asdict(broken), source, tests]).encode())
    for name in sorted(set(map(file_of, tests))):
        digest.update((TREE / name).read_bytes())
    key = digest.hexdigest()
    kept = {result["key"]: result for result in lines_of(KEPT / "results.jsonl")}
    if key not in kept:
        with changed(file, content):
            kept[key] = asdict(broken) | {"line": line} | attempt(tests) | {"key": key}
        with (KEPT / "results.jsonl").open("a", encoding="utf-8") as output:
            output.write(json.dumps(kept[key], ensure_ascii=False) + "\n")
    say(f"{'noticed' if kept[key]['noticed'] else 'MISSED '} {broken.file}:{line} {kept[key]['why']}")
    return kept[key]


def file_with(broken: Break) -> Path | None:
    """The file with the lines of a break, which may have moved."""
    usual = TREE / broken.file
    for file in [usual, *sorted((TREE / "src").rglob("*.py"))]:
        if file.exists() and f"\n{broken.before}\n" in file.read_text(encoding="utf-8"):
            return file
    return None


def attempt(tests: list[str]) -> dict:
    if not tests:
        return {"noticed": False, "why": "no test reaches it"}
    order, report = KEPT / "order.json", KEPT / "report.json"
    order.write_text(json.dumps(tests), encoding="utf-8")
    report.unlink(missing_ok=True)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    status = run(["-x", "-m", SELECTED, *files], SECONDS, order=order, report=report)
    event, test, began = json.loads(report.read_text()) if report.exists() else ("failed", "the start of pytest", 0.0)
    if status == 0:
        return {"noticed": False, "why": f"{len(tests)} tests passed"}
    out_of_time = event == "began" and status in {-signal.SIGKILL, -signal.SIGXCPU}
    if out_of_time and began > SECONDS / 3:
        return {"noticed": False, "why": f"none of {tests.index(test)} tests failed in {SECONDS} seconds"}
    return {"noticed": True, "why": test}  # it failed, ended the process, or does not end


@contextmanager
def changed(file: Path, content: str):
    """The file with other content; kernels that hold it are put aside, as numba would take them as they were."""
    source, times = file.read_bytes(), file.stat()
    aside = KEPT / "aside"
    aside.mkdir(exist_ok=True)
    modules = importers(module(file))
    caches = [found for one in modules for found in (one.parent / "__pycache__").glob(f"{one.stem}.*.nb?")]
    for found in caches:
        found.rename(aside / found.name)
    try:
        file.write_text(content, encoding="utf-8")
        yield
    finally:
        file.write_bytes(source)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        for one in modules:
            for fresh in (one.parent / "__pycache__").glob(f"{one.stem}.*.nb?"):
                fresh.unlink()
        for found in caches:
            (aside / found.name).rename(found)


def importers(name: str) -> set[Path]:
    """The files of a module and of those that import it, directly or not."""
    files = {module(file): (file, file.read_text(encoding="utf-8")) for file in sorted((TREE / "src").rglob("*.py"))}
    found, waiting = {name}, [name]
    while waiting:
        one = waiting.pop()
        package, _, last = one.rpartition(".")
        lines = (f"from {one} import", f"from {package} import {last}")
        more = {n for n, (_, text) in files.items() if any(line in text for line in lines)} - found
        found |= more
        waiting += more
    return {files[one][0] for one in found}


if __name__ == "__main__":
    sys.exit(main())
