"""What an audit asks its source beside estimates: doubts about the log, gains of ranks, the setting."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, cast

from openloop.audits.answers import Reason
from openloop.audits.basis import Basis
from openloop.audits.results import Setting, stamped
from openloop.audits.rules import DROPPED, EFFECTIVE_ROWS, RARE_ROWS, dropped, unfit
from openloop.core.feedback import Feedback
from openloop.core.metric import Metric
from openloop.data.scanning import Log
from openloop.errors import NameFormatError
from openloop.evaluation import Prepared
from openloop.metrics.naming import metric as metric_named
from openloop.moments.setting import Strata
from openloop.moments.source import BlockSource
from openloop.moments.tilt_plan import tilted
from openloop.support.wording import percent


def survey(ready: Prepared, strata: Sequence[Strata]) -> None:
    """Have what an audit asks of a log found by few passes over it."""
    source, metrics = ready.source, [*ready.metrics, all_rows("prediction"), *(all_rows(m.on) for m in ready.metrics)]
    tilts = dict.fromkeys(m.on for m in ready.metrics if tilted(m))
    also = [
        source.about, partial(source.weight_on_rare, RARE_ROWS), *(partial(source.answers, m) for m in source.models),
        *(partial(source.tilting, on) for on in tilts),
    ]  # fmt: skip
    source.survey(metrics, strata, also)


def listed_scores(source: BlockSource, metric: Metric, basis: Basis) -> dict[str, float]:
    """What each model would score if everything were liked, where weights fitted on this log can be tested so.

    Weights that are blind to the rating and were fitted to users and items do not show what is liked less: what is
    seen more often may be liked more.
    """
    made = (basis.balanced or basis.by_cells) and not basis.positives
    tried = metric.on == "rank" and not metric.groups
    return source.listed(metric) if made and tried else {}


def gains_of_ends(metric: Metric, items: int) -> tuple[float, float] | None:
    """The gains of the worst and the best rank, NaN where unknown; None for the library's metrics, which begin at 0."""
    if metric.by_rank is None:
        return None if _named(metric) else (math.nan, math.nan)
    table = metric.by_rank.table(items)
    low, high = float(table.min()), float(table.max())
    return (low, high) if metric.better == "higher" else (high, low)


def _named(metric: Metric) -> bool:
    """Whether the library has a metric of that name."""
    try:
        return metric_named(metric.name).on == metric.on
    except NameFormatError:
        return False


def trained_on(log: Any, models: Mapping[str, Any]) -> tuple[str, ...]:
    """The models that were trained on this log, or on all of the log that it is a part of, as far as they can tell."""
    if not isinstance(log, Feedback):
        return ()
    seen = {name: getattr(model, "fitted_on_", None) for name, model in models.items()}
    known = {log.fingerprint, log.origin} - {None} if any(seen.values()) else set[str]()
    return tuple(name for name, cells in seen.items() if isinstance(cells, str) and cells in known)


def rare_share(source: BlockSource) -> float:
    """The share of Σw on items with few rows; 0 where it is unknown, or too few rows would be left."""
    found = source.weight_on_rare(RARE_ROWS)
    return found[0] if found is not None and found[1] >= EFFECTIVE_ROWS else 0.0


def all_rows(on: str) -> Metric:
    """A metric that every scored row counts for, to ask a source about its weights."""
    return metric_named("mae" if on == "prediction" else "dcg")


# -- the log and its propensities --------------------------------------------------------------------------------


def doubts_about(ready: Prepared, checked: Any) -> Iterator[str | Reason]:
    """Why this log supports no choice for any estimates."""
    # Balanced weights do not rest on what the model within them predicts, which may be one p for all cells.
    if checked is not None and checked.no_better_than_none and checked.balancing is None:
        yield from unfit()
    about = ready.source.about()
    yield from dropped(about.dropped / (about.rows + about.dropped))
    yield from _unlisted(ready.source)
    for model, cells in ready.source.masked().items():
        yield (
            f"model {model!r} has the score -inf for {cells:,} candidates, so it never lists them although they "
            "may be liked; pass exclude= with what was masked, or scores without a mask"
        )


def _unlisted(source: BlockSource) -> Iterator[str]:
    """Models without lists for users who have scored rows."""
    for name in source.models:
        without = source.unlisted(name)
        if without > DROPPED:
            yield (
                f"model {name!r} has no list for the users of {percent(without)} of the scored rows, and these rows "
                'count against it; give lists for these users, or judge by cold="report"'
            )


def setting_of(source: BlockSource, propensities: Any, log: Any, began: float) -> Setting:
    """What was audited: the log, where it lives, and where the propensities come from."""
    about = source.about()
    if propensities is None:
        words = "the log's own" if _has_propensities(log) else "none"
    else:
        words = f"column {propensities!r}" if isinstance(propensities, str) else type(propensities).__name__
    return stamped(Setting(**asdict(about), log=_place(log), propensity=words), began)


def _has_propensities(log: Any) -> bool:
    if isinstance(log, Feedback):
        return log.propensity is not None
    return isinstance(log, Log) and "propensity" in log.columns


def _place(log: Any) -> str:
    """Where a log's rows are."""
    if isinstance(log, Feedback):
        return "a log in memory"
    rows = log.source if isinstance(log, Log) else log
    if isinstance(rows, str | os.PathLike):
        return f"{rows}, scanned"
    if isinstance(rows, list | tuple):
        return f"{len(cast('Sequence[Any]', rows)):,} files, scanned"
    return f"a {type(rows).__module__.partition('.')[0]} frame"
