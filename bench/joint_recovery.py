"""`python -m bench.joint_recovery [--logs N]`: joint models on worlds of their own kind: what they find again.

How often 90 % intervals hold the truth, how much better the joint model predicts than the one of ratings alone, what it
loses where data are missing at random, and what a share of the cells does to it. Writes its tables between the marks in
docs/joint-models.md; `--quick` prints them for one world each. Trials are kept, so a run that was stopped goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, ndtr

from bench.harness import ROOT
from bench.joint_models import errors, held_by, joint_world
from bench.pages import SimulatedPage, kept
from openloop.core.feedback import Feedback
from openloop.learners.joint_mnar import JointMNAR
from openloop.learners.mixture_mnar import MixtureMNAR
from openloop.learners.ordinal_mf import OrdinalMF

Floats = npt.NDArray[np.float64]
Found = dict[str, Any]

LOGS, SHARE = 20, 0.1
CHAIN = {"factors": 2, "sweeps": 700, "burn": 200, "thin": 5, "chains": 2, "threads": 1}
MU = np.array([0.15, 0.3, 0.6])  # of the mixture's worlds
SHAPES = {"cpt-v": (500, 10), "logit-vd": (300, 24)}  # users and items of them
OFFSET_SD = {"cpt-v": 0.0, "logit-vd": 0.7}


# -- trials --------------------------------------------------------------------------------------------------


def ordinal_world(_given: Any, *, seed: int) -> Found:
    """A trial: parameters from the prior; intervals of the thresholds and of the chance of the lowest level."""
    log, truth = _from_prior(np.random.default_rng(seed))
    model = OrdinalMF(factors=2, sweeps=1200, burn=200, thin=1, chains=1, threads=1, rng=seed).fit(log)
    b, u, v = model.threshold_draws_, model.user_draws_, model.item_draws_
    means = np.einsum("nsd,nsd->s", u[log.user], v[log.item]) / len(log)
    scale = np.sqrt(model.user_scale_draws_[0] * model.item_scale_draws_[0])
    chance = ndtr((b[:, 0] - np.sum(u[0] * v[0], axis=1)) / scale)
    low, high = np.quantile(np.column_stack([b - means[:, None], chance]), [0.05, 0.95], axis=0)
    held = (low <= truth) & (truth <= high)
    return {"thresholds": held[:2].mean(), "chance of a level in one cell": float(held[2])}


def _from_prior(rng: np.random.Generator, U: int = 10, I: int = 8, d: int = 2) -> tuple[Feedback, Floats]:
    """A log with three levels: its thresholds less its mean score, and the chance of the lowest level in a cell."""
    while True:
        b = rng.normal([-0.5, 0.5])
        u, v = (rng.normal(rng.standard_normal(d), np.sqrt(2 / rng.gamma(3, size=d)), (n, d)) for n in (U, I))
        m, s = u @ v.T, np.sqrt(np.outer(*(4 / rng.gamma(5, size=n) for n in (U, I))))
        code = np.searchsorted(b, m + s * rng.standard_normal((U, I)))
        user, item = np.nonzero(rng.random((U, I)) < 0.6)
        if b[0] < b[1] and len(np.unique(code[user, item])) == 3:
            log = Feedback.from_arrays(user, item, code[user, item], users=U, items=I)
            return log, np.array([*(b - m[user, item].mean()), ndtr((b[0] - m[0, 0]) / s[0, 0])])


def joint_fit(_given: Any, *, seed: int, share: float) -> Found:
    """A trial: what intervals hold, and the error at unobserved cells, looking at all of them or at a share."""
    world = joint_world(seed)
    model = JointMNAR(missing_factors=1, unobserved=share, rng=seed, **CHAIN).fit(world.log)
    return {**held_by(world, model), "mse": errors(world, model)}


def ratings_alone(_given: Any, *, seed: int) -> Found:
    """A trial: the error of the model of ratings alone on the world of `joint_fit`."""
    world = joint_world(seed)
    return {"mse": errors(world, OrdinalMF(rng=seed, **CHAIN).fit(world.log))}


def at_random(_given: Any, *, seed: int) -> Found:
    """A trial: errors of both models where being observed has nothing to do with the rating, user or item."""
    world = joint_world(seed, level_mean=np.full(5, -1.4), spread=0.0)
    models = JointMNAR(missing_factors=1, rng=seed, **CHAIN), OrdinalMF(rng=seed, **CHAIN)
    joint, ordinal = (errors(world, model.fit(world.log)) for model in models)
    return {"joint": joint, "ordinal": ordinal}


def mixture_world(_given: Any, *, seed: int, missing: str) -> Found:
    """A trial: whether intervals hold μ, of a world of two components and three levels."""
    rng, (U, I) = np.random.default_rng(seed), SHAPES[missing]
    beta, z = rng.dirichlet(np.ones(3), (2, I)), rng.choice(2, U, p=[0.4, 0.6])
    level = (rng.random((U, I, 1)) > beta[z].cumsum(axis=2)[:, :, :2]).sum(axis=2)
    omega = OFFSET_SD[missing] * rng.standard_normal(I)
    user, item = np.nonzero(rng.random((U, I)) < expit(logit(MU)[level] + omega))
    log = Feedback.from_arrays(user, item, level[user, item] + 1.0, users=U, items=I)
    model = MixtureMNAR(
        2, missing, rating_prior=0.1, restarts=2, offset_sd=OFFSET_SD[missing] or 1.0, rng=seed
    ).fit(log)  # fmt: skip
    low, high = model.missing_interval(log, 0.9).T
    return {"μ": float(np.mean((low <= MU) & (high >= MU)))}


# -- the page ------------------------------------------------------------------------------------------------


def tables(logs: int, *_: Any) -> Iterator[str]:
    """What is put between the marks."""
    found: dict[str, list[Found]] = {
        "`OrdinalMF`": _each(ordinal_world, logs, "OrdinalMF"),
        "`JointMNAR`": _each(joint_fit, logs, "JointMNAR", share=1.0),
        f"`JointMNAR(unobserved={SHARE})`": _each(joint_fit, _half(logs), f"JointMNAR by {SHARE:.0%}", share=SHARE),
    }
    for missing in SHAPES:
        found[f'`MixtureMNAR("{missing}")`'] = _each(mixture_world, logs, missing, missing=missing)
    yield (
        f"How often 90 % intervals contain the true value, over {logs} worlds ({_half(logs)} with a share). m is here "
        "the mean logit of a level over all cells; λ and ψ are centred over users or items and over levels, since only "
        "that is identified."
    )
    yield "\n".join(_coverage(found))
    yield "Mean squared error of predictions at unobserved cells of worlds of 60 × 50 cells:"
    exact, part = (found[f"`JointMNAR{how}`"] for how in ("", f"(unobserved={SHARE})"))
    yield "\n".join(_predictions(exact, part))


def _half(logs: int) -> int:
    return max(1, logs // 2)


def _each(trial: Any, logs: int, what: str, **setting: Any) -> list[Found]:
    return kept(trial, [{"seed": seed, **setting} for seed in range(logs)], what)


def _coverage(found: Mapping[str, Sequence[Found]]) -> Iterator[str]:
    yield "| model | of | share held | standard error over worlds |"
    yield "|---|---|---|---|"
    for model, outcomes in found.items():
        for name in outcomes[0]:
            if name != "mse":
                held = np.array([float(o[name]) for o in outcomes])
                yield f"| {model} | {name} | {held.mean():.2f} | {held.std() / np.sqrt(len(held)):.2f} |"


def _predictions(exact: Sequence[Found], part: Sequence[Found]) -> Iterator[str]:
    alone = _each(ratings_alone, len(exact), "ratings alone")
    even = _each(at_random, _half(len(exact)), "missing at random")
    yield "| observed | worlds | `JointMNAR` | `OrdinalMF` | ratio |"
    yield "|---|---|---|---|---|"
    yield _compared("by the rating, user and item", exact, alone)
    yield _compared(f"the same, `unobserved={SHARE}`", part, alone[: len(part)])
    yield _compared("at random", [{"mse": o["joint"]} for o in even], [{"mse": o["ordinal"]} for o in even])


def _compared(words: str, joint: Sequence[Found], ordinal: Sequence[Found]) -> str:
    a, b = (float(np.mean([float(o["mse"]) for o in outcomes])) for outcomes in (joint, ordinal))
    return f"| {words} | {len(joint)} | {a:.3f} | {b:.3f} | {a / b:.3f} |"


PAGE = SimulatedPage(
    name="bench.joint_recovery",
    about=__doc__,
    path=ROOT / "docs" / "joint-models.md",
    marks=("<!-- measured by python -m bench.joint_recovery -->", "<!-- end of what was measured -->"),
    tables=tables,
    quick=1,
    logs=LOGS,
)

if __name__ == "__main__":
    PAGE.main()
