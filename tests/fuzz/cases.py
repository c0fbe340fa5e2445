"""One case of each kind: a changed file, what reads it, and what came of it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
from polars.exceptions import PanicException

import openloop as ol
from openloop.data.datasets.unpacking import unpack
from openloop.errors import OpenloopError
from openloop.studies.kit.kept_arrays import digest_of, keep, kept
from tests.fuzz import commands
from tests.fuzz.mutator import mutated, written
from tests.fuzz.oracles import FailureError, difference
from tests.fuzz.seeds import archives, arrays, tables


@dataclass(slots=True)
class Counts:
    """What came of the cases."""

    tried: int = 0
    refused: int = 0
    accepted: int = 0
    tracebacks: int = 0
    oracle: int = 0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"tried {self.tried:,}  refused {self.refused:,}  accepted {self.accepted:,}  "
            f"tracebacks {self.tracebacks}  oracle differences {self.oracle}"
        )


def reading(folder: Path, rng: Random) -> bool:
    """`ol.read` of a changed log; whether it was accepted."""
    name, data = rng.choice(sorted(tables().items()))
    data = mutated(data, rng)
    path = written(folder, name, data)
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
    path = written(folder, name, mutated(data, rng))
    try:
        ol.load(path)
    except OpenloopError:
        return False
    return True


def archive(folder: Path, rng: Random) -> bool:
    """The unpacking of a changed archive."""
    name, data = rng.choice(sorted(archives().items()))
    path = written(folder, "download", mutated(data, rng))
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


CASES: dict[str, Callable[[Path, Random], bool]] = {
    "read": reading, "model": model_file, "archive": archive, "cache": cache, "command": commands.command,
    "select": commands.select, "reproduce": commands.reproduce,
    "impressions": commands.impressions, "covariates": commands.covariates, "report": commands.report,
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
