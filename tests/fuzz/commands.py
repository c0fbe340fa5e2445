"""Commands on changed files, in this process: how they end, and whether two ways to one answer agree."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

from openloop.studies.kit import running
from tests.cli.running import run
from tests.faults import coins
from tests.fuzz import audits
from tests.fuzz.mutator import mutated, written
from tests.fuzz.oracles import FailureError
from tests.fuzz.seeds import arrays, features, tables
from tests.fuzz.seeds import impressions as shown
from tests.pages import check_safe

CODES = {0, 1, 2, 3}
OUT = ("--json", "-")


def _ran(*given: object) -> Any:
    """A command that ended in order: with one of the exit codes, and without a bug of openloop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that overflow; what matters here is how the command ends
        found = run(*given)
    wrong = found.exception is not None and not isinstance(found.exception, SystemExit)
    told = "Traceback" in found.stderr or "openloop: bug:" in found.stderr
    if wrong or told or found.exit_code not in CODES:
        said = f"exit {found.exit_code}, {found.exception!r}, {found.stderr[-300:]}"
        raise FailureError("tracebacks", f"{shlex.join(map(str, given))}: {said}")
    return found


def _accepted(*given: object) -> bool:
    return _ran(*given).exit_code != 2


def _one_changed(folder: Path, rng: Random, files: dict[str, tuple[str, bytes]], changed: str) -> dict[str, Path]:
    """Files by their roles, of which one is changed."""
    return {
        role: written(folder, f"{role}-{name}", mutated(data, rng) if role == changed else data)
        for role, (name, data) in files.items()
    }


def _audit_files(folder: Path, rng: Random) -> tuple[Path, list[str]]:
    """A log and two models, one of the three changed."""
    names = {"log": rng.choice(sorted(tables())), "a": "plain.csv", "b": rng.choice(("plain.csv", "frame.parquet"))}
    if names["log"].startswith(("text", "quoted", "list")):
        names |= {"a": "text.csv", "b": "text.parquet"}
    changed = rng.choice(("log", "log", "a", "b"))
    paths = _one_changed(folder, rng, {role: (name, tables(role)[name]) for role, name in names.items()}, changed)
    return paths["log"], [f"{role}={paths[role]}" for role in ("a", "b")]


# -- cases ---------------------------------------------------------------------------------------------------


def command(folder: Path, rng: Random) -> bool:
    """A command on changed files."""
    kind = rng.choice(("audit", "propensity", "train", "predict", "matrix"))
    if kind == "audit":
        log, models = _audit_files(folder, rng)
        return _accepted("audit", log, *models, "--metric", "mae", "--no-check", *OUT)
    name, data = rng.choice(sorted(tables().items()))
    log = written(folder, name, mutated(data, rng))
    if kind == "propensity":
        return _accepted("propensity", log, "--model", "popularity", "--column", "made", "--out", folder / "p.csv")
    if kind == "train":
        return _accepted("train", log, "--model", "bias", "--out", folder / "m.safetensors")
    stored = {name: mutated(data, rng) for name, data in arrays().items()}
    if kind == "predict":
        model = written(folder, "bias.safetensors", stored["bias.safetensors"])
        return _accepted("predict", model, "--pairs", log, "--out", folder / "out.csv")
    log = written(folder, "log.csv", tables()["plain.csv"])
    models = [
        f"m={written(folder, 'm.npy', stored['matrix.npy'])}",
        f"b={written(folder, 'b.csv', tables('b')['plain.csv'])}",
    ]
    return _accepted("audit", log, *models, "--metric", "mae", "--no-check", *OUT)


def select(folder: Path, rng: Random) -> bool:
    """A choice of models by a changed log, or with changed folds of a run before; such a run ends as it did."""
    data = tables()["plain.csv"]
    folds = rng.random() < 0.3
    log = written(folder, "log.csv", data if folds else mutated(data, rng))
    given = ("select", log, "--model", "bias", "--folds", 2, "--out", folder / "m.safetensors", *OUT)
    if not folds:
        return _accepted(*given)
    kept = folder / "kept"
    before = _ran(*given, "--checkpoint", kept)
    changed = rng.choice(sorted(path for path in kept.rglob("*") if path.is_file()))
    changed.write_bytes(mutated(changed.read_bytes(), rng))
    after = _ran(*given, "--checkpoint", kept)
    if after.exit_code == 0 and after.stdout != before.stdout:
        raise FailureError("oracle", f"{changed.name} changed: {before.stdout!r} and {after.stdout!r}")
    return after.exit_code == 0


