"""`python -m bench.positions [--logs N]`: how good values, examination and verdicts from impressions are.

Every log has users drawn afresh in a world of clicks whose truth is known. Writes the tables between the marks in
docs/positions.md; `--quick` prints them for a few logs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import openloop as ol
from bench.harness import ROOT
from bench.pages import SimulatedPage

VALUES = ("sips", "rips", "pi", "iips", "sniips", "pbm", "snpbm")
WORLD: dict[str, Any] = {"users": 2000, "items": 6, "depth": 3, "logging": "shuffled"}
HARVEST: dict[str, Any] = {"users": 2000, "items": 10, "depth": 5, "logging": "two-rankers"}
# name → the world's settings, how θ is found, and the better ranker; None: both are the same ranker, drawn twice
VERDICTS: dict[str, tuple[dict[str, Any], str | None, str | None]] = {
    "pbm, half shuffled": (WORLD, "randomised", "a"),
    "cascade, half shuffled": (WORLD | {"model": "cascade"}, "randomised", "a"),
    "trust, half shuffled": (WORLD | {"model": "trust"}, "randomised", "a"),
    "pbm, two rankers, 5 of 10 shown": (HARVEST, "assignment", "a"),
    "pbm, one ranker, 5 of 10 shown": (HARVEST | {"logging": "deterministic"}, None, "a"),
    "cascade, two rankers, 5 of 10 shown": (HARVEST | {"model": "cascade"}, "assignment", "a"),
    "trust, two rankers, 5 of 10 shown": (HARVEST | {"model": "trust"}, "assignment", "a"),
    "equal rankers": (WORLD, "randomised", None),
}


# -- one log -------------------------------------------------------------------------------------------------


def value_errors(seed: int, *, fitted: bool) -> dict[str, tuple[float, float, bool]]:
    """Of each estimator: the error of V_a and of V_a − V_b relative to the truth, and whether its interval holds it."""
    world = ol.simulate.click_world(**WORLD)
    log = world.observe(rng=seed)
    exam = ol.propensity.Examination(by="randomised").fit(log) if fitted else world.theta
    result = ol.evaluate(world.ranks(log), log, exam, metrics=["clicks"], estimators=VALUES)
    truth, gap = world.truth("a"), world.truth("a") - world.truth("b")
    found: dict[str, tuple[float, float, bool]] = {}
    for name in result.estimators:
        difference = result.difference("a", "b", metric="clicks", estimator=name)
        found[name] = (
            result["a", "clicks", name].value / truth - 1, difference.value / gap - 1, gap in difference.interval()
        )  # fmt: skip
    return found


def theta_errors(seed: int) -> tuple[list[float], list[bool]]:
    """The relative error of θ at positions 2 …, and whether each interval holds it."""
    world = ol.simulate.click_world(**HARVEST)
    exam = ol.propensity.Examination(by="assignment").fit(world.observe(rng=seed))
    inside = (exam.interval()[:, 0] <= world.theta) & (world.theta <= exam.interval()[:, 1])
    return (exam.theta_ / world.theta - 1)[1:].tolist(), inside[1:].tolist()


def verdict_of(name: str, seed: int) -> str:
    """What an audit says: right, wrong or no verdict; any verdict on equal rankers is wrong."""
    settings, by, better = VERDICTS[name]
    world = ol.simulate.click_world(**settings)
    log = world.observe(rng=seed)
    exam = world.theta if by is None else ol.propensity.Examination(by=by).fit(log)
    models = world.ranks(log) if better else _equal(world.ranks(log), seed)
    try:
        found = ol.audit(models, log, exam)
    except ol.errors.UndefinedError:
        return "refused"
    if not found.verdict.supported:
        return "no verdict"
    return "right" if found.verdict.winner == better else "wrong"


def _equal(ranks: dict[str, Any], seed: int) -> dict[str, Any]:
    """Two rankers that are equal in truth: each takes a's list for one half of the users and b's for the other."""
    import polars as pl

    users = ranks["a"]["user"].unique(maintain_order=True)
    half = users.filter(pl.Series(np.random.default_rng([7, seed]).random(len(users)) < 0.5))
    mine = {name: table.filter(pl.col("user").is_in(half.implode())) for name, table in ranks.items()}
    rest = {name: table.filter(~pl.col("user").is_in(half.implode())) for name, table in ranks.items()}
    return {"one": pl.concat([mine["a"], rest["b"]]), "two": pl.concat([mine["b"], rest["a"]])}


# -- tables --------------------------------------------------------------------------------------------------


def tables(logs: int, each: Callable[..., Any] = map) -> Iterator[str]:
    """All tables as Markdown; `each` maps a function over the seeds."""
    yield f"{logs} logs per line. RMSE and bias are percentages of the truth; coverage is that of 95 % intervals."
    for fitted in (False, True):
        how = "fitted on the log" if fitted else "known"
        yield f"**Values, θ {how}** (10,000 requests, 2,000 users, 6 items, K = 3)"
        yield _values(list(each(partial(value_errors, fitted=fitted), range(logs))))
    yield "**θ by harvest** (assignment; 10,000 requests, two rankers, 5 of 10 items)"
    yield _theta(list(each(theta_errors, range(logs))))
    yield "**Verdicts of `ol.audit`** (snpbm decides where no check speaks against it, then sniips, then snrips)"
    yield _verdicts({name: Counter(each(partial(verdict_of, name), range(logs))) for name in VERDICTS})


def _values(found: Sequence[dict[str, tuple[float, float, bool]]]) -> str:
    lines = ["| | bias of V | RMSE of A − B | coverage of A − B |", "|---|---|---|---|"]
    for name in VALUES:
        errors = np.array([one[name] for one in found if name in one], np.float64)  # (logs, 3)
        if len(errors):
            bias, noise = 100 * errors[:, 0].mean(), 100 * errors[:, 0].std() / np.sqrt(len(errors))
            rmse = 100 * np.sqrt(np.square(errors[:, 1]).mean())
            lines.append(f"| {name} | {bias:+.1f} ± {noise:.1f} | {rmse:.0f} | {errors[:, 2].mean():.3f} |")
    return "\n".join(lines)


def _theta(found: Sequence[tuple[list[float], list[bool]]]) -> str:
    errors, inside = (np.array([one[k] for one in found], np.float64) for k in (0, 1))  # (logs, K − 1)
    lines = ["| position | bias | RMSE | coverage |", "|---|---|---|---|"]
    for k in range(errors.shape[1]):
        bias, rmse = 100 * errors[:, k].mean(), 100 * np.sqrt(np.square(errors[:, k]).mean())
        lines.append(f"| {k + 2} | {bias:+.1f} | {rmse:.1f} | {inside[:, k].mean():.3f} |")
    return "\n".join(lines)


def _verdicts(found: dict[str, Counter[str]]) -> str:
    columns = ("right", "wrong", "no verdict", "refused")
    lines = [f"| world | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    lines += [f"| {name} | {' | '.join(str(counts[c]) for c in columns)} |" for name, counts in found.items()]
    return "\n".join(lines)


PAGE = SimulatedPage(
    name="bench.positions", about=__doc__, path=ROOT / "docs" / "positions.md", quick=4, tables=tables,
    marks=("<!-- measured by python -m bench.positions -->", "<!-- end of what was measured -->"),
)  # fmt: skip

if __name__ == "__main__":
    PAGE.main()
