"""`Checkpoint`: finished folds in files of a folder, named after all that their numbers depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from openloop.core.estimate import Estimate
from openloop.core.totals import Shifted
from openloop.core.weights import Diagnostics
from openloop.errors import FormatError, InputError
from openloop.selection.marks import digest, mark
from openloop.support.atomic import FilePath, replacing
from openloop.support.version import VERSION

FORMAT = 1
ARRAYS = {"value": 0, "influence": 1, "deviations": 1, "units": 0, "users": 0}  # of an estimate, with their dimensions


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A folder of finished folds; `question` is what all of them answer: log, folds, metric and estimator.

    Files appear whole or not at all, and none is ever deleted. One whose name is right and whose content is not is
    refused. Threads may share a checkpoint.
    """

    folder: Path
    question: str

    @classmethod
    def of(cls, folder: FilePath, **question: Any) -> Checkpoint:
        """The checkpoint in a folder, which is made where there is none."""
        path = Path(folder).expanduser()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"select: checkpoint= must be a folder, and {str(path)!r} cannot be made ({error.strerror}); "
                "pass another one."
            ) from error
        return cls(folder=path, question=digest(mark({"format": FORMAT, "openloop": VERSION} | question, "select")))

    def file(self, learner: Any, fold: int) -> Path:
        """The file of a learner's fold."""
        return self.folder / f"select-{self._key(learner, fold)}.npz"

    def read(self, learner: Any, fold: int) -> Estimate | str | None:
        """What was kept of a learner's fold: its estimate, why there is none, or None where nothing was kept."""
        file = self.file(learner, fold)
        if not file.exists():
            return None
        try:
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as held:
                return _outcome({name: held[name] for name in held.files}, self._key(learner, fold))
        except (OSError, ValueError, EOFError, KeyError, BadZipFile, NotImplementedError) as error:
            raise FormatError(
                f"{file}: is damaged, or not what select kept; delete it, and its fold is computed again."
            ) from error

    def keep(self, learner: Any, fold: int, outcome: Estimate | str) -> None:
        """Write what came of a learner's fold."""
        held: dict[str, Any] = {"problem": outcome} if isinstance(outcome, str) else _fields(outcome)
        held["key"] = self._key(learner, fold)
        with replacing(self.file(learner, fold)) as temporary, temporary.open("wb") as out:
            np.savez(out, **held)

    def _key(self, learner: Any, fold: int) -> str:
        return digest(f"{self.question}, {mark(learner, 'learner')}, fold {fold}")


def _fields(estimate: Estimate) -> dict[str, Any]:
    """What value and standard error of a mean over folds are made of."""
    return {
        "value": np.float64(estimate.value), "influence": estimate.influence, "deviations": estimate.deviations,
        "units": estimate.units, "users": estimate.diagnostics.users,
        "method": estimate.method, "metric": estimate.metric,
    }  # fmt: skip


def _outcome(held: Mapping[str, Any], key: str) -> Estimate | str:
    if str(held["key"]) != key:
        raise ValueError(f"it says that it is {held['key']}")
    if "problem" in held:
        return str(held["problem"])
    odd = [name for name, ndim in ARRAYS.items() if held[name].ndim != ndim or held[name].dtype.kind not in "fiu"]
    if odd or held["influence"].shape != held["deviations"].shape:
        raise ValueError(f"{odd or ['influence']} has another shape")
    J = held["deviations"]
    found = Estimate(
        value=float(held["value"]), influence=held["influence"], deviations=J, units=int(held["units"]),
        columns=J[:, None], function=Shifted(float(held["value"])), method=str(held["method"]),
        metric=str(held["metric"]), diagnostics=Diagnostics(n=0, users=int(held["users"])),
    )  # fmt: skip
    return found.linear()
