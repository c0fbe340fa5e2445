"""The race as the lineage runs it: no offsets, labels for ratings, their loss; beside the race's own way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from openloop.learners.doubly_robust import DR
from openloop.learners.mf import MF
from openloop.studies.kit.results import Cell, Claim, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Given, Outcome
from openloop.studies.race.coat import coat_ground
from openloop.studies.race.entrants import CROSSED, LOGISTIC_REGS, RACERS, mf, raced
from openloop.studies.race.finishing import LABELS, Standing, counts_of, finishes, standing
from openloop.studies.race.measures import AUC, NDCG_ONE
from openloop.studies.race.protocol import Entrant, Start, predicted, settled, starting
from openloop.studies.race.published import DIFFERS, PRINTED, beside

SEEDS = 3
LABEL = LABELS[0]
NO_OFFSETS = 1e9  # a penalty that leaves none
SQUARED_REGS = (0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)  # of squared errors of labels, which are smaller than of stars


def _logistic(start: Start) -> MF:
    return mf(start, loss="logistic", bias_reg=NO_OFFSETS)


def _squared(start: Start) -> MF:
    return mf(start, bias_reg=NO_OFFSETS)


def _as_coded(start: Start, weights: Any = "dr-jl") -> DR:
    reg = settled(Entrant(_squared, {"reg": SQUARED_REGS}), start).chosen["reg"]
    imputation = mf(start, reg=reg, bias_reg=NO_OFFSETS)
    return DR(
        start.factors, bias_reg=NO_OFFSETS, imputation=imputation, weights=weights, variant="as_coded", folds=CROSSED,
        threads=1, rng=start.seed,
    )  # fmt: skip


def _mrdr(start: Start) -> DR:
    return _as_coded(start, "mrdr")


def _dr_mse(start: Start) -> DR:
    return _as_coded(start, "dr-mse")


def _tdr(start: Start) -> DR:
    return _as_coded(start).set_params(targeted=True)


def _of_labels(learner: Any, regs: tuple[float, ...], printed: str, **options: Any) -> Entrant:
    return Entrant(learner, {"reg": regs}, learns="label", rates=False, printed=printed, **options)


# By the race's own entrants; without offsets, on labels, and with their loss.
THEIRS: dict[str, Entrant] = {
    "MF naive": _of_labels(_logistic, LOGISTIC_REGS, "Naive", weighted=False),
    "MF-IPS": _of_labels(_logistic, LOGISTIC_REGS, "IPS"),
    "MF-SNIPS": _of_labels(_logistic, LOGISTIC_REGS, "SNIPS", estimator="snips"),
    "DR-JL": _of_labels(_as_coded, SQUARED_REGS, "DR-JL"),
    "MRDR": _of_labels(_mrdr, SQUARED_REGS, "MRDR"),
    "DR-MSE": _of_labels(_dr_mse, SQUARED_REGS, "DR-MSE"),
}
# The same with targeted errors, which need p of all cells.
TARGETED: dict[str, Entrant] = {"TDR": _of_labels(_tdr, SQUARED_REGS, "TDR-JL")}


def raced_as_published(given: Given, *, entrant: str, label: int, seed: int, quick: bool) -> Outcome:
    """A trial: an entrant as the lineage has it, selected on the log, and its predictions of the test cells."""
    start = starting(given, label=label, seed=seed, quick=quick)
    return predicted(settled(THEIRS[entrant], start), given)


def targeted_as_published(given: Given, *, entrant: str, label: int, seed: int, quick: bool) -> Outcome:
    """A trial: the same of a targeted learner."""
    start = starting(given, label=label, seed=seed, quick=quick)
    return predicted(settled(TARGETED[entrant], start), given)


def as_published(run: Run) -> Result:
    """Both ways on Coat, labels from 3 stars on."""
    ground, seeds = coat_ground(run.load("coat")), run.either(SEEDS, 1)
    counts = counts_of(run, ground.test)
    theirs = [
        *finishes(run, raced_as_published, ground, THEIRS, seeds),
        *finishes(run, targeted_as_published, ground, TARGETED, seeds),
    ]
    ours = finishes(run, raced, ground, {one.name: RACERS[one.name] for one in theirs}, seeds)
    without, with_offsets = (
        {one.name: standing(ground.test, one, LABEL, ground.everywhere, counts) for one in found}
        for found in (theirs, ours)
    )
    return Result(
        item="as_published",
        data=("coat",),
        tables=(_table({**THEIRS, **TARGETED}, without, with_offsets),),
        claims=tuple(claims({**THEIRS, **TARGETED}, without, with_offsets)),
        notes=(*NOTES, DIFFERS),
    )


def _table(theirs: Mapping[str, Entrant], without: Mapping[str, Standing], ours: Mapping[str, Standing]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for who, entrant in theirs.items():
        auc, ndcg = without[who][AUC], without[who][NDCG_ONE]
        gap = ours[who][AUC] - auc
        rows.append((
            who, beside(entrant.printed, "auc", auc.value, auc.half), Value(value=ours[who][AUC].value),
            str(gap), beside(entrant.printed, "ndcg", ndcg.value, ndcg.half), Value(value=ours[who][NDCG_ONE].value),
        ))  # fmt: skip
    return Table(
        name="race-as-published",
        caption="Coat, labels from 3 stars on, all test cells: without offsets, of labels and with the papers' loss; "
        "and as in the race: with offsets, of ratings, with the textbook's loss. In brackets what the papers print",
        columns=("", "AUC, as published", "AUC, race", "race less this", "nDCG@5, as published", "nDCG@5, race"),
        rows=tuple(rows), error_is="half-width of the 95 % interval over resampled users",
    )  # fmt: skip


def claims(
    theirs: Mapping[str, Entrant], without: Mapping[str, Standing], ours: Mapping[str, Standing]
) -> Iterator[Claim]:
    """What offsets and ratings are worth, and that the published numbers are in reach without them."""
    gaps = {who: ours[who][AUC] - without[who][AUC] for who in theirs}
    yield Claim(
        text="every learner of this table has a higher AUC with offsets, ratings and the textbook's loss than as "
        "published (95 % intervals, paired over users)",
        holds=all(gap.interval[0] > 0 for gap in gaps.values()),
        found="; ".join(f"{who} {gap}" for who, gap in gaps.items()),
    )
    near = {who: without[who][AUC].value - PRINTED[entrant.printed].auc for who, entrant in theirs.items()}
    yield Claim(
        text="without offsets our AUC is within 0.03 of what the papers print for the same method, for every learner "
        "of this table",
        holds=all(abs(by) <= 0.03 for by in near.values()),
        found="; ".join(f"{who} {by:+.3f}" for who, by in near.items()),
    )


NOTES = (
    (
        "As published: MF without offsets (λ of offsets 10⁹, the mean stays), fitted to labels from 3 stars on; MF by "
        "the logistic loss, the doubly robust ones by squared errors of labels and the papers' loss Σ_O e/p − Σ_O ê "
        "+ Σ_D ê, "
        'whose second term should be ê/p (`DR(variant="as_coded")`; TDR: `targeted=True` too). Propensities and '
        "selection are the race's own: published p of Coat, settings by cross-validation on the log."
    ),
    (
        "Why the other learners are not in this table: StableDR-like is this study's own sketch of an idea, not the "
        "published algorithm; means and Bias are nothing but offsets; logistic MF of the race is MF of this table with "
        "offsets; recalibration and stacks are not in the papers; and for RelMF the papers behind these numbers "
        "print none on Coat."
    ),
)
