"""The fits of the factorial experiment: its cells on some of the positives, settings chosen on a lattice.

A cell says where the other item is drawn, what weight a violator has, and whether to draw once or until there is one.
All cells take equally many gradient steps. MF-AUC is also fitted with as many updates as MF-ADG needed for its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats
from openloop.kernels.pair_design import Budget, PairCell, pair_updates
from openloop.kernels.violators import Likes, alias_table, rows
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Given, Outcome, Trial
from openloop.studies.lim2015.protocol import CHOSEN_BY, FACTORS, GAMMA, SVD, Fit, by_user, parts, positives
from openloop.studies.lim2015.published import MEASURES

POPULARITY = "popularity"
SCALE = 0.03  # of the random start, that of the learners
MOST = 30  # updates for a gradient step, after which a fit ends short of its steps


# -- a trial -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowModel:
    """A model of rows [V 1] and [W b]: a score is one product."""

    V: Array
    W: Array

    def scores(self, users: Any) -> Array:
        """Of all items for these users, (B, I)."""
        return self.V[users] @ self.W.T

    def factor_arrays(self) -> tuple[Array, Array, None]:
        """For ranks that need no block of scores."""
        return self.V, self.W, None


def cell_trial(
    given: Given, *, seed: int, fold: int, most: int, cell: Sequence[bool], budget: Sequence[int],
    rate: float, reg: float,
) -> Outcome:  # fmt: skip
    """A fit by a cell on at most `most` of each user's training positives (0: all), as `trial` measures it.

    `budget` holds gradient steps and updates; `tally` what was done: updates, steps, Σ of weights and of hinges.
    """
    train, validation, test = _parts(given, seed, fold)
    V, W, tally = fitted(
        at_most(train, most, np.random.default_rng([seed, fold, 2])),
        PairCell(*cell), Budget(rate, reg, *budget), np.random.default_rng([seed, fold, 1]),
    )  # fmt: skip
    if not (np.isfinite(V).all() and np.isfinite(W).all()):
        return {}
    return _measured(RowModel(V, W), train, validation, test) | {"tally": np.array(tally)}


def baseline_trial(given: Given, *, seed: int, fold: int, most: int, learner: str, **params: Any) -> Outcome:
    """The same for popularity and SVD."""
    from openloop.learners.baselines import Popularity
    from openloop.learners.pure_svd import PureSVD

    train, validation, test = _parts(given, seed, fold)
    few = at_most(train, most, np.random.default_rng([seed, fold, 2]))
    rng = np.random.default_rng([seed, fold, 1])
    model = PureSVD(rng=rng, **params) if learner == SVD else Popularity()
    return _measured(model.fit(few), train, validation, test)


def _parts(given: Given, seed: int, fold: int) -> tuple[Feedback, Feedback, Feedback]:
    users, items = given["shape"].tolist()
    ones = np.ones(len(given["user"]), np.float32)
    liked = Feedback.from_arrays(given["user"], given["item"], ones, users=users, items=items)
    return parts(liked, np.random.default_rng([seed, fold, 0]))


def _measured(model: Any, train: Feedback, validation: Feedback, test: Feedback) -> Outcome:
    # All training items leave the ranking, whether the model saw them or not: every fit ranks the same candidates.
    return {"validation": by_user(model, validation, train), "test": by_user(model, test, train)}


def at_most(train: Feedback, n: int, rng: np.random.Generator) -> Feedback:
    """At most n positives per user, drawn at random; fewer are a part of more. 0: all."""
    if n == 0:
        return train
    place = np.empty(len(train), np.int64)  # among the user's positives, in random order
    order = np.lexsort((rng.random(len(train)), train.user))
    place[order] = np.arange(len(train)) - train.user_ptr[train.user]
    return train.take(place < n)


def fitted(train: Feedback, cell: PairCell, budget: Budget, rng: np.random.Generator) -> tuple[Array, Array, Any]:
    """[V 1], [W b] and the tally; a fold's cells start from the same factors, as the learners do."""
    ptr = train.user_ptr.astype(np.int64)
    counts = np.diff(ptr)
    drawn = (counts > 0) & ((counts < train.n_items) | (not cell.unliked))
    likes = Likes(np.flatnonzero(drawn).astype(np.int32), ptr, train.item, *alias_table(ptr, np.ones(len(train))))
    user, item = (
        np.float32(SCALE) * rng.standard_normal((n, FACTORS), np.float32) for n in (train.n_users, train.n_items)
    )
    user[counts == 0] = 0
    V, W = rows(user, 1.0), rows(item, 0.0)
    start = rng.integers(2**64, dtype=np.uint64)
    return V, W, pair_updates(V, W, FACTORS, likes, cell, GAMMA, budget, start)


