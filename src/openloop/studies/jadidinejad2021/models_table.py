"""Model by model: values on Coat beside those that the authors' notebook prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021.experiment import over_splits
from openloop.studies.jadidinejad2021.fits import zoo_names
from openloop.studies.jadidinejad2021.model_chance import WMF32
from openloop.studies.jadidinejad2021.model_values import EXACT, FREE, THREADS, ModelValues, hotelling, model_values
from openloop.studies.jadidinejad2021.models import family_of, given_of
from openloop.studies.jadidinejad2021.published import METHODS, PUBLISHED
from openloop.studies.kit import charts
from openloop.studies.kit.results import Cell, Claim, Figure, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.support.wording import joined, pvalue

HEADS = ("open loop", "closed loop", "IPS", "stratified", "Q1", "Q2")
SHARE = 0.95  # of the numbers, within two standard deviations

NOTES = (
    (
        "The notebook is experiments_coat.ipynb in the authors' repository. It prints the values of ten models and, of "
        "WMF32, which is not among the 104, three open-loop values."
    ),
    (
        "Three things beside the seed decide a value of the open loop. They are here as in the published code. Cornac "
        "numbers users and items as they appear in the file, and draws their starts in that order. Rows are learned in "
        "the file's order. Ties are left as NumPy's quicksort left them in 2021; today NumPy sorts by the processor's "
        "vector instructions, which leave them otherwise."
    ),
    (
        "The code gives BO no seed, so Cornac trains it on all processor cores at once, without locks. The order of "
        "the rows then depends on the number of cores. Here BO is drawn again with the rows taken in turn from "
        f"{THREADS[0]} to {THREADS[-1]} equal parts of the log."
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
    return (Table(name="models_coat", caption="coat: nDCG by model.", columns=("model", *HEADS), rows=rows),)


def _rows() -> dict[str, tuple[float, ...]]:
    return PUBLISHED["models"]["rows"]


# -- tables --------------------------------------------------------------------------------------------------


def _drawn_value(values: Floats, theirs: float | None) -> Value:
    """The mean over draws; a single one has rounding only."""
    return over_splits(values, theirs) if len(values) > 1 else Value(value=values[0], published=theirs)


def _closed_cells(name: str, values: Floats) -> Iterator[Value]:
    """A model's columns of the closed loop, from its values (R, 5)."""
    return (over_splits(ours, theirs) for ours, theirs in zip(values.T, _rows()[name][1:], strict=True))


def _values(found: ModelValues) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in found.models:
        opened = _drawn_value(found.opened[name], _rows()[name][0])
        rows.append((name, opened, *_closed_cells(name, found.closed[name])))
    return Table(
        name="models_coat", columns=("model", *HEADS), rows=tuple(rows),
        caption="coat: nDCG by model, as coded, beside the notebook's. Open loop: fitted on the whole log. There "
        f"nothing is left to chance in {joined(EXACT)}, and only rounding is allowed. The others are means over "
        f"draws of what is (see the notes). Other columns: mean over {len(found.closed['GA'])} splits; the notebook "
        "has one. Allowed are 2 standard deviations of one draw from our mean, and rounding.",
        error_is="standard deviation over splits, in the open loop over draws",
    )  # fmt: skip


def _wmf(found: ModelValues) -> Table:
    theirs = PUBLISHED["models"]["wmf32"]
    rows = tuple((cut, _drawn_value(values, theirs[cut])) for cut, values in found.wmf.items())
    return Table(
        name="models_wmf32", columns=("metric", "open loop"), rows=rows,
        caption=f"coat: {WMF32} on the open loop, from the published start, mean over {len(found.wmf['ndcg'])} draws "
        "of its batches. Allowed are 2 standard deviations of one draw from our mean, and rounding.",
        error_is="standard deviation over draws",
    )  # fmt: skip


def _drawn(found: ModelValues) -> Table:
    rows = tuple((name, *_closed_cells(name, values)) for name, values in found.many.items())
    return Table(
        name="models_splits", columns=("model", *HEADS[1:]), rows=rows,
        caption=f"coat: the models that only the split decides, over {len(found.many['GA'])} splits.",
        error_is="standard deviation over splits",
    )  # fmt: skip


def _causes(found: ModelValues) -> Table:
    notebook = {name: row[0] for name, row in _rows().items()} | {WMF32: PUBLISHED["models"]["wmf32"]["ndcg"]}
    ours = {**found.opened, WMF32: found.wmf["ndcg"]}
    other = {**found.otherwise, "BO": found.opened["BO"][1:]}
    words = {
        "GA": ("ties as NumPy left them in 2021", "mean over all orders of the ties"),
        "MF10": ("items numbered as they appear", "items numbered by id"),
        "BO": ("one thread", "rows in turn from 2 to 64 parts"),
        WMF32: ("the published start", "other starts"),
    }
    rows = tuple(
        (
            name,
            this,
            Value(value=ours[name][0], published=notebook[name], judged=False),
            that,
            _drawn_value(other[name], None),
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
        for row in table.rows for head, cell in zip(HEADS, row[1:], strict=True) if isinstance(cell, Value)
    )  # fmt: skip
    drawn = charts.scatter(
        rows, "notebook", "ours", series="family", facet="column", label="model", x_title="nDCG, the notebook's",
        y_title="nDCG, ours",
    )  # fmt: skip
    caption = "coat: the values of the table above, ours against the notebook's, by column."
    return Figure(name="models_coat", caption=caption, rows=rows, chart=drawn.to_dict())


# -- claims --------------------------------------------------------------------------------------------------


def _wmf_claims(table: Table) -> Iterator[Claim]:
    values = [value for _, value in table.values()]
    yield Claim(
        text=f"{WMF32}'s three open-loop values are the notebook's, the chance of its batches and rounding aside",
        holds=all(value.came_out for value in values), found=_beside(table.values()),
        gist=f"{WMF32} has the three values of the authors' notebook",
    )  # fmt: skip


def _claims(found: ModelValues, table: Table) -> Iterator[Claim]:
    cells = dict(table.values())
    exact = {place: cells[place] for place in (f"{name}, open loop" for name in EXACT)}
    yield Claim(
        text=f"{joined(EXACT)}, in which nothing is left to chance, have the notebook's open-loop value in every digit",
        holds=all(value.came_out for value in exact.values()), found=_beside(exact.items()),
        gist="models without chance have the notebook's open-loop values in every digit",
    )  # fmt: skip
    outside = [(place, value) for place, value in cells.items() if not value.came_out]
    yield Claim(
        text=f"At least {SHARE:.0%} of the notebook's values of {len(table.rows)} models are within 2 standard "
        "deviations and rounding of ours",
        holds=len(outside) <= (1 - SHARE) * len(cells),
        found=f"{len(cells) - len(outside)} of {len(cells)} are" + (f"; not {_beside(outside)}" if outside else ""),
        gist="values of single models are the notebook's within chance",
    )  # fmt: skip
    d2, p = hotelling(np.hstack([found.many[name] for name in FREE]), np.array([_rows()[n][1:] for n in FREE]).ravel())
    yield Claim(
        text=f"The notebook's split is like ours: its {2 * len(METHODS)} values of {joined(FREE)} in the closed loop, "
        f"taken together, are no outlier among {len(found.many['GA'])} splits (Hotelling's T², 5 %)",
        holds=p > 0.05, found=f"squared distance {d2:.1f}, p = {pvalue(p)}",
    )  # fmt: skip


def _beside(values: Iterable[tuple[str, Value]]) -> str:
    return "; ".join(f"{place}: {value} (notebook: {value.as_published()})" for place, value in values)
