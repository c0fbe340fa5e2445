"""Three leaks of the usual protocol on Coat, each shown: tuning on the test set, its labels in p, nDCG = 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Feedback, Floats
from openloop.core.metric import reaches
from openloop.learners.mf import MF
from openloop.propensity.naive_bayes import NaiveBayes
from openloop.selection import select
from openloop.studies.kit.results import Cell, Claim, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.statistics import half_width
from openloop.studies.kit.trials import Given
from openloop.studies.race import measures
from openloop.studies.race.coat import coat_ground
from openloop.studies.race.entrants import BASELINE, RACERS, raced
from openloop.studies.race.finishing import LABELS, Finish, Ground, Standing, counts_of, finishes, standing
from openloop.studies.race.measures import AUC, MAE, MSE, NDCG, NDCG_ONE
from openloop.studies.race.protocol import RATINGS, Entrant, starting
from openloop.studies.race.published import printed_step

SEEDS = 3
LABEL = LABELS[0]
TRIED, QUICK_TRIED = 100, 6  # random settings per draw
TUNINGS, QUICK_TUNINGS = 12, 3  # draws of so many settings
HALVES = 10  # of the test users, for each draw
SHARE = 0.05  # of the test ratings, for naive Bayes
SPLITS, QUICK_SPLITS = 10, 3  # of the test users, for naive Bayes from one half
SETTINGS, HALVING, SAMPLING, SPLITTING = range(31, 35)  # streams of draws


def leaks(run: Run) -> Result:
    """The three of them."""
    ground = coat_ground(run.load("coat"))
    tuned = tuning(run, ground)
    by_p, own, finished = from_test(run, ground), own_stars(run, ground), ones(run, ground)
    return Result(
        item="leaks",
        data=("coat",),
        tables=(_tuning_table(tuned, run), _from_test_table(by_p), _ones_table(ground.test, finished)),
        claims=tuple(claims(tuned, own)),
        notes=(*NOTES, _ones_note(ground.test, finished[RANDOM])),
    )


# -- tuning on the test set ----------------------------------------------------------------------------------


def random_settings(given: Given, *, draw: int, number: int, seed: int, quick: bool) -> dict[str, npt.NDArray[Any]]:
    """A trial: random settings of MF, each one's error by cross-validation on the log, and predictions of the test."""
    start, rng = starting(given, label=RATINGS, seed=seed, quick=quick), np.random.default_rng([seed, SETTINGS, draw])
    drawn = [_drawn(rng) for _ in range(number)]
    weighted = rng.random(number) < 0.5
    errors, predictions = np.empty(number), np.empty((number, len(given["test_user"])), np.float32)
    learner = MF(threads=1, rng=seed)
    for use in (False, True):
        rows = np.flatnonzero(weighted == use)
        if len(rows) == 0:
            continue
        grid = [drawn[row] for row in rows]
        found = select(
            learner, start.log, grid=grid, metric="mse", estimator="ips", folds=start.folds, weighted=use, threads=1,
            rng=seed,
        )  # fmt: skip
        errors[rows] = found.table["value"].to_numpy()
        for row, setting in zip(rows, grid, strict=True):
            w = 1 / np.asarray(start.log.propensity) if use else None
            model = MF(**setting, threads=1, rng=seed).fit(start.log, w)
            predictions[row] = model.predict(given["test_user"], given["test_item"])
    return {"error": errors, "prediction": predictions}


def _drawn(rng: np.random.Generator) -> dict[str, Any]:
    """d from 2 to 32, λ and that of offsets from 1 to 50, all even in their logarithms."""
    d, reg, bias_reg = np.exp(rng.uniform(np.log([2, 1, 1]), np.log([33, 50, 50])))
    return {"factors": int(d), "reg": float(reg), "bias_reg": float(bias_reg)}


