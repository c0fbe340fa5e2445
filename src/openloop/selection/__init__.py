"""LEARNERS → THE BEST: settings and kinds of learners, compared by cross-validation under propensities."""

from openloop.selection.selecting import Selection, select

__all__ = ["Selection", "select"]
