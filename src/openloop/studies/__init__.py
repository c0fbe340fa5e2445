"""The papers that this library stands on, one module a paper: every table and figure, run by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openloop.loading import lazily

if TYPE_CHECKING:
    from openloop.studies.results import Claim, Figure, Result, Table, Value
    from openloop.studies.running import Item, Paper, Reproduction, Run

__all__ = ["Paper", "Item", "Run", "Result", "Table", "Value", "Figure", "Claim", "Reproduction"]

_HOME = {
    "Paper": "running",
    "Item": "running",
    "Run": "running",
    "Reproduction": "running",
    "Result": "results",
    "Table": "results",
    "Value": "results",
    "Figure": "results",
    "Claim": "results",
}

__getattr__, __dir__ = lazily(__name__, _HOME, globals())
