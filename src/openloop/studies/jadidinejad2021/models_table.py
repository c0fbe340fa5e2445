"""Model by model: values on Coat beside those that the authors' notebook prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021.experiment import one_more, over_splits
from openloop.studies.jadidinejad2021.fits import zoo_names
from openloop.studies.jadidinejad2021.model_chance import WMF32
from openloop.studies.jadidinejad2021.model_values import EXACT, FREE, THREADS, ModelValues, hotelling, model_values
from openloop.studies.jadidinejad2021.models import family_of, given_of
from openloop.studies.jadidinejad2021.published import METHODS, PUBLISHED
from openloop.studies.kit import charts
from openloop.studies.kit.results import Cell, Claim, Figure, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.support.wording import joined, pvalue

NOTEBOOK_HEADS = ("open loop", "closed loop", "IPS", "stratified", "Q1", "Q2")
UNIT = 0.001  # the notebook's last digit
ALLOWED = "Allowed are the 95 % limits (t) of one more draw around our mean, and rounding."

NOTES = (
    (
        "The notebook is experiments_coat.ipynb in the authors' repository. It prints the values of ten models and, of "
        "WMF32, which is not among the 104, three open-loop values."
    ),
    (
        "Three things besides the seed decide a value of the open loop. They are here as in the published code. Cornac "
        "numbers users and items as they appear in the file, and draws their starts in that order. Rows are learned in "
        "the file's order. Ties are left as NumPy's quicksort left them in 2021; today NumPy sorts by the processor's "
        "vector instructions, which leave them otherwise."
    ),
    (
        "The code gives BO no seed, so Cornac trains it on all processor cores at once, without locks. The order of "
        "the rows then depends on the number of cores, which the notebook does not say. Here BO has one core. What "
        f"others do is tried with the rows taken in turn from {THREADS[0]} to {THREADS[-1]} equal parts of the log. "
        "These numbers of cores are a list of ours, not draws of chance. They give no limits, so BO's open-loop value "
        "is shown beside the notebook's and not judged."
    ),
    (
        "The code gives its data no seed, so batches and unrated items differ in every run. WMF32, MLP and NeuMF have "
        "the published start here, those of TensorFlow number by number, and their batches are drawn again."
    ),
)


def models(run: Run) -> Result:
    """Every model that the notebook prints, in its six columns."""
    data = run.load("coat")
    given = given_of(data.log, data.open_loop)
    wanted = [name for name in PUBLISHED["models"]["rows"] if name in zoo_names(run)]
    found = model_values(run, given, wanted)
    tables = _values(found), _wmf(found), _drawn(found), _causes(found)
    claims = (*_wmf_claims(tables[1]), *_claims(found, tables[0]))
    return Result(
        item="models", data=("coat",), tables=tables, figures=(_scatter(tables[0]),), claims=claims, notes=NOTES
    )


def published() -> tuple[Table, ...]:
    """The notebook's rows."""
    cells = {name: tuple(Value(value=None, published=x) for x in row) for name, row in _rows().items()}
    rows = tuple((name, *row) for name, row in cells.items())
    return (Table(name="models_coat", caption="coat: nDCG by model.", columns=("model", *NOTEBOOK_HEADS), rows=rows),)


def _rows() -> dict[str, tuple[float, ...]]:
    return PUBLISHED["models"]["rows"]


# -- tables --------------------------------------------------------------------------------------------------


def _drawn_value(values: Floats, theirs: float | None) -> Value:
    """The mean over draws; a single one has rounding only."""
    return over_splits(values, theirs) if len(values) > 1 else Value(value=values[0], published=theirs)


def _opened_value(found: ModelValues, name: str) -> Value:
    """BO by one thread: the numbers of threads are no draws of chance, so there is nothing to judge it by."""
    values, theirs = found.opened[name], _rows()[name][0]
    return Value(value=values[0], published=theirs, judged=False) if name == "BO" else _drawn_value(values, theirs)


def _closed_cells(name: str, values: Floats, *, judged: bool = True) -> Iterator[Value]:
    """A model's columns of the closed loop, from its values (R, 5)."""
    beside = zip(values.T, _rows()[name][1:], strict=True)
    return (over_splits(ours, theirs, judged=judged) for ours, theirs in beside)


def _values(found: ModelValues) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (name, _opened_value(found, name), *_closed_cells(name, found.closed[name], judged=name not in found.many))
        for name in found.models
    ]
    return Table(
        name="models_coat", columns=("model", *NOTEBOOK_HEADS), rows=tuple(rows),
        caption="coat: nDCG by model, as coded, beside the notebook's. Open loop: fitted on the whole log. There "
        f"{joined(EXACT)} involve no chance, so only rounding is allowed. BO is not judged. The other models are "
        f"averaged over repeated fits. Other columns: mean over {len(found.closed['GA'])} splits; the notebook has "
        f"one. There {joined(FREE)} are not judged: they are below, over more splits. {ALLOWED}",
        error_is="standard deviation over splits, in the open loop over draws",
    )  # fmt: skip


def _wmf(found: ModelValues) -> Table:
    theirs = PUBLISHED["models"]["wmf32"]
    rows = tuple((cut, _drawn_value(values, theirs[cut])) for cut, values in found.wmf.items())
    return Table(
        name="models_wmf32", columns=("metric", "open loop"), rows=rows,
        caption=f"coat: {WMF32} on the open loop, from the published start, mean over {len(found.wmf['ndcg'])} draws "
        f"of its batches. {ALLOWED}",
        error_is="standard deviation over draws",
    )  # fmt: skip


