"""Table 1 of Lim et al. 2015: MF-AUC, MF-ADG and a rank-k SVD, what is significant, and what his IDCG would do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from openloop.audits.contrasts import holm
from openloop.metrics.ranking import ideal_discount
from openloop.studies.kit.results import Cell, Claim, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.statistics import Mean
from openloop.studies.lim2015.protocol import (
    LONGER,
    RANKS,
    RATES,
    REGS,
    Competitor,
    Fits,
    all_fits,
    over_folds,
    over_users,
)
from openloop.studies.lim2015.published import ADG, AUC, MEASURES, SHOWN, SIZES, TABLE1, TOP

LEVEL = 0.05
LEAST_RATIO = math.log2(3)  # of NDCG as printed to ADG, for any model and any user: that of one relevant item

NOTES = (
    (
        f"λ ({', '.join(map(str, REGS))}) and the first step ({', '.join(map(str, RATES))}; it falls in a straight "
        "line to 0) are chosen in each fold by ADG on the validation part, for both learners; the paper says only that "
        "λ was chosen by performance on the validation set, and nothing of steps. The rank of the SVD "
        f"({', '.join(map(str, RANKS))}) is chosen in the same way. Another table chooses by each measure itself."
    ),
    (
        "An update of MF-AUC draws one item, and takes a step only if that one violates the margin, so that it may "
        "need more than the paper's 1,000,000 updates: another table has ten times as many."
    ),
    (
        "Where the data are not the paper's, its last.FM's size holds: at most 10,000 items, those with most "
        "positives, and then at most 10,000 users, those with most of these. The paper does not say in which order, "
        "or how often, it cut; here it is once, items first. Its 9,888 users of MovieLens-10M have 72 positives each, "
        "in a data set of 10,000,054 ratings by 69,878 users, 143 each: these can hardly be the users with most "
        "reviews, so that ours will be others."
    ),
    (
        "Of a user's n positives n/10 and n/5 are held out, rounded to the nearest; a user with fewer than 5 has no "
        "validation part, with fewer than 3 no test part, and is then not measured there."
    ),
    (
        "Which test stands behind the paper's bold type is not said. Folds share their users and most of their "
        "training rows, so that a t-test over four folds is no test of independent repetitions. Here users are the "
        "sample: a user's paired difference is the mean over the folds, and p-values are adjusted by Holm over all "
        "differences shown."
    ),
    (
        "The paper's IDCG sums 1/log2(j + 2) from j = 1, where ranks from 0 ask for j = 0: a perfect ranking would "
        "have an NDCG above 1. Ours is the textbook's. As printed, NDCG is at least log2(3) = 1.585 times ADG "
        "whatever the model; the paper's own numbers for Amazon Games and last.FM are below that, so that they were "
        "not computed as printed."
    ),
)


def table1(run: Run) -> Result:
    """MF-AUC, MF-ADG and a rank-k SVD."""
    data = all_fits(run)
    contrasts = all_contrasts(data)
    tables = (_sizes(data), *_measures(data), _differences(contrasts), _misprinted(data))
    claims = (*(claim for d in data for claim in _pattern(d, contrasts)), _textbook())
    return Result(
        item="table1", data=tuple(d.name for d in data),
        tables=tables, claims=claims, notes=NOTES,
    )  # fmt: skip


# -- tests ---------------------------------------------------------------------------------------------------


class PairedDifference(NamedTuple):
    """A paired difference a − b of two methods on a data set: over users, with Holm's p-value, and over folds."""

    data: str
    a: Competitor
    b: Competitor
    measure: str
    users: Mean
    folds: Mean
    holm: float = 1.0

    @property
    def better(self) -> bool:
        """Whether a is significantly better."""
        return self.holm < LEVEL and self.users.value > 0

    @property
    def worse(self) -> bool:
        """Whether a is significantly worse."""
        return self.holm < LEVEL and self.users.value < 0

    def value(self) -> Value:
        """As a cell of a table."""
        mark = ("*" if self.holm < LEVEL else "") + ("†" if self.folds.pvalue < LEVEL else "")
        return Value(value=self.users.value, error=self.users.stderr, digits=4, mark=mark)


def all_contrasts(data: Sequence[Fits]) -> list[PairedDifference]:
    """Every pair on every measure, p-values adjusted over all."""
    found = [contrast(d, a, b, measure) for d in data for a, b in _pairs(d) for measure in MEASURES]
    adjusted = holm([c.users.pvalue for c in found])
    return [c._replace(holm=float(p)) for c, p in zip(found, adjusted, strict=True)]


