"""Jadidinejad, Macdonald & Ounis 2021: Simpson's paradox, and how well offline methods rank 104 models."""

from __future__ import annotations

from functools import partial

from openloop.studies.jadidinejad2021 import (
    figure3,
    figure4,
    published_tables,
    table1,
    table6,
    tables2to5,
)
from openloop.studies.jadidinejad2021.fits import SPLITS
from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.kit.results import Table
from openloop.studies.kit.running import Item, Paper

__all__ = ["ITEMS", "PAPER", "PUBLISHED"]

PAPER = Paper(
    title="The Simpson's Paradox in the Offline Evaluation of Recommendation Systems",
    authors="A. H. Jadidinejad, C. Macdonald, I. Ounis",
    year=2021,
    venue="ACM Transactions on Information Systems 40(1)",
    link="https://doi.org/10.1145/3458509",
)

OPEN_LOOP = tuple(SPLITS)
ZOO = ("cornac", "torch")


def _instance(item: str) -> tuple[Table, ...]:
    return (published_tables.published_instance(item),)


# Minutes are those of a run of all items: table5, figure3, table6 and figure4 share the fits that table5 makes.
ITEMS = (
    Item(
        name="table1", title="Simpson's paradox in medicine and in recommendation", function=table1.table1, minutes=0.1
    ),
    Item(
        name="table2", title="The paradox on MovieLens", function=tables2to5.table2, data=("ml-1m", "ml-100k"),
        minutes=3, packages=ZOO, published=partial(_instance, "table2"), of_paper=("ml-1m",),
    ),
    Item(
        name="table3", title="The paradox on Netflix", function=tables2to5.table3, data=("netflix",), minutes=6,
        packages=ZOO, published=partial(_instance, "table3"),
    ),
    Item(
        name="table4", title="The paradox on Yahoo! R3", function=tables2to5.table4, data=("yahoo-r3",), minutes=6,
        packages=ZOO, published=partial(_instance, "table4"),
    ),
    Item(
        name="table5", title="The paradox on Coat", function=tables2to5.table5, data=("coat",), minutes=10,
        packages=ZOO, published=partial(_instance, "table5"),
    ),
    Item(
        name="figure3", title="104 models, by closed loop and by open loop", function=figure3.figure3, data=OPEN_LOOP,
        minutes=1, packages=ZOO, published=partial(published_tables.both, published_tables.published_figure3),
    ),
    Item(
        name="table6", title="How well each evaluation method ranks 104 models", function=table6.table6, data=OPEN_LOOP,
        minutes=4, packages=ZOO, published=partial(published_tables.both, published_tables.published_table6),
    ),
    Item(
        name="figure4", title="The number of strata", function=figure4.figure4, data=OPEN_LOOP, minutes=2, packages=ZOO,
        published=partial(published_tables.both, published_tables.published_figure4),
    ),
)  # fmt: skip
