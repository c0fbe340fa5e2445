"""`report`: an audit or a comparison as one HTML file, its sections in their order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal

from openloop.audits.answers import Level
from openloop.audits.change_lists import Changes
from openloop.audits.next_steps import NextStep
from openloop.audits.results import Audit
from openloop.core.comparison import Comparison
from openloop.errors import InputError
from openloop.reporting import cold_rows, evidence, listings, positions, rehearsals, sections, tilts
from openloop.reporting.blocks import Section, VerdictBlock
from openloop.reporting.change_sections import change_page
from openloop.reporting.rendering import page_of
from openloop.reporting.sections import Subject
from openloop.reporting.words import moment
from openloop.support.atomic import replacing
from openloop.support.wording import counted

STATES: dict[Level, Literal["supported", "conditional", "unsupported"]] = {
    "verdict": "supported", "conditional": "conditional", "none": "unsupported",
}  # fmt: skip


def report(result: Audit | Comparison | Changes, path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Write the report of an audit, or the parts that a comparison can fill, as one HTML file.

    The changes from one audit to another, `new.since(old)`, have their own page. A write that fails leaves no partial
    file.

    Args:
        result: An `Audit`, a `Comparison`, or the `Changes` between two audits.
        path: The file.
        title: The title of the page; None names the models.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import openloop as ol
        >>> world = ol.simulate.movie_lovers()
        >>> found = ol.evaluate(world.predictions, world.observe(rng=0), metrics=["mae"], estimators=["naive", "snips"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ol.report(found, Path(folder, "report.html"))
        ...     size = Path(folder, "report.html").stat().st_size
        >>> size > 100_000
        True
    """
    if not isinstance(result, Audit | Comparison | Changes):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"report: takes an Audit, a Comparison or Changes, got {type(result).__name__}; ol.Audit.from_json reads "
            "the JSON of an audit."
        )
    if isinstance(result, Comparison) and not result.estimates:
        raise InputError("report: the comparison has no estimate; see its skipped for the reasons.")
    with replacing(path) as temporary:  # a path that cannot be written fails before the work
        # Names of files need not be UTF-8; what cannot be written is escaped.
        text = change_page(result, title) if isinstance(result, Changes) else page(Subject.of(result), title)
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def page(of: Subject, title: str | None = None) -> str:
    """The page as text."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):  # charts are valid by test; checking them again costs a second
        parts = tuple(_sections(of))
    top = (_verdict(of), sections.facts(of))
    return page_of(title or _title(of), top, sections=parts, meta=_meta(of), names=of.result.models)


def _sections(of: Subject) -> Iterator[Section]:
    yield sections.leaderboard(of)
    if len(of.result.models) > 1:
        yield sections.differences(of)
        if len(of.result.estimators) > 1:  # one agrees with itself
            yield sections.places(of)
    if of.shown is None:
        yield from sections.strata(of)
        yield from cold_rows.cold(of)
        yield from listings.lists(of)
        yield from evidence.weights(of)
    for part in (
        positions.positions,
        tilts.sensitivity,
        rehearsals.rehearsal,
        evidence.open_loop,
        evidence.friedman,
        evidence.data,
    ):
        yield from part(of)
    yield evidence.left_out(of)
    yield evidence.computed(of)


def _verdict(of: Subject) -> VerdictBlock:
    if of.audit is None:
        call = f"ol.audit(models, log, propensities, metrics={of.metrics!r})"
        step = NextStep(words="an audit, which says whether that can be trusted", command=call)
        steps = (step,) if len(of.result.models) > 1 else ()  # which compares models
        turns = tuple(sections.changes(of))
        return VerdictBlock(state="neutral", headline=_comparison_words(of), changes=turns, steps=steps)
    verdict, steps = of.audit.verdict, of.audit.next_steps
    said = {f"{step.words}." for step in steps}
    return VerdictBlock(
        state=STATES[verdict.level],
        headline=verdict.headline,
        sentences=tuple(sentence for sentence in verdict.sentences if sentence not in said),
        reasons=verdict.told,
        changes=tuple(sections.changes(of)),
        steps=steps,
        warnings=of.audit.warnings,
    )


def _comparison_words(of: Subject) -> str:
    first, *others = of.result.ranking(of.metric, of.estimator)
    if not others:
        return f"{of.estimator} of {of.metric} for {first}; an audit needs another model to compare it with"
    return f"{first} has the best {of.metric} under {of.estimator}"


def _title(of: Subject) -> str:
    models = counted(len(of.result.models), "model")
    return f"Comparison of {models}" if of.audit is None else f"Audit of {models} on {of.audit.setting.log}"


def _meta(of: Subject) -> str:
    if of.audit is None:
        return f"{counted(len(of.metrics), 'metric')}, {counted(len(of.result.estimators), 'estimator')}"
    s = of.audit.setting
    size = f"{counted(s.rows, 'row')}, {counted(s.users, 'user')}, {counted(s.items, 'item')}"
    return " · ".join(text for text in (moment(s.created), size) if text)
