"""Trials of matrix factorisation on the semi-synthetic world, and their errors over trials: Figure 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from openloop.core.feedback import Feedback, Floats
from openloop.core.propensities import Propensities
from openloop.data.simulate import World, observation_model
from openloop.learners.mf import MF
from openloop.propensity.naive_bayes import NaiveBayes
from openloop.selection import select
from openloop.studies.kit.charts import lines
from openloop.studies.kit.results import Figure, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.statistics import half_width, paired, standard_error
from openloop.studies.kit.trials import Given
from openloop.studies.schnabel2016.searching import Search, Validated, searched
from openloop.studies.schnabel2016.worlds import DRAWS, OBSERVED, SAMPLES, uniform_sample
from openloop.support.wording import pvalue

TRIALS = 30
FACTORS, FOLDS = 20, 4
REGS = tuple(2.5e-6 * 2**k for k in range(12))  # λ beside an average over ratings
# Where the search for λ starts, and when a fit ends. The absolute loss settles more slowly: with the ends of the
# squared loss its fits to small λ stop early, which makes λ too small look good.
SEARCH = {
    "squared": Search(regs=REGS, start=4, tol=3e-4, sweeps=40),
    "absolute": Search(regs=REGS, start=5, tol=1e-4, sweeps=100),
}
CHOOSE = 7  # the stream of folds and starts, beside those of worlds
METRICS = {"squared": "mse", "absolute": "mae"}


# -- the trial -----------------------------------------------------------------------------------------------


def errors_of_fit(
    given: Given, *, alpha: float, by: str, size: int, loss: str, draw: int, seed: int, search: Mapping[str, Any]
) -> dict[str, float]:
    """A trial: λ by cross-validation on a log (section 6.1), a fit to all of it, and its errors over all cells (Eq. 1).

    `by` is "naive", "known", or "bayes": propensities by Naive Bayes from a uniform sample of `size` ratings. Logs and
    samples are those of the studies of evaluation, draw by draw. `search` has the fields of `Search`.
    """
    Y, how = given["Y"], Search(**search)
    world = World(ratings=Y, propensities=observation_model(Y, alpha, OBSERVED))
    log = world.observe(np.random.default_rng([seed, DRAWS, draw]))
    learner = MF(FACTORS, bias_reg=0.0, loss=loss, tol=how.tol, iterations=how.sweeps, threads=1, rng=draw)  # pyright: ignore[reportArgumentType]
    p = _propensities(world, log, by, size, [seed, SAMPLES, draw, size])

    def ask(regs: Sequence[float]) -> Validated:
        beside_average = {reg * len(log): reg for reg in regs}  # MF's λ stands beside a sum
        found = select(
            learner, log, p, grid={"reg": list(beside_average)}, metric=METRICS[loss], folds=FOLDS, threads=1,
            rng=np.random.default_rng([seed, CHOOSE, draw]),
            weighted=by != "naive", estimator="naive" if by == "naive" else "ips",
        )  # fmt: skip
        return Validated(beside_average[found.best["reg"]], float(found.table["value"].min()), found.model)  # pyright: ignore[reportArgumentType]

    best, tried = searched(ask, how)
    e = best.model.scores(np.arange(len(Y))).astype(np.float64) - Y  # (U, I)
    return {"mse": float(np.mean(e**2)), "mae": float(np.mean(np.abs(e))), "reg": best.reg, "tried": float(tried)}


def _propensities(world: World, log: Feedback, by: str, size: int, stream: Sequence[int]) -> Propensities | None:
    """Those of Naive Bayes; None stands for the log's own."""
    if by != "bayes":
        return None
    sample = uniform_sample(world, size, np.random.default_rng(stream))
    return NaiveBayes().fit(log, uniform=sample).predict(log)