def _drawn(found: ModelValues) -> Table:
    rows = tuple((name, *_closed_cells(name, values)) for name, values in found.many.items())
    return Table(
        name="models_splits", columns=("model", *NOTEBOOK_HEADS[1:]), rows=rows,
        caption=f"coat: the models that only the split decides, over {len(found.many['GA'])} splits. {ALLOWED}",
        error_is="standard deviation over splits",
    )  # fmt: skip


def _causes(found: ModelValues) -> Table:
    notebook = {name: row[0] for name, row in _rows().items()} | {WMF32: PUBLISHED["models"]["wmf32"]["ndcg"]}
    ours = {**found.opened, WMF32: found.wmf["ndcg"]}
    threads = found.opened["BO"][1:]
    other: dict[str, Cell] = {name: _drawn_value(values, None) for name, values in found.otherwise.items()}
    other |= {"BO": f"{threads.min():.3f} to {threads.max():.3f}"}
    words = {
        "GA": ("ties as NumPy left them in 2021", "mean over all orders of the ties"),
        "MF10": ("items numbered as they appear", "items numbered by id"),
        "BO": ("one thread", f"rows in turn from {THREADS[0]} to {THREADS[-1]} parts, least to largest"),
        WMF32: ("the published start", "other starts"),
    }
    rows = tuple(
        (
            name,
            this,
            Value(value=ours[name][0], published=notebook[name], judged=False),
            that,
            other[name],
        )
        for name, (this, that) in words.items()
    )
    return Table(
        name="models_causes", columns=("model", "as here", "nDCG", "otherwise", "nDCG otherwise"), rows=rows,
        caption="coat: what decides a model's value on the open loop, beside the notebook's value. One draw each, or "
        "the mean of several where there is a ±.", error_is="standard deviation over draws",
    )  # fmt: skip


def _scatter(table: Table) -> Figure:
    rows = tuple(
        {
            "column": head, "model": str(row[0]), "family": family_of(str(row[0])),
            "ours": cell.value, "notebook": cell.published,
        }
        for row in table.rows for head, cell in zip(NOTEBOOK_HEADS, row[1:], strict=True) if isinstance(cell, Value)
    )  # fmt: skip
    drawn = charts.scatter(
        rows, "notebook", "ours", series="family", facet="column", label="model",
        titles=("nDCG, the notebook's", "nDCG, ours"), equal=True,
    )  # fmt: skip
    caption = "coat: the values of the table above, ours against the notebook's, by column. On the line they are equal."
    return Figure(name="models_coat", caption=caption, rows=rows, chart=drawn.to_dict())


# -- claims --------------------------------------------------------------------------------------------------


def _wmf_claims(table: Table) -> Iterator[Claim]:
    values = [value for _, value in table.values()]
    yield Claim(
        text=f"{WMF32}'s three open-loop values are the notebook's, within the 95 % limits of its batches and rounding",
        holds=all(value.came_out for value in values), found=_beside(table.values()),
        gist=f"{WMF32} has the three values of the authors' notebook", ours=True,
    )  # fmt: skip


def _claims(found: ModelValues, table: Table) -> Iterator[Claim]:
    cells = dict(table.values())
    exact = {place: cells[place] for place in (f"{name}, open loop" for name in EXACT)}
    yield Claim(
        text=f"{joined(EXACT)}, which involve no chance, have the notebook's open-loop value in every digit",
        holds=all(value.came_out for value in exact.values()), found=_beside(exact.items()),
        gist="models without chance have the notebook's open-loop values in every digit", ours=True,
    )  # fmt: skip
    if len(found.closed["GA"]) > 2:  # one is left out, and the limits need two
        yield closed_claim(found)
    yield _like_ours(found)


def closed_claim(found: ModelValues) -> Claim:
    """As many of the notebook's closed-loop values within the limits as of each split of ours, left out in its turn.

    Values of a split move together, so how many are outside is not binomial: one split may have many.
    """
    ours = np.stack([found.closed[name] for name in found.models], axis=1)  # (R, M, 5)
    theirs = np.array([_rows()[name][1:] for name in found.models])  # (M, 5)
    splits, inside = len(ours), within(ours, theirs)
    least = min(within(np.delete(ours, r, axis=0), ours[r].round(3)) for r in range(splits))
    return Claim(
        text=f"As many of the notebook's {theirs.size} closed-loop values of {len(theirs)} models are within the 95 % "
        f"limits as of any one of our {splits} splits, left out and compared with the others (a split like ours fails "
        f"this with a chance of about 1 in {splits + 1})",
        holds=inside >= least, found=f"{inside} are; of our splits left out {least} or more",
        gist="the notebook's closed-loop values of single models are within the limits of our splits as often as those "
        "of a split of ours, left out", ours=True,
    )  # fmt: skip


def within(ours: Floats, one: Floats) -> int:
    """How many values of `one` split, rounded, are within the limits that `ours`, (R, …), give for one more."""
    return int(np.sum(np.abs(one - ours.mean(axis=0)) <= one_more(ours) + UNIT / 2))


def _like_ours(found: ModelValues) -> Claim:
    theirs = np.array([_rows()[n][1:] for n in FREE]).ravel()
    d2, p = hotelling(np.hstack([found.many[name] for name in FREE]), theirs, UNIT)
    return Claim(
        text=f"The notebook's split is like ours: its {2 * len(METHODS)} values of {joined(FREE)} in the closed loop, "
        f"taken together, are no outlier among {len(found.many['GA'])} splits (Hotelling's T², 5 %)",
        holds=p > 0.05, found=f"squared distance {d2:.1f}, p = {pvalue(p)}", ours=True,
    )  # fmt: skip


def _beside(values: Iterable[tuple[str, Value]]) -> str:
    return "; ".join(f"{place}: {value} (notebook: {value.as_published()})" for place, value in values)