def _pairs(d: Fits) -> tuple[tuple[Competitor, Competitor], ...]:
    auc, adg, svd = d.methods
    return (adg, auc), (svd, auc), (svd, adg), (d.longer[1], d.longer[0])


def contrast(d: Fits, a: Competitor, b: Competitor, measure: str) -> PairedDifference:
    """The paired difference of two methods, not yet adjusted."""
    of_a, of_b = d.users(a, measure), d.users(b, measure)  # (folds, U)
    return PairedDifference(d.name, a, b, measure, over_users(of_a, of_b), over_folds(of_a - of_b))


# -- tables --------------------------------------------------------------------------------------------------


def _sizes(data: Sequence[Fits]) -> Table:
    ours = {d.name: (*d.given["shape"].tolist(), len(d.given["user"])) for d in data}
    rows = [
        (name, *(_count(ours, name, at) for at in range(3))) for name in (*ours, *(s for s in SIZES if s not in ours))
    ]
    return Table(
        name="sizes", caption="The data, densified", columns=("data", "users", "items", "positives"), rows=tuple(rows)
    )


def _count(ours: dict[str, tuple[int, ...]], name: str, at: int) -> Value:
    return Value(
        value=ours[name][at] if name in ours else None, published=SIZES[name][at] if name in SIZES else None, digits=0
    )


def _measures(data: Sequence[Fits]) -> Iterator[Table]:
    columns = ("data, method", *SHOWN.values())
    settings = "λ and step, or rank, of each fold"
    own = [d for d in data if d.name not in SIZES]
    updates = data[0].updates
    shared = {"error_is": "standard error over folds"}
    if own:
        rows = tuple((*_row(d, m), _settings(d, m)) for d in own for m in d.methods)
        caption = f"Test measures after {updates:,} updates"
        yield Table(name="table1", caption=caption, columns=(*columns, settings), rows=rows, **shared)
    caption = "The paper's Table 1, on its own data"
    rows = tuple(_published_row(data, name, learner) for name, learner in TABLE1)
    yield Table(name="table1-published", caption=caption, columns=columns, rows=rows, **shared)
    caption = f"Test measures after {LONGER * updates:,} updates"
    rows = tuple((*_row(d, m), _settings(d, m)) for d in data for m in d.longer)
    yield Table(name="table1-longer", caption=caption, columns=(*columns, settings), rows=rows, **shared)
    caption = "Test measures, each with the setting that is best on validation by the same measure"
    rows = tuple(_row(d, m, own=True) for d in data for m in d.methods)
    yield Table(name="table1-own", caption=caption, columns=columns, rows=rows, **shared)


def _row(d: Fits, method: Competitor, *, own: bool = False) -> tuple[Cell, ...]:
    values = [over_folds(d.users(method, m, by=m) if own else d.users(method, m)) for m in MEASURES]
    return (f"{d.name}, {method}", *(Value(value=v.value, error=v.stderr, digits=4) for v in values))


def _settings(d: Fits, method: Competitor) -> str:
    settings = [fit.setting for fit in d.chosen(method)]
    return "; ".join(f"{s['reg']:g}, {s['rate']:g}" if "reg" in s else f"{s['factors']}" for s in settings)


def _published_row(data: Sequence[Fits], name: str, learner: str) -> tuple[Cell, ...]:
    here = next((d for d in data if d.name == name), None)
    ours = [here and over_folds(here.users(Competitor(learner, here.updates), m)) for m in MEASURES]
    return (f"{name}, {learner}", *(_beside(*pair) for pair in zip(ours, TABLE1[name, learner], strict=True)))


def _beside(ours: Mean | None, theirs: tuple[float, float]) -> Value:
    """The paper's number, and ours if there is one; chance may put two standard errors between them."""
    value, error = theirs
    if ours is None:
        return Value(value=None, published=value, published_error=error, digits=4)
    return Value(
        value=ours.value, error=ours.stderr, published=value, published_error=error, digits=4,
        tolerance=2 * math.hypot(ours.stderr, error),
    )  # fmt: skip


