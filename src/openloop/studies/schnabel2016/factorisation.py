"""Trials of matrix factorisation on the semi-synthetic world, and their errors over trials: Figure 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from openloop.audits.contrasts import holm
from openloop.core.feedback import Feedback, Floats
from openloop.core.propensities import Propensities
from openloop.data.simulate import World, observation_model
from openloop.learners.mf import MF
from openloop.propensity.naive_bayes import NaiveBayes
from openloop.selection import select
from openloop.studies.kit.charts import lines
from openloop.studies.kit.grids import edge
from openloop.studies.kit.results import Figure, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.statistics import Mean, half_width, paired, standard_error
from openloop.studies.kit.trials import Given
from openloop.studies.schnabel2016.searching import OutwardSearch, Validated, searched
from openloop.studies.schnabel2016.worlds import DRAWS, OBSERVED, SAMPLES, uniform_sample

TRIALS, SIGNIFICANT = 30, 0.05
FACTORS, FOLDS = 20, 4
REGS = tuple(2.5e-6 * 2**k for k in range(12))  # λ beside an average over ratings
# Where the search for λ starts, and when a fit ends. The absolute loss settles more slowly: with the ends of the
# squared loss its fits to small λ stop early, which makes λ too small look good.
SEARCH = {
    "squared": OutwardSearch(regs=REGS, start=4, tol=3e-4, sweeps=40),
    "absolute": OutwardSearch(regs=REGS, start=5, tol=1e-4, sweeps=100),
}
CHOOSE = 7  # the stream of folds and starts, beside those of worlds
METRICS = {"squared": "mse", "absolute": "mae"}


# -- the trial -----------------------------------------------------------------------------------------------


def errors_of_fit(
    given: Given, *, alpha: float, by: str, size: int, loss: str, draw: int, seed: int, search: Mapping[str, Any]
) -> dict[str, float]:
    """A trial: λ by cross-validation on a log (section 6.1), a fit to all of it, and its errors over all cells (Eq. 1).

    `by` is "naive", "known", or "bayes": propensities by Naive Bayes from a uniform sample of `size` ratings. Logs and
    samples are those of the studies of evaluation, draw by draw. `search` has the fields of `OutwardSearch`.
    """
    Y, how = given["Y"], OutwardSearch(**search)
    world = World(ratings=Y, propensities=observation_model(Y, alpha, OBSERVED))
    log = world.observe(np.random.default_rng([seed, DRAWS, draw]))
    learner = MF(FACTORS, bias_reg=0.0, loss=loss, tol=how.tol, iterations=how.sweeps, threads=1, rng=draw)  # pyright: ignore[reportArgumentType]
    p = _propensities(world, log, by, size, [seed, SAMPLES, draw, size])

    def ask(regs: Sequence[float]) -> Validated:
        beside_average = {reg * len(log): reg for reg in regs}  # MF's λ is added to a sum
        found = select(
            learner, log, p, grid={"reg": list(beside_average)}, metric=METRICS[loss], folds=FOLDS, threads=1,
            rng=np.random.default_rng([seed, CHOOSE, draw]),
            weighted=by != "naive", estimator="naive" if by == "naive" else "ips",
        )  # fmt: skip
        return Validated(beside_average[found.best["reg"]], float(found.table["value"].min()), found.model)  # pyright: ignore[reportArgumentType]

    best = searched(ask, how)
    e = best.model.scores(np.arange(len(Y))).astype(np.float64) - Y  # (U, I)
    return {"mse": float(np.mean(e**2)), "mae": float(np.mean(np.abs(e))), "reg": best.reg}


def _propensities(world: World, log: Feedback, by: str, size: int, stream: Sequence[int]) -> Propensities | None:
    """Those of Naive Bayes; None means the log's own."""
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


