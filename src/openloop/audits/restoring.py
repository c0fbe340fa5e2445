"""An audit from the JSON that it was written as: each part is checked, and that the parts fit together.

The numbers are those of the file; users' parts are not in it, so the estimates are `KeptEstimate`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from openloop.audits.answers import Verdict
from openloop.audits.cold import ColdPart
from openloop.audits.contrasts import Contrast
from openloop.audits.paradox import Paradox
from openloop.audits.positions import PositionLine, Positions
from openloop.audits.rankings import Friedman
from openloop.audits.rehearsal import Rehearsal
from openloop.audits.results import (
    SCHEMA,
    Audit,
    Curve,
    LineKind,
    OpenLoop,
    Score,
    Setting,
    StrataLine,
    StrataTable,
)
from openloop.audits.settling import Settling
from openloop.core.comparison import Comparison, Key
from openloop.core.estimate import Estimate, Interval
from openloop.core.lists import LISTS
from openloop.core.weights import N_BINS, Diagnostics, WeightSummary
from openloop.errors import FormatError, UndefinedError, listing, quoted
from openloop.propensity.checks.checking import Check
from openloop.propensity.checks.positions import PositionCheck
from openloop.support.arguments import check_level
from openloop.support.atomic import FilePath, finite
from openloop.support.foreign import read_json
from openloop.support.typed import below, built, fitting, part, refuse

AGAIN = "write it by `openloop audit … --json FILE`"

CLOSE, NOTHING = 1e-6, 1e-12  # of a number, and what may be left of 0: another machine may round differently

K = TypeVar("K")


def audit_in(path: FilePath) -> Audit:
    """The audit in a file, which may come from anywhere."""
    where = f"{path}: "
    record = read_json(path, AGAIN)
    _check_schema(record, where)
    found = _audit(Record(record, where))
    for problem in _contradictions(found):
        raise FormatError(f"{where}{problem}; {AGAIN}.")
    for place, own, given in _denied(record, finite(found.records()), where):
        refuse(place, f"must be {'null' if own is None else quoted(own)}, as other parts of the file say", given)
    return found


def _check_schema(record: Any, where: str) -> None:
    """A result of another kind, and an audit by another version, get their own messages."""
    known = record.get("schema") if isinstance(record, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if known == SCHEMA:
        return
    if isinstance(known, str) and known.startswith(SCHEMA.rpartition("/")[0]):
        rule = f"has schema {quoted(known)}, this version of openloop reads {SCHEMA!r}; audit again"
    elif isinstance(record, dict) and "verdict" in record and "setting" in record:
        rule = "names no schema, as audits by older versions of openloop; audit again"
    elif isinstance(record, dict) and "estimates" in record:
        rule = (
            "is a comparison, which keeps no paired differences; audit the models, or call ol.report on the comparison"
        )
    else:
        rule = f"is not an audit: its schema must be {SCHEMA!r}, got {'none' if known is None else quoted(known)}"
    raise FormatError(f"{where}{rule}; {AGAIN}.")


class Record:
    """An object of the file, and where in the file it is."""

    def __init__(self, held: Any, where: str) -> None:
        self.held: dict[str, Any] = fitting(dict, held, where)
        self.where = where

    def __call__(self, name: str, kind: Any) -> Any:
        """What a key holds, as `kind`."""
        return built(kind, *part(self.held, name, self.where))

    def of(self, name: str) -> Record:
        """The object below a key."""
        return Record(*part(self.held, name, self.where))

    def optional(self, name: str) -> Record | None:
        """The object below a key, None for null."""
        held, where = part(self.held, name, self.where)
        return None if held is None else Record(held, where)

    def each(self, name: str) -> Iterable[Record]:
        """The objects of the list below a key."""
        held, where = part(self.held, name, self.where)
        return (Record(item, f"{where}[{n}]") for n, item in enumerate(fitting(list, held, where)))

    def named(self, name: str) -> Iterable[tuple[str, Record]]:
        """The objects below a key, by their names."""
        held, where = part(self.held, name, self.where)
        return ((str(key), Record(item, below(where, str(key)))) for key, item in fitting(dict, held, where).items())

    def level(self, name: str) -> float:
        """A level of intervals."""
        found = self(name, float)
        check_level(below(self.where, name), found)
        return found


def _audit(r: Record) -> Audit:
    result = _comparison(r.of("comparison"))
    if r("level", float) != result.level:
        refuse(below(r.where, "level"), f"must be that of comparison.level, {result.level}", r("level", float))
    best = {
        (b("metric", str), b("estimator", str)): b("models", dict[str, float])
        for b in r.each("probability_of_being_best")
    }
    loop, shown, weights, cold = (r.optional(name) for name in ("open_loop", "positions", "weights", "cold"))
    return Audit(
        verdict=r("verdict", Verdict), metric=r("metric", str), estimator=r("estimator", str), result=result,
        contrasts=_contrasts(r, lambda c: (c.metric, c.estimator)), best=best,
        strata=tuple(_table(t, result.level) for t in r.each("strata")),
        paradoxes=r("paradoxes", tuple[Paradox, ...]), curves=r("sensitivity", tuple[Curve, ...]),
        benchmarks=r("benchmarks", tuple[str, ...]), friedman=r("friedman", Friedman | None),
        open_loop=None if loop is None else _open_loop(loop), positions=None if shown is None else _positions(shown),
        rehearsal=r("rehearsal", Rehearsal | None), weights=None if weights is None else _weights(weights),
        check=r("propensity_check", Check | None), cold=None if cold is None else _cold(cold),
        settling=r("settling", tuple[Settling, ...]), setting=r("setting", Setting),
        not_computed=r("not_computed", dict[str, str]),
        warnings=r("warnings", tuple[str, ...]), notes=r("notes", tuple[str, ...]),
    )  # fmt: skip


def _comparison(r: Record) -> Comparison:
    level = r.level("level")
    read: dict[Key, Estimate] = {
        (e("model", str), e("metric", str), e("estimator", str)): _estimate(e, level) for e in r.each("estimates")
    }
    lists: dict[tuple[str, str], Estimate] = {
        (e("model", str), e("metric", str)): _estimate(e, level) for e in r.each("lists")
    }
    return Comparison(
        estimates=read, lists=lists, level=level, better=r("better", dict[str, str]),
        skipped={(s("metric", str), s("estimator", str)): s("reason", str) for s in r.each("skipped")},
        own_metrics=r("own_metrics", dict[str, str]), own_estimators=r("own_estimators", dict[str, str]),
        notes=r("notes", tuple[str, ...]),
    )  # fmt: skip


def _estimate(r: Record, level: float) -> KeptEstimate:
    return KeptEstimate(
        value=r("value", float), method=r("estimator", str), metric=r("metric", str), estimand=r("estimand", str),
        diagnostics=r("diagnostics", Diagnostics), units=r("units", int), p_taken=r("propensities", str),
        root=r("root", bool), kept_stderr=r("stderr", float), kept_df=r("df", float), kept_level=level,
        kept_interval=Interval(r("low", float), r("high", float)),
    )  # fmt: skip


class KeptEstimate(Estimate):
    """An estimate as a file keeps it, its value and error without users' parts: what asks for these is refused."""

    __slots__ = ("kept_df", "kept_interval", "kept_level", "kept_stderr")
    kept_stderr: float
    kept_df: float
    kept_level: float
    kept_interval: Interval

    def __init__(self, **fields: Any) -> None:
        for name, value in ({"influence": np.empty(0)} | fields).items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """What was not set: parts of users, as a difference needs them."""
        if name not in Estimate.__slots__:
            raise AttributeError(name)
        raise UndefinedError(
            f"{self.method} of {self.metric}: this needs each user's part, which a file does not keep; audit again for "
            "it, or use .contrast, which is kept."
        )

    @property
    def stderr(self) -> float:
        """The standard error over users, as it was written."""
        return self.kept_stderr

    @property
    def df(self) -> float:
        """The degrees of freedom of t, as they were written."""
        return self.kept_df

    def interval(self, level: float = 0.95, over: str | None = None) -> Interval:
        """The interval over users; at another level than the one that was written, by the same t."""
        over = over or "users"
        if over == "users" and level == self.kept_level:
            return self.kept_interval
        return super().interval(level, over)

    def _squares_error(self, error: float, over: str) -> float:
        """The written interval of the square has the half-width t·error."""
        half = self.kept_interval.high**2 - self.value**2
        return half / self._error(self.kept_level, over)[1]


