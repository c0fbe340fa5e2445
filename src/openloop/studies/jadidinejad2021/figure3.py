"""Figure 3: the models by closed and by open loop, a point for each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from openloop.audits.rankings import tau_b
from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021.experiment import Experiment, by_data_set, over_splits
from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.kit import charts
from openloop.studies.kit.results import Claim, Figure, Result, Table
from openloop.studies.kit.running import Run

# Figure 3's three panels, and two of ours beside them.
PANELS = {
    "holdout": "as coded: holdout",
    "Q1": "as coded: q1",
    "Q2": "as coded: q2",
    "ours: 5 strata, popularity": "ours: 5 strata, popularity",
    "ours, training items ranked: 5 strata, popularity": "ours, training items ranked: 5 strata, popularity",
}


def figure3(run: Run) -> Result:
    """Closed loop against open loop, a point for each model, in the first split; τ over all splits."""
    return by_data_set(run, _about)


def _about(found: Experiment) -> Result:
    taus = _panel_taus(found)
    return Result(
        item="figure3", title="104 models, by closed loop and by open loop", data=(found.name,),
        tables=(_correlations(found, taus),), figures=(_scatter(found, taus),), claims=tuple(_claims(found.name, taus)),
        notes=("Points are of the first split, numbers of all splits. The two panels of ours are not the paper's.",),
    )  # fmt: skip


def _panel_taus(found: Experiment) -> dict[str, Floats]:
    """τ with the open loop as published, in each split, (R,)."""
    goals = found.goals(None)
    return {name: tau_b(found.scores(method, None), goals) for name, method in PANELS.items()}


def _scatter(found: Experiment, taus: dict[str, Floats]) -> Figure:
    first, models = found.splits[0], found.fits.models
    goal = first.targets["published"](None).value
    rows = [
        {"panel": f"{name}, τ = {taus[name][0]:.2f}", "model": model, "open loop": float(x), "closed loop": float(y)}
        for name, method in PANELS.items()
        for model, x, y in zip(models, goal, first.methods[method](None).value, strict=True)
    ]
    drawn = charts.scatter(
        rows, "open loop", "closed loop", facet="panel", label="model",
        x_title="nDCG, open loop", y_title="nDCG, closed loop",
    )  # fmt: skip
    caption = f"{found.name}: nDCG of {len(models)} models by the closed loop, as coded and ours, and by the open loop."
    return Figure(name=f"figure3_{found.name}", caption=caption, rows=tuple(rows), chart=drawn.to_dict())


def _correlations(found: Experiment, taus: dict[str, Floats]) -> Table:
    published = PUBLISHED["figure3"].get(found.name, {})
    rows = [
        (name, over_splits(values, published.get(name.lower()), 3 if name == "Q2" else 2))
        for name, values in taus.items()
    ]
    share = np.array([np.mean(split.held.coded_strata(2) == 0) for split in found.splits])
    rows.append(("Q1's share of the feedback", over_splits(share, published.get("q1_share"), 2)))
    return Table(
        name=f"figure3_{found.name}", columns=("panel", "τ with the open loop"), rows=tuple(rows),
        caption=f"{found.name}: agreement over {len(found.splits)} splits.", error_is="standard deviation over splits",
    )  # fmt: skip


def _claims(name: str, taus: dict[str, Floats]) -> Iterator[Claim]:
    t = {panel: float(values.mean()) for panel, values in taus.items()}
    yield Claim(
        text=f"{name}: Q1 agrees better with the open loop than holdout, and holdout than Q2",
        holds=t["Q1"] > t["holdout"] > t["Q2"],
        found=f"τ is {t['Q1']:.3f} by Q1, {t['holdout']:.3f} by holdout and {t['Q2']:.3f} by Q2",
    )
    if name == "coat":
        text = "coat: Q2 has a negative correlation with the open loop"
        yield Claim(text=text, holds=t["Q2"] < 0, found=f"{t['Q2']:.3f}")
