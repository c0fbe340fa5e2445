"""Refusals and notes about how a log was split and what it contains, the same in memory and in engines."""

from __future__ import annotations

from openloop.core.metric import Metric
from openloop.estimators.naming import Method

BY_TIME = "was split by time"
BY_COUNT = "was held out by a number of rows per user, so users with few rows cannot be scored"
POSITIVES = "the log holds positives only: each row says that something was liked, and no row says that it was not"
NO_PART = "exclude= is not a part of the scored log: it changes the candidates, not their probability"


def needs_scale(metric: Metric, method: Method) -> bool:
    """Whether an estimate needs propensities that are known beyond a factor."""
    return method.scale == "always" or (method.scale == "cell" and metric.kind == "cell")


def unknown_share(what: str, split: str, *, lost: bool = True) -> str:
    """Why a part of a log cannot give `what`; `lost`: p is known up to a factor only."""
    why = f"{split}, so the probability that it observes a cell is known only up to a factor" if lost else split
    return f"{what}: the scored part {why}; split by row, or use snips or stratified."


def up_to_factor(split: str, *, excluded: bool) -> str:
    """The note on weights that are right up to a factor."""
    factor = ", one that depends on p under exclude=" if excluded else ""
    return f"the log {split}: its weights are 1/p, so an unknown factor is missing from them{factor}"


def still_candidates(again: int) -> str:
    """The note on scored pairs that are excluded, too."""
    return (
        f"{again:,} scored pairs are in exclude= too: they stay candidates, while its other pairs do not, which "
        "favours models that repeat what was seen; leave exclude= out to rank all items"
    )


def lists_none(model: str) -> str:
    """The note on a list without any scored row."""
    return f"model {model!r} lists none of the scored rows; was it trained to leave them out?"


def of_lists(model: str, without: int, gaps: int) -> str:
    """What is odd about lists, on whose account items rank below them; empty where nothing is."""
    found = [f"{without:,} users with scored rows have no list, so their items count as unlisted"] if without else []
    found += [f"the lists of {gaps:,} users have gaps in their ranks"] if gaps else []
    return f"model {model!r}: {'; '.join(found)}" if found else ""


def undefined_candidates(what: str, both: int) -> str:
    """Why rankings have no weights where scored rows are excluded by another log."""
    return (
        f"{what}: {both:,} scored rows are in exclude= too, which is not a part of the scored log, so the probability "
        "of being a candidate is undefined; drop them from one of the two."
    )


def not_reached(what: str, threshold: float) -> str:
    """Why no metric of users can be had."""
    return f"{what} is undefined: no scored rating reaches the threshold {threshold:g}; lower threshold=."