def _contrasts(r: Record, family: Callable[[Contrast], K]) -> dict[K, tuple[Contrast, ...]]:
    """The contrasts by family, in the order of the file."""
    found: dict[K, list[Contrast]] = {}
    for c in r("contrasts", tuple[Contrast, ...]):
        found.setdefault(family(c), []).append(c)
    return {key: tuple(pairs) for key, pairs in found.items()}


def _table(r: Record, level: float) -> StrataTable:
    metric = r("metric", str)
    return StrataTable(metric=metric, by=r("by", str), lines=tuple(_line(x, metric, level) for x in r.each("lines")))


def _line(r: Record, metric: str, level: float) -> StrataLine:
    weighted, unweighted = (
        {model: _mean(e, metric, level) for model, e in r.named(name)} for name in ("models", "plain")
    )
    facts: dict[str, Any] = {
        "name": str, "kind": LineKind, "rows": int, "items": int | None, "share": float | None, "best": str | None,
    }  # fmt: skip
    return StrataLine(
        **{name: r(name, kind) for name, kind in facts.items()}, limits=r("propensity", tuple[float, float] | None),
        estimates=dict(weighted), plain=dict(unweighted),
    )  # fmt: skip


def _mean(r: Record, metric: str, level: float) -> KeptEstimate:
    """A mean in a stratum, of which less is kept."""
    seen = Diagnostics(n=r("rows", int), users=r("users", int))
    return KeptEstimate(
        value=r("value", float), method="mean", metric=metric, diagnostics=seen, units=seen.users,
        kept_stderr=r("stderr", float), kept_df=float("nan"), kept_level=level,
        kept_interval=Interval(r("low", float), r("high", float)),
    )  # fmt: skip