def errors(run: Run, Y: Given, method: str, at: float, trials: int, **setting: Any) -> Errors:
    """The errors of a method in one setting, over trials."""
    metric = METRICS[setting["loss"]]
    fixed = {"size": 0, **setting, "seed": run.seed, "search": asdict(search(run, setting["loss"]))}
    settings = [{**fixed, "draw": draw} for draw in range(trials)]
    found = run.map(errors_of_fit, Y, settings, f"{method}, {metric.upper()} at {at:g}")
    values, regs = (np.array([float(outcome[name]) for outcome in found]) for name in (metric, "reg"))
    return Errors(method=method, at=at, metric=metric, values=values, regs=regs)


def search(run: Run, loss: str) -> OutwardSearch:
    """How λ is chosen; a quick run tries two, and ends fits early."""
    full = SEARCH[loss]
    return run.either(full, replace(full, regs=full.regs[4:6], start=0, sweeps=15))


# -- what both figures show ----------------------------------------------------------------------------------


def below(pairs: Sequence[tuple[Errors, Errors]]) -> tuple[bool, list[tuple[Mean, float]]]:
    """Whether the first of each pair errs significantly less than the second; their differences, and Holm's p.

    Differences are paired by trial, and Holm's adjustment is over the pairs.
    """
    gaps = [paired(a.values, b.values) for a, b in pairs]
    adjusted = holm([gap.pvalue for gap in gaps])
    found = [(gap, float(p)) for gap, p in zip(gaps, adjusted, strict=True)]
    return all(gap.value < 0 and p < SIGNIFICANT for gap, p in found), found


def difference(gap: Mean) -> Value:
    """A paired difference as a cell of a table."""
    return Value(value=gap.value, error=gap.stderr, digits=4)


def figure(name: str, found: Sequence[Errors], caption: str, *, x_title: str, log_x: bool) -> Figure:
    """Errors over a setting, a line for each method."""
    rows = tuple(one.row for one in found)
    chart = lines(
        rows, "at", "error", series="method", facet="metric", low="low", high="high",
        x_title=x_title, y_title="error over all cells", log_x=log_x,
    )  # fmt: skip
    said = f"{caption} The bands are 95 % intervals over trials. The paper prints no number of this figure."
    return Figure(name=name, caption=said, rows=rows, chart=chart.to_dict())


_FITS = (
    "Eq. 14 as printed: offsets are not penalised. MSE is of fits to the squared loss, MAE of fits to the absolute "
    "loss, whose λ is chosen by MAE. Alternating least squares replace L-BFGS; the objective is the same."
)


def notes(found: Sequence[Errors], run: Run) -> tuple[str, ...]:
    """How trials were fitted, and λ chosen."""
    grid = search(run, "squared").regs
    ends = sum(edge(reg, grid) != "" for one in found for reg in one.regs.tolist())
    chosen = (
        f"{len(found[0].values)} trials each; d = {FACTORS}. Each trial chooses the λ of each method by {FOLDS} folds "
        "of its observed ratings: by IPS under the method's propensities, or by the plain average for MF-Naive, never "
        "by the truth. λ is added to an average over ratings with weights of mean 1, so it weighs as much in a fold as "
        f"in the log. The grid has {len(grid)} values from {min(grid):g} to {max(grid):g}, each twice the one before."
    )
    outwards = (
        f"The search starts at λ = {_start(run, 'squared'):g} (absolute loss: {_start(run, 'absolute'):g}) with both "
        "neighbours and goes outwards until the least cross-validated error has a larger one on each side. "
        f"{ends:,} of {sum(len(one.regs) for one in found):,} choices are at an end of the grid."
    )
    return chosen, *((outwards,) if len(grid) > 2 else ()), _FITS, _ends_of_fits(run)


def _start(run: Run, loss: str) -> float:
    how = search(run, loss)
    return how.regs[how.start]


def _ends_of_fits(run: Run) -> str:
    squared, absolute = search(run, "squared"), search(run, "absolute")
    return (
        f"A fit ends when a sweep lowers the objective by less than {squared.tol:g} of itself, or after "
        f"{squared.sweeps} sweeps. With the absolute loss these are {absolute.tol:g} and {absolute.sweeps}: it settles "
        "more slowly, and fits that stop early make a λ that is too small look good in cross-validation."
    )
