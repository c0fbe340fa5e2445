"""Figure 3: MF-IPS against MF-Naive, by the severity of selection bias and the quality of propensities."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from openloop.core.feedback import Feedback, Floats
from openloop.core.propensities import Propensities
from openloop.data.simulate import World, observation_model
from openloop.learners.mf import MF
from openloop.propensity.naive_bayes import NaiveBayes
from openloop.selection import select
from openloop.studies.kit.charts import lines
from openloop.studies.kit.results import Cell, Claim, Figure, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Given
from openloop.studies.schnabel2016.worlds import ALPHA, DRAWS, OBSERVED, SAMPLES, complete, uniform_sample
from openloop.support.wording import chance

ALPHAS = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
SIZES = (10, 100, 1_000, 10_000, 100_000)
TRIALS, TRIALS_MAE = 30, 6
FACTORS, FOLDS = 20, 4
REGS = (2e-5, 4e-5, 8e-5, 2.5e-4)  # λ beside an average over ratings
# A fit ends when a sweep gains less than this: errors differ from those of a fit to the end by less than trials do.
TOL, SWEEPS = 3e-4, 40
CHOOSE = 7  # the stream of folds and starts, beside those of worlds
METRICS = {"squared": "mse", "absolute": "mae"}


# -- the trial -----------------------------------------------------------------------------------------------


def learned(
    given: Given, *, alpha: float, by: str, size: int, loss: str, draw: int, seed: int, regs: Sequence[float]
) -> dict[str, float]:
    """A trial: λ by cross-validation on a log (section 6.1), a fit to all of it, and its errors over all cells (Eq. 1).

    `by` is "naive", "known", or "bayes": propensities by Naive Bayes from a uniform sample of `size` ratings. Logs and
    samples are those of the studies of evaluation, draw by draw.
    """
    Y = given["Y"]
    world = World(ratings=Y, propensities=observation_model(Y, alpha, OBSERVED))
    log = world.observe(np.random.default_rng([seed, DRAWS, draw]))
    learner = MF(FACTORS, bias_reg=0.0, loss=loss, tol=TOL, iterations=SWEEPS, threads=1, rng=draw)  # pyright: ignore[reportArgumentType]
    beside_average = {reg * len(log): reg for reg in regs}  # MF's λ stands beside a sum
    p = _propensities(world, log, by, size, [seed, SAMPLES, draw, size])
    found = select(
        learner, log, p, grid={"reg": list(beside_average)}, metric=METRICS[loss], folds=FOLDS, threads=1,
        rng=np.random.default_rng([seed, CHOOSE, draw]),
        weighted=by != "naive", estimator="naive" if by == "naive" else "ips",
    )  # fmt: skip
    e = found.model.scores(np.arange(len(Y))).astype(np.float64) - Y  # (U, I)
    return {"mse": float(np.mean(e**2)), "mae": float(np.mean(np.abs(e))), "reg": beside_average[found.best["reg"]]}


def _propensities(world: World, log: Feedback, by: str, size: int, stream: Sequence[int]) -> Propensities | None:
    """Those of Naive Bayes; None stands for the log's own."""
    if by != "bayes":
        return None
    sample = uniform_sample(world, size, np.random.default_rng(stream))
    return NaiveBayes().fit(log, uniform=sample).predict(log)


# -- over trials ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """The mean of paired differences, its standard error and the two-sided p-value of Student's t."""

    mean: float
    stderr: float
    p: float

    @property
    def above(self) -> bool:
        """Significantly above 0, at 5 %."""
        return self.mean > 0 and self.p < 0.05

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ± {self.stderr:.4f}"


def paired(a: Floats, b: Floats) -> Paired:
    """a − b, pair by pair."""
    d = np.asarray(a, np.float64) - b
    mean, stderr = float(d.mean()), float(d.std(ddof=1) / math.sqrt(len(d)))
    if stderr == 0:
        return Paired(mean=mean, stderr=0.0, p=float(mean == 0))
    return Paired(mean=mean, stderr=stderr, p=float(2 * stdtr(len(d) - 1, -abs(mean / stderr))))


def half_width(values: Floats) -> float:
    """Of the 95 % interval of a mean over trials."""
    n = len(values)
    return float(stdtrit(n - 1, 0.975) * values.std(ddof=1) / math.sqrt(n))


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
        return Value(value=self.values.mean(), error=self.values.std(ddof=1) / math.sqrt(len(self.values)))

    @property
    def chosen(self) -> str:
        """The λ that were chosen, and how often."""
        regs, counts = np.unique(self.regs, return_counts=True)
        return ", ".join(f"{reg:g} ({n}×)" for reg, n in zip(regs.tolist(), counts.tolist(), strict=True))