def _differences(contrasts: Sequence[PairedDifference]) -> Table:
    rows: dict[str, list[Cell]] = {}
    for c in contrasts:
        updates = f", {c.a.updates:,} updates" if c.b.updates is not None and c.a.updates is not None else ""
        rows.setdefault(f"{c.data}, {c.a} − {c.b}{updates}", []).append(c.value())
    return Table(
        name="table1-differences",
        caption="Paired differences; * p < 0.05 over users by Holm, † p < 0.05 over folds, not adjusted",
        columns=("data, methods", *SHOWN.values()),
        rows=tuple((name, *cells) for name, cells in rows.items()),
        error_is="standard error over users",
    )


def as_printed(d: Fits, method: Competitor) -> Mean:
    """NDCG over the IDCG that is printed."""
    # IDCG(n) = Σ_{j=1}^{n} 1/log2(j + 2), which is the textbook's of n + 1 less its first term
    relevant = d.chosen(method)[0].outcome["relevant"].astype(np.float64)  # the same in every fold
    factor = relevant / np.where(relevant > 0, ideal_discount(relevant + 1, None) - 1, 1.0)
    return over_folds(d.users(method, "adg") * factor)


def _misprinted(data: Sequence[Fits]) -> Table:
    ours = [_ratios(d, method) for d in data for method in d.methods[:2]]
    ndcg, theirs = MEASURES.index("ndcg"), published_ratios()
    rows = [
        (f"{name}, {learner}", _printed(TABLE1[name, learner][ndcg][0]), None, _printed(ratio), None)
        for (name, learner), ratio in theirs.items()
    ]
    return Table(
        name="table1-ndcg",
        caption="NDCG, and what it would be over the IDCG that is printed; their ratios to ADG",
        columns=("data, method", "NDCG", "NDCG as printed", "NDCG / ADG", "as printed / ADG"),
        rows=(*ours, *rows),
    )


def _ratios(d: Fits, method: Competitor) -> tuple[Cell, ...]:
    adg, ndcg = (over_folds(d.users(method, m)).value for m in ("adg", "ndcg"))
    printed = as_printed(d, method).value
    numbers = (ndcg, printed, ndcg / adg, printed / adg)
    return (f"{d.name}, {method}", *(Value(value=x, digits=4) for x in numbers))


def _printed(number: float) -> Value:
    return Value(value=None, published=number, digits=4)


def published_ratios() -> dict[tuple[str, str], float]:
    """NDCG / ADG of the paper's Table 1."""
    ndcg, adg = MEASURES.index("ndcg"), MEASURES.index("adg")
    return {key: row[ndcg][0] / row[adg][0] for key, row in TABLE1.items()}


# -- claims --------------------------------------------------------------------------------------------------


def _pattern(d: Fits, contrasts: Sequence[PairedDifference]) -> Iterator[Claim]:
    """What the paper says of its data, on these."""
    mine = [c for c in contrasts if c.data == d.name]
    for methods, updates in ((d.methods, d.updates), (d.longer, LONGER * d.updates)):
        climbed = {c.measure: c for c in mine if (c.a, c.b) == (methods[1], methods[0])}
        yield Claim(
            text=f"{d.name}, {updates:,} updates: {ADG} is significantly better than {AUC} on all measures but ATOP",
            holds=all(climbed[m].better for m in TOP),
            found=_listed([climbed[m] for m in TOP]),
        )
        yield Claim(
            text=f"{d.name}, {updates:,} updates: {ADG} is not significantly better than {AUC} on ATOP",
            holds=not climbed["atop"].better,
            found=_listed([climbed["atop"]]),
        )
    for other in d.methods[:2]:
        found = [c for c in mine if (c.a, c.b) == (d.methods[2], other)]
        yield Claim(
            text=f"{d.name}: rank-k SVD is significantly worse than {other} on all measures",
            holds=all(c.worse for c in found),
            found=_listed(found),
        )


def _listed(contrasts: Sequence[PairedDifference]) -> str:
    c = contrasts[0]
    numbers = ", ".join(f"{SHOWN[c.measure]} {c.users.value:+.4f} ± {c.users.stderr:.4f}" for c in contrasts)
    return f"{c.a} − {c.b}: {numbers}"


def _textbook() -> Claim:
    below = {f"{name}, {learner}": r for (name, learner), r in published_ratios().items() if r < LEAST_RATIO}
    return Claim(
        text="The published NDCG was computed over the textbook's IDCG, not over the one that is printed",
        holds=bool(below),
        found=f"NDCG / ADG would be at least {LEAST_RATIO:.3f}; it is "
        + ", ".join(f"{ratio:.3f} ({name})" for name, ratio in below.items()),
    )
