"""`Positions`: what an impression log says about each position, and the checks that values rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from openloop.core.impressions import Impressions
from openloop.errors import InputError, UndefinedError
from openloop.propensity.checks.positions import ExaminationChecks, PositionCheck, items_above_check

if TYPE_CHECKING:
    from openloop.propensity import Examination

# What each check is about: estimators whose weights assume it.
ASSUMED: Mapping[str, tuple[str, ...]] = {
    "items above": ("pbm", "snpbm", "iips", "sniips", "affine", "pbm_dr", "iips_dr"),
    "one theta": ("pbm", "snpbm", "pbm_dr"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionLine:
    """One position: its rows, their mean reward, and θ with its limits where examination is known."""

    position: int
    rows: int
    rate: float
    theta: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """Every position, and the checks that were made; `unchecked` says why others were not.

    Of rows that stay in their engine there are no lines and no checks.
    """

    lines: tuple[PositionLine, ...]
    requests: int
    clusters: str  # what intervals are over: "users" or "requests"
    examined_by: str = ""  # how θ was found; empty where it was given, or is not known
    in_engine: bool = False  # rows stay there, and are not looked at one by one
    gaps: int = 0  # requests that lack a row above another one
    checks: dict[str, PositionCheck] = field(default_factory=dict[str, PositionCheck])
    unchecked: dict[str, str] = field(default_factory=dict[str, str])

    def against(self, estimator: str) -> PositionCheck | None:
        """The first check that rejects what an estimator assumes."""
        found = (self.checks[name] for name, kinds in ASSUMED.items() if estimator in kinds and name in self.checks)
        return next((check for check in found if check.rejects), None)

    def unknown(self, estimator: str) -> str:
        """Why an estimator's assumptions cannot be checked, where that forbids a verdict; else empty.

        Ranks that may react to clicks make θ of users and items wrong by any amount. Rows in an engine could be
        checked, had they been read; other logs may lack shuffled requests, which is no reason against them.
        """
        if self.in_engine and estimator in ASSUMED["items above"]:
            return "the rows stay in their engine, so it was not checked that items above do not matter"
        if estimator in ASSUMED["one theta"] and not self.in_engine and not {*self.checks} & {*ASSUMED}:
            return "neither whether items above matter nor whether all items have one θ could be checked"
        if self.examined_by == "user-item" and estimator in ASSUMED["one theta"] and "reaction" not in self.checks:
            why = self.unchecked.get("reaction", "the check was not made").rstrip(".")
            return f"examination is by user and item, and whether ranks react to clicks could not be checked: {why}"
        return ""

    def records(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "lines": [asdict(line) for line in self.lines],
            "requests": self.requests,
            "clusters": self.clusters,
            "examined_by": self.examined_by,
            "in_engine": self.in_engine,
            "gaps": self.gaps,
            "checks": ExaminationChecks(checks=self.checks).records()["checks"],
            "unchecked": self.unchecked,
        }


def positions_of(log: Impressions, exam: Any, level: float, ranks: Mapping[str, Any]) -> Positions:
    """What a log says of its positions; `ranks` (n,) are those of each model's rows."""
    checks = _checks(log, exam, ranks)
    return Positions(
        lines=_lines(log, exam, level), requests=log.n_requests, checks=checks.checks, unchecked=checks.not_computed,
        clusters="requests" if log.users is None else "users", examined_by=getattr(exam, "by", ""), gaps=_gaps(log),
    )  # fmt: skip


def _gaps(log: Impressions) -> int:
    """The requests whose rows are not 1, 2, 3 …; none where the log names no requests."""
    return 0 if log.requests is None else int(np.count_nonzero(log.gapped))


def _lines(log: Impressions, exam: Any, level: float) -> tuple[PositionLine, ...]:
    K = log.depth
    rows = np.bincount(log.position - 1, minlength=K)  # (K,)
    rate = np.bincount(log.position - 1, log.reward, minlength=K) / np.maximum(rows, 1)
    theta: Any = getattr(exam, "theta_", exam)
    limits = exam.interval(level) if getattr(exam, "influence_", None) is not None else None
    return tuple(
        PositionLine(
            position=k + 1, rows=int(rows[k]), rate=float(rate[k]),
            theta=None if theta is None else float(theta[k]),
            low=None if limits is None else float(limits[k, 0]), high=None if limits is None else float(limits[k, 1]),
        )
        for k in range(K)
    )  # fmt: skip


def _checks(log: Impressions, exam: Any, ranks: Mapping[str, Any]) -> ExaminationChecks:
    """The examination's checks by the log's own labels and by each model's ranks, of which the sharpest counts."""
    labels = (None, *ranks.values())
    checker = _checker(log, exam)
    tried = [_items_above(log, label) if checker is None else checker.check(log, label) for label in labels]
    made = {
        name: min((found.checks[name] for found in tried if name in found.checks), key=lambda check: check.pvalue)
        for name in dict.fromkeys(name for found in tried for name in found.checks)
    }
    missing = {name: why for name, why in tried[0].not_computed.items() if name not in made}
    by_labels = {name: check.one_of(len(labels)) for name, check in made.items() if name in ASSUMED}
    return ExaminationChecks(checks=made | by_labels, not_computed=missing)


def _checker(log: Impressions, exam: Any) -> Examination | None:
    """An examination fitted on this log, whose parts can be compared; θ that was given has none."""
    from openloop.propensity import Examination  # scikit-learn is behind it, and audits of other logs do without

    if isinstance(exam, Examination) and exam.by != "known":
        return exam
    for by in ("randomised", "assignment"):
        try:
            return Examination(by=by).fit(log)
        except (UndefinedError, InputError):
            continue
    return None


def _items_above(log: Impressions, label: Any) -> ExaminationChecks:
    try:
        return ExaminationChecks(checks={"items above": items_above_check(log, label)})
    except (UndefinedError, InputError) as reason:
        return ExaminationChecks(not_computed={"items above": str(reason)})
