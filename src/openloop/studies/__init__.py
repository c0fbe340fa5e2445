"""The papers behind this library, one package per paper, one file per item, run by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openloop.support.lazy import lazily

if TYPE_CHECKING:
    from openloop.studies.kit.results import Claim, Figure, Result, Table, Value
    from openloop.studies.kit.running import Item, Paper, Reproduction, Run

__all__ = ["Paper", "Item", "Run", "Result", "Table", "Value", "Figure", "Claim", "Reproduction"]

_NAMES = {
    "kit.running": "Paper Item Run Reproduction",
    "kit.results": "Result Table Value Figure Claim",
}

__getattr__, __dir__ = lazily(__name__, _NAMES, globals())