def _errors(run: Run, Y: Given, method: str, at: float, trials: int, **setting: Any) -> Errors:
    fixed = {"size": 0, **setting, "seed": run.seed, "regs": _regs(run)}
    settings = [{**fixed, "draw": draw} for draw in range(trials)]
    found = run.map(learned, Y, settings, f"{method}, {METRICS[setting['loss']].upper()} at {at:g}")
    metric = METRICS[setting["loss"]]
    values, chosen = (np.array([float(outcome[name]) for outcome in found]) for name in (metric, "reg"))
    return Errors(method=method, at=at, metric=metric, values=values, regs=chosen)


def at_ends(errors: Sequence[Errors], regs: Sequence[float]) -> str:
    """How many of the chosen λ are the first or the last of the grid."""
    chosen = np.concatenate([one.regs for one in errors])
    ends = int(np.isin(chosen, (min(regs), max(regs))).sum())
    return f"{ends:,} of {len(chosen):,} times the λ chosen is the first or the last of those tried"


# -- the items -----------------------------------------------------------------------------------------------


def figure3left(run: Run) -> Result:
    """Errors of MF-IPS and MF-Naive over α, propensities known."""
    completion = complete(run)
    plan = {
        "squared": (run.either(ALPHAS, (0.25, 1.0)), run.either(TRIALS, 2)),
        "absolute": (run.either(ALPHAS, (0.25,)), run.either(TRIALS_MAE, 2)),
    }
    found = {
        (METRICS[loss], alpha): tuple(
            _errors(run, completion.given, name, alpha, trials, alpha=alpha, by=by, loss=loss)
            for name, by in (("MF-Naive", "naive"), ("MF-IPS", "known"))
        )
        for loss, (alphas, trials) in plan.items()
        for alpha in alphas
    }
    every = [one for pair in found.values() for one in pair]
    return Result(
        item="figure3left",
        title="Prediction error of matrix factorisation over the severity of selection bias (Figure 3, left)",
        data=("ml-100k",),
        tables=tuple(_left_table(found, metric) for metric in METRICS.values()),
        figures=(_figure("figure3left", every, "α (1: no selection bias)", log_x=False),),
        claims=tuple(claim for metric in METRICS.values() for claim in _left_claims(found, metric)),
        notes=(str(completion), *_notes(every, run)),
    )  # fmt: skip


Pairs = Mapping[tuple[str, float], tuple[Errors, ...]]


def _left_table(found: Pairs, metric: str) -> Table:
    rows = [
        (f"α = {alpha:g}", naive.value, ips.value, _cell(ips, naive), _p(ips, naive), naive.chosen, ips.chosen)
        for (name, alpha), (naive, ips) in found.items()
        if name == metric
    ]
    M = metric.upper()
    return Table(
        name=f"figure3left-{metric}",
        caption=f"True {M} over all cells (Eq. 1), mean over trials; the difference is paired by trial.",
        columns=("", "MF-Naive", "MF-IPS", "MF-IPS − MF-Naive", "p", "λ of MF-Naive", "λ of MF-IPS"),
        rows=tuple(rows),
    )


def _cell(a: Errors, b: Errors) -> Value:
    gap = paired(a.values, b.values)
    return Value(value=gap.mean, error=gap.stderr, digits=4)


def _p(a: Errors, b: Errors) -> str:
    return p_value(paired(a.values, b.values).p)


def p_value(p: float) -> str:
    """As it stands in a column."""
    return chance(p).removeprefix("= ")


def _left_claims(found: Pairs, metric: str) -> Iterator[Claim]:
    gaps = {alpha: paired(ips.values, naive.values) for (m, alpha), (naive, ips) in found.items() if m == metric}
    trials = ", ".join(dict.fromkeys(str(len(pair[0].values)) for (m, _), pair in found.items() if m == metric))
    biased, M = {alpha: gap for alpha, gap in gaps.items() if alpha <= 0.75}, metric.upper()
    text = "; ".join(f"α = {alpha:g}: {gap}" for alpha, gap in gaps.items())
    yield Claim(
        text=f"The {M} of MF-IPS is below that of MF-Naive for every α ≤ 0.75, averaged over {trials} trials.",
        holds=all(gap.mean < 0 for gap in biased.values()),
        found=f"MF-IPS − MF-Naive, ± standard error: {text}",
    )
    over = [alpha for alpha, gap in gaps.items() if gap.above]
    yield Claim(
        text=f"The {M} of MF-IPS is nowhere significantly above that of MF-Naive, by {trials} trials at each α.",
        holds=not over,
        found="nowhere, paired over trials at 5 %" if not over else f"above at α = {', '.join(map(str, over))}",
    )


