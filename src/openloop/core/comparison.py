"""`Comparison`: estimates by model × metric × estimator over the same users, so differences are paired."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from openloop.core.estimate import Estimate
from openloop.core.lists import LISTS
from openloop.core.tilts import Tilts
from openloop.errors import InputError, UndefinedError, did_you_mean
from openloop.support.atomic import Recorded

Key = tuple[str, str, str]  # model, metric, estimator


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSums:
    """What only a pair's own sums tell: the variance over cells of a difference d, and Σad, Σbd₊ and Σbd₋, w = a + b.

    `form` says what wrong propensities change: "odds", or "ratio", where a = 0 and they change the whole weight.
    """

    cell_variance: float | None = None
    parts: tuple[float, float, float] | None = None
    form: str = "odds"

    def swapped(self) -> PairSums:
        """The same pair in the other order."""
        if self.parts is None:
            return self
        D, A, B = self.parts
        return replace(self, parts=(-D, B, A))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison(Recorded):
    """Estimates by model × metric × estimator over the same users, so differences are paired.

    `ol.evaluate` makes it. `result[model, metric, estimator]` is an `Estimate`, `result[model, metric, "lists"]` a
    measure of what a model lists. Printed, it is a table; a notebook shows it as one, too.

    Attributes:
        estimates: The estimates by (model, metric, estimator).
        skipped: Why an estimator gives no estimate of a metric, by (metric, estimator).
        pairs: The sums of pairs of models, by (model, model, metric, estimator).
        better: Whether "lower" or "higher" values are better, by metric.
        notes: What a reader should know about the result.
        level: The confidence level of printed intervals.
        lists: What models list for users, by (model, metric). No estimator is involved.
        tilts: Sums for sensitivity analysis, by metric, where they were asked for.
        own_metrics: A line on each of your own metrics.
        own_estimators: A line on each of your own estimators.

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> result = ol.evaluate(world.predictions, world.observe(0), metrics=["mae"], estimators=["naive", "snips"])
        >>> result.ranking("mae", "naive"), result.ranking("mae", "snips")
        (['Y2', 'Y1', 'Y3'], ['Y1', 'Y2', 'Y3'])
        >>> gap = result.difference("Y1", "Y2", metric="mae", estimator="snips")
        >>> round(gap.value, 3), round(gap.stderr, 3)
        (-0.823, 0.101)
    """

    estimates: dict[Key, Estimate]
    skipped: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    pairs: dict[tuple[str, str, str, str], PairSums] = field(
        default_factory=dict[tuple[str, str, str, str], PairSums], repr=False
    )
    better: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    notes: tuple[str, ...] = ()
    level: float = 0.95
    lists: dict[tuple[str, str], Estimate] = field(default_factory=dict[tuple[str, str], Estimate])
    tilts: dict[str, Tilts] = field(default_factory=dict[str, Tilts], repr=False)
    own_metrics: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    own_estimators: dict[str, str] = field(default_factory=dict[str, str], repr=False)

    def __post_init__(self) -> None:
        sizes = {e.n_users for e in self.estimates.values()}
        if len(sizes) > 1:
            raise InputError(f"Comparison: estimates cover different numbers of users, {sorted(sizes)}; use one log.")

    @property
    def models(self) -> tuple[str, ...]:
        """The models, in the order given."""
        return tuple(dict.fromkeys(model for model, *_ in (*self.estimates, *self.lists)))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics, in the order given."""
        return tuple(dict.fromkeys(metric for _, metric, _ in self.estimates))

    @property
    def list_metrics(self) -> tuple[str, ...]:
        """The metrics of lists, in the order given."""
        return tuple(dict.fromkeys(metric for _, metric in self.lists))

    @property
    def estimators(self) -> tuple[str, ...]:
        """The estimators, in the order given."""
        return tuple(dict.fromkeys(estimator for _, _, estimator in self.estimates))

    def __getitem__(self, key: Key) -> Estimate:
        if not isinstance(key, tuple) or len(key) != 3:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"Comparison: ask for result[model, metric, estimator], got {key!r}.")
        name, colon, running = str(key[1]).partition(":")  # names are lower case, except a model's in one
        model, metric, estimator = key[0], name.lower() + colon + running, str(key[2]).lower()
        if (model, metric, estimator) in self.estimates:
            return self.estimates[model, metric, estimator]
        if estimator == LISTS and (model, metric) in self.lists:
            return self.lists[model, metric]
        if (metric, estimator) in self.skipped:
            raise UndefinedError(self.skipped[metric, estimator])
        metrics, estimators = (*self.metrics, *self.list_metrics), (*self.estimators, *([LISTS] if self.lists else []))
        for name, names in ((model, self.models), (metric, metrics), (estimator, estimators)):
            if name not in names:
                raise InputError(f"Comparison has no {name!r}.{did_you_mean(name, names)}")
        raise InputError(f"Comparison has no estimate for {key}.")

    def difference(self, a: str, b: str, *, metric: str, estimator: str) -> Estimate:
        """The paired estimate of a − b.

        Args:
            a: One model.
            b: The other model.
            metric: The metric's name.
            estimator: The estimator's name.

        Returns:
            The difference, with the pair's own variance over cells where its sums were taken.

        Raises:
            UndefinedError: The two models list items for different users.
        """
        one, other = self[a, metric, estimator], self[b, metric, estimator]
        if estimator == LISTS and not np.array_equal(one.columns[:, -1] != 0, other.columns[:, -1] != 0):
            raise UndefinedError(
                f"difference: {a} and {b} have lists for other users, so their {metric} are not paired; give both "
                "lists for the same users."
            )
        pair = self.pair(a, b, metric=metric, estimator=estimator)
        return replace(one - other, cell_variance=None if pair is None else pair.cell_variance)

    def lift(self, a: str, b: str, *, metric: str, estimator: str) -> Estimate:
        """The paired estimate of V_a/V_b − 1, the relative gain of a over b.

        Args:
            a: One model.
            b: The model that it is compared with.
            metric: The metric's name.
            estimator: The estimator's name.

        Returns:
            The relative gain.
        """
        return self[a, metric, estimator].lift(self[b, metric, estimator])

    def pair(self, a: str, b: str, *, metric: str, estimator: str) -> PairSums | None:
        """The sums of one pair of models.

        Args:
            a: One model.
            b: The other model.
            metric: The metric's name.
            estimator: The estimator's name.

        Returns:
            The pair's sums, None where they were not asked for.
        """
        if (a, b, metric, estimator) in self.pairs:
            return self.pairs[a, b, metric, estimator]
        turned = self.pairs.get((b, a, metric, estimator))
        return None if turned is None else turned.swapped()

    def ranking(self, metric: str, estimator: str) -> list[str]:
        """The models from best to worst by the estimates of one `metric` and `estimator`."""
        sign = 1 if self.better.get(metric) == "lower" else -1
        return sorted(self.models, key=lambda model: sign * self[model, metric, estimator].value)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One plain record per estimate, those of lists last."""
        yield from (self._row(*key, e) for key, e in self.estimates.items())
        yield from (self._row(*key, LISTS, e) for key, e in self.lists.items())

    def _row(self, model: str, metric: str, estimator: str, e: Estimate) -> dict[str, Any]:
        low, high = e.limits(self.level)
        d = e.diagnostics
        return {
            "model": model, "metric": metric, "estimator": estimator, "estimand": e.estimand, "value": e.value,
            "stderr": e.stderr, "low": low, "high": high, "propensities": e.p_taken, "n": d.n, "users": d.users,
            "effective_size": d.effective_size, "flags": "; ".join(d.flags),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """The estimates as a Polars frame, one row per estimate."""
        return _reporting().frame_of(self)

    def to_pandas(self) -> Any:
        """The estimates as a pandas frame, one row per estimate."""
        return _reporting().pandas_of(self)

    def to_markdown(self) -> str:
        """The estimates as a table in Markdown."""
        return _reporting().markdown_of(self)

    def to_latex(self) -> str:
        """The estimates as a LaTeX tabular, with the rules of booktabs."""
        return _reporting().latex_of(self)

    def records(self) -> dict[str, Any]:
        """The estimates, what was skipped and the notes as plain values."""
        return {
            "level": self.level,
            "better": self.better,
            "estimates": [self._record(*key, e) for key, e in self.estimates.items()],
            "lists": [self._record(*key, LISTS, e) for key, e in self.lists.items()],
            "skipped": [{"metric": m, "estimator": e, "reason": why} for (m, e), why in self.skipped.items()],
            "own_metrics": self.own_metrics,
            "own_estimators": self.own_estimators,
            "notes": list(self.notes),
        }

    def _record(self, model: str, metric: str, estimator: str, e: Estimate) -> dict[str, Any]:
        """A row with what else `openloop.audits.restoring` makes an estimate of."""
        more = {"df": e.df, "units": e.units, "root": e.root, "diagnostics": asdict(e.diagnostics)}
        return self._row(model, metric, estimator, e) | more

    def __str__(self) -> str:
        return _reporting().text_of(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return _reporting().html_of(self)


def _reporting() -> Any:
    """How a comparison is written and drawn: a layer above this one, loaded where it is asked for."""
    from openloop.reporting import comparison_text

    return comparison_text
