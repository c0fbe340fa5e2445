"""The protocol of Lim et al. 2015, section 6: data, folds, the fits of a fold, and which of them are compared.

Of each user's positives a tenth is for validation and a fifth for test, drawn uniformly in each of four folds. Ranks
are among the items that the user does not have in training, for validation and for test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats
from openloop.errors import DivergenceError
from openloop.evaluation import evaluate
from openloop.kernels.violators import violator_weights
from openloop.studies.kit.running import Run
from openloop.studies.kit.statistics import Mean, mean_of
from openloop.studies.kit.trials import Given, Outcome
from openloop.studies.lim2015.published import ADG, AUC, MEASURES, SIZES

SVD = "SVD"

# From which rating, or number of plays, on an item is a positive. From small to large: a quick run takes the first.
POSITIVE = {"ml-100k": 4, "lastfm-hetrec": 3, "ml-1m": 4, "lastfm-msd": 3, "amazon-games": 4, "ml-10m": 4}
AT_MOST = (10_000, 10_000)  # users and items where the paper has no size: those of its last.FM

FACTORS, GAMMA = 50, 100.0
CHOSEN_BY = "adg"
REGS = (0.02, 0.05, 0.1, 0.2, 0.3)
RATES = (0.025, 0.05, 0.1, 0.2, 0.4)
RANKS = (5, 10, 20, 40, 80)
LONGER = 10  # times the updates, to see whether they were enough; with a grid that costs less
LONGER_REGS, LONGER_RATES = (0.05, 0.1, 0.2, 0.3), (0.025, 0.05, 0.1)


# -- the data ------------------------------------------------------------------------------------------------


def densified(user: Array, item: Array, shape: tuple[int, int], most: tuple[int, int]) -> Given:
    """The most liked items, then the users who like most of these: at most `most` users and items, renumbered.

    Each side is counted once: items over all users, users over the items that stay. Among equals the first stay.
    """
    items = _most(np.bincount(item, minlength=shape[1]), most[1])
    stays = np.isin(item, items)
    users = _most(np.bincount(user[stays], minlength=shape[0]), most[0])
    stays &= np.isin(user, users)
    return {
        "user": np.searchsorted(users, user[stays]),
        "item": np.searchsorted(items, item[stays]),
        "shape": np.array([len(users), len(items)]),
    }


def _most(counts: Array, n: int) -> Array:
    return np.sort(np.argsort(-counts, kind="stable")[:n])


def positives(run: Run, name: str) -> tuple[Given, tuple[int, int, int]]:
    """The positives of a data set, densified; and its users, items and positives before."""
    log = run.load(name).log
    liked = log.rating >= POSITIVE[name]
    most = SIZES[name][:2] if name in SIZES else AT_MOST
    shape = log.n_users, log.n_items
    return densified(log.user[liked], log.item[liked], shape, most), (*shape, int(liked.sum()))


def parts(liked: Feedback, rng: np.random.Generator) -> tuple[Feedback, Feedback, Feedback]:
    """Training, validation and test: of each user's n positives n/10 and n/5, rounded, are held out."""
    ptr = liked.user_ptr
    n = np.diff(ptr)[liked.user]
    place = np.empty(len(liked), np.int64)  # among the user's positives, in random order
    place[np.lexsort((rng.random(len(liked)), liked.user))] = np.arange(len(liked)) - ptr[liked.user]
    first = (n + 5) // 10
    last = first + (2 * n + 5) // 10
    return liked.take(place >= last), liked.take(place < first), liked.take((place >= first) & (place < last))


# -- a trial -------------------------------------------------------------------------------------------------


