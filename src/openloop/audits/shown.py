"""The audit of rankers by impressions: their values, what those rest on, and the verdict by its own rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from openloop.audits import rules
from openloop.audits.answers import Reason
from openloop.audits.contrasts import Contrast, contrasts, estimators_of
from openloop.audits.evidence import Evidence, Rulebook
from openloop.audits.positions import ASSUMED, Positions, positions_of
from openloop.audits.question import check_models
from openloop.audits.results import Audit, Family, Setting, stamped
from openloop.audits.verdict import contradicted, decide, doubts, influential
from openloop.core.comparison import Comparison
from openloop.core.impressions import Impressions
from openloop.core.weights import THIN_SAMPLE
from openloop.estimators.resampling import probability_of_being_best
from openloop.estimators.shown import FEW_CLICKS, FULL_REACH, NOISE, ShownMethod, reach
from openloop.impressions.comparing import conclude_shown
from openloop.impressions.question import ShownQuestion
from openloop.impressions.source import ShownSource
from openloop.support.clock import start
from openloop.support.progress import Step, silent
from openloop.support.wording import percent

ESTIMATORS = ("snpbm", "sniips", "snrips", "pi")  # and affine, where examination has a and b
# The first that nothing speaks against decides. pi and doubly robust forms are witnesses only.
DECIDING = ("snpbm", "sniips", "snrips", "pbm", "iips", "rips", "snsips", "sips", "affine")
IN_ENGINE = {"items above": "the rows stay in their engine; read the log with ol.read"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownEvidence(Evidence):
    """The evidence of impressions: also what is known of their positions."""

    positions: Positions
    reach: Mapping[str, float] = field(default_factory=dict[str, float])  # of models that the log does not reach


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownAuditQuestion(ShownQuestion):
    """A `ShownQuestion`, and what `audit` asks beyond it."""

    estimators: Sequence[str | ShownMethod] | str | None = ESTIMATORS
    baseline: str | None = None
    rng: Any = 0


def conduct_shown(
    models: Mapping[str, Any], log: Any, exam: Any, asked: ShownAuditQuestion, step: Step = silent
) -> Audit:
    """The audit that answers the question."""
    began = start()
    check_models(models, asked.baseline)
    if asked.estimators == ESTIMATORS and hasattr(exam, "offset_"):
        asked = replace(asked, estimators=(*ESTIMATORS, "affine"))
    step("reading the models", 0.0)
    with closing(ShownSource(models, log, exam, asked)) as source:
        return _conducted(source, log, exam, asked, step, began)


def _conducted(source: ShownSource, log: Any, exam: Any, asked: ShownAuditQuestion, step: Step, began: float) -> Audit:
    step("estimating", 0.2)
    result = conclude_shown(source, asked)
    step("checking what values rest on", 0.6)
    seen = _positions(source, exam, asked)
    found = replace(_evidence(result, asked, seen), reach=_short(source, asked))
    verdict = decide(found, BOOK)
    told = tuple(_checked(found))
    return Audit(
        verdict=replace(verdict, sentences=(*verdict.sentences, *told)), metric=found.metric,
        estimator=found.estimator, result=result, contrasts=found.contrasts, best=found.best, positions=seen,
        setting=_setting(result, log, exam, began), notes=result.notes,
    )  # fmt: skip


def _positions(source: ShownSource, exam: Any, asked: ShownAuditQuestion) -> Positions:
    if source.log is None:
        by = getattr(exam, "by", "")
        return Positions(lines=(), requests=0, clusters="users", examined_by=by, in_engine=True, unchecked=IN_ENGINE)
    # Ranks among what was shown depend on the positions themselves, and label nothing.
    return positions_of(source.log, exam, asked.level, {} if asked.reorders else source.row_ranks())


def _short(source: ShownSource, asked: ShownAuditQuestion) -> dict[str, float]:
    """The reach of models of whose lists the log does not hold all, by the sharpest weights there are."""
    kind = next((k for k in ("pbm", "iips") if source.support.refusal(k) is None), None)
    if kind is None or asked.reorders:
        return {}
    found = {model: reach(source.moments(model, kind)) for model in source.models}
    return {model: value for model, (value, error) in found.items() if value + NOISE * error < FULL_REACH}


def _evidence(result: Comparison, asked: ShownAuditQuestion, seen: Positions) -> ShownEvidence:
    families = [(m, e) for m in result.metrics for e in estimators_of(result, m)]
    found = {
        (m, e): tuple(replace(c, arms=None) for c in contrasts(result, m, e, asked.baseline))  # weights widen them
        for m, e in families
    }
    best = {
        (m, e): probability_of_being_best({x: result[x, m, e] for x in result.models}, result.better[m], rng=asked.rng)
        for m, e in families
    }
    metric, estimator = _family(result, seen)
    return ShownEvidence(
        result=result, metric=metric, estimator=estimator, contrasts=found, best=best, positions=seen, weighted=False,
    )  # fmt: skip


def _family(result: Comparison, seen: Positions) -> Family:
    """The first metric, and the first deciding estimator whose assumptions no check rejects."""
    metric = result.metrics[0]
    known = estimators_of(result, metric)
    ordered = [e for e in DECIDING if e in known] or known
    sound = [e for e in ordered if seen.against(e) is None and not seen.unknown(e)]
    return metric, (sound or ordered)[0]


def _setting(result: Comparison, log: Any, exam: Any, began: float) -> Setting:
    first = result.estimates[next(iter(result.estimates))]
    words = "none" if exam is None else f"by {exam.by}" if hasattr(exam, "by") else "θ as given"
    known = isinstance(log, Impressions)
    return stamped(
        Setting(
            rows=first.diagnostics.n, users=first.n_users, items=log.n_items if known else 0,
            scored_users=first.scored_users, ratings=(), threshold=0.0,
            span=(float(log.reward.min()), float(log.reward.max())) if known else (0.0, 0.0), propensity=words,
        ),
        began,
    )  # fmt: skip


def _checked(found: ShownEvidence) -> Iterator[str]:
    """What was checked of the deciding estimator's assumptions, and what could not be."""
    seen = found.positions
    yield from (f"Check: {check.words}." for check in seen.checks.values())
    if "items above" in seen.unchecked and found.estimator in ASSUMED["items above"]:
        why = seen.unchecked["items above"].rstrip(".")
        yield f"That items above do not matter could not be checked: {why}."


