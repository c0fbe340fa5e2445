"""A race of debiased learners without leaks: by one protocol on Coat and Yahoo! R3, and on known truth."""

from __future__ import annotations

from openloop.studies.kit.running import Item, Paper
from openloop.studies.race import coat, worlds, yahoo

__all__ = ["ITEMS", "PAPER"]

PAPER = Paper(
    title="A race of debiased learners without leaks",
    authors="openloop",
    year=2026,
    venue="An original study",
)

ITEMS = (
    Item(name="coat", title="One protocol for all, on Coat", function=coat.coat, data=("coat",), minutes=6),
    Item(
        name="worlds",
        title="On data of known truth: ML-100K completed",
        function=worlds.worlds,
        data=("ml-100k",),
        minutes=12,
    ),
    Item(name="yahoo", title="The same protocol on Yahoo! R3", function=yahoo.yahoo, data=("yahoo-r3",), minutes=30),
)