def trial(given: Given, *, seed: int, fold: int, learner: str, **params: Any) -> dict[str, Any]:
    """A fit on the training part of a fold: every user's measures on validation and on test, (measures, U).

    `stepped` is the share of updates that took a step. The outcome of a fit that diverges is empty. In a fold, both
    learners of pairs start from the same factors.
    """
    users, items = given["shape"].tolist()
    ones = np.ones(len(given["user"]), np.float32)
    liked = Feedback.from_arrays(given["user"], given["item"], ones, users=users, items=items)
    train, validation, test = parts(liked, np.random.default_rng([seed, fold, 0]))
    model = _learner(learner, np.random.default_rng([seed, fold, 1]), params)
    try:
        model.fit(train)
    except DivergenceError:
        return {}
    return {
        "validation": by_user(model, validation, train),
        "test": by_user(model, test, train),
        "stepped": np.mean(model.history_[:, 0]) if learner != SVD else np.nan,
    }


def _learner(name: str, rng: np.random.Generator, params: Mapping[str, Any]) -> Any:
    # By module: a trial that names the package as a whole would depend on every learner.
    from openloop.learners.pairwise import ADG as CLIMB_ADG
    from openloop.learners.pairwise import AUC as CLIMB_AUC
    from openloop.learners.pure_svd import PureSVD

    if name == SVD:
        return PureSVD(rng=rng, **params)
    if name == ADG:
        return CLIMB_ADG(FACTORS, gamma=GAMMA, rng=rng, **params)
    return CLIMB_AUC(FACTORS, rng=rng, **params)


def by_user(model: Any, part: Feedback, train: Feedback) -> Array:
    """The measures of each user, (measures, U); NaN for those who have nothing in this part."""
    found = evaluate({"m": model}, part, metrics=MEASURES, estimators=["naive"], exclude=train, threshold=1)
    columns = np.stack([found["m", name, "naive"].columns for name in MEASURES])  # (measures, U, 2): value, 1 or 0, 0
    return np.where(columns[..., 1] > 0, columns[..., 0], np.nan).astype(np.float32)


# -- the fits of a data set ----------------------------------------------------------------------------------


class Competitor(NamedTuple):
    """What is compared: a learner, and its updates (None: it makes none)."""

    learner: str
    updates: int | None = None

    def __str__(self) -> str:
        return self.learner


class Fit(NamedTuple):
    """A setting and what came of it."""

    setting: Mapping[str, Any]
    outcome: Outcome

    @property
    def method(self) -> Competitor:
        """The line of a table that it may be chosen for."""
        return Competitor(self.setting["learner"], self.setting.get("updates"))

    def mean(self, part: str, measure: str) -> float:
        """A measure's mean over the users who have something in the part."""
        return float(np.nanmean(self.outcome[part][MEASURES.index(measure)], dtype=np.float64))


