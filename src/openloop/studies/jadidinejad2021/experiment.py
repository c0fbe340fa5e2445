"""The experiment of table 6, figures 3 and 4: every model in every split, by every method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.studies.jadidinejad2021 import agreement, methods
from openloop.studies.jadidinejad2021.agreement import Agreement
from openloop.studies.jadidinejad2021.fits import SPLITS, ModelFits, fitted, zoo_names
from openloop.studies.jadidinejad2021.methods import HeldOutCells, Method
from openloop.studies.jadidinejad2021.models import given_of, stream
from openloop.studies.jadidinejad2021.open_loop import targets
from openloop.studies.jadidinejad2021.scores import Scores
from openloop.studies.jadidinejad2021.strata_rule import number_of_strata
from openloop.studies.kit.results import Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Given

COLUMNS = {"outside": "ours", "all": "ours, training items ranked"}
QUICK_SPLITS = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluatedSplit:
    """One split: what is held out, every method on it, and the open loop under the same models."""

    held: HeldOutCells
    methods: dict[str, Method]  # all, by column and name
    targets: dict[str, Method]  # the open loop, in each sense of TARGETS
    numbers: dict[str, dict[str, int]]  # how many strata the rule chooses, by column and propensity


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Experiment:
    """A data set with an open loop, and where every model ranks what users liked, in every split."""

    name: str
    fits: ModelFits
    splits: tuple[EvaluatedSplit, ...]
    p: dict[str, Floats]
    eq7: Floats

    def goals(self, k: int | None, target: str = "published") -> Floats:
        """What the open loop says of the models, in one sense, by split, (R, M)."""
        return np.array([split.targets[target](k).value for split in self.splits])

    def scores(self, method: str, k: int | None) -> Floats:
        """What a method says of the models, by split, (R, M)."""
        return np.array([split.methods[method](k).value for split in self.splits])

    def agreement(self, draws: int) -> Agreement:
        """τ of nDCG by every method with every target."""
        weighted = agreement.weightings(self.fits.n_users, stream(self.fits.seed, "users"), draws)
        each = ((_scorers(split.methods), _scorers(split.targets)) for split in self.splits)
        return agreement.agreement_of(each, weighted)

    def agreement_by(
        self, methods: Callable[[EvaluatedSplit], dict[str, Method]], draws: int, k: int | None = None
    ) -> Agreement:
        """The same, or nDCG@k, by the methods that a function makes of each split, with the open loop as published."""
        weighted = agreement.weightings(self.fits.n_users, stream(self.fits.seed, "users"), draws)
        each = ((_scorers(methods(split), k), _scorers(split.targets, k)) for split in self.splits)
        return agreement.agreement_of(each, weighted, ("published",))


def _scorers(named: dict[str, Method], k: int | None = None) -> dict[str, Callable[[], Scores]]:
    return {name: partial(method, k) for name, method in named.items()}


# -- running it ----------------------------------------------------------------------------------------------


def experiment(run: Run, name: str) -> Experiment:
    """Fit what is not kept yet, and evaluate it."""
    data = run.load(name)
    fits = fitted(run, name, given_of(data.log, data.open_loop), zoo_names(run), run.either(SPLITS[name], QUICK_SPLITS))
    side = {"user_covariates": data.user_covariates, "item_covariates": data.item_covariates}
    more: dict[str, Array] = {key: c.values for key, c in side.items() if c is not None}
    return evaluated(run, name, fits, given_of(data.log) | more)


def evaluated(run: Run, name: str, fits: ModelFits, log: Given) -> Experiment:
    """The experiment from its fits; propensities are those of the `log`, with covariates where there are any."""
    kinds = ("eq7", *methods.PROPENSITIES)
    found = run.map(methods.propensity, log, [{"kind": kind} for kind in kinds], f"{name}: propensities")
    eq7, *grids = (outcome["p"] for outcome in found)
    p: dict[str, Floats] = dict(zip(methods.PROPENSITIES, grids, strict=True))
    splits = tuple(_evaluated_split(fits, split, eq7, p) for split in range(fits.splits))
    return Experiment(name=name, fits=fits, splits=splits, eq7=eq7, p=p)


def _evaluated_split(fits: ModelFits, split: int, eq7: Floats, p: dict[str, Floats]) -> EvaluatedSplit:
    held = fits.held_out(split)
    numbers = {
        column: {
            name: number_of_strata(held, methods.grid_of(held, grid), among, fits.seed)[0] for name, grid in p.items()
        }
        for among, column in COLUMNS.items()
    }
    found = {f"as coded: {name}": method for name, method in methods.coded(held).items()}
    found |= {f"as printed: {name}": method for name, method in methods.printed(held, eq7).items()}
    for among, column in COLUMNS.items():
        found |= {f"{column}: {name}": m for name, m in methods.ours(held, p, among, numbers[column]).items()}
    return EvaluatedSplit(held=held, methods=found, targets=targets(fits, split), numbers=numbers)


# -- results -------------------------------------------------------------------------------------------------


def by_data_set(
    run: Run, about: Callable[[Experiment], Result], published: Callable[[str], Table] | None = None
) -> Result:
    """An item: what is said about the experiment on each data set with an open loop that is present.

    Of a data set that is not, the table of `published` numbers.
    """
    here = run.present(*SPLITS)
    found = merged([about(experiment(run, name)) for name in here])
    absent = [] if published is None else [published(name) for name in SPLITS if name not in here]
    return replace(found, tables=(*found.tables, *absent))


def merged(results: Sequence[Result]) -> Result:
    """One result of several, part after part; a note that they share is given once."""

    def every(field: str) -> tuple[Any, ...]:
        return tuple(chain.from_iterable(getattr(result, field) for result in results))

    parts = {field: every(field) for field in ("data", "tables", "figures", "claims")}
    return replace(results[0], **parts, notes=tuple(dict.fromkeys(every("notes"))))


def over_splits(
    values: Floats, published: float | None = None, digits: int = 3, mark: str = "", *, judged: bool = True
) -> Value:
    """Mean and standard deviation over splits, (R,).

    The paper has one split, so a published number may be as far from our mean as one more split, and rounding.
    """
    allowed = None if published is None else float(one_more(values)) + 0.5 * 10**-digits
    return Value(
        value=values.mean(), error=values.std(ddof=1), published=published, digits=digits, mark=mark, tolerance=allowed,
        judged=judged,
    )  # fmt: skip


def one_more(values: Floats) -> Floats:
    """How far one more draw may be from the mean of the draws, (R, …): the 95 % limits t(0.975, R − 1)·s·√(1 + 1/R)."""
    from scipy.special import stdtrit

    draws = len(values)
    return stdtrit(draws - 1, 0.975) * values.std(axis=0, ddof=1) * np.sqrt(1 + 1 / draws)
