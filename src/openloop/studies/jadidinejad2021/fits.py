"""Which models are fitted to which splits of a data set, and the trials that come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback
from openloop.studies.jadidinejad2021.methods import HeldOutCells
from openloop.studies.jadidinejad2021.models import WHOLE, family_of, names, relevant, trial
from openloop.studies.jadidinejad2021.scores import RankedCells, stacked
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Given, Outcome

SPLITS = {"coat": 10, "yahoo-r3": 2}  # the data sets of the paper that have an open loop

# What is fitted on the larger data sets: all of the zoo that takes seconds a model.
FAMILIES = ("GA", "MostPop", "BO", "MF", "SVD", "WMF", "MMMF", "BPR", "WBPR")
SIZES = (10, 20, 50, 100)
SINGLE = ("PMFL10", "PMFNL10")
QUICK = ("GA", "MostPop", "BO", "MF", "SVD", "WMF", "BPR", "WBPR")  # in one size

WMF = "WMF"  # the family without which numbers are given too

QUICK_ZOO = ("GA", "MostPop", "BO", "MF", "SVD", "WMF", "MMMF", "BPR")  # those that take a tenth of a second
QUICK_ZOO_SIZES = (10, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFits:
    """Models, and their trials by split; with an open loop those of the whole log too."""

    given: Given
    models: tuple[str, ...]
    outcomes: Mapping[int, Sequence[Outcome]]
    splits: int
    seed: int

    @property
    def n_users(self) -> int:
        """The users of the log."""
        return int(self.given["shape"][0])

    @property
    def has_open_loop(self) -> bool:
        """Whether there is one."""
        return "open_user" in self.given

    def held_out(self, split: int) -> HeldOutCells:
        """The held-out part of a split under its models."""
        return HeldOutCells.of(self.given, self.outcomes[split], split, self.seed)

    def open_cells(self, split: int) -> RankedCells:
        """The relevant cells of the open loop under the models of a split, or of the WHOLE log."""
        return stacked(self.outcomes[split], "open", *relevant(self.given), self.n_users)


def fitted(run: Run, what: str, given: Mapping[str, Array], models: Sequence[str], splits: int) -> ModelFits:
    """Every model on the training part of each split; with an open loop on the whole log too, as the code does."""
    wanted = [*range(splits), *([WHOLE] if "open_user" in given else [])]
    settings = [{"model": model, "split": split, "seed": run.seed} for split in wanted for model in models]
    found = iter(run.map(trial, given, settings, f"{what}: fitting models"))
    outcomes = {split: [next(found) for _ in models] for split in wanted}
    return ModelFits(given=given, models=tuple(models), outcomes=outcomes, splits=splits, seed=run.seed)


def without(family: str, models: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which of the models are of another family, (M,)."""
    return np.array([family_of(model) != family for model in models])


def zoo_names(run: Run) -> tuple[str, ...]:
    """All 104 models; in a quick run a few that fit fast."""
    from openloop.learners import zoo_models

    return run.either(names(zoo_models.FAMILIES, zoo_models.SIZES), names(QUICK_ZOO, QUICK_ZOO_SIZES))


def larger_data_names(run: Run) -> tuple[str, ...]:
    """The models of the data sets that are larger than Coat."""
    return run.either((*names(FAMILIES, SIZES), *SINGLE), names(QUICK, (10,)))


def sample(log: Feedback, users: int, items: int, rng: np.random.Generator) -> Feedback:
    """The rows of so many users and items, drawn at random, over the users and items that they show."""
    kept = [np.zeros(n, bool) for n in (log.n_users, log.n_items)]
    for mask, size in zip(kept, (users, items), strict=True):
        mask[rng.choice(len(mask), min(size, len(mask)), replace=False)] = True
    rows = np.flatnonzero(kept[0][log.user] & kept[1][log.item])
    user, item = (np.unique(codes[rows], return_inverse=True)[1].astype(np.int32) for codes in (log.user, log.item))
    return Feedback.from_arrays(user, item, log.rating[rows])