# -- settings on a lattice -----------------------------------------------------------------------------------

Point = tuple[int, ...]


class Lattice(NamedTuple):
    """Settings 2^point apart: where to begin, the bounds of a point, and the setting that it is."""

    start: tuple[Point, ...]
    low: Point
    high: Point
    setting: Callable[[Point], Mapping[str, Any]]

    def around(self, point: Point) -> Iterable[Point]:
        """The point and its neighbours, diagonal ones too, within bounds."""
        steps = product((-1, 0, 1), repeat=len(point))
        near = (tuple(x + d for x, d in zip(point, step, strict=True)) for step in steps)
        return [p for p in near if all(a <= x <= b for a, x, b in zip(self.low, p, self.high, strict=True))]


def rate_and_reg(point: Point) -> Mapping[str, Any]:
    """η = 0.1·2^a and λ = 0.05·2^b."""
    return {"rate": 0.1 * 2.0 ** point[0], "reg": 0.05 * 2.0 ** point[1]}


def rank(point: Point) -> Mapping[str, Any]:
    """Rank 2^a."""
    return {"factors": 2 ** point[0]}


RATES_AND_REGS = Lattice(tuple(product((0, 1), (-2, -1, 0, 1, 2))), (-4, -5), (4, 4), rate_and_reg)
SHORT_RATES_AND_REGS = Lattice(((0, -1), (0, 1)), (0, -1), (0, 1), rate_and_reg)
SVD_RANKS = Lattice(((3,), (4,), (5,)), (0,), (8,), rank)
SHORT_SVD_RANKS = Lattice(((3,), (4,)), (3,), (4,), rank)
NO_SETTING = Lattice(((),), (), (), lambda _: {})


class SettingSearch(NamedTuple):
    """The best fit of a task, and every setting that was tried."""

    best: Fit
    tried: tuple[Mapping[str, Any], ...]

    @property
    def ended_short(self) -> bool:
        """Whether the fit ended at its limit of updates, before it had its steps."""
        steps, updates = self.best.setting["budget"]
        return updates > steps > self.best.outcome["tally"][1]


def lattice_search(
    run: Run, trial: Trial, given: Given, tasks: Sequence[Mapping[str, Any]], lattice: Lattice, what: str
) -> list[SettingSearch]:
    """For each task the setting that is best on validation, after all its neighbours on the lattice were tried too."""
    tried: list[dict[Point, float]] = [{} for _ in tasks]
    best: list[tuple[Point, Outcome] | None] = [None] * len(tasks)
    while asked := [(k, p) for k, b in enumerate(best) for p in _untried(lattice, tried[k], b and b[0])]:
        settings = [{**tasks[k], **lattice.setting(p)} for k, p in asked]
        for (k, p), outcome in zip(asked, run.map(trial, given, settings, what=what), strict=True):
            tried[k][p] = _validation(outcome)
            top = best[k]
            if top is None or tried[k][p] > tried[k][top[0]]:
                best[k] = p, outcome
    return [_search(lattice, *each) for each in zip(tasks, tried, best, strict=True)]


def _untried(lattice: Lattice, tried: Mapping[Point, float], best: Point | None) -> list[Point]:
    return [p for p in (lattice.start if best is None else lattice.around(best)) if p not in tried]


def _validation(outcome: Outcome) -> float:
    return Fit({}, outcome).mean("validation", CHOSEN_BY) if outcome else -np.inf  # a fit that diverged is the worst


def _search(lattice: Lattice, task: Mapping[str, Any], tried: Mapping[Point, float], best: Any) -> SettingSearch:
    point, outcome = best
    return SettingSearch(Fit({**task, **lattice.setting(point)}, outcome), tuple(lattice.setting(p) for p in tried))


