"""Figure 1 of Schnabel et al. (2016): the Movie-Lovers example, in which a biased log prefers the wrong model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from openloop.core.feedback import Floats
from openloop.data.simulate import World, movie_lovers
from openloop.reporting.style import BLUE, data, styled
from openloop.studies.kit.results import Claim, Figure, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.statistics import standard_error
from openloop.studies.kit.trials import Given, Outcome
from openloop.studies.schnabel2016.estimates import estimated
from openloop.studies.schnabel2016.tolerances import ERRORS
from openloop.studies.schnabel2016.worlds import MOVIE_LOVERS, losses

USERS, ITEMS = 100, 80
SHOWN = (20, 24)  # users and movies of the picture
METRICS = {"mae": "MAE", "mse": "MSE", "accuracy": "accuracy"}


def figure1(run: Run) -> Result:
    """The matrices of the example, and what the estimators say of its three predictions."""
    found = run.one(movie_lovers_estimates, {}, seed=run.seed, draws=run.either(1000, 200))
    return Result(
        item="figure1", tables=(_table(found),), figures=(_matrices(run.seed),),
        claims=tuple(_claims(found)), notes=_NOTES,
    )  # fmt: skip


_NOTES = (
    (
        "The figure prints no numbers. A quarter of the movies are dramas, the rest half horror and half romance; "
        "propensities are 0.5, 0.25 and 0.05 for loved movies, dramas and hated movies: people rate what they like."
    ),
    "Ŷ1 errs on dramas only, Ŷ2 on hated movies only, both by predicting 5; Ŷ3 recommends all horror movies to all.",
)


def movie_lovers_estimates(given: Given, *, seed: int, draws: int) -> dict[str, Floats]:
    """A trial: truth (metrics, models), and estimates (draws, metrics, models), of draws of the example's log."""
    del given  # the world is made up
    world = movie_lovers(USERS, ITEMS)
    metrics = [*METRICS, f"cg@{_budget(world)}"]
    delta = losses(world, metrics)
    logs = (world.observe(np.random.default_rng([seed, MOVIE_LOVERS, draw])) for draw in range(draws))
    found = [estimated(delta, metrics, log, np.asarray(log.propensity)) for log in logs]
    return {"truth": delta.mean(axis=-1)} | {name: np.array([each[name] for each in found]) for name in found[0]}


def _budget(world: World) -> int:
    """k: how many movies Ŷ3 recommends to a user."""
    return int(world.predictions["Y3"][0].sum())


def _table(found: Outcome) -> Table:
    places = [(f"{title} of Ŷ{j + 1}", m, j) for m, title in enumerate(METRICS.values()) for j in (0, 1)]
    places.append(("CG of Ŷ3", len(METRICS), 2))
    rows = tuple((name, float(found["truth"][m, j]), *_means(found, m, j)) for name, m, j in places)
    return Table(
        name="figure1", caption=f"Estimates from logs of {USERS} users and {ITEMS} movies",
        columns=("", "true", "Naive", "IPS", "SNIPS"), rows=rows, error_is="standard deviation over draws",
    )  # fmt: skip


def _means(found: Outcome, m: int, j: int) -> Iterator[Value]:
    for name in ("naive", "ips", "snips"):
        values = found[name][:, m, j]
        yield Value(value=values.mean(), error=values.std(ddof=1))


def _claims(found: Outcome) -> Iterator[Claim]:
    first, second = found["truth"][:3, 0], found["truth"][:3, 1]
    yield Claim(
        text="Ŷ1 is better than Ŷ2 by MAE, MSE and accuracy",
        holds=bool(np.all(first[:2] < second[:2]) and first[2] > second[2]),
        found=", ".join(
            f"{t} {a:.3g} against {b:.3g}" for t, a, b in zip(METRICS.values(), first, second, strict=True)
        ),
        counted=False,  # the example is made so
    )
    prefers = {name: float(np.mean(found[name][:, 0, 1] < found[name][:, 0, 0])) for name in ("naive", "ips", "snips")}
    yield Claim(
        text="the naive estimator reliably claims that Ŷ2 has the better MAE, IPS and SNIPS do not (more than 99 %, "
        "less than 1 % of draws)",
        holds=prefers["naive"] > 0.99 and max(prefers["ips"], prefers["snips"]) < 0.01,
        found=f"naive in {prefers['naive']:.1%} of draws, IPS in {prefers['ips']:.1%}, SNIPS in {prefers['snips']:.1%}",
    )
    gain, (naive, far), (ips, near) = found["truth"][3, 2], _gain(found, "naive"), _gain(found, "ips")
    yield Claim(
        text="the naive estimate of what users gain from Ŷ3 is biased, the IPS estimate is not (by more than "
        f"{ERRORS} standard errors)",
        holds=far > ERRORS >= near,
        found=f"{gain:.2f} stars in truth; {naive:.2f} by the naive estimator, {far:.0f} standard errors off; "
        f"{ips:.2f} by IPS, {near:.1f} standard errors off",
    )


def _gain(found: Outcome, name: str) -> tuple[float, float]:
    """The mean estimate of what users gain from Ŷ3, and how many standard errors it is off."""
    values = found[name][:, 3, 2]
    return float(values.mean()), abs(float(values.mean()) - float(found["truth"][3, 2])) / standard_error(values)


# -- the picture ---------------------------------------------------------------------------------------------


def _matrices(seed: int) -> Figure:
    world = movie_lovers(*SHOWN)
    log = world.observe(np.random.default_rng([seed, MOVIE_LOVERS, 0]))
    O = np.zeros(SHOWN)
    O[log.user, log.item] = 1
    grids = {"Y": world.ratings, "P": world.propensities, "O": O}
    grids |= {f"Ŷ{name[1:]}": Y_hat for name, Y_hat in world.predictions.items()}
    rows = [row for name, grid in grids.items() for row in _cells(name, grid)]
    caption = "Users (rows) and movies (horror, romance, drama); the darker, the higher. The paper prints no numbers"
    return Figure(name="figure1", caption=caption, rows=tuple(rows), chart=_panels(grids, rows).to_dict())


def _cells(name: str, grid: Any) -> Iterator[dict[str, Any]]:
    for (u, i), value in np.ndenumerate(grid):
        yield {"matrix": name, "user": u + 1, "movie": i + 1, "value": float(value)}


def _panels(grids: Mapping[str, Any], rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    panels = [
        data([row for row in rows if row["matrix"] == name])
        .mark_rect()
        .encode(
            x=alt.X("movie:O", axis=None),
            y=alt.Y("user:O", axis=None),
            color=alt.Color("value:Q", title=None, scale=alt.Scale(range=["#FFFFFF", BLUE], domainMin=0)),
        )
        .properties(width=170, height=140, title=name)
        for name in grids
    ]
    return styled(alt.concat(*panels, columns=3).resolve_scale(color="independent"))
