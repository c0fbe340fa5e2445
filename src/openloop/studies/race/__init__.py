"""A race of debiased learners without leaks: on Coat by one protocol, as published, and on known truth."""

from __future__ import annotations

from openloop.studies.kit.running import Item, Paper
from openloop.studies.race import as_published, coat, leaks, worlds, yahoo
from openloop.studies.race.published import PUBLISHED

__all__ = ["ITEMS", "PAPER", "PUBLISHED"]

PAPER = Paper(
    title="A race of debiased learners without leaks",
    authors="openloop",
    year=2026,
    venue="An original study, with the numbers that debiasing papers since 2016 print for Coat",
)

COAT = ("coat",)

ITEMS = (
    Item(name="coat", title="One protocol for all, on Coat", function=coat.coat, data=COAT, minutes=6),
    Item(
        name="as_published",
        title="Without offsets, and with the loss as coded",
        function=as_published.as_published,
        data=COAT,
        minutes=2,
    ),
    Item(name="leaks", title="Three leaks of the usual protocol", function=leaks.leaks, data=COAT, minutes=3),
    Item(
        name="worlds",
        title="On data of known truth: ML-100K completed",
        function=worlds.worlds,
        data=("ml-100k",),
        minutes=12,
    ),
    Item(name="yahoo", title="The same protocol on Yahoo! R3", function=yahoo.yahoo, data=("yahoo-r3",), minutes=30),
)
