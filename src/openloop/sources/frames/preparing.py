"""A log frame and models, checked and joined, with notes for readers of the estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from openloop.errors import InputError
from openloop.sources import remarks
from openloop.sources.frames.joining import Joined, join
from openloop.sources.frames.list_gaps import list_notes
from openloop.sources.frames.source import FrameSource
from openloop.sources.question import Question


def from_frame(models: Mapping[str, Any], log: Any, propensity: Any, asked: Question) -> tuple[FrameSource, list[str]]:
    """The source of a log frame, and what the reader of its estimates should know."""
    if propensity is not None and not isinstance(propensity, str):
        raise InputError(
            f"evaluate: with a frame as the log, propensities is the name of its column, got "
            f"{type(propensity).__name__}; add them as a column, or read the log with ol.read."
        )
    if propensity is None and (asked.share is not None or asked.excluded_share is not None):
        raise InputError("evaluate: share= and excluded_share= scale propensities; name their column, too.")
    with ExitStack() as until:  # what is held is given back, also where something is refused
        joined = join(models, log, propensity, asked, until)
        source = FrameSource(joined, asked)
        source.held = until.pop_all()
    notes = [*joined.notes, *source.notes, *_notes(joined, asked)]
    if "rank" in asked.kinds and not asked.checked:
        notes += list_notes(source.gaps())
    return source, notes


def _notes(joined: Joined, asked: Question) -> Iterator[str]:
    """What the reader of the estimates should know about how they were made."""
    excludes, weighted = asked.exclude is not None, bool(joined.weights)
    if asked.whole is not None and asked.whole.positives:
        yield remarks.POSITIVES
    if weighted and not asked.scaled:
        yield remarks.up_to_factor(remarks.BY_TIME, excluded=excludes)
    if joined.excluded is not None and (again := joined.excluded.overlap):
        yield remarks.still_candidates(again)
    if weighted and excludes and asked.excluded_share is None:
        yield "exclude= changes the candidates, not their probability; pass excluded_share= if both are one log"
    if weighted and excludes and asked.excluded_share == 0 and asked.scaled:
        yield remarks.NO_PART
