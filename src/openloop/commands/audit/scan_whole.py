"""The whole log behind streamed rows: its items' counts, the model of counts fitted to them, and its check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from openloop.audits.checks import check_folds_of
from openloop.commands.audit.request import AuditRequest, Choice
from openloop.commands.audit.scan_columns import collected
from openloop.core.feedback import Floats, Vocabulary
from openloop.core.positives import only_positives
from openloop.core.propensities import not_exposure
from openloop.propensity.calibrated import floor_note
from openloop.propensity.checks.by_item import CountModel
from openloop.propensity.checks.checking import Check
from openloop.propensity.checks.counted import CountedLog, check_counts
from openloop.propensity.checks.overlap import HEAVIEST
from openloop.propensity.naming import ModelSpec
from openloop.sources.frames.exact_sums import exact_tally
from openloop.sources.whole import WholeLog
from openloop.support.frames import plain_ids

Known = Mapping[str, pl.Series]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScannedWhole:
    """The log that propensities are about, in parts, of which the first is scored; and all ids."""

    parts: Sequence[pl.LazyFrame]
    known: Known
    counts: npt.NDArray[np.int64]  # rows of each item

    @classmethod
    def of(cls, parts: Sequence[pl.LazyFrame], known: Known) -> ScannedWhole:
        """Counted."""
        counted = collected(pl.concat([part.select("item") for part in parts]).group_by("item").len())
        items = pl.DataFrame({"item": known["item"]})
        n = items.join(counted, on="item", how="left", maintain_order="left")["len"].fill_null(0)
        return cls(parts=parts, known=known, counts=n.cast(pl.Int64).to_numpy())

    @property
    def positives(self) -> bool:
        """Whether no part says of anything that it was not liked."""
        spans = (part.select(low=pl.min("rating"), high=pl.max("rating")) for part in self.parts)
        return all(only_positives(*collected(span).row(0)) for span in spans)

    def fitted(self, spec: ModelSpec, floor: float, notes: list[str]) -> CountModel:
        """The model, and what there is to note about it."""
        model = spec.bare(0)
        told = [*model.fit_counts(self.counts.astype(np.float64), len(self.known["user"]))]
        if floor > 0:
            raised = float(self.counts[model.item_propensities_ < floor].sum() / self.counts.sum())
            told.append(floor_note(floor, raised))
        notes += [f"{spec}: {note}" for note in told]
        return CountModel(model=model, floor=floor)

    def with_p(self, rows: pl.LazyFrame, p: Floats, name: str) -> pl.LazyFrame:
        """Rows with the p of their item."""
        table = pl.DataFrame({"item": self.known["item"], name: p})
        return rows.join(table.lazy(), on="item", how="left")

    def check(self, model: CountModel, wanted: AuditRequest, notes: Sequence[str], *, positives: bool) -> Check:
        """The check of a model that was fitted here."""
        rows = self.with_p(pl.concat([part.select("user", "item") for part in self.parts]), model.fitted, "p")
        weighed = rows.select("user", mass=1.0 / pl.col("p"))
        by_user = exact_tally([weighed], {"mass": ("mass", "sum")}, by=["user"], count="n")
        users = pl.DataFrame({"user": self.known["user"]}).join(by_user, on="user", how="left", maintain_order="left")
        heaviest = collected(rows.bottom_k(HEAVIEST, by=["p", "user", "item"])).sort("p", "user", "item")
        ids = {role: Vocabulary(plain_ids(self.known[role])) for role in ("user", "item")}
        codes = [ids[role].find(plain_ids(heaviest[role])).tolist() for role in ("user", "item")]
        log = CountedLog(
            users=ids["user"], items=ids["item"], by_item=self.counts,
            by_user=users["n"].fill_null(0).cast(pl.Int64).to_numpy(), mass=users["mass"].fill_null(0.0).to_numpy(),
            heaviest=list(zip(*codes, strict=True)), positives=positives,
        )  # fmt: skip
        return check_counts(model, log, folds=check_folds_of(int(self.counts.sum())), rng=wanted.seed, notes=notes)


def with_whole(
    whole: ScannedWhole, choice: Choice, wanted: AuditRequest, notes: list[str]
) -> tuple[pl.LazyFrame, dict[str, Any]]:
    """The scored log with a column of the probability that the whole log observes a row's cell; what else is known."""
    log, positives, known = whole.parts[0], whole.positives, dict[str, Any]()
    p: Floats | None = None
    if choice.model is not None:
        told: list[str] = []
        model = whole.fitted(choice.model, wanted.floor, told)
        notes += told
        log, p = whole.with_p(log, model.model.item_propensities_, "propensity"), model.fitted
        _check_exposure(choice.model, log, positives=positives)
        bare = [note.removeprefix(f"{choice.model}: ") for note in told]
        known = {"by_items": model.model.fits_items, "assumes": model.model.assumes, "blind": True}
        known["check"] = wanted.check and whole.check(model, wanted, bare, positives=positives)
    raised = _raised(log, wanted.floor) if wanted.floor else {}
    known["whole"] = WholeLog(
        users=plain_ids(whole.known["user"]), items=plain_ids(whole.known["item"]), rows=whole.counts, p=p,
        positives=positives, **raised,
    )  # fmt: skip
    return log.with_columns(pl.col("propensity").clip(lower_bound=wanted.floor)) if wanted.floor else log, known


def _check_exposure(spec: ModelSpec, log: pl.LazyFrame, *, positives: bool) -> None:
    """Refuse p that were fitted on positives; the same p for all rows divides nothing out."""
    if positives:
        low, high = collected(log.select(low=pl.min("propensity"), high=pl.max("propensity"))).row(0)
        if low < high:
            raise not_exposure(f"--propensity {spec}")


def _raised(log: pl.LazyFrame, floor: float) -> dict[str, float]:
    """The share of p that a floor raises, and what it leaves of Σ1/p."""
    p = pl.col("propensity")
    named = log.select(raised=(p < floor).cast(pl.Float64), kept=1.0 / p.clip(lower_bound=floor), all=1.0 / p)
    totals = {name: (name, "sum") for name in ("raised", "kept", "all")}
    (found,) = exact_tally([named], totals, by=[], count="n").rows(named=True)
    return {"floored": found["raised"] / found["n"], "kept_weight": found["kept"] / found["all"]}
