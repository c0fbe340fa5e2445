"""From rankers and impressions to a Comparison: which moments are asked for, and what is skipped and why."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from openloop.core.comparison import Comparison, Key
from openloop.core.estimate import Estimate
from openloop.errors import UndefinedError
from openloop.estimators.shown import ShownMethod
from openloop.impressions.question import ShownQuestion
from openloop.impressions.reduction import Kind
from openloop.impressions.source import ShownSource
from openloop.impressions.support import LogSupport
from openloop.support.wording import reasons


def compare_shown(models: Mapping[str, Any], log: Any, exam: Any, question: ShownQuestion) -> Comparison:
    """Estimate each metric of each ranker by each estimator, from Impressions or from a log that is scanned."""
    with closing(ShownSource(models, log, exam, question)) as source:
        return conclude_shown(source, question)


def conclude_shown(source: ShownSource, question: ShownQuestion) -> Comparison:
    """Every estimate, each for all rankers or for none; those of one kind of weights share their moments."""
    skipped: dict[tuple[str, str], str] = {}
    out_of_reach: dict[tuple[str, str], str] = {}
    defined: dict[tuple[str, ShownMethod], Kind] = {}
    for metric in question.measures:
        for method in question.methods:
            kind = "dcg" if metric == "dcg" else method.kind
            reason = method.undefined(metric) or _refused(source.support, metric, method, kind)
            if reason is None:
                defined[metric, method] = kind, method.robust
            else:
                skipped[metric, method.name] = reason
    estimates: dict[Key, Estimate] = {}
    source.reduce(defined.values())
    for (metric, method), kind in defined.items():
        try:
            estimates |= _of_rankers(source, kind, metric, method)
        except UndefinedError as error:
            out_of_reach[metric, method.name] = str(error)
    if not estimates:
        raise _none(skipped, out_of_reach)
    order = [(m, x, e.name) for m in source.models for x in question.measures for e in question.methods]
    return Comparison(
        estimates={key: estimates[key] for key in order if key in estimates}, skipped=skipped | out_of_reach,
        level=question.level, better=dict.fromkeys(question.measures, "higher"), notes=source.notes,
    )  # fmt: skip


def _of_rankers(source: ShownSource, kind: Kind, metric: str, method: ShownMethod) -> dict[Key, Estimate]:
    estimates: dict[Key, Estimate] = {}
    for model in source.models:
        try:
            m = source.moments(model, kind[0], robust=kind[1])
            estimates[model, metric, method.name] = method.estimate(replace(m, metric=metric))
        except UndefinedError as error:
            raise UndefinedError(f"{str(error).rstrip('.')} (model {model!r}).") from error
    return estimates


def _none(skipped: Mapping[tuple[str, str], str], out_of_reach: Mapping[tuple[str, str], str]) -> UndefinedError:
    """The error where nothing is left: first what the rows themselves refuse, with what would help."""
    tried, lacking = reasons(out_of_reach), reasons(skipped)
    if tried and lacking:
        lacking = ["The other estimators are undefined, too:", *lacking]
    return UndefinedError(" ".join([*tried, *lacking]))


def _refused(support: LogSupport, metric: str, method: ShownMethod, kind: str) -> str | None:
    reason = support.refusal(kind, robust=method.robust)
    return None if reason is None else f"{method.name} of {metric} is undefined: {reason}."
