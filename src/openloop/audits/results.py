"""`Audit`: everything that was found about some models on one log, frozen, with the verdict in words.

The nouns of an audit and their plain records; they are filled by `openloop.audits.auditing` and shown by
`openloop.reporting`.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from openloop.audits.answers import Verdict, plain
from openloop.audits.contrasts import Contrast
from openloop.audits.next_steps import NextStep, next_steps
from openloop.audits.paradox import Paradox
from openloop.audits.positions import Positions
from openloop.audits.rankings import Correlation, Friedman
from openloop.audits.rehearsal import Rehearsal
from openloop.core.comparison import Comparison
from openloop.core.estimate import Estimate
from openloop.core.tilts import Against
from openloop.core.weights import WeightSummary
from openloop.errors import InputError, did_you_mean
from openloop.moments.requests import LogFacts
from openloop.support.atomic import FilePath, Recorded
from openloop.support.clock import seconds_since, today
from openloop.support.escaping import visible
from openloop.support.tables import html_list

if TYPE_CHECKING:
    from openloop.audits.change_lists import Changes
    from openloop.audits.cold import ColdPart
    from openloop.audits.settling import Settling

Family = tuple[str, str]  # metric, estimator
LineKind = Literal["method", "stratum", "open loop"]
SCHEMA = "openloop/audit/1"  # of the JSON; another number where an older file cannot be read any more
PACKAGES = ("numpy", "scipy", "polars", "narwhals", "numba", "scikit-learn")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrataLine:
    """A line of a table like the paper's Tables 2 to 5: one way to estimate, or one stratum, of every model.

    Of a stratum, `estimates` are weighted inside it, which is what a verdict may use; `plain` are the paper's means
    over its rows or users, which Simpson's paradox is about. They are equal where no weights are known, or none debias.
    """

    name: str
    kind: LineKind
    rows: int
    items: int | None = None
    share: float | None = None  # of the population (of relevant cells, for metrics that pool them), for strata
    limits: tuple[float, float] | None = None  # of p, for strata of propensity
    estimates: dict[str, Estimate] = field(default_factory=dict[str, Estimate])
    plain: dict[str, Estimate] = field(default_factory=dict[str, Estimate])
    best: str | None = None  # the model that beats every other one in this line, with Holm over its pairs

    def difference(self, a: str, b: str) -> Estimate:
        """a − b, paired by user."""
        return self.estimates[a] - self.estimates[b]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrataTable:
    """One metric by one grouping of the scored rows; `by` says which in words."""

    metric: str
    by: str
    lines: tuple[StrataLine, ...]

    @property
    def strata(self) -> tuple[StrataLine, ...]:
        """The lines that are strata and have an estimate."""
        return tuple(line for line in self.lines if line.kind == "stratum" and line.estimates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """An estimate, or the difference a − b, as weights are tilted; `turns` is where a difference changes its sign.

    Against Γ, low and high are what it can be when every propensity may be off by up to Γ either way. Against ρ, by
    which each star makes a row likelier to be seen than its propensity says, and κ, the share of popularity that is
    exposure, they are its interval, and `turns_low` is where that first covers 0. ∞: not on the grid.
    """

    metric: str
    estimator: str
    a: str
    b: str | None
    against: Against = "gamma"
    at: tuple[float, ...]
    value: tuple[float, ...] = ()  # of ρ and κ; against Γ there are bounds only
    low: tuple[float, ...]
    high: tuple[float, ...]
    turns: float | None = None  # Γ*, ρ* or κ*; None where it is not known
    turns_low: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How well an estimator did against the open loop."""

    metric: str
    estimator: str
    tau: Correlation | None  # None with fewer than three models
    error: float  # mean |estimate − open loop| over the models
    right: int  # pairs of models in the open loop's order
    pairs: int
    separated: int  # pairs that the open loop itself tells apart
    separated_right: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenLoop:
    """A uniformly collected test set: what it says of the models, and every estimator scored against it."""

    rows: int
    result: Comparison  # naive over the sample
    scores: tuple[Score, ...]
    contrasts: dict[str, tuple[Contrast, ...]] = field(default_factory=dict[str, tuple[Contrast, ...]])  # by metric
    gamma_min: float | None = None  # by how much weights must at least be off; None without weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(LogFacts):
    """What was audited and how, so that it can be repeated."""

    log: str = "a log in memory"
    propensity: str = ""
    command: str | None = None
    versions: dict[str, str] = field(default_factory=dict[str, str])
    created: str = ""
    seconds: float = 0.0


