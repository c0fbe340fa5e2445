"""Figure 3: the models by closed and by open loop, a point for each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from openloop.audits.rankings import tau_b
from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021.agreement import REPLICATES, Agreement, ahead_as_coded, doubt
from openloop.studies.jadidinejad2021.experiment import EvaluatedSplit, Experiment, by_data_set, over_splits
from openloop.studies.jadidinejad2021.fits import WMF, without
from openloop.studies.jadidinejad2021.methods import Method
from openloop.studies.jadidinejad2021.models import family_of
from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.jadidinejad2021.published_tables import published_figure3
from openloop.studies.jadidinejad2021.scores import Mask
from openloop.studies.jadidinejad2021.table6_claims import in_most
from openloop.studies.kit import charts
from openloop.studies.kit.results import Cell, Claim, Figure, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.support.wording import counted

# Figure 3's three panels, and two of ours beside them.
PANELS = {
    "holdout": "as coded: holdout",
    "Q1": "as coded: q1",
    "Q2": "as coded: q2",
    "ours, 5 strata": "ours: 5 strata, popularity",
    "ours, 5 strata, training items ranked": "ours, training items ranked: 5 strata, popularity",
}
NOTES = (
    "Points are from the first split, numbers from all splits. The two panels of ours are not the paper's.",
    "The paper draws its points and prints no model's value. It prints τ of each panel, which is in the panel's title.",
)


def figure3(run: Run) -> Result:
    """Closed loop against open loop, a point for each model, in the first split; τ over all splits."""
    return by_data_set(run, partial(_about, run), published_figure3)


def _about(run: Run, found: Experiment) -> Result:
    scores, goal = {name: found.scores(method, None) for name, method in PANELS.items()}, found.goals(None)
    taus = {name: tau_b(values, goal) for name, values in scores.items()}
    agreed = found.agreement_by(_published_panels, run.either(REPLICATES, 100))
    return Result(
        item="figure3", title="104 models, by closed loop and by open loop", data=(found.name,),
        tables=(_correlations(found, scores, taus),), figures=(_scatter(found, taus),), notes=NOTES,
        claims=tuple(claims(found.name, agreed, ahead_as_coded(scores["Q1"], scores["holdout"], goal))),
    )  # fmt: skip


def _published_panels(split: EvaluatedSplit) -> dict[str, Method]:
    return {name: split.methods[PANELS[name]] for name in ("holdout", "Q1", "Q2")}


def _scatter(found: Experiment, taus: dict[str, Floats]) -> Figure:
    first, models = found.splits[0], found.fits.models
    goal = first.targets["published"](None).value
    rows = [
        {"panel": _panel_title(found.name, name, taus[name]), "model": model, "family": family_of(model),
         "open loop": float(x), "closed loop": float(y)}
        for name, method in PANELS.items()
        for model, x, y in zip(models, goal, first.methods[method](None).value, strict=True)
    ]  # fmt: skip
    drawn = charts.scatter(
        rows, "open loop", "closed loop", series="family", facet="panel", label="model",
        titles=("nDCG, open loop", "nDCG, closed loop"),
    )  # fmt: skip
    caption = (
        f"{found.name}: nDCG of {len(models)} models by the closed loop, as coded and ours, and by the open loop, in "
        "one split. The titles have τ in this split and the paper's."
    )
    return Figure(name=f"figure3_{found.name}", caption=caption, rows=tuple(rows), chart=drawn.to_dict())


def _panel_title(data: str, name: str, taus: Floats) -> str:
    published = PUBLISHED["figure3"].get(data, {}).get(name.lower())
    beside = "" if published is None else f" (paper: {published:.2f})"
    return f"{name}: τ {taus[0]:.2f}{beside}"


def _correlations(found: Experiment, scores: dict[str, Floats], taus: dict[str, Floats]) -> Table:
    published, keep = PUBLISHED["figure3"].get(found.name, {}), without(WMF, found.fits.models)
    others = {name: tau_b(values[:, keep], found.goals(None)[:, keep]) for name, values in scores.items()}
    rows: list[tuple[Cell, ...]] = [
        (name, _shown(values, published.get(name.lower()), 3 if name == "Q2" else 2), over_splits(others[name]))
        for name, values in taus.items()
    ]
    share = np.array([np.mean(split.held.coded_strata(2) == 0) for split in found.splits])
    rows.append(("Q1's share of the feedback", over_splits(share, published.get("q1_share"), 2), None))
    return Table(
        name=f"figure3_{found.name}", rows=tuple(rows), error_is="standard deviation over splits",
        columns=("panel", "τ with the open loop", f"τ over the {int(keep.sum())} models without {WMF}"),
        caption=f"{found.name}: agreement over {counted(len(found.splits), 'split')}. The published τ are those of "
        "table6, where they are judged.",
    )  # fmt: skip


def _shown(taus: Floats, published: float | None, digits: int) -> Value:
    return over_splits(taus, published, digits, judged=False)


def claims(data: str, agreed: Agreement, told: Mask) -> Iterator[Claim]:
    """What section 7.1 says of the panels; `told` (R,) is where the test as coded has Q1 ahead of holdout."""
    leads = [agreed.ahead(a, b, "published") for a, b in (("Q1", "holdout"), ("holdout", "Q2"))]
    yield Claim(
        text=f"{data}: Q1 agrees better with the open loop than holdout, and holdout than Q2 (section 7.1), with lower "
        "95 % limits above 0 over users",
        holds=all(lead.clear for lead in leads), found=f"Q1 by {leads[0]}; holdout by {leads[1]}",
        undecided=doubt(leads),
    )  # fmt: skip
    yield Claim(
        text=f"{data}: τ of holdout is significantly lower than that of Q1 (section 7.1), by the paper's own test, in "
        "most splits",
        holds=in_most(told), found=f"in {int(told.sum())} of {counted(len(told), 'split')}",
    )  # fmt: skip
    if data == "coat":
        low, high = agreed.above_zero("Q2", "published").interval
        yield Claim(
            text="coat: Q2 has a negative correlation with the open loop (section 7.1), with an upper 95 % limit below "
            "0 over users",
            holds=high < 0, undecided="the interval contains 0" if low <= 0 <= high else "",
            found=f"{agreed.mean('Q2', 'published')[0]:.3f} ({low:.3f} … {high:.3f})",
        )  # fmt: skip