def _open_loop(r: Record) -> OpenLoop:
    return OpenLoop(
        rows=r("rows", int), result=_comparison(r.of("comparison")), scores=r("scores", tuple[Score, ...]),
        contrasts=_contrasts(r, lambda c: c.metric), gamma_min=r("gamma_min", float | None),
    )  # fmt: skip


def _positions(r: Record) -> Positions:
    return Positions(
        lines=r("lines", tuple[PositionLine, ...]), checks=r("checks", dict[str, PositionCheck]),
        unchecked=r("unchecked", dict[str, str]), requests=r("requests", int), clusters=r("clusters", str),
        examined_by=r("examined_by", str), in_engine=r("in_engine", bool), gaps=r("gaps", int),
    )  # fmt: skip


def _weights(r: Record) -> WeightSummary:
    histogram = np.zeros(N_BINS, np.int64)
    for n, rows in r("histogram", tuple[tuple[int, int], ...]):
        if not (0 <= n < N_BINS and 0 <= rows < 2**63):
            refuse(below(r.where, "histogram"), f"must have bins 0 to {N_BINS - 1} and rows from 0", f"{n}: {rows}")
        histogram[n] = rows
    return WeightSummary(
        n=r("rows", int), total=r("total", float), squares=r("squares", float), largest=r("largest", float),
        smallest_propensity=r("smallest_propensity", float), histogram=histogram,
    )  # fmt: skip


def _cold(r: Record) -> ColdPart:
    inner = r.optional("comparison")
    return ColdPart(
        rows=r("rows", int), warm=r("warm_rows", int), users=r("users", int), items=r("items", int),
        result=None if inner is None else _comparison(inner), reason=r("reason", str),
    )  # fmt: skip


# -- what must fit together ----------------------------------------------------------------------------------