def stamped(setting: Setting, began: float) -> Setting:
    """With the versions, the time, and the seconds since `began`."""
    known = {"openloop": import_module("openloop").__version__, "python": platform.python_version()}
    return replace(
        setting, versions=known | {name: version(name) for name in PACKAGES}, seconds=seconds_since(began),
        created=today(),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audit(Recorded):
    """The verdict on some models and one log, and everything that it rests on.

    `ol.audit` makes it. Printed, it is the verdict and the estimates; a notebook shows them, too. `ol.report` writes it
    as a page.

    Attributes:
        verdict: What the log says, in words.
        metric: The metric that the verdict is about.
        estimator: The estimator that the verdict is about.
        result: All estimates.
        contrasts: Paired differences between models, by (metric, estimator).
        best: The probability that each model is the best, by (metric, estimator), from a bootstrap over users.
        strata: Estimates within groups of rows.
        paradoxes: Instances of Simpson's paradox.
        curves: How estimates change as propensities are off.
        benchmarks: How far leaving out a part of the propensity model moves p.
        friedman: Friedman's test of ranks within users, for three models or more.
        open_loop: Estimators scored against a uniformly collected test set.
        positions: Examination and its checks, for impressions.
        rehearsal: How often drawn logs give a verdict, where that was asked for.
        weights: A summary of the weights of all scored rows.
        check: The check of a propensity model that was fitted.
        not_computed: Results that rows on disk or in an engine do not allow, with the reasons.
        cold: The rows of users or items without training rows, which the verdict leaves out.
        settling: The number of randomised impressions that would settle each pair, for a log of positives.
        setting: What was audited and how, to repeat it.
        warnings: What may be wrong with the input.
        notes: What a reader should know.

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> found = ol.audit(world.predictions, world.observe(0), metrics=["mae"])
        >>> found.models
        ('Y1', 'Y2', 'Y3')
        >>> pair = found.contrast("Y1", "Y2")
        >>> pair.better, round(pair.value, 2)
        ('Y1', -0.82)
    """

    verdict: Verdict
    metric: str
    estimator: str
    result: Comparison
    contrasts: dict[Family, tuple[Contrast, ...]]
    best: dict[Family, dict[str, float]]  # the probability of being best, by bootstrap over users
    strata: tuple[StrataTable, ...] = ()
    paradoxes: tuple[Paradox, ...] = ()
    curves: tuple[Curve, ...] = ()
    benchmarks: tuple[str, ...] = ()  # how far leaving out a part of the propensity model moves p
    friedman: Friedman | None = None
    open_loop: OpenLoop | None = None
    positions: Positions | None = None  # of impressions
    rehearsal: Rehearsal | None = None  # of the two leading models, where it was asked for
    weights: WeightSummary | None = None  # of all scored rows
    check: Any = None  # a propensity Check, where a model was fitted here
    not_computed: dict[str, str] = field(default_factory=dict[str, str])  # what rows on disk cannot tell, and why
    cold: ColdPart | None = None  # rows without training rows, which the verdict leaves out
    settling: tuple[Settling, ...] = ()  # impressions that would settle pairs of a log of positives
    setting: Setting
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The models, in the order given."""
        return self.result.models

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """What to do next, the cheapest first, with the command or call that does it."""
        return next_steps(self)

    def contrast(self, a: str, b: str, *, metric: str | None = None, estimator: str | None = None) -> Contrast:
        """The paired difference a − b.

        Args:
            a: One model.
            b: The other model.
            metric: The metric's name; by default the verdict's.
            estimator: The estimator's name; by default the verdict's.

        Returns:
            The contrast, with its interval, p-values and sensitivity.

        Raises:
            InputError: The two models were not compared.
        """
        family = (
            self.metric if metric is None else metric.lower(),
            self.estimator if estimator is None else estimator.lower(),
        )
        for name, known in ((a, self.models), (b, self.models)):
            if name not in known:
                raise InputError(f"contrast: there is no model {name!r}.{did_you_mean(name, known)}")
        if family not in self.contrasts:
            self.result[a, *family]  # says why it is missing
        found = next((c for c in self.contrasts[family] if c.models == frozenset((a, b))), None)
        if found is None:
            raise InputError(f"contrast: {a!r} and {b!r} were not compared; name two models, and leave out baseline=.")
        return found.of(a)

    def records(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict.records(),
            "next_steps": [asdict(step) for step in self.next_steps],
            "metric": self.metric,
            "estimator": self.estimator,
            "level": self.result.level,
            "comparison": self.result.records(),
            "contrasts": [plain(asdict(c)) for found in self.contrasts.values() for c in found],
            "probability_of_being_best": [
                {"metric": m, "estimator": e, "models": found} for (m, e), found in self.best.items()
            ],
            "strata": [_table_record(t, self.result.level) for t in self.strata],
            "paradoxes": [asdict(p) for p in self.paradoxes],
            "sensitivity": [plain(asdict(c)) for c in self.curves],
            "benchmarks": list(self.benchmarks),
            "friedman": None if self.friedman is None else asdict(self.friedman),
            "open_loop": None if self.open_loop is None else _open_loop_record(self.open_loop),
            "positions": None if self.positions is None else self.positions.records(),
            "rehearsal": None if self.rehearsal is None else self.rehearsal.records(),
            "weights": None if self.weights is None else _weights_record(self.weights),
            "propensity_check": None if self.check is None else self.check.to_dict(),
            "not_computed": self.not_computed,
            "cold": None if self.cold is None else _cold_record(self.cold),
            "settling": [asdict(found) for found in self.settling],
            "setting": asdict(self.setting),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, path: FilePath) -> Audit:
        """The audit that `to_json` wrote to a file: for its page, its words and its numbers.

        The file may come from anywhere: if it is not an audit, it is refused, with the place of the fault. The file
        lacks the contributions of users, so its estimates cannot be subtracted or resampled.

        Args:
            path: The JSON file of an audit.

        Returns:
            The audit; `ol.report` writes the same page for it as for the original.

        Raises:
            FormatError: The file is not an audit of this schema.
        """
        from openloop.audits.restoring import audit_in

        return audit_in(path)

    def since(self, old: Audit) -> Changes:
        """What changed from an older audit to this one: settings, verdict, order, estimates and what they rest on.

        Args:
            old: The older audit.

        Returns:
            The changes, with a text, `records()` and a page by `ol.report`.
        """
        from openloop.audits.changing import changes_between

        return changes_between(old, self)

    def __str__(self) -> str:
        return visible("\n".join(self._lines()), lines=True)

    def __repr__(self) -> str:
        return str(self)

    def _lines(self) -> Iterator[str]:
        yield str(self.verdict)
        yield from (f"warning: {warning}" for warning in self.warnings)
        yield from () if self.rehearsal is None else (str(self.rehearsal),)
        yield ""
        yield str(self.result)
        yield from (f"not computed: {part}: {why}" for part, why in self.not_computed.items())
        yield from (f"note: {note}" for note in self.notes if note not in self.result.notes)

    def _repr_html_(self) -> str:
        warnings = html_list(f"warning: {warning}" for warning in self.warnings)
        return self.verdict._repr_html_() + warnings + self.result._repr_html_()  # pyright: ignore[reportPrivateUsage]


def _cold_record(c: ColdPart) -> dict[str, Any]:
    found = {"rows": c.rows, "warm_rows": c.warm, "users": c.users, "items": c.items, "reason": c.reason}
    return found | {"comparison": None if c.result is None else c.result.records()}


def _weights_record(w: WeightSummary) -> dict[str, Any]:
    quantiles = {str(q): w.quantile(q) for q in (0.5, 0.9, 0.99)}
    return {
        "rows": w.n, "total": w.total, "effective_size": w.effective_size, "largest": w.largest,
        "largest_share": w.largest_share, "quantiles": quantiles, "squares": w.squares,
        "smallest_propensity": w.smallest_propensity,
        "histogram": [[n, int(w.histogram[n])] for n in w.histogram.nonzero()[0].tolist()],  # bin, rows
    }  # fmt: skip


def _table_record(table: StrataTable, level: float) -> dict[str, Any]:
    return {"metric": table.metric, "by": table.by, "lines": [_line_record(line, level) for line in table.lines]}


def _line_record(line: StrataLine, level: float) -> dict[str, Any]:
    found, plain = (
        {
            m: {"value": e.value, "stderr": e.stderr, "users": e.scored_users, "rows": e.diagnostics.n}
            | e.limits(level)._asdict()
            for m, e in estimates.items()
        }
        for estimates in (line.estimates, line.plain)
    )
    return {
        "name": line.name, "kind": line.kind, "rows": line.rows, "items": line.items, "share": line.share,
        "propensity": line.limits, "models": found, "plain": plain, "best": line.best,
    }  # fmt: skip


def _open_loop_record(found: OpenLoop) -> dict[str, Any]:
    return {
        "rows": found.rows,
        "comparison": found.result.records(),
        "scores": [asdict(score) for score in found.scores],
        "contrasts": [plain(asdict(c)) for pairs in found.contrasts.values() for c in pairs],
        "gamma_min": found.gamma_min,
    }
