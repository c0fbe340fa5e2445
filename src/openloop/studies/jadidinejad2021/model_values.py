"""The values of single models that the authors' notebook prints, and how far chance goes in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021.experiment import QUICK_SPLITS
from openloop.studies.jadidinejad2021.fits import SPLITS, ModelFits, fitted
from openloop.studies.jadidinejad2021.methods import coded
from openloop.studies.jadidinejad2021.model_chance import WMF32, variant
from openloop.studies.jadidinejad2021.models import START, WHOLE, relevant, trial
from openloop.studies.jadidinejad2021.open_loop import targets
from openloop.studies.jadidinejad2021.published import METHODS
from openloop.studies.jadidinejad2021.scores import holdout, stacked
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Given, Outcome, Setting

WMF_CUTS: dict[str, int | None] = {"ndcg@5": 5, "ndcg@10": 10, "ndcg": None}
EXACT = ("GA", "MostPop", "MF10")  # nothing but the seed, the rows' order and the sort decides their open loop
FREE = ("GA", "MostPop")  # nothing but the split decides their closed loop: many are drawn
MANY_SPLITS = 200, 12  # splits, in a full and in a quick run
OTHERS = (1, 2, 3, 4, 5)  # seeds beside the published code's
THREADS = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelValues:
    """The values of nDCG that are held against the notebook's, a row or number for each draw of chance."""

    models: tuple[str, ...]
    opened: dict[str, Floats]  # by model, the open loop, first the published code's; of BO by number of THREADS
    closed: dict[str, Floats]  # by model, the methods as coded, (splits, 5)
    many: dict[str, Floats]  # the same of FREE, over many splits
    wmf: dict[str, Floats]  # WMF32's open loop by cut, over draws of the batches
    otherwise: dict[str, Floats]  # the open loop, by what the published code does not do


def model_values(run: Run, given: Given, models: Sequence[str]) -> ModelValues:
    """Fit what is not kept yet."""
    fits = fitted(run, "coat", given, models, run.either(SPLITS["coat"], QUICK_SPLITS))
    others = run.either(OTHERS, OTHERS[:2])
    opened = dict(zip(models, targets(fits, 0)["published"](None).value[:, None], strict=True))  # (1,) each
    for name in models:
        if name not in EXACT:
            again = ("threads", run.either(THREADS, THREADS[:2])) if name == "BO" else ("batches", others)
            opened[name] = np.append(opened[name], _ndcg(given, _variants(run, given, name, *again)))
    wmf = [*_starts(run, given, WMF32, ()), *_variants(run, given, WMF32, "batches", others)]
    return ModelValues(
        models=tuple(models), opened=opened, closed=_by_method(fits),
        many=_by_method(fitted(run, "coat", given, FREE, run.either(*MANY_SPLITS))),
        wmf={cut: _ndcg(given, wmf, k) for cut, k in WMF_CUTS.items()},
        otherwise={
            "GA": holdout(fits.open_cells(WHOLE), "all", None).value[[list(models).index("GA")]],
            "MF10": _ndcg(given, _variants(run, given, "MF10", "ids", [START])),
            WMF32: _ndcg(given, _starts(run, given, WMF32, others)[1:]),
        },
    )  # fmt: skip


def _starts(run: Run, given: Given, model: str, others: Sequence[int]) -> list[Outcome]:
    """The model on the whole log, from the published code's seed and from others."""
    own: Setting = {"model": model, "split": WHOLE, "seed": run.seed}
    settings = [own, *({**own, "start": start} for start in others)]
    return run.map(trial, given, settings, f"coat: {model} by seed")


def _variants(run: Run, given: Given, model: str, kind: str, numbers: Sequence[int]) -> list[Outcome]:
    settings = [{"model": model, "kind": kind, "number": n} for n in numbers]
    return run.map(variant, given, settings, f"coat: {model}, {kind}")


def _ndcg(given: Given, outcomes: Sequence[Outcome], k: int | None = None) -> Floats:
    """The open loop's nDCG of each outcome, as coded; the whole log shows all items."""
    return holdout(stacked(outcomes, "open", *relevant(given), int(given["shape"][0])), "coded", k).value


def _by_method(fits: ModelFits) -> dict[str, Floats]:
    """By model, the five methods as coded in each split, (R, 5)."""
    splits = [coded(fits.held_out(split)) for split in range(fits.splits)]
    values = np.array([[methods[name](None).value for name in METHODS] for methods in splits])  # (R, 5, M)
    return {model: values[:, :, m] for m, model in enumerate(fits.models)}


def hotelling(sample: Floats, one: Floats, unit: float = 0.0) -> tuple[float, float]:
    """Whether `one` (q,) is drawn as the rows of `sample` (n, q): D² = dᵀS⁻¹d, and its p.

    D²·n/(n + 1) is T², and T²·(n − q)/(q(n − 1)) has the F distribution with q and n − q degrees of freedom. Rounding
    `one` to multiples of `unit` adds unit²/12 to each variance.
    """
    from scipy.stats import f

    n, q = sample.shape
    d = one - sample.mean(axis=0)
    d2 = float(d @ np.linalg.solve(np.cov(sample.T) + unit**2 / 12 * np.eye(q), d))
    return d2, float(f.sf(d2 * n / (n + 1) * (n - q) / (q * (n - 1)), q, n - q))
