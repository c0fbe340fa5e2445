"""Table 1 of Lim et al. 2015: MF-AUC, MF-ADG and a rank-k SVD, their steps, and what is significant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from openloop.studies.kit.grids import EDGES, LARGEST, LEAST, told
from openloop.studies.kit.results import Cell, Claim, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.statistics import Mean
from openloop.studies.lim2015.differences import (
    PairedDifference,
    all_contrasts,
    differences_figure,
    differences_table,
    listed,
)
from openloop.studies.lim2015.protocol import (
    AT_MOST,
    GAMMA,
    LONGER,
    Competitor,
    Fits,
    all_fits,
    over_folds,
    ranges_told,
    weight_range,
)
from openloop.studies.lim2015.published import ADG, AUC, MEASURES, SHOWN, SIZES, TABLE1, TOP
from openloop.support.wording import joined

NOTES = (
    (
        "An update of MF-AUC draws one item and takes a step only if that item violates the margin. It may need more "
        f"than the paper's 1,000,000 updates, so another table has {LONGER} times as many."
    ),
    (
        f"Where the data are not the paper's, the size of its last.FM is taken as the limit: at most {AT_MOST[1]:,} "
        f"items, those with most positives, and then at most {AT_MOST[0]:,} users, those with most of these. The paper "
        "does not say in which order, or how often, it cut; here it is once, items first. Its 9,888 users of "
        "MovieLens-10M have 72 positives each, in a data set of 10,000,054 ratings by 69,878 users, 143 each: they "
        "can hardly be the users with most reviews."
    ),
    (
        "Of a user's n positives n/10 and n/5 are held out, rounded to the nearest. A user with fewer than 5 has no "
        "validation part, with fewer than 3 no test part, and is not measured there."
    ),
    (
        "The paper does not say which test its bold type is based on. Folds share their users and most of their "
        "training rows, so a t-test over four folds is no test of independent repetitions. Here users are the sample: "
        "a user's paired difference is the mean over the folds."
    ),
    (
        "The paper's IDCG sums 1/log2(j + 2) from j = 1, where ranks from 0 need j = 0. Ours is the textbook's, from "
        "j = 0; the paper's numbers are too small for the printed one."
    ),
)


def table1(run: Run) -> Result:
    """MF-AUC, MF-ADG and a rank-k SVD."""
    data = all_fits(run)
    contrasts = all_contrasts(data)
    tables = (
        _sizes(data),
        *_measures(data),
        differences_table(contrasts),
    )
    claims = [claim for d in data for claim in _pattern(d, contrasts)]
    return Result(
        item="table1", data=tuple(d.name for d in data), tables=tables,
        figures=(differences_figure(contrasts),), claims=tuple(claims),
        notes=(grids_note(data[0]), EDGES, *NOTES, algorithm_note(data)),
    )  # fmt: skip


def grids_note(d: Fits) -> str:
    """The settings that were tried, which are the same on all data."""
    tried = [
        f"with {method.updates:,} updates λ of {_grid(d, method, 'reg')} and first rates of {_grid(d, method, 'rate')}"
        for method in (d.methods[0], d.longer[0])
    ]
    return (
        f"The grids of both learners are {'; '.join(tried)}. A rate falls in a straight line to 0. More updates cost "
        "more, so they have the smaller grid. The best are chosen in each fold by ADG on the validation part. The "
        "paper says only that λ was chosen by performance on the validation set, and nothing about rates. The rank of "
        f"the SVD ({_grid(d, d.methods[2], 'factors')}) is chosen in the same way."
    )


def _grid(d: Fits, method: Competitor, name: str) -> str:
    return ", ".join(f"{value:g}" for value in d.tried(method, name))


def algorithm_note(data: Sequence[Fits]) -> str:
    """How we read Algorithm 1, and the range of its weight."""
    return (
        "Algorithm 1 of the paper has a misprint. N starts at 0 and is incremented after the break, so a violator "
        "found in the first draw would have N = 0, and the weight C(⌊(|I| − 1)/N⌋) would divide by 0. Here N is the "
        "number of draws made, the one that found the violator included: 1 for the first draw. At most "
        f"(|I| − 1)/γ draws are made, rounded up, with γ = {GAMMA:g}. Under this reading the weight of a violator "
        f"depends little on the draw: {ranges_told({d.name: weight_range(d.sizes[1]) for d in data})}."
    )


# -- tables --------------------------------------------------------------------------------------------------


def _sizes(data: Sequence[Fits]) -> Table:
    ours = {d.name: d for d in data}
    absent = [name for name in SIZES if name not in ours]
    rows = [(name, *(_count(ours, name, at) for at in range(3)), _cut(ours.get(name))) for name in (*ours, *absent)]
    return Table(
        name="sizes", caption="The data after densification",
        columns=("data", "users", "items", "positives", "cut by densification"), rows=tuple(rows),
    )  # fmt: skip


def _count(ours: dict[str, Fits], name: str, at: int) -> Value:
    value, published = ours[name].sizes[at] if name in ours else None, SIZES[name][at] if name in SIZES else None
    return Value(value=value, published=published, digits=0)


def _cut(d: Fits | None) -> str:
    """What densification took away."""
    if d is None:
        return "not rerun: the data are not here"
    names = ("users", "items", "positives")
    gone = [
        f"{old - new:,} of {old:,} {name}" for name, old, new in zip(names, d.before, d.sizes, strict=True) if old > new
    ]
    return ", ".join(gone) or "nothing: the data are smaller than the limit"


def _measures(data: Sequence[Fits]) -> Iterator[Table]:
    columns, beside = ("data, method", *SHOWN.values()), ("updates with a step, %",)
    error, updates = "standard error over folds", data[0].updates
    own = [d for d in data if d.name not in SIZES]
    if own:
        rows = tuple((*_row(d, m), _share(d, m)) for d in own for m in d.methods)
        caption = f"Test measures after {updates:,} updates"
        yield Table(name="table1", caption=caption, columns=(*columns, *beside), rows=rows, error_is=error)
    absent = not {d.name for d in data} & {name for name, _ in TABLE1}
    caption = "The paper's Table 1, on its own data" + (" (not rerun: the data are not here)" if absent else "")
    rows = tuple(_published_row(data, name, learner) for name, learner in TABLE1)
    yield Table(name="table1-published", caption=caption, columns=columns, rows=rows, error_is=error)
    caption = f"Test measures after {LONGER * updates:,} updates"
    rows = tuple((*_row(d, m), _share(d, m)) for d in data for m in d.longer)
    yield Table(name="table1-longer", caption=caption, columns=(*columns, *beside), rows=rows, error_is=error)


def _row(d: Fits, method: Competitor) -> tuple[Cell, ...]:
    values = [over_folds(d.users(method, m)) for m in MEASURES]
    return (f"{d.name}, {method}", *(Value(value=v.value, error=v.stderr, digits=4) for v in values))


def _share(d: Fits, method: Competitor) -> str | None:
    """The least and the largest share of updates with a step, over folds."""
    return None if method.updates is None else "{:.0f} to {:.0f}".format(*stepped(d, method))


def stepped(d: Fits, method: Competitor) -> tuple[float, float]:
    """In %, of the chosen fits: least and largest."""
    shares = [100 * float(fit.outcome["stepped"]) for fit in d.chosen(method)]
    return min(shares), max(shares)


def _at_edges(d: Fits, methods: Sequence[Competitor]) -> str:
    """Which methods have a rate at an edge of what was tried in every fold; empty where none has."""
    rates = {m: [told(fit.setting["rate"], d.tried(m, "rate")) for fit in d.chosen(m)] for m in methods}
    edges = {m: texts for m, texts in rates.items() if all(text.endswith((LEAST, LARGEST)) for text in texts)}
    named = [f"{m} ({', '.join(dict.fromkeys(texts))})" for m, texts in edges.items()]
    return f"; at the edge of the rates tried in every fold: {joined(named)}" if named else ""


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


# -- claims --------------------------------------------------------------------------------------------------


def _pattern(d: Fits, contrasts: Sequence[PairedDifference]) -> Iterator[Claim]:
    """What the paper says of its data, on these; it has no fits with more updates."""
    mine = [c for c in contrasts if c.data == d.name]
    for methods, updates in ((d.methods, d.updates), (d.longer, LONGER * d.updates)):
        climbed = {c.measure: c for c in mine if (c.a, c.b) == (methods[1], methods[0])}
        first, edges = updates == d.updates, _at_edges(d, methods[:2])
        reversed_ = ": it is significantly worse on every measure" if all(c.worse for c in climbed.values()) else ""
        yield Claim(
            text=f"{d.name}, {updates:,} updates: {ADG} is significantly better than {AUC} on all measures but ATOP",
            holds=all(climbed[m].better for m in TOP),
            found=listed([climbed[m] for m in TOP]) + edges,
            gist=f"{ADG} beats {AUC} at the top of the ranking after {updates:,} updates{reversed_}",
            on=d.name,
            ours=not first,
        )
        yield Claim(
            text=f"{d.name}, {updates:,} updates: {ADG} is not significantly better than {AUC} on ATOP",
            holds=not climbed["atop"].better,
            found=listed([climbed["atop"]]) + edges,
            gist=f"{ADG} is not significantly better than {AUC} on ATOP" if first else "",
            on=d.name,
            ours=not first,
        )
    for other in d.methods[:2]:
        found = [c for c in mine if (c.a, c.b) == (d.methods[2], other)]
        yield Claim(
            text=f"{d.name}: rank-k SVD is significantly worse than {other} on all measures",
            holds=all(c.worse for c in found),
            found=listed(found),
            gist=f"SVD is significantly worse than {other} on all measures",
            on=d.name,
        )