# -- the rules -----------------------------------------------------------------------------------------------


def _rejected(found: Evidence) -> Iterator[Reason]:
    """A check that speaks against what the estimator assumes, or that could not be made where it decides."""
    assert isinstance(found, ShownEvidence)  # noqa: S101 (this book is for no other)
    check = found.positions.against(found.estimator)
    if check is not None:
        yield Reason(
            code=check.name.replace(" ", "-"), value=check.pvalue, limit=0.05, text=check.words,
            remedy=rules.ABOVE if check.name == "items above" else rules.TRUST,
        )  # fmt: skip
    if unknown := found.positions.unknown(found.estimator):
        yield Reason(code="unchecked", text=unknown, remedy=rules.CHECKED)


def _gapped(found: Evidence) -> Iterator[Reason]:
    """Rows that were not logged, as those without a click often are."""
    assert isinstance(found, ShownEvidence)  # noqa: S101
    if found.positions.gaps:
        yield Reason(
            code="gaps", value=found.positions.gaps, limit=0, remedy=rules.COMPLETE,
            text=f"{found.positions.gaps:,} of {found.positions.requests:,} requests lack rows above others: what was "
            "shown there is not known, and examination is wrong where rows without a click are missing",
        )  # fmt: skip


def _witness(found: Evidence) -> Iterator[Reason]:
    """Estimators that may contradict, and do not decide."""
    if found.estimator not in DECIDING:
        yield Reason(
            code="estimator", remedy=rules.POSITIONED,
            text=f"{found.estimator} can only confirm other estimators, and this log allows none that decides",
        )  # fmt: skip


def _reached(found: Evidence, c: Contrast) -> Iterator[Reason]:
    """A model that shows what the log never did, where weights fill in what is missing."""
    assert isinstance(found, ShownEvidence)  # noqa: S101
    for model in (c.a, c.b):
        if model in found.reach:
            yield Reason(
                code="reach", value=found.reach[model], limit=FULL_REACH, remedy=rules.SHOWN,
                text=f"the log holds {percent(found.reach[model])} of what {model} shows, and nothing is known of the "
                "rest",
            )  # fmt: skip


def _support(found: Evidence, c: Contrast) -> Iterator[Reason]:
    """Enough users, clicks and rows for each of the two models, after weighting."""
    for model in (c.a, c.b):
        seen = found.result[model, *found.family].diagnostics
        for code, what, value, limit in (
            ("users", "users or requests", seen.users, rules.USERS),
            ("clicks", "effective clicks", seen.effective_clicks, FEW_CLICKS),
            ("rows", "effective rows at one position", seen.effective_rows, THIN_SAMPLE),
        ):
            if value is not None and value < limit:
                yield Reason(
                    code=code, value=value, limit=limit, remedy=rules.LONGER,
                    text=f"support too thin: {model} has {value:.0f} {what}, at least {limit} are needed",
                )  # fmt: skip


def _contradicted(found: Evidence, c: Contrast) -> Iterator[Reason]:
    """Other estimators of the same value, against which no check speaks, that have the pair the other way round."""
    assert isinstance(found, ShownEvidence)  # noqa: S101
    sound = [e for e in found.witnesses if found.positions.against(e) is None]
    yield from contradicted(found, c, sound, rules.SHUFFLED)


BOOK = Rulebook(
    of_the_log=(doubts, _gapped, _rejected, _witness), of_pairs=(influential, _reached, _support, _contradicted)
)
