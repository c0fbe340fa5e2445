"""Table 2 of Lim et al. 2015: what validation says of test, by unbiased measures and by MAP and NDCG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from openloop.audits.contrasts import holm
from openloop.studies.kit.results import Cell, Claim, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.statistics import Mean, mean_of
from openloop.studies.lim2015.protocol import LEVEL, TOO_WIDE, Competitor, Fits, all_fits, further, over_folds
from openloop.studies.lim2015.published import ADG, AUC, SHOWN, TABLE2

UNBIASED, BIASED = ("atop", "adg", "recall@10"), ("map", "ndcg")
PUBLISHED_ON = "ml-10m"
FAR = 10.0  # per cent by which MAP and NDCG should differ at least
NEAR = FAR / 2  # per cent within which the unbiased measures should agree
ERRORS = 2.0  # standard errors that chance may put between our numbers and the paper's

NOTES = (
    (
        "Both parts are measured over the users who have positives in both, so they are paired. The error of a "
        "difference is over users, each user's mean over the folds counting once, and that of the test value it is "
        "divided by is in it."
    ),
    (
        "The difference is (validation − test)/test, as in the paper. λ, rate and rank are those of Table 1. Choosing "
        "on the validation part favours validation slightly. The further folds chose nothing, but a third of their "
        "positives were in a validation part used for choosing."
    ),
    (
        "The paper prints a difference of -20.42 % for the NDCG of MF-ADG, but its 0.3820 and 0.3046 give -20.26 %. "
        "Its other differences follow from its numbers up to rounding (-0.07 and -24.39 % would follow from two of "
        "them as printed, which have -0.06 and -24.38 %)."
    ),
    "Training items leave the ranking in both parts, and nothing else does, so both have the same candidates.",
)


class ValidationAndTest(NamedTuple):
    """A measure of the chosen models on both parts; the difference is in per cent of the test value."""

    test: Mean
    validation: Mean
    percent: Mean
    holm: float = 1.0
    together: int = 1  # differences whose intervals hold at once

    @property
    def limits(self) -> tuple[float, float]:
        """The interval at 95 % that holds together with those of the other differences (Bonferroni)."""
        half = float(ndtri(1 - LEVEL / 2 / self.together)) * self.percent.stderr
        return self.percent.value - half, self.percent.value + half

    @property
    def differs(self) -> bool:
        """Whether there is a difference at all."""
        return self.holm < LEVEL

    @property
    def agrees(self) -> bool:
        """Whether the difference is small for sure."""
        low, high = self.limits
        return low > -NEAR and high < NEAR

    @property
    def disagrees(self) -> bool:
        """Whether the difference is not small for sure."""
        low, high = self.limits
        return low > NEAR or high < -NEAR

    @property
    def far(self) -> bool:
        """Whether validation is lower by a large difference for sure."""
        return self.limits[1] < -FAR

    @property
    def not_far(self) -> bool:
        """Whether validation is not lower by a large difference for sure."""
        return self.limits[0] > -FAR

    @property
    def sizes(self) -> tuple[float, float]:
        """The least and the largest size that the difference may have."""
        low, high = self.limits
        return max(low, -high, 0.0), max(-low, high)


ByMeasure = dict[tuple[str, str, str], ValidationAndTest]  # by data set, measure and learner


def table2(run: Run) -> Result:
    """Validation against test for MF-AUC and MF-ADG."""
    data = all_fits(run)
    found, more = adjusted(compared(data), compared([further(run, d) for d in data]))
    names = [d.name for d in data]
    absent = "" if PUBLISHED_ON in names else " (not rerun: the data are not here)"
    tables = (
        _table("table2", "Test and validation measures of the chosen models", names, found),
        _table("table2-published", f"The paper's Table 2, on MovieLens-10M{absent}", [PUBLISHED_ON], found),
        _table("table2-further", "In further folds, with the settings that were chosen most often", names, more),
    )
    wheres = ((found, "chosen models"), (more, "further folds"))
    claims = [claim for name in names for of in wheres for claim in _claims(name, *of)]
    return Result(
        item="table2", data=tuple(names), tables=tables, claims=(*claims, _everywhere(names, more)),
        notes=(*NOTES, _how_many(len(found) + len(more))),
    )  # fmt: skip


def _how_many(n: int) -> str:
    return (
        f"The {n} differences of both tables are one family: * marks p < {LEVEL} by Holm over all of them, and the "
        "intervals in the claims hold together at 95 % (Bonferroni). Without a significant difference two measures "
        f"may still differ, so another claim asks whether the interval is inside ±{NEAR:g} %, half of the {FAR:g} % by "
        "which MAP and NDCG must differ. Both limits are ours."
    )


def compared(data: Sequence[Fits]) -> ByMeasure:
    """Every measure of both learners on every data set."""
    return {(d.name, m, x.learner): validation_and_test(d, x, m) for d in data for m in SHOWN for x in d.methods[:2]}


def adjusted(*tables: ByMeasure) -> list[ByMeasure]:
    """The same, p-values and intervals adjusted over all differences."""
    pvalues = iter(holm([found.percent.pvalue for table in tables for found in table.values()]))
    together = sum(map(len, tables))
    return [
        {key: found._replace(holm=float(next(pvalues)), together=together) for key, found in table.items()}
        for table in tables
    ]


def validation_and_test(d: Fits, method: Competitor, measure: str) -> ValidationAndTest:
    """Test and validation over the users who have both, and their difference in per cent, not yet adjusted."""
    test, validation = (d.users(method, measure, part) for part in ("test", "validation"))  # (folds, U)
    both = ~np.isnan(test + validation).any(axis=0)
    test, validation = test[:, both], validation[:, both]
    t, v = test.mean(axis=0), validation.mean(axis=0)  # (U,)
    ratio = v.mean() / t.mean() - 1
    # ψ_u of v̄/t̄ is (v_u − (v̄/t̄)·t_u)/t̄, so a sample with the ratio's mean and error is
    sample = ratio + (v - (1 + ratio) * t) / t.mean()
    return ValidationAndTest(over_folds(test), over_folds(validation), mean_of(100 * sample))


def _table(name: str, caption: str, data: Sequence[str], found: ByMeasure) -> Table:
    heads = [f"{learner} {part}" for learner in (AUC, ADG) for part in ("test", "validation", "difference %")]
    published = name == "table2-published"
    rows = [
        (f"{d}, {SHOWN[m]}", *(c for x in (AUC, ADG) for c in _cells(m, x, found.get((d, m, x)), published=published)))
        for d in data
        for m in (*UNBIASED, *BIASED)
    ]
    return Table(
        name=name, caption=caption, columns=("data, measure", *heads), rows=tuple(rows),
        error_is="standard error over users",
    )  # fmt: skip


def _cells(measure: str, learner: str, ours: ValidationAndTest | None, *, published: bool) -> Iterator[Cell]:
    theirs = TABLE2[measure, learner] if published else (None, None, None)
    if ours is None:
        yield from (Value(value=None, published=x, digits=d) for x, d in zip(theirs, (4, 4, 2), strict=True))
        return
    # The paper's numbers have errors like ours, so their difference has √2 times as much.
    allowed = ERRORS * math.sqrt(2)
    for mean, number in ((ours.test, theirs[0]), (ours.validation, theirs[1])):
        yield Value(value=mean.value, published=number, digits=4, tolerance=allowed * mean.stderr)
    percent, mark = ours.percent, "*" if ours.differs else ""
    yield Value(
        value=percent.value, error=percent.stderr, published=theirs[2], digits=2, mark=mark,
        tolerance=allowed * percent.stderr,
    )  # fmt: skip


def _claims(data: str, found: ByMeasure, where: str) -> Iterator[Claim]:
    same, other = ({m: [found[data, m, x] for x in (AUC, ADG)] for m in ms} for ms in (UNBIASED, BIASED))
    near, far = ([p for two in found.values() for p in two] for found in (same, other))
    yield Claim(
        text=f"{data}, {where}: no difference of ATOP, ADG and REC@10 is significant",
        holds=not any(p.differs for p in near),
        found=_listed(same),
    )
    yield Claim(
        text=f"{data}, {where}: ATOP, ADG and REC@10 agree within {NEAR:g} %, with all intervals inside",
        holds=all(p.agrees for p in near),
        found=_limits(same),
        undecided="" if all(p.agrees for p in near) or any(p.disagrees for p in near) else TOO_WIDE,
    )
    yield Claim(
        text=f"{data}, {where}: MAP and NDCG are lower on validation by over {FAR:g} %, with all intervals below",
        holds=all(p.far for p in far),
        found=_limits(other),
        undecided="" if all(p.far for p in far) or any(p.not_far for p in far) else TOO_WIDE,
    )


def _everywhere(names: Sequence[str], found: ByMeasure) -> Claim:
    """The paper's point, on all data at once."""
    unbiased, biased = ([found[d, m, x] for d in names for m in ms for x in (AUC, ADG)] for ms in (UNBIASED, BIASED))
    widest, nearest = max(p.sizes[1] for p in unbiased), min(-p.limits[1] for p in biased)
    fails = max(p.sizes[0] for p in unbiased) >= min(p.sizes[1] for p in biased)
    return Claim(
        text="Further folds, all data: every unbiased measure is nearer to its test value than MAP and NDCG to theirs",
        holds=widest < nearest,
        found=f"ATOP, ADG and REC@10 are within {widest:.1f} %, MAP and NDCG at least {nearest:.1f} % lower, by "
        "intervals that hold together",
        gist="on validation, ATOP, ADG and REC@10 are nearer to their test values than MAP and NDCG to theirs",
        undecided="" if widest < nearest or fails else TOO_WIDE,
    )


def _listed(found: dict[str, list[ValidationAndTest]]) -> str:
    percents = {
        m: " and ".join(f"{p.percent.value:+.2f} ± {p.percent.stderr:.2f} %" for p in two) for m, two in found.items()
    }
    return "; ".join(f"{SHOWN[m]} {text}" for m, text in percents.items())


def _limits(found: dict[str, list[ValidationAndTest]]) -> str:
    limits = {m: " and ".join("{:+.1f} to {:+.1f} %".format(*p.limits) for p in two) for m, two in found.items()}
    return "; ".join(f"{SHOWN[m]} {text}" for m, text in limits.items())
