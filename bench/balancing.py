"""`python -m bench.balancing [--logs N]`: what balancing by predictions does to the error of mae and to its intervals.

Every log has 200 users drawn from a world of 2,000 whose truth is known. Writes the table between the marks in
docs/propensities.md; `--quick` prints it for a few logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

import openloop as ol
from bench.harness import ROOT
from bench.pages import SimulatedPage

EVERYONE, USERS, ITEMS, OBSERVED = 2000, 200, 300, 0.05
SAMPLE = 600  # ratings drawn at random, for NaiveBayes
# world → the models of p
WORLDS = {"the rating": ("known", "naive-bayes"), "activity, popularity, taste": ("known", "logistic")}
MODELS = ("skewed", "coarsened", "mf")
WAYS = ("snips", "f", "f, imputed")
Floats = npt.NDArray[np.float64]
Told = tuple[float, bool, bool]  # the error, and whether the intervals over cells and over users hold their truths
Found = dict[tuple[str, str, str], Told]  # by p, model and way


# -- one log -------------------------------------------------------------------------------------------------


@cache
def world(name: str) -> tuple[ol.simulate.World, Floats]:
    """Everyone's ratings, chances and predictions, and imputed ratings; both learned from an earlier log."""
    rng = np.random.default_rng(3)
    value = rng.normal(size=(EVERYONE, 4)) @ rng.normal(size=(4, ITEMS)) / 2
    value += 0.7 * rng.normal(size=ITEMS) + 0.4 * rng.normal(size=(EVERYONE, 1))
    value /= value.std()
    by_rating = name == "the rating"
    levels = ol.simulate.MARGINALS if by_rating else (0.15, 0.2, 0.3, 0.22, 0.13)
    Y = ol.simulate.assign_marginals(value + 0.6 * rng.normal(size=value.shape), levels)
    P = ol.simulate.observation_model(Y, observed=OBSERVED) if by_rating else _by_taste(value, rng)
    made = ol.simulate.five_predictions(Y, rng=0)
    before = ol.simulate.World(ratings=Y, propensities=P).observe(rng=99)
    p, everyone = ol.Propensities(values=before.propensity), np.arange(EVERYONE)
    mf = ol.learners.MF(factors=5, reg=4.0, rng=0).fit(before, p).scores(everyone)
    predictions = {"skewed": made["SKEWED"], "coarsened": made["COARSENED"], "mf": mf}
    imputed = ol.learners.Bias(reg=5.0).fit(before, p).scores(everyone)
    return ol.simulate.World(ratings=Y, propensities=P, predictions=predictions), np.asarray(imputed, np.float64)


def _by_taste(value: Floats, rng: np.random.Generator) -> Floats:
    shape = np.exp(0.7 * rng.normal(size=(EVERYONE, 1)) + 0.9 * rng.normal(size=ITEMS) + 0.8 * value)
    k = 1.0
    for _ in range(50):
        k *= OBSERVED / np.clip(k * shape, 0.002, 0.8).mean()
    return np.clip(k * shape, 0.002, 0.8)


def errors(name: str, seed: int) -> Found:
    """What each estimate of mae is off by in one log."""
    everyone, imputed = world(name)
    rng = np.random.default_rng([5, seed])
    who = rng.choice(EVERYONE, USERS, replace=False)
    Y, log = everyone.ratings[who], _log(everyone, who, seed)
    sample = rng.choice(Y.ravel(), SAMPLE)
    found: Found = {}
    for p in WORLDS[name]:
        for model in MODELS:
            f = np.asarray(everyone.predictions[model][who], np.float64)
            here, there = (np.abs(a - b).mean() for a, b in ((f, Y), (everyone.predictions[model], everyone.ratings)))
            for way in WAYS:
                try:
                    seen = _fitted(p, way, log, {"uniform": sample}, {"predictions": f, "imputed": imputed[who]})
                except ol.errors.BalanceError:  # a prediction that follows from the rating contradicts the sample
                    continue
                e = ol.evaluate({"f": f}, log, seen, metrics=["mae"], estimators=["snips"])["f", "mae", "snips"]
                found[p, model, way] = (
                    e.value - float(here), here in e.interval(0.95, over="cells"), there in e.interval(0.95)
                )  # fmt: skip
    return found


def _log(everyone: ol.simulate.World, who: npt.NDArray[np.int64], seed: int) -> ol.Feedback:
    return ol.simulate.World(ratings=everyone.ratings[who], propensities=everyone.propensities[who]).observe(rng=seed)


def _fitted(p: str, way: str, log: ol.Feedback, drawn: dict[str, Any], predicted: dict[str, Any]) -> Any:
    models = ol.propensity
    model = {"known": models.Known, "naive-bayes": models.NaiveBayes, "logistic": models.Logistic}[p]()
    side = drawn if p == "naive-bayes" else {}
    if way == "snips":
        return model.fit(log, **side)
    told = predicted if way == "f, imputed" else {"predictions": predicted["predictions"]}
    return models.Balanced(model).fit(log, **side, **told)


# -- the table -----------------------------------------------------------------------------------------------


def tables(logs: int, each: Callable[..., Any] = map) -> Iterator[str]:
    """The table as Markdown; `each` maps a function over the seeds."""
    yield (
        f"{logs} logs of {USERS} users × {ITEMS} items, about {USERS * ITEMS * OBSERVED:,.0f} rows; mae by `snips`. "
        "RMSE is against the mean over all cells of these users; balanced, as a multiple of that without. Coverage of "
        "nominal 95 % is over cells / over users."
    )
    lines = [
        "| p depends on | p from | model | RMSE | balanced: f | f, imputed | coverage | balanced: f | f, imputed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in WORLDS:
        lines += _lines(name, list(each(partial(errors, name), range(logs))))
    yield "\n".join(lines)


def _lines(name: str, found: Sequence[Found]) -> Iterator[str]:
    for p in WORLDS[name]:
        for model in MODELS:
            of = {way: [one[p, model, way] for one in found if (p, model, way) in one] for way in WAYS}
            plain = _rmse(of["snips"])
            # Logs that are not refused are those whose sample happens to be right: they say nothing of the others.
            refused = {way: len(found) - len(told) for way, told in of.items()}
            ratios = [f"refused in {refused[w]}" if refused[w] else f"× {_rmse(of[w]) / plain:.2f}" for w in WAYS[1:]]
            covers = ["" if refused[way] else _coverage(told) for way, told in of.items()]
            yield f"| {name} | {p} | {model} | {plain:.4f} | {' | '.join(ratios)} | {' | '.join(covers)} |"


def _rmse(told: Sequence[Told]) -> float:
    return float(np.sqrt(np.mean([off**2 for off, _, _ in told])))


def _coverage(told: Sequence[Told]) -> str:
    return " / ".join(f"{np.mean([one[k] for one in told]):.2f}" for k in (1, 2))


PAGE = SimulatedPage(
    name="bench.balancing", about=__doc__, path=ROOT / "docs" / "propensities.md", quick=8, tables=tables,
    marks=("<!-- measured by python -m bench.balancing -->", "<!-- end of what was measured -->"),
)  # fmt: skip

if __name__ == "__main__":
    PAGE.main()
