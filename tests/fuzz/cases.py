"""One case of each kind: a changed file, what reads it, and what came of it."""

from __future__ import annotations

import json
import math
import shlex
import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from polars.exceptions import PanicException

import openloop as ol
from openloop.data.datasets.unpacking import unpack
from openloop.errors import OpenloopError
from openloop.studies.kit.kept_arrays import digest_of, keep, kept
from tests.cli.running import run
from tests.fuzz import audits
from tests.fuzz.mutator import mutated
from tests.fuzz.oracles import difference
from tests.fuzz.seeds import archives, arrays, tables
from tests.pages import check_safe

CODES = {0, 1, 2, 3}

# What differs from run to run, what only memory mode knows, and what stream mode finds on a grid.
UNSTREAMED = ("created", "seconds", "command", "about", "log", "notes", "sensitivity", "gamma", "rho", "kappa",
              "clipped_share", "kept_weight", "inverse_squares", "flags", "reasons", "paradox",
              "assumption", "headline")  # fmt: skip


@dataclass(slots=True)
class Counts:
    """What came of the cases."""

    tried: int = 0
    refused: int = 0
    accepted: int = 0
    tracebacks: int = 0
    oracle: int = 0
    modes: int = 0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"tried {self.tried:,}  refused {self.refused:,}  accepted {self.accepted:,}  "
            f"tracebacks {self.tracebacks}  oracle differences {self.oracle}  "
            f"differences between memory and stream mode {self.modes}"
        )


class FailureError(Exception):
    """A case that must not be: which count it is, and what happened."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


def _written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def reading(folder: Path, rng: Random) -> bool:
    """`ol.read` of a changed log; whether it was accepted."""
    name, data = rng.choice(sorted(tables().items()))
    data = mutated(data, rng)
    path = _written(folder, name, data)
    try:
        found = ol.read(path)
    except OpenloopError:
        return False
    other = difference(path, data, found)
    if other is not None:
        raise FailureError("oracle", other)
    return True


def model_file(folder: Path, rng: Random) -> bool:
    """`ol.load` of a changed model."""
    name, data = rng.choice([item for item in sorted(arrays().items()) if item[0].endswith(".safetensors")])
    path = _written(folder, name, mutated(data, rng))
    try:
        ol.load(path)
    except OpenloopError:
        return False
    return True


def archive(folder: Path, rng: Random) -> bool:
    """The unpacking of a changed archive."""
    name, data = rng.choice(sorted(archives().items()))
    path = _written(folder, "download", mutated(data, rng))
    (folder / "content").mkdir()
    try:
        unpack(path, name, folder / "content")
    except OpenloopError:
        return False
    return True


def cache(folder: Path, rng: Random) -> bool:
    """A changed outcome in the cache of a study's trials."""
    path, outcome = folder / "trial.npz", {"mae": np.linspace(0, 1, 5), "n": np.arange(3)}
    assert keep(path, outcome) is None
    path.write_bytes(mutated(path.read_bytes(), rng))
    found = kept(path)
    if found is not None and digest_of(found) != digest_of(outcome):
        raise FailureError("oracle", f"kept {outcome!r}, and found {found!r}")
    return found is not None


# -- commands ------------------------------------------------------------------------------------------------


def _ran(*words: object) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that overflow; what matters here is how the command ends
        found = run(*words)
    wrong = found.exception is not None and not isinstance(found.exception, SystemExit)
    if wrong or found.exit_code not in CODES or "Traceback" in found.stderr:
        raise FailureError("tracebacks", f"{shlex.join(map(str, words))}: exit {found.exit_code}, {found.exception!r}")
    return found


def _audit_files(folder: Path, rng: Random) -> tuple[Path, list[str]]:
    """A log and two models, one of the three changed."""
    names = {"log": rng.choice(sorted(tables())), "a": "plain.csv", "b": rng.choice(("plain.csv", "frame.parquet"))}
    if names["log"].startswith(("text", "quoted", "list")):
        names |= {"a": "text.csv", "b": "text.parquet"}
    changed = rng.choice(("log", "log", "a", "b"))
    paths: dict[str, Path] = {}
    for role, name in names.items():
        data = tables(role)[name]
        paths[role] = _written(folder, f"{role}-{name}", mutated(data, rng) if role == changed else data)
    return paths["log"], [f"{role}={paths[role]}" for role in ("a", "b")]


