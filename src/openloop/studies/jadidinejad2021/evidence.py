"""What table 6 and figures 3 and 4 rest on: all models in all splits, the open loop, propensities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.studies.jadidinejad2021 import agreement, ways
from openloop.studies.jadidinejad2021.agreement import Agreement
from openloop.studies.jadidinejad2021.methods import Cells, Scored, stacked
from openloop.studies.jadidinejad2021.models import (
    WHOLE,
    Given,
    given_of,
    names,
    relevant,
    shown,
    split_of,
    stream,
    trial,
)
from openloop.studies.jadidinejad2021.ways import Held, Method
from openloop.studies.kit.running import Run

SPLITS = {"coat": 10, "yahoo-r3": 2}
COLUMNS = {"outside": "ours", "all": "ours, training items ranked"}
QUICK_SPLITS = 2
QUICK_FAMILIES = ("GA", "MostPop", "BO", "MF", "SVD", "WMF", "MMMF", "BPR")  # those that take a tenth of a second
QUICK_SIZES = (10, 50)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Round:
    """One split: what is held out, and the open loop under the same models."""

    held: Held
    own: Cells
    in_train: Array
    methods: dict[str, Method]  # all, by column and name
    numbers: dict[str, dict[str, int]]  # how many strata the rule chooses, by column and propensity


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """A data set with an open loop, and where every model ranks what users liked, in every split."""

    name: str
    models: tuple[str, ...]
    given: Given
    rounds: tuple[Round, ...]
    refitted: Cells  # the open loop under models that the whole log taught, without users and items that it lacks
    in_log: Array  # which of these cells are in the log too
    p: dict[str, Floats]
    eq7: Floats
    seed: int

    def targets(self, part: Round, k: int | None) -> dict[str, Scored]:
        """The open loop in each sense of TARGETS."""
        return agreement.targets(part.own, self.refitted, self.in_log, part.in_train, k)

    def agreement(self, k: int | None, draws: int, halves: int) -> Agreement:
        """τ of every method with every target."""
        weighted = agreement.weightings(int(self.given["shape"][0]), stream(self.seed, "users"), draws, halves)
        each = ((_scorers(part.methods, k), self.targets(part, k)) for part in self.rounds)
        return agreement.agreement(each, weighted)


def _scorers(methods: dict[str, Method], k: int | None) -> dict[str, Callable[[], Scored]]:
    return {name: partial(method, k) for name, method in methods.items()}


def evidence(run: Run, name: str) -> Evidence:
    """Fit what is not kept yet, and gather it."""
    data = run.load(name)
    given = given_of(data.log, data.open_loop)
    chosen = zoo_names(run)
    splits = range(run.either(SPLITS[name], QUICK_SPLITS))
    settings = [{"model": m, "split": s, "seed": run.seed} for s in (WHOLE, *splits) for m in chosen]
    found = run.map(trial, given, settings, f"{name}: fitting models")
    parts = [found[at : at + len(chosen)] for at in range(0, len(found), len(chosen))]
    side = {"user_covariates": data.user_covariates, "item_covariates": data.item_covariates}
    more: dict[str, Array] = {key: c.values for key, c in side.items() if c is not None}
    return assembled(run, name, given, chosen, parts, given_of(data.log) | more)


def assembled(
    run: Run, name: str, given: Given, chosen: Sequence[str], parts: Sequence[Sequence[dict[str, Array]]], log: Given
) -> Evidence:
    """The evidence from the outcomes of trials: of the whole log first, then of each split."""
    user, item = relevant(given)
    n_users = int(given["shape"][0])
    kinds = ("eq7", *ways.PROPENSITIES)
    eq7, *p = run.map(ways.propensity, log, [{"kind": kind} for kind in kinds], f"{name}: propensities")
    grids = {kind: found["p"] for kind, found in zip(ways.PROPENSITIES, p, strict=True)}
    rounds = tuple(
        _round(_held(given, s, run.seed, part), stacked(part, "open", user, item, n_users), eq7["p"], grids, run.seed)
        for s, part in enumerate(parts[1:])
    )
    known = shown(given, split_of(given, WHOLE, run.seed), user, item)
    refitted = stacked(parts[0], "open", user, item, n_users).where(known)
    return Evidence(
        name=name, models=tuple(chosen), given=given, rounds=rounds, eq7=eq7["p"], p=grids, seed=run.seed,
        refitted=refitted, in_log=_there(given, None, refitted.user, refitted.item),
    )  # fmt: skip


def zoo_names(run: Run) -> tuple[str, ...]:
    """All 104 models; in a quick run a few that fit fast."""
    from openloop.learners.zoo_models import FAMILIES, SIZES

    return run.either(names(FAMILIES, SIZES), names(QUICK_FAMILIES, QUICK_SIZES))


def _held(given: Given, split: int, seed: int, found: Sequence[dict[str, Array]]) -> Held:
    part = split_of(given, split, seed)
    cells = stacked(found, "closed", *relevant(given, part.test), int(given["shape"][0]))
    return Held(given=given, split=part, cells=cells)


def _round(held: Held, own: Cells, eq7: Floats, p: dict[str, Floats], seed: int) -> Round:
    numbers = {
        column: {name: ways.number_of_strata(held, ways.grid_of(held, g), among, seed)[0] for name, g in p.items()}
        for among, column in COLUMNS.items()
    }
    found = {f"as coded: {name}": method for name, method in ways.coded(held).items()}
    found |= {f"as printed: {name}": method for name, method in ways.printed(held, eq7).items()}
    for among, column in COLUMNS.items():
        found |= {f"{column}: {name}": m for name, m in ways.ours(held, p, among, numbers[column]).items()}
    in_train = _there(held.given, held.split.train, own.user, own.item)
    return Round(held=held, own=own, in_train=in_train, methods=found, numbers=numbers)


def _there(given: Given, rows: Array | None, user: Array, item: Array) -> Array:
    """Which of the cells are among these rows of the log, or anywhere in it."""
    items = int(given["shape"][1])
    keep = slice(None) if rows is None else rows
    log = given["user"][keep].astype(np.int64) * items + given["item"][keep]
    return np.isin(user.astype(np.int64) * items + item, log)
