"""What looks wrong about models' predictions: copies of the ratings, a constant, another scale."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from openloop.moments.requests import Answers, LogFacts
from openloop.moments.source import BlockSource

COPIED = 0.99  # from this share of rows on, predictions that are the ratings are a leak


def copies(source: BlockSource, model: str) -> bool:
    """Whether a model's predictions are the log's own ratings."""
    given = source.answers(model)
    return given is not None and given.copied >= COPIED and len(source.about().ratings) != 1


def off_scale(given: Answers, about: LogFacts) -> bool:
    """Whether predictions lie so far outside the ratings that they are on another scale; some models overshoot."""
    low, high = about.span
    reach = 2 * (high - low)
    return given.low < low - reach or given.high > high + reach


def suspicions(source: BlockSource, kinds: Collection[str], *, chosen: bool) -> Iterator[str]:
    """What looks wrong, for the kinds of metrics that look at it; `chosen`: the metrics were named by the caller."""
    about = source.about()
    for model in source.models:
        given = source.answers(model)
        if given is None:
            continue
        if copies(source, model):
            yield (
                f"model {model!r}: {given.copied:.1%} of its predictions are the log's own ratings, a leak: was it "
                "trained on the rows that it is judged by?"
            )
        elif given.low == given.high and "rank" in kinds:
            yield f"model {model!r}: all its scores are {given.low:g}, so its ranking is random"
        elif chosen and "prediction" in kinds and off_scale(given, about):
            low, high = about.span
            yield (
                f"model {model!r}: its predictions run from {given.low:g} to {given.high:g}, the ratings from {low:g} "
                f"to {high:g}: are they on another scale?"
            )