def _contradictions(found: Audit) -> Iterable[str]:
    """What a part says that another part denies."""
    families = {key[1:] for key in found.result.estimates}
    if (found.metric, found.estimator) not in families:
        yield f"metric and estimator must have estimates, got {quoted(found.metric)} and {quoted(found.estimator)}"
    yield from _incomplete(found.result, "comparison")
    if found.open_loop is not None:
        yield from _incomplete(found.open_loop.result, "open_loop.comparison")
    unknown = [name for name in dict.fromkeys(_models_named(found)) if name not in found.models]
    if unknown:
        yield f"all models named must have estimates, got {listing(unknown)}"
    strange = {*found.contrasts, *found.best, *((c.metric, c.estimator) for c in found.curves)} - families
    if strange:
        yield f"contrasts, chances and curves must be of what has estimates, got {listing(sorted(strange))}"
    for n, c in enumerate(found.curves):
        sizes = {len(c.at), len(c.low), len(c.high), len(c.value) or len(c.at)}
        if len(sizes) > 1 or not c.at:
            yield f"sensitivity[{n}]: at, value, low and high must be equally long, got lengths {sorted(sizes)}"
    for n, c in enumerate(c for pairs in found.contrasts.values() for c in pairs):
        if c.a == c.b or c.better not in (None, c.a, c.b):
            of = f"{quoted(c.better)} of {quoted(c.a)} and {quoted(c.b)}"
            yield f"contrasts[{n}]: better must be one of two models, got {of}"


def _denied(given: Any, own: Any, where: str) -> Iterable[tuple[str, Any, Any]]:
    """The numbers of the file that follow from others and are not what follows; with what does, and its place.

    A page would show what follows. Words may be those of another version.
    """
    if isinstance(given, dict) and isinstance(own, dict):
        held: dict[str, Any] = given
        for name in [name for name in held if name in own]:
            yield from _denied(held[name], own[name], below(where, name))
    elif isinstance(given, list) and isinstance(own, list) and len(given) == len(own):  # pyright: ignore[reportUnknownArgumentType]
        for n, (one, other) in enumerate(zip(given, own, strict=True)):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            yield from _denied(one, other, f"{where}[{n}]")
    elif not (isinstance(given, str) and isinstance(own, str)) and not _alike(given, own):
        yield where, own, given


def _alike(given: Any, own: Any) -> bool:
    """Whether two values are the same number, but for rounding, or the same."""
    if type(given) in (int, float) and type(own) in (int, float):
        return math.isclose(given, own, rel_tol=CLOSE, abs_tol=NOTHING)
    return type(given) is type(own) and given == own


def _incomplete(result: Comparison, name: str) -> Iterable[str]:
    """Estimates are of all models, and something is estimated."""
    if not result.estimates:
        yield f"{name}.estimates must hold an estimate, got none"
    for kind, held in (("estimates", [*result.estimates]), ("lists", [(*key, LISTS) for key in result.lists])):
        for metric, estimator in dict.fromkeys(key[1:] for key in held):
            missing = [m for m in result.models if (m, metric, estimator) not in held]
            if missing:
                yield f"{name}.{kind} must be of all models, got no {estimator} of {metric} for {listing(missing)}"
    wrong = {side for side in result.better.values() if side not in ("higher", "lower")}
    if wrong:
        yield f"{name}.better must be 'higher' or 'lower', got {listing(sorted(wrong))}"


def _models_named(found: Audit) -> Iterable[str]:
    """The models that parts name."""
    v = found.verdict
    yield from (name for name in (v.winner, v.leader, *v.unbeaten) if name is not None)
    for pair in (*v.pairs, *(c for pairs in found.contrasts.values() for c in pairs), *found.settling):
        yield from (pair.a, pair.b)
    for chances in found.best.values():
        yield from chances
    yield from (name for c in found.curves for name in (c.a, c.b) if name is not None)
    for line in (line for table in found.strata for line in table.lines):
        yield from (*line.estimates, *line.plain, *(() if line.best is None else (line.best,)))
    yield from () if found.open_loop is None else found.open_loop.result.models
    yield from () if found.rehearsal is None else (found.rehearsal.a, found.rehearsal.b)