class Fits(NamedTuple):
    """All fits of a data set."""

    name: str
    given: Given
    updates: int
    fits: Sequence[Fit]
    before: tuple[int, int, int]  # users, items and positives before densification

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Users, items and positives."""
        users, items = self.given["shape"].tolist()
        return users, items, len(self.given["user"])

    @property
    def methods(self) -> tuple[Competitor, ...]:
        """MF-AUC, MF-ADG and SVD."""
        return Competitor(AUC, self.updates), Competitor(ADG, self.updates), Competitor(SVD)

    @property
    def longer(self) -> tuple[Competitor, ...]:
        """MF-AUC and MF-ADG with more updates."""
        return Competitor(AUC, LONGER * self.updates), Competitor(ADG, LONGER * self.updates)

    def chosen(self, method: Competitor) -> list[Fit]:
        """In each fold the fit whose setting is best on the validation part."""
        folds: dict[int, list[Fit]] = {fit.setting["fold"]: [] for fit in self.fits}
        for fit in self.fits:
            if fit.method == method and fit.outcome:
                folds[fit.setting["fold"]].append(fit)
        for fold, fits in folds.items():
            if not fits:
                raise DivergenceError(
                    f"lim2015: every fit of {method} on {self.name} diverges in fold {fold}; give RATES smaller steps."
                )
        return [max(fits, key=lambda fit: fit.mean("validation", CHOSEN_BY)) for fits in folds.values()]

    def tried(self, method: Competitor, name: str) -> list[float]:
        """The values of a setting that were tried."""
        return sorted({fit.setting[name] for fit in self.fits if fit.method == method})

    def usual(self, method: Competitor) -> dict[str, Any]:
        """The setting that is chosen in most folds."""
        settings = (((k, v) for k, v in fit.setting.items() if k != "fold") for fit in self.chosen(method))
        return dict(Counter(map(tuple, settings)).most_common(1)[0][0])

    def users(self, method: Competitor, measure: str, part: str = "test") -> Floats:
        """A measure of the chosen fits by user, (folds, U)."""
        at = MEASURES.index(measure)
        return np.stack([fit.outcome[part][at] for fit in self.chosen(method)]).astype(np.float64)


def fits(run: Run, name: str) -> Fits:
    """Every setting in every fold."""
    folds, updates = run.either(4, 2), run.either(1_000_000, 100_000)
    short = product((AUC, ADG), [updates], run.either(REGS, REGS[1:3]), run.either(RATES, RATES[2:4]))
    longer = product(
        (AUC, ADG),
        [LONGER * updates],
        run.either(LONGER_REGS, LONGER_REGS[1:2]),
        run.either(LONGER_RATES, LONGER_RATES[2:]),
    )
    settings = [
        *({"learner": a, "updates": n, "reg": reg, "rate": rate} for a, n, reg, rate in (*longer, *short)),
        *({"learner": SVD, "factors": rank} for rank in run.either(RANKS, RANKS[:2])),
    ]
    asked = [{"seed": run.seed, "fold": fold} | setting for setting in settings for fold in range(folds)]
    given, before = positives(run, name)
    outcomes = run.map(trial, given, asked, what=f"fits on {name}")
    return Fits(name, given, updates, [Fit(*pair) for pair in zip(asked, outcomes, strict=True)], before)


def all_fits(run: Run) -> list[Fits]:
    """Those of every data set that is present; in a quick run, of the smallest."""
    here = run.present(*POSITIVE)
    return [fits(run, name) for name in run.either(here, here[:1])]


def further(run: Run, d: Fits) -> Fits:
    """The usual settings of MF-AUC and MF-ADG in further folds, whose own validation parts have chosen nothing."""
    first = 1 + max(fit.setting["fold"] for fit in d.fits)
    folds = range(first, first + run.either(16, 2))
    asked = [d.usual(method) | {"fold": fold} for method in d.methods[:2] for fold in folds]
    outcomes = run.map(trial, d.given, asked, what=f"further folds of {d.name}")
    return d._replace(fits=[Fit(*pair) for pair in zip(asked, outcomes, strict=True)])


# -- the rank weight -----------------------------------------------------------------------------------------


def weight_range(n_items: int) -> tuple[float, float]:
    """The least and the largest weight C of a violator, which the number of items and γ decide."""
    weights = violator_weights(n_items, GAMMA)
    return float(weights.min()), float(weights.max())


def ranges_told(ranges: Mapping[str, tuple[float, float]]) -> str:
    """The range of C on each data set."""
    return ", ".join(f"{low:.3f} to {high:.3f} on {name}" for name, (low, high) in ranges.items())


# -- statistics ----------------------------------------------------------------------------------------------

LEVEL = 0.05  # of significance, in all tables of this paper
TOO_WIDE = "the intervals are too wide"  # why a claim is open: one is partly inside its band, and none wholly outside


def over_users(a: Floats, b: Floats) -> Mean:
    """a − b over users, both (folds, U): each user's mean over the folds, so that a user counts once."""
    difference = a - b
    return mean_of(difference[:, ~np.isnan(difference).any(axis=0)].mean(axis=0))


def over_folds(values: Floats) -> Mean:
    """Over folds of (folds, U): the mean over users in each."""
    return mean_of(np.nanmean(values, axis=1))
