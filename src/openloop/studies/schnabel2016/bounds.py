"""How tight Proposition 3.1 and Theorems 4.2 and 5.2 of Schnabel et al. (2016) are on the semi-synthetic data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from openloop.core.feedback import Floats
from openloop.estimators.bounds import generalisation_bound, inaccurate_bound
from openloop.studies.kit.results import Claim, Result, Table
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Outcome
from openloop.studies.schnabel2016.estimates import (
    ALPHAS,
    BLOCK,
    ETA,
    METRICS,
    TITLES,
    alphas,
    draws,
    with_known,
    with_known_propensities,
    with_learned,
    with_learned_propensities,
)
from openloop.studies.schnabel2016.worlds import ALPHA, MODELS, OBSERVED, Completion, complete, observation_model
from openloop.support.wording import joined

DRAWN = 200  # a 95 % quantile wants more draws than a mean
LARGEST = {"mae": 5.0, "mse": 25.0}  # Δ: predictions lie in [0, 6], ratings in 1 … 5
SAMPLE = 1_000  # uniform ratings for naive Bayes at each α


@dataclass(frozen=True, slots=True, kw_only=True)
class Tightness:
    """A bound beside what was seen: the quantile 1 − η over draws, and the share of draws beyond the bound."""

    bound: float
    seen: float
    beyond: float

    @property
    def ratio(self) -> float:
        """How many times too wide the bound is."""
        return self.bound / self.seen


def bounds(run: Run) -> Result:
    """Each bound at η = 0.05 beside the deviations that the draws show."""
    world, tried = complete(run), alphas(run)
    found = _more_draws(run, world, tried)
    tails = {(a, m, j): _tail(found[a], m, j) for a in tried for m in range(len(METRICS)) for j in range(len(MODELS))}
    uniform = {(a, name): _uniform(world, a, found[a], name) for a in tried for name in LARGEST}
    sizes, by_size = with_learned(run, world)
    by_alpha = _learned(run, world, [a for a in tried if a != ALPHA])
    lines = [(f"α = {a}, sample of {SAMPLE:,}", found[a], outcome, 0) for a, outcome in by_alpha.items()]
    lines += [(f"α = {ALPHA}, sample of {size:,}", found[ALPHA], by_size, k) for k, size in enumerate(sizes)]
    inaccurate = [(name, _inaccurate(truth["truth"], outcome, k), outcome, k) for name, truth, outcome, k in lines]
    return Result(
        item="bounds", data=("ml-100k",),
        tables=(_tail_table(tails), _uniform_table(uniform), _inaccurate_table(inaccurate)),
        claims=(
            _holds("Proposition 3.1", list(tails.values()), proven=True),
            _holds("Theorem 4.2", list(uniform.values()), proven=True),
            _holds("Theorem 5.2", [line for _, line, _, _ in inaccurate], proven=False),
            _floored(world),
        ),
        notes=(str(world), *_NOTES),
    )  # fmt: skip


_NOTES = (
    (
        "Hoeffding's inequality takes a cell's contribution to range up to δ/P, and does not use that it is 0 most of "
        "the time: its variance is δ²(1 − P)/P, which is P(1 − P) times that range's square. So the bounds are too "
        "wide by the more, the smaller the propensities of the cells that err."
    ),
    "Theorem 4.2 takes Δ, the largest possible loss, for every cell; H are the five models.",
    (
        "Theorem 5.2 takes P̂ as given. Here naive Bayes learns it from the same log, so the theorem is used beyond its "
        "letter, and its claim can fail. Lemma 5.1 has the sign R − E[R̂]."
    ),
)


def _more_draws(run: Run, world: Completion, tried: Sequence[float]) -> dict[float, Outcome]:
    """The draws of Figure 2, and more of the same."""
    found = with_known(run, world, tried)
    more = run.either(DRAWN, draws(run)) - draws(run)
    if not more:
        return found
    settings = [{"alpha": a, "seed": run.seed, "first": draws(run), "draws": more} for a in tried]
    rest = run.map(with_known_propensities, world.given, settings, "drawing more logs")
    return {
        a: found[a] | {name: np.concatenate([found[a][name], part[name]]) for name in ("naive", "ips", "snips")}
        for a, part in zip(tried, rest, strict=True)
    }


def _learned(run: Run, world: Completion, tried: Sequence[float]) -> dict[float, Outcome]:
    settings = [
        {"alpha": a, "seed": run.seed, "first": 0, "draws": run.either(2 * BLOCK, 2), "sizes": (SAMPLE,)} for a in tried
    ]
    return dict(
        zip(
            tried,
            run.map(with_learned_propensities, world.given, settings, "learning propensities at each α"),
            strict=True,
        )
    )


def _tightness(bound: float | Floats, deviations: Floats) -> Tightness:
    seen, beyond = float(np.quantile(deviations, 1 - ETA)), float(np.mean(deviations > bound))
    return Tightness(bound=float(np.mean(bound)), seen=seen, beyond=beyond)


def _tail(found: Outcome, m: int, j: int) -> Tightness:
    """Proposition 3.1: |R̂_IPS − R|."""
    return _tightness(found["tail"][m, j], np.abs(found["ips"][:, m, j] - found["truth"][m, j]))


def _uniform(world: Completion, alpha: float, found: Outcome, name: str) -> Tightness:
    """Theorem 4.2, by way of its proof: the largest |R̂_IPS − R| of the models in H."""
    P = observation_model(world.ratings, alpha, OBSERVED)
    m = METRICS.index(name)
    largest = np.abs(found["ips"][:, m] - found["truth"][m]).max(axis=1)  # (draws,)
    return _tightness(generalisation_bound(0.0, P, LARGEST[name], len(MODELS), ETA), largest)


def _inaccurate(truth: Floats, found: Outcome, k: int) -> Tightness:
    """Theorem 5.2 for MAE with the k-th sample: the largest |R̂_IPS − R| of the models in H."""
    m = METRICS.index("mae")
    bound = LARGEST["mae"] * (found["unlikeness"] + found["spread"])[:, k]  # (draws,)
    return _tightness(bound, np.abs(found["ips"][:, k, m] - truth[m]).max(axis=1))


# -- tables and the figure -----------------------------------------------------------------------------------


def _cells(line: Tightness) -> tuple[float | str, ...]:
    return line.bound, line.seen, line.ratio, f"{line.beyond:.0%}"


def _tail_table(tails: Mapping[tuple[float, int, int], Tightness]) -> Table:
    rows = tuple(
        (f"{TITLES[METRICS[m]]} of {MODELS[j]}", *_cells(line)) for (a, m, j), line in tails.items() if a == ALPHA
    )
    return Table(
        name="bounds-tail", caption="Proposition 3.1 at η = 0.05 and α = 0.25: how far IPS may be from the truth",
        columns=("", "bound", "95 % of draws within", "ratio", "draws beyond the bound"), rows=rows,
    )  # fmt: skip


def _uniform_table(uniform: Mapping[tuple[float, str], Tightness]) -> Table:
    rows = tuple(
        (f"{TITLES[name]}, α = {a}", *_cells(line))
        for (a, name), line in sorted(uniform.items(), key=lambda entry: entry[0][1])
    )
    return Table(
        name="bounds-erm", caption="Theorem 4.2 at η = 0.05, H being the five models",
        columns=("loss", "bound", "95 % of draws within (largest of H)", "ratio", "draws beyond the bound"), rows=rows,
    )  # fmt: skip


def _inaccurate_table(lines: Sequence[tuple[str, Tightness, Outcome, int]]) -> Table:
    m = METRICS.index("mae")
    rows = tuple(
        (
            name, *_cells(line),
            float(np.abs(found["bias"][:, k, m]).max(axis=1).mean()),
        )
        for name, line, found, k in lines
    )  # fmt: skip
    return Table(
        name="bounds-inaccurate", caption="Theorem 5.2 at η = 0.05 for MAE, propensities by naive Bayes",
        columns=(
            "", "bound", "95 % of draws within (largest of H)", "ratio", "draws beyond the bound",
            "largest bias by Lemma 5.1",
        ),
        rows=rows,
    )  # fmt: skip


# -- claims --------------------------------------------------------------------------------------------------


def _holds(name: str, lines: Sequence[Tightness], *, proven: bool) -> Claim:
    """A bound that is proven for these draws can only hold, and is not counted."""
    worst, ratios = max(line.beyond for line in lines), [line.ratio for line in lines]
    return Claim(
        text=f"{name} holds in at least 95 % of draws",
        holds=worst <= ETA,
        found=f"at most {worst:.0%} of draws lie beyond; it is {min(ratios):.1f} to {max(ratios):.0f} times too wide",
        counted=not proven,
    )


def _floored(world: Completion) -> Claim:
    """Theorem 5.2 with P̂ = max(P, floor), the floor being the P of some star."""
    lowered = {a: _gain(world, a) for a in ALPHAS if a < 1}
    return Claim(
        text="by Theorem 5.2 it may be beneficial to overestimate small propensities",
        holds=max(lowered.values()) > 0,
        found="the best floor lowers the bound by " + joined([f"{gain:.0%} at α = {a}" for a, gain in lowered.items()]),
        counted=False,
    )


def _gain(world: Completion, alpha: float) -> float:
    P = observation_model(world.ratings, alpha, OBSERVED)
    slack = [inaccurate_bound(0.0, P, np.maximum(P, floor), 1.0, len(MODELS), ETA) for floor in np.unique(P)]
    return 1 - min(slack) / slack[0]
