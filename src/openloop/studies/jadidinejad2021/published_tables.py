"""Tables of the numbers that the paper prints, for items and halves of items that are not rerun."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from openloop.studies.jadidinejad2021.published import CUTS, METHODS, PUBLISHED
from openloop.studies.kit.results import Table, Value

METHOD_HEADS = {
    "holdout": "Holdout (1)",
    "ips": "IPS (2)",
    "stratified": "Stratified (3)",
    "q1": "Q1 (4)",
    "q2": "Q2 (5)",
}
TITLES = {"yahoo-r3": "Yahoo! R3", "coat": "Coat"}


def only_published(value: float, digits: int = 3) -> Value:
    """A number that the paper has and we have not."""
    return Value(value=None, published=value, digits=digits)


def not_rerun(data: str) -> str:
    """Why a half of an item has published numbers only: the end of a caption."""
    return f"Not rerun: {data} is not in the data folder; `openloop datasets get {data}` brings or describes it"


def published_instance(item: str) -> Table:
    """A table of Tables 2 to 5 as printed."""
    a, b = PUBLISHED[item]["pair"]
    better = {"a": a, "b": b, "": "neither"}
    rows = [
        (name, only_published(x), only_published(y), better[star], only_published(ratings, 0), only_published(items, 0))
        for name, (x, y, star, ratings, items) in PUBLISHED[item]["lines"].items()
    ]
    return Table(
        name=f"{item}_published", rows=tuple(rows),
        columns=("method", a, b, "significantly better", "ratings", "items"),
        caption=f"Table {item[-1]} as published: nDCG of {a} and {b}",
    )  # fmt: skip


def published_table6(data: str) -> Table:
    """Table 6 as printed, and which methods it tells apart."""
    found = PUBLISHED["table6"]
    rows = [(cut, *map(only_published, found["tau"][data][cut]), apart(found["differs"][data][cut])) for cut in CUTS]
    return Table(
        name=f"table6_{data}_published", rows=tuple(rows),
        columns=("metric", *(METHOD_HEADS[name] for name in METHODS), "significantly different"),
        caption=f"{TITLES[data]}: Table 6 as published, τ with the open loop, and which methods it marks as "
        f"significantly different. {not_rerun(data)}",
    )  # fmt: skip


def apart(marks: tuple[str, ...]) -> str:
    """The pairs of methods that are marked, as 1/3 for the first and the third."""
    marked = [set(text.split("/")) for text in marks]
    pairs = combinations(range(1, len(marks) + 1), 2)
    return ", ".join(f"{a}/{b}" for a, b in pairs if str(b) in marked[a - 1])


def published_figure3(data: str) -> Table:
    """What section 7.1 prints of Figure 3."""
    found = PUBLISHED["figure3"][data]
    rows = [(name, only_published(found[name.lower()], 3 if name == "Q2" else 2)) for name in ("holdout", "Q1", "Q2")]
    return Table(
        name=f"figure3_{data}_published", columns=("panel", "τ with the open loop"),
        rows=(*rows, ("Q1's share of the feedback", only_published(found["q1_share"], 2))),
        caption=f"{TITLES[data]}: Figure 3 as published; its points are only drawn. {not_rerun(data)}",
    )  # fmt: skip


def published_figure4(data: str) -> Table:
    """What section 7.2 prints of Figure 4."""
    found = PUBLISHED["figure4"][data]
    cells = (
        only_published(found["one"]), Value(value=None, published=found["mean"], published_error=found["behind"]),
        only_published(found["significant"], 0),
    )  # fmt: skip
    return Table(
        name=f"figure4_{data}_published", rows=(("as published", *cells),),
        columns=("", "τ, 1 stratum", "mean τ, 2 to 10", "of 9, significantly above 1 stratum"),
        caption=f"{TITLES[data]}: Figure 4 as published; its curve is only drawn, and the paper does not say what its "
        f"± is. {not_rerun(data)}", error_is="number that the paper prints behind it",
    )  # fmt: skip


def both(table: Callable[[str], Table]) -> tuple[Table, ...]:
    """A table's published numbers of both data sets with an open loop."""
    return tuple(map(table, TITLES))