def reproduce(folder: Path, rng: Random) -> bool:
    """A study with a changed trial in its cache, which counts as absent: the numbers stay. Whether it was taken."""
    kept, first = _tossed()
    shutil.copytree(kept, folder / "cache")
    trial = rng.choice(sorted(path for path in (folder / "cache").rglob("*") if path.is_file()))
    changed = mutated(trial.read_bytes(), rng)
    trial.write_bytes(changed)
    again = _toss(folder / "cache")
    if again.exit_code != 0 or json.loads(again.stdout) != first:
        raise FailureError("oracle", f"{trial.name} changed: {again.stdout!r} {again.stderr[-300:]!r}")
    return trial.read_bytes() == changed  # else the trial was made again


@cache
def _tossed() -> tuple[Path, Any]:
    kept = Path(mkdtemp(prefix="openloop-fuzz-coins-"))
    return kept, json.loads(_toss(kept).stdout)


def _toss(kept: Path) -> Any:
    with _known_study():
        return _ran("reproduce", "coins", "--workers", 0, "--cache", kept, *OUT)


@contextmanager
def _known_study() -> Iterator[None]:
    before = running.STUDIES
    running.STUDIES, sys.modules["openloop.studies.coins"] = ("coins",), coins
    try:
        yield
    finally:
        running.STUDIES = before
        del sys.modules["openloop.studies.coins"]


def impressions(folder: Path, rng: Random) -> bool:
    """An audit of shuffled impressions, the log or a ranking changed."""
    files = {role: rng.choice(sorted(shown(role).items())) for role in ("log", "a", "b")}
    paths = _one_changed(folder, rng, files, rng.choice(("log", "log", "a", "b")))
    more = rng.choice((("--shuffled", "shuffled"), ("--propensity", "logged"), ()))
    models = [f"{role}={paths[role]}" for role in ("a", "b")]
    return _accepted("audit", paths["log"], *models, "--position", "position", *more, *OUT)


def covariates(folder: Path, rng: Random) -> bool:
    """Propensities from covariates, of users or of items changed; by an audit or alone."""
    files = {side: rng.choice(sorted(features(side).items())) for side in ("user", "item")}
    paths = _one_changed(folder, rng, files, rng.choice(("user", "item")))
    log = written(folder, "log.csv", tables()["plain.csv"])
    given = [word for side in ("user", "item") for word in (f"--{side}-features", paths[side])]
    if rng.random() < 0.5:
        return _accepted(
            "propensity", log, "--model", "logistic", *given, "--column", "made", "--out", folder / "p.csv"
        )
    models = [f"{role}={written(folder, f'{role}.csv', tables(role)['plain.csv'])}" for role in ("a", "b")]
    return _accepted("audit", log, *models, "--propensity", "logistic", *given, "--metric", "mae", "--no-check", *OUT)


def report(folder: Path, rng: Random) -> bool:
    """`openloop report` of a changed audit, at times beside another: a safe page, or one line."""
    asked = [audits.written(folder, rng)]
    if rng.random() < 0.3:
        asked.insert(rng.randrange(2), audits.written(folder, rng, "other.json"))
    page = folder / "page.html"
    found = _ran("report", *asked, "--report", page)
    if (found.exit_code == 0) != page.exists() or found.exit_code not in (0, 2):
        raise FailureError("oracle", f"exit {found.exit_code}, and a page {page.exists()}")
    if found.exit_code:
        _one_line(found.stderr)
        return False
    check_safe(page.read_text(encoding="utf-8"))
    return True


def _one_line(told: str) -> None:
    if told.count("\n") != 1 or len(told) > 2000 or not told.startswith("openloop: "):
        raise FailureError("oracle", f"not one line: {told[:500]!r}")