# -- over trials ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Errors:
    """A method's errors in one setting, and the λ it chose, one of each a trial."""

    method: str
    at: float
    metric: str
    values: Floats
    regs: Floats

    @property
    def row(self) -> dict[str, Any]:
        """As a record of the figure."""
        mean, half = float(self.values.mean()), half_width(self.values)
        return {
            "method": self.method, "at": self.at, "metric": self.metric.upper(),
            "error": mean, "low": mean - half, "high": mean + half,
        }  # fmt: skip

    @property
    def value(self) -> Value:
        """The mean, and its standard error."""
        return Value(value=self.values.mean(), error=standard_error(self.values))

    @property
    def chosen(self) -> str:
        """The λ that were chosen, and how often."""
        regs, counts = np.unique(self.regs, return_counts=True)
        return ", ".join(f"{reg:g} ({n}×)" for reg, n in zip(regs.tolist(), counts.tolist(), strict=True))


def errors(run: Run, Y: Given, method: str, at: float, trials: int, **setting: Any) -> Errors:
    """The errors of a method in one setting, over trials."""
    metric = METRICS[setting["loss"]]
    fixed = {"size": 0, **setting, "seed": run.seed, "search": asdict(search(run, setting["loss"]))}
    settings = [{**fixed, "draw": draw} for draw in range(trials)]
    found = run.map(errors_of_fit, Y, settings, f"{method}, {metric.upper()} at {at:g}")
    values, chosen = (np.array([float(outcome[name]) for outcome in found]) for name in (metric, "reg"))
    return Errors(method=method, at=at, metric=metric, values=values, regs=chosen)


def search(run: Run, loss: str) -> Search:
    """How λ is chosen; a quick run tries two."""
    full = SEARCH[loss]
    return run.either(full, replace(full, regs=full.regs[4:6], start=0))


def at_ends(found: Sequence[Errors], tried: Sequence[float]) -> str:
    """How many of the chosen λ are the first or the last of the grid."""
    chosen = np.concatenate([one.regs for one in found])
    ends = int(np.isin(chosen, (min(tried), max(tried))).sum())
    return f"{ends:,} of {len(chosen):,} times the λ chosen is the first or the last of those tried"


# -- what both figures show ----------------------------------------------------------------------------------


def difference(a: Errors, b: Errors) -> Value:
    """a − b, paired by trial, as a cell of a table."""
    gap = paired(a.values, b.values)
    return Value(value=gap.value, error=gap.stderr, digits=4)


def significance(a: Errors, b: Errors) -> str:
    """The p-value of a − b, as a cell of a table."""
    return pvalue(paired(a.values, b.values).pvalue)


def figure(name: str, found: Sequence[Errors], x_title: str, *, log_x: bool) -> Figure:
    """Errors over a setting, a line for each method."""
    rows = tuple(one.row for one in found)
    chart = lines(
        rows, "at", "error", series="method", facet="metric", low="low", high="high",
        x_title=x_title, y_title="error over all cells", log_x=log_x,
    )  # fmt: skip
    return Figure(name=name, caption="Means over trials, with 95 % intervals.", rows=rows, chart=chart.to_dict())


_FITS = (
    "Eq. 14 as printed: offsets are not penalised. MSE is of fits to the squared loss, MAE of fits to the absolute, "
    "whose λ is chosen by MAE. Alternating least squares instead of L-BFGS: the same objective."
)


def notes(found: Sequence[Errors], run: Run) -> tuple[str, ...]:
    """How trials were fitted, and λ chosen."""
    tried = search(run, "squared").regs
    trials = ", ".join(f"{n} for {m.upper()}" for m, n in {one.metric: len(one.values) for one in found}.items())
    chosen = (
        f"Trials: {trials}. d = {FACTORS}; λ of each method by {FOLDS} folds of the observed ratings within each "
        "trial, by IPS under its propensities or by the plain average for MF-Naive; never by the truth. λ stands "
        "beside an average over ratings with weights of mean 1, so that it weighs as much in a fold as in the log; "
        f"tried: {', '.join(f'{reg:g}' for reg in tried)}."
    ) + (f" {at_ends(found, tried)}." if len(tried) > 2 else "")
    return chosen, _FITS
