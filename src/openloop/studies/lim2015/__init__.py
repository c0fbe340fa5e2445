"""Lim, McAuley & Lanckriet 2015: MF-ADG against MF-AUC, and which measures are the same on validation and test."""

from __future__ import annotations

from openloop.studies.kit.running import Item, Paper
from openloop.studies.lim2015 import table1, table2
from openloop.studies.lim2015.protocol import POSITIVE
from openloop.studies.lim2015.published import PUBLISHED, SIZES

__all__ = ["ITEMS", "PAPER", "PUBLISHED"]

PAPER = Paper(
    title="Top-N Recommendation with Missing Implicit Feedback",
    authors="D. Lim, J. McAuley, G. Lanckriet",
    year=2015,
    venue="RecSys 2015",
)

ITEMS = (
    Item(
        name="table1",
        title="MF-ADG against MF-AUC",
        function=table1.table1,
        data=tuple(POSITIVE),
        minutes=12,
        of_paper=tuple(SIZES),
    ),
    Item(
        name="table2",
        title="Validation against test",
        function=table2.table2,
        data=tuple(POSITIVE),
        minutes=1,
        of_paper=(table2.PUBLISHED_ON,),
    ),
)