def figure3right(run: Run) -> Result:
    """Errors of MF with propensities by Naive Bayes over the size of the uniform sample, α = 0.25."""
    completion, trials = complete(run), run.either(TRIALS, 2)
    sizes = run.either(SIZES, (10, 1_000))

    def errors(name: str, at: float, **setting: Any) -> Errors:
        return _errors(run, completion.given, name, at, trials, alpha=ALPHA, loss="squared", **setting)

    bayes = [errors("MF-IPS-NB", size, by="bayes", size=size) for size in sizes]
    flat = {
        name: [errors(name, size, by=by) for size in sizes] for name, by in (("MF-Naive", "naive"), ("MF-IPS", "known"))
    }
    naive, known = flat["MF-Naive"][0], flat["MF-IPS"][0]
    drawn = [*bayes, *flat["MF-Naive"], *flat["MF-IPS"]]
    return Result(
        item="figure3right",
        title="Prediction error of matrix factorisation as propensities degrade (Figure 3, right)",
        data=("ml-100k",),
        tables=(_right_table(bayes, naive, known),),
        figures=(_figure("figure3right", drawn, "ratings in the uniform sample", log_x=True),),
        claims=tuple(_right_claims(bayes, naive)),
        notes=(str(completion), _BAYES, *_notes([*bayes, naive, known], run)),
    )  # fmt: skip


def _right_table(bayes: Sequence[Errors], naive: Errors, known: Errors) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (f"MF-IPS-NB, {one.at:,} ratings", one.value, _cell(one, naive), _p(one, naive), _cell(one, known), one.chosen)
        for one in bayes
    ]
    rows.append(("MF-IPS, known p", known.value, _cell(known, naive), _p(known, naive), None, known.chosen))
    rows.append(("MF-Naive", naive.value, None, None, _cell(naive, known), naive.chosen))
    return Table(
        name="figure3right",
        caption=f"True MSE over all cells (Eq. 1) at α = {ALPHA:g}, mean over trials; differences are paired by trial.",
        columns=("", "MSE", "less MF-Naive", "p", "less MF-IPS, known p", "λ"),
        rows=tuple(rows),
    )


def _right_claims(bayes: Sequence[Errors], naive: Errors) -> Iterator[Claim]:
    gaps = {int(one.at): paired(one.values, naive.values) for one in bayes}
    text = "; ".join(f"{size:,} ratings: {gap}" for size, gap in gaps.items())
    yield Claim(
        text="Averaged over trials, MF-IPS-NB is never worse than MF-Naive, at any sample size.",
        holds=all(gap.mean <= 0 for gap in gaps.values()),
        found=f"MSE less that of MF-Naive, ± standard error: {text}",
    )
    least, gap = min(gaps.items())
    yield Claim(
        text="MF-IPS-NB outperforms MF-Naive even for severely degraded propensity estimates.",
        holds=gap.mean < 0 and gap.p < 0.05,
        found=f"with {least:,} ratings {gap}, p = {gap.p:.2g}",
    )


def _figure(name: str, errors: Sequence[Errors], x_title: str, *, log_x: bool) -> Figure:
    rows = tuple(one.row for one in errors)
    chart = lines(
        rows, "at", "error", series="method", facet="metric", low="low", high="high",
        x_title=x_title, y_title="error over all cells", log_x=log_x,
    )  # fmt: skip
    return Figure(name=name, caption="Means over trials, with 95 % intervals.", rows=rows, chart=chart.to_dict())


_BAYES = (
    "Propensities by Naive Bayes (Eq. 18), with P(Y = r) by the Laplace estimator from a uniform sample of the cells, "
    "which is drawn anew in each trial. MF-Naive and MF-IPS do not depend on its size."
)
_FITS = (
    "Eq. 14 as printed: offsets are not penalised. MSE is of fits to the squared loss, MAE of fits to the absolute, "
    "whose λ is chosen by MAE. Alternating least squares instead of L-BFGS: the same objective."
)


def _notes(errors: Sequence[Errors], run: Run) -> tuple[str, ...]:
    regs = _regs(run)
    trials = ", ".join(f"{n} for {m.upper()}" for m, n in {one.metric: len(one.values) for one in errors}.items())
    chosen = (
        f"Trials: {trials}. d = {FACTORS}; λ of each method by {FOLDS} folds of the observed ratings within each "
        "trial, by IPS under its propensities or by the plain average for MF-Naive; never by the truth. λ stands "
        "beside an average over ratings with weights of mean 1, so that it weighs as much in a fold as in the log; "
        f"tried: {', '.join(f'{reg:g}' for reg in regs)}."
    ) + (f" {at_ends(errors, regs)}." if len(regs) > 2 else "")
    return chosen, _FITS


def _regs(run: Run) -> tuple[float, ...]:
    return run.either(REGS, REGS[1:3])
