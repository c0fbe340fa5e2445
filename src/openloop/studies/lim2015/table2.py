"""Table 2 of Lim et al. 2015: what validation says of test, by unbiased measures and by MAP and NDCG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from openloop.studies.kit.results import Cell, Claim, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.statistics import Mean
from openloop.studies.lim2015.protocol import Competitor, Fits, all_fits, further, over_folds, over_users
from openloop.studies.lim2015.published import ADG, AUC, SHOWN, TABLE2

UNBIASED, BIASED = ("atop", "adg", "recall@10"), ("map", "ndcg")
PUBLISHED_ON = "ml-10m"
NEAR, FAR = 2.0, 10.0  # per cent
ERRORS = 2.0  # standard errors that chance may put between two unbiased measures

NOTES = (
    (
        "Both parts are measured over the users who have positives in both, so that they are paired, and the error of "
        "a difference is over users, each user's mean over the folds counting once."
    ),
    (
        "The difference is (validation − test)/test, as in the paper. λ, step and rank are those of Table 1, chosen "
        "on the validation part: that favours validation, if by little. In the further folds no validation part of "
        "their own has chosen anything, though about a third of their positives stood in a validation part that did; "
        "and more folds leave less to chance."
    ),
    (
        "The paper prints a difference of -20.42 % for the NDCG of MF-ADG, but its 0.3820 and 0.3046 give -20.26 %; "
        "its other differences follow from its numbers up to the rounding of these (-0.07 and -24.39 % would follow "
        "from two of them as printed, which have -0.06 and -24.38 %)."
    ),
    "Training items leave the ranking in both parts, and nothing else does, so that both have the same candidates.",
)


class ValidationAndTest(NamedTuple):
    """A measure of the chosen models on both parts."""

    test: Mean
    validation: Mean
    difference: Mean

    @property
    def percent(self) -> float:
        """The difference in per cent of the test value."""
        return 100 * self.difference.value / self.test.value

    @property
    def error(self) -> float:
        """Its standard error in per cent of the test value."""
        return 100 * self.difference.stderr / self.test.value

    @property
    def agrees(self) -> bool:
        """Whether chance explains the difference, or it is small."""
        return abs(self.percent) <= max(NEAR, ERRORS * self.error)


ByMeasure = dict[tuple[str, str, str], ValidationAndTest]  # by data set, measure and learner


def table2(run: Run) -> Result:
    """Validation against test for MF-AUC and MF-ADG."""
    data = all_fits(run)
    found = compared(data)
    more = compared([further(run, d) for d in data])
    names = [d.name for d in data]
    tables = (
        _table("table2", "Test and validation measures of the chosen models", names, found),
        _table("table2-published", "The paper's Table 2, on MovieLens-10M", [PUBLISHED_ON], found),
        _table("table2-further", "In further folds, with the settings that were chosen most often", names, more),
    )
    claims = [_claims(name, *of) for name in names for of in ((found, "chosen models"), (more, "further folds"))]
    return Result(
        item="table2", data=tuple(names), tables=tables,
        claims=tuple(claim for two in claims for claim in two), notes=NOTES,
    )  # fmt: skip


def compared(data: Sequence[Fits]) -> ByMeasure:
    """Every measure of both learners on every data set."""
    return {(d.name, m, x.learner): validation_and_test(d, x, m) for d in data for m in SHOWN for x in d.methods[:2]}


def validation_and_test(d: Fits, method: Competitor, measure: str) -> ValidationAndTest:
    """Test and validation over the users who have both."""
    test, validation = (d.users(method, measure, part) for part in ("test", "validation"))  # (folds, U)
    both = ~np.isnan(test + validation).any(axis=0)
    test, validation = test[:, both], validation[:, both]
    return ValidationAndTest(over_folds(test), over_folds(validation), over_users(validation, test))


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
    # The paper's numbers have errors like ours, so that their difference has √2 times as much.
    allowed = ERRORS * math.sqrt(2)
    for mean, number in ((ours.test, theirs[0]), (ours.validation, theirs[1])):
        yield Value(value=mean.value, published=number, digits=4, tolerance=allowed * mean.stderr)
    tolerance = allowed * ours.error
    yield Value(value=ours.percent, error=ours.error, published=theirs[2], digits=2, tolerance=tolerance)


def _claims(data: str, found: ByMeasure, where: str) -> tuple[Claim, Claim]:
    same = {m: [found[data, m, learner] for learner in (AUC, ADG)] for m in UNBIASED}
    other = {m: [found[data, m, learner] for learner in (AUC, ADG)] for m in BIASED}
    agree = Claim(
        text=f"{data}, {where}: ATOP, ADG and REC@10 agree within {NEAR:g} % or {ERRORS:g} standard errors",
        holds=all(p.agrees for two in same.values() for p in two),
        found=_listed(same),
    )
    differ = Claim(
        text=f"{data}, {where}: MAP and NDCG differ by over {FAR:g} %",
        holds=all(abs(p.percent) > FAR for two in other.values() for p in two),
        found=_listed(other),
    )
    return agree, differ


def _listed(found: dict[str, list[ValidationAndTest]]) -> str:
    percents = {m: " and ".join(f"{p.percent:+.2f} ± {p.error:.2f} %" for p in two) for m, two in found.items()}
    return "; ".join(f"{SHOWN[m]} {text}" for m, text in percents.items())