class Tuned(NamedTuple):
    """What tuning on the test set gains over selection on the log, one number per draw."""

    chosen: Floats  # by cross-validation on the log, tested on all users
    gain: Floats  # of the best on the test set, tested on it
    tuned_half: Floats  # of the best on half the test users, tested on these
    other_half: Floats  # and on the others


def tuning(run: Run, ground: Ground) -> dict[str, Tuned]:
    """By AUC and nDCG@5."""
    number = run.either(TRIED, QUICK_TRIED)
    asked = [
        {"draw": draw, "number": number, "seed": run.seed, "quick": run.quick}
        for draw in range(run.either(TUNINGS, QUICK_TUNINGS))
    ]
    found = run.map(random_settings, ground.given, asked, "random settings of MF")
    U = ground.test.n_users
    rng = np.random.default_rng([run.seed, HALVING])
    half = np.array([rng.permutation(U) < U // 2 for _ in range(HALVES)], np.float64)
    counts = np.concatenate([np.ones((1, U)), half, 1 - half])  # (1 + 2H, U)
    tables = {metric: [_table(ground.test, o["prediction"], metric, counts) for o in found] for metric in (AUC, NDCG)}
    errors = [outcome["error"] for outcome in found]
    return {metric: _tuned(errors, values) for metric, values in tables.items()}


def _table(test: Feedback, predictions: npt.NDArray[Any], metric: str, counts: Floats) -> Floats:
    """The metric of each setting, for all users, halves and other halves: (settings, 1 + 2H)."""
    positive = reaches(test.rating, LABEL)
    forms = (measures.ranking(test.user, score, positive, test.n_users)[metric] for score in predictions)
    return np.array([form.over(counts) for form in forms])


def _tuned(errors: Sequence[Floats], tables: Sequence[Floats]) -> Tuned:
    def one(error: Floats, table: Floats) -> tuple[float, float, float, float]:
        on_log, H = int(np.argmin(error)), HALVES
        gains = table - table[on_log]  # (settings, 1 + 2H)
        whole, first, second = gains[:, 0], gains[:, 1 : 1 + H], gains[:, 1 + H :]
        best = first.argmax(axis=0)  # (H,)
        at = np.arange(H)
        return table[on_log, 0], whole.max(), float(first[best, at].mean()), float(second[best, at].mean())

    return Tuned(*np.array([one(*pair) for pair in zip(errors, tables, strict=True)]).T)


def _tuning_table(found: Mapping[str, Tuned], run: Run) -> Table:
    number, draws = run.either(TRIED, QUICK_TRIED), run.either(TUNINGS, QUICK_TUNINGS)
    rows: list[tuple[Cell, ...]] = [
        (metric, *(Value(value=sample.mean(), error=half_width(sample), digits=4) for sample in tuned))
        for metric, tuned in found.items()
    ]
    return Table(
        name="race-leak-tuning",
        caption=f"Tuning on the test set: {number} random settings of MF, labels from {LABEL} stars on, mean of "
        f"{draws} draws of them; what the best on the test set gains over the one that cross-validation on the log "
        "chooses, and what the best on half of the test users gains on these and on the others",
        columns=("", "chosen on the log", "gain by tuning on test", "on the half tuned on", "on the other half"),
        rows=tuple(rows), error_is="half-width of the 95 % interval over draws",
    )  # fmt: skip


# -- propensities from test labels ---------------------------------------------------------------------------

NO_P = "MF naive, selected naively"
OF_COVARIATES, OF_SOME, OF_ALL = (
    f"{BASELINE}, published p",
    f"{BASELINE}, naive Bayes from 5 % of the test",
    f"{BASELINE}, naive Bayes from all of the test",
)
SHOWN = (MSE, MAE, AUC, NDCG)


def from_test(run: Run, ground: Ground) -> dict[str, Standing]:
    """MF without propensities, with honest ones, and with those that know the stars of the test set."""
    rng, truth = np.random.default_rng([run.seed, SAMPLING]), ground.test.rating
    some = truth[rng.choice(len(truth), round(SHARE * len(truth)), replace=False)]
    counts, ips = counts_of(run, ground.test), {BASELINE: RACERS[BASELINE]}
    p = {OF_COVARIATES: ground.p, OF_SOME: _bayes(ground.log, some), OF_ALL: _bayes(ground.log, truth)}
    told = {name: _standing(run, replace(ground, p=given), ips, counts)[BASELINE] for name, given in p.items()}
    return {**_standing(run, ground, {NO_P: RACERS[NO_P]}, counts), **told}


def _bayes(log: Feedback, sample: npt.NDArray[Any]) -> Floats:
    return NaiveBayes().fit(log, uniform=sample).predict(log).used


def _standing(run: Run, ground: Ground, entrants: Mapping[str, Entrant], counts: Floats) -> dict[str, Standing]:
    found = finishes(run, raced, ground, entrants, run.either(SEEDS, 1))
    return {one.name: standing(ground.test, one, LABEL, ground.everywhere, counts) for one in found}


def _from_test_table(found: Mapping[str, Standing]) -> Table:
    others = (found[NO_P], found[OF_COVARIATES])
    rows: list[tuple[Cell, ...]] = [
        (name, *(Value(value=metrics[m].value) for m in SHOWN), *(_less(metrics, other) for other in others))
        for name, metrics in found.items()
    ]
    return Table(
        name="race-leak-bayes",
        caption=f"Propensities from test ratings, tested on these; labels from {LABEL} stars on, selected on the log",
        columns=("", *SHOWN, "MSE, less no p", "MSE, less published p"), rows=tuple(rows),
    )  # fmt: skip


def _less(one: Standing, other: Standing) -> str:
    return "" if one is other else str(one[MSE] - other[MSE])


class OwnStars(NamedTuple):
    """MSE on half of the test users of MF-IPS with naive Bayes from a half, one number per split of the users.

    Each is the mean of both halves in the tested one's place.
    """

    own: Floats  # from the half that is tested
    other: Floats  # from the users that are not tested


def own_stars(run: Run, ground: Ground) -> OwnStars:
    """What it is worth that the shares of stars are those of the very users that are tested; one seed."""
    rng, test = np.random.default_rng([run.seed, SPLITTING]), ground.test
    halves = [_halved(test.n_users, rng) for _ in range(run.either(SPLITS, QUICK_SPLITS))]
    errors = np.array([[_tested(run, ground, half, counts) for half in counts] for counts in halves])  # (S, 2, 2)
    return OwnStars(np.einsum("sff->s", errors) / 2, np.einsum("sft,ft->s", errors, 1 - np.eye(2)) / 2)


def _halved(users: int, rng: np.random.Generator) -> Floats:
    half = rng.permutation(users) < users // 2
    return np.array([half, ~half], np.float64)  # (2, U)


def _tested(run: Run, ground: Ground, half: Floats, counts: Floats) -> Floats:
    """MSE, for each of these counts of users, of MF-IPS with naive Bayes from the ratings of one half, (B,)."""
    test = ground.test
    there = replace(ground, p=_bayes(ground.log, test.rating[half[test.user] > 0]))
    (found,) = finishes(run, raced, there, {BASELINE: RACERS[BASELINE]}, 1)
    return measures.rating(test.user, found.predictions[RATINGS][0], test.rating, test.n_users)[MSE].over(counts)


# -- nDCG = 1 ------------------------------------------------------------------------------------------------

RANDOM = "random order"


def ones(run: Run, ground: Ground) -> dict[str, Finish]:
    """What is ranked: nothing at all, popularity, and MF-IPS."""
    entrants = {name: RACERS[name] for name in ("popularity", BASELINE)}
    found = {one.name: one for one in finishes(run, raced, ground, entrants, run.either(SEEDS, 1))}
    blank = {RATINGS: np.zeros((1, len(ground.test)))}
    return {RANDOM: Finish(name=RANDOM, entrant=RACERS["popularity"], predictions=blank, chosen=()), **found}


def _inflation(test: Feedback, finish: Finish, label: int) -> tuple[float, float]:
    """nDCG@5 without users that have no positives, and with these as 1."""
    here = standing(test, finish, label, np.ones(len(test), np.bool_), np.ones((1, test.n_users)))
    return here[NDCG].value, here[NDCG_ONE].value


def _ones_table(test: Feedback, found: Mapping[str, Finish]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for label in LABELS:
        none = test.n_users - len(np.unique(test.user[reaches(test.rating, label)]))
        for name, finish in found.items():
            out, one = _inflation(test, finish, label)
            rows.append((f"{name}, from {label} stars on", none, *(Value(value=v) for v in (out, one, one - out))))
    return Table(
        name="race-leak-ones",
        caption=f"nDCG@5 with the users who have no positives left out, and counted as 1; {test.n_users} users",
        columns=("", "users without positives", "left out", "counted as 1", "more by counting"), rows=tuple(rows),
    )  # fmt: skip


# -- claims --------------------------------------------------------------------------------------------------


def claims(tuned: Mapping[str, Tuned], own: OwnStars) -> Iterator[Claim]:
    """What tuning on the test set does, and stars of the tested users in p."""
    auc, step = tuned[AUC], printed_step()
    yield Claim(
        text=f"tuning on the test set buys more AUC than {step:.3f}, by which a published row typically leads the next "
        "(lower limit over draws)",
        holds=bool(auc.gain.mean() - half_width(auc.gain) > step),
        found=f"{auc.gain.mean():+.4f} ± {half_width(auc.gain):.4f}",
    )
    lost, half = auc.tuned_half - auc.other_half, half_width(auc.tuned_half - auc.other_half)
    yield Claim(
        text="part of the AUC that tuning gains on half of the test users is lost on the other half (95 % interval of "
        "the loss above 0, over draws)",
        holds=bool(lost.mean() - half > 0),
        found=f"of {auc.tuned_half.mean():+.4f}, {lost.mean():.4f} ± {half:.4f} is lost",
    )
    gap = own.own - own.other
    yield Claim(
        text=f"shares of stars from the very users that are tested lower the MSE of {BASELINE} with naive Bayes more "
        "than those of other users (95 % interval below 0, paired over splits)",
        holds=bool(gap.mean() + half_width(gap) < 0),
        found=f"{gap.mean():+.4f} ± {half_width(gap):.4f}, of an MSE of {own.other.mean():.3f}",
    )


def _ones_note(test: Feedback, blank: Finish) -> str:
    """Arithmetic, not a claim: with a share s of users without positives, every nDCG x becomes (1 − s)x + s."""
    label = LABELS[-1]
    s = 1 - len(np.unique(test.user[reaches(test.rating, label)])) / len(np.unique(test.user))
    out, one = _inflation(test, blank, label)
    return (
        "The papers' code gives nDCG 1 to a user without positives, whatever the order. Where a share s of the users "
        "has none, every nDCG x becomes (1 − s)x + s: the order of learners stays, and each difference between two of "
        f"them shrinks by s. With labels from {label} stars on, s is {100 * s:.0f} %, and random order has "
        f"{one:.3f} instead of {out:.3f}."
    )


NOTES = (
    (
        "Tuning: d from 2 to 32, λ and the λ of offsets from 1 to 50, all even in their logarithms, and weights 1/p or "
        "none, drawn at random; selection on the log is by four folds of it, by the IPS estimate of MSE."
    ),
    (
        "Naive Bayes needs shares of stars of uniform ratings, which no log of self-selected ratings shows. The papers "
        "take 5 % of the test set for it, and test on all of it. A gain over no p is not the leak yet: other p "
        "give one too. The leak is what shares of the tested users give beyond those of other users. To measure it, "
        f"the test users are halved {SPLITS} times, naive Bayes takes the ratings of one half, and each half is tested "
        "with both; λ by cross-validation on the log. The interval is over splits of these users."
    ),
)