def command(folder: Path, rng: Random) -> bool:
    """A command on changed files."""
    out = ("--json", "-")
    kind = rng.choice(("audit", "propensity", "train", "predict", "matrix"))
    if kind == "audit":
        log, models = _audit_files(folder, rng)
        return _ran("audit", log, *models, "--metric", "mae", "--no-check", *out).exit_code != 2
    name, data = rng.choice(sorted(tables().items()))
    log = _written(folder, name, mutated(data, rng))
    if kind == "propensity":
        return _ran("propensity", log, "--model", "popularity", "--out", folder / "p.csv").exit_code != 2
    if kind == "train":
        return _ran("train", log, "--model", "bias", "--out", folder / "m.safetensors").exit_code != 2
    stored = {name: mutated(data, rng) for name, data in arrays().items()}
    if kind == "predict":
        model = _written(folder, "bias.safetensors", stored["bias.safetensors"])
        return _ran("predict", model, "--pairs", log, "--out", folder / "out.csv").exit_code != 2
    log = _written(folder, "log.csv", tables()["plain.csv"])
    models = [
        f"m={_written(folder, 'm.npy', stored['matrix.npy'])}",
        f"b={_written(folder, 'b.csv', tables('b')['plain.csv'])}",
    ]
    return _ran("audit", log, *models, "--metric", "mae", "--no-check", *out).exit_code != 2


def modes(folder: Path, rng: Random) -> bool:
    """An audit in memory and with rows on disk: the same exit code and the same numbers."""
    log, models = _audit_files(folder, rng)
    words = ("audit", log, *models, "--propensity", "propensity", "--metric", "mae", "--json", "-")
    memory, stream = (_ran(*words, mode) for mode in ("--no-stream", "--stream"))
    if memory.exit_code != stream.exit_code:
        told = f"{memory.exit_code} {memory.stderr[:300]!r} and {stream.exit_code} {stream.stderr[:300]!r}"
        raise FailureError("modes", f"{shlex.join(map(str, words))}: {told}")
    if memory.exit_code in (0, 3):
        other = unlike(json.loads(memory.stdout), json.loads(stream.stdout))
        if other is not None:
            raise FailureError("modes", f"{shlex.join(map(str, words))}: {other}")
    return memory.exit_code in (0, 3)


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


def unlike(a: Any, b: Any, where: str = "") -> str | None:
    """The first number that two audits do not share to 1e-12; what only one mode finds is left out."""
    if isinstance(a, dict) and isinstance(b, dict):
        parts = ((f"{where}/{key}", a[key], b[key]) for key in a if key in b and key not in UNSTREAMED)
    elif isinstance(a, list) and isinstance(b, list):
        parts = ((f"{where}/{at}", x, y) for at, (x, y) in enumerate(zip(a, b, strict=False)))
    elif isinstance(a, float | int) and isinstance(b, float | int):
        return None if math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) else f"{where}: {a!r} and {b!r}"
    else:
        return None
    return next((found for path, x, y in parts if (found := unlike(x, y, path)) is not None), None)


CASES: dict[str, Callable[[Path, Random], bool]] = {
    "read": reading, "model": model_file, "archive": archive, "cache": cache, "command": command, "modes": modes,
    "report": report,
}  # fmt: skip


def tried(kind: str, seed: int, counts: Counts, keep: Path | None = None) -> None:
    """Try one case and count it; the files of one that fails are kept, beside the command that tries it again."""
    folder = Path(tempfile.mkdtemp(prefix="openloop-fuzz-"))
    counts.tried += 1
    try:
        with np.errstate(all="ignore"):
            accepted = CASES[kind](folder, Random(f"{kind} {seed}"))
        counts.accepted += accepted
        counts.refused += not accepted
    except (Exception, PanicException) as error:  # noqa: BLE001, whatever is no OpenloopError is what is looked for
        count = error.kind if isinstance(error, FailureError) else "tracebacks"
        setattr(counts, count, getattr(counts, count) + 1)
        again = f"python -m tests.fuzz --case {kind} --seed {seed}"
        counts.failures.append(f"{again}\n  {type(error).__name__}: {error}")
        if keep is not None:
            target = keep / f"{kind}-{seed}"
            shutil.copytree(folder, target, dirs_exist_ok=True)
            (target / "again.txt").write_text(f"{counts.failures[-1]}\n", encoding="utf-8", errors="backslashreplace")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