# -- the experiment ------------------------------------------------------------------------------------------

ALL = 0  # positives per user: no limit
LEVELS = (12, 25, 50, ALL)
STEPS = 500_000
CELLS = tuple(PairCell(*switches) for switches in product((False, True), repeat=3))
OF_ADG, OF_AUC = PairCell(unliked=False, weighted=True, until=True), PairCell(unliked=True, weighted=False, until=False)
# MF-ADG and MF-AUC with one of the three parts of MF-ADG: half of the design; and MF-AUC.
HALF = tuple(cell for cell in CELLS if sum(a == b for a, b in zip(cell, OF_ADG, strict=True)) in (0, 1, 3))
HALVED = ("ml-1m",)  # the data on which only these cells are fitted
EQUAL_UPDATES = "MF-AUC, equal updates"  # as many as MF-ADG needed for its steps

Arm = PairCell | str


class ArmFits(NamedTuple):
    """All arms of the experiment on a data set: for each number of positives and arm, a search in each fold."""

    name: str
    given: Given
    levels: tuple[int, ...]
    arms: tuple[Arm, ...]
    found: Mapping[tuple[int, Arm], Sequence[SettingSearch]]

    @property
    def cells(self) -> list[PairCell]:
        """The arms that are cells of the design."""
        return [arm for arm in self.arms if isinstance(arm, PairCell)]

    def users(self, level: int, arm: Arm, measure: str, part: str = "test") -> Floats:
        """A measure of the chosen fits by user, (folds, U)."""
        at = MEASURES.index(measure)
        return np.stack([s.best.outcome[part][at] for s in self.found[level, arm]]).astype(np.float64)


def all_arms(run: Run, name: str) -> ArmFits:
    """Every arm on every number of positives, in two folds."""
    given, _ = positives(run, name)
    levels, folds, steps = run.either(levels_of(given), (12, 0)), range(2), run.either(STEPS, 10_000)
    cells = HALF if name in HALVED else CELLS
    found: dict[tuple[int, Arm], list[SettingSearch]] = {}

    def search(arms: Sequence[Arm], trial: Trial, lattice: Lattice, more: Callable[..., Mapping[str, Any]]) -> None:
        keys = list(product(levels, arms, folds))
        tasks = [{"seed": run.seed, "fold": k, "most": n, **more(n, arm, k)} for n, arm, k in keys]
        results = lattice_search(run, trial, given, tasks, lattice, f"on {name}")
        for (n, arm, _), result in zip(keys, results, strict=True):
            found.setdefault((n, arm), []).append(result)

    def updates(n: int, _arm: Arm, fold: int) -> Mapping[str, Any]:
        needed = int(found[n, OF_ADG][fold].best.outcome["tally"][0])
        return {"cell": OF_AUC, "budget": [needed, needed]}

    rates = run.either(RATES_AND_REGS, SHORT_RATES_AND_REGS)
    search(cells, cell_trial, rates, lambda _n, cell, _k: {"cell": cell, "budget": [steps, MOST * steps]})
    search([EQUAL_UPDATES], cell_trial, rates, updates)
    search([SVD], baseline_trial, run.either(SVD_RANKS, SHORT_SVD_RANKS), lambda *_: {"learner": SVD})
    search([POPULARITY], baseline_trial, NO_SETTING, lambda *_: {"learner": POPULARITY})
    return ArmFits(name, given, levels, (*cells, EQUAL_UPDATES, SVD, POPULARITY), found)


def levels_of(given: Given) -> tuple[int, ...]:
    """The numbers of positives that are fewer than some user has for training, and all."""
    most = int(training_positives(given).max())
    return tuple(level for level in LEVELS if level < most)


def training_positives(given: Given) -> Array:
    """How many positives of each user `parts` leaves for training, (U,)."""
    n = np.bincount(given["user"])
    return n - (n + 5) // 10 - (2 * n + 5) // 10


def positives_told(level: int) -> str:
    """How many positives per user are kept."""
    return "all positives" if level == ALL else f"{level} positives"
