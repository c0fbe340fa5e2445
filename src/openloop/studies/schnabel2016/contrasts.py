"""Two methods of Table 2 on the same test cells: paired over cells as in the paper, and by user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from openloop.core.feedback import Feedback, Floats
from openloop.evaluation import evaluate
from openloop.studies.kit.results import Claim, Table, Value
from openloop.studies.kit.statistics import Mean, paired
from openloop.studies.kit.trials import columns, feedback
from openloop.studies.schnabel2016.factorisation import METRICS
from openloop.studies.schnabel2016.real_data import Tested
from openloop.support.wording import chance, pvalue

OVER_CELLS, BY_USER = "over test cells, as in the paper", "by user"


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodGap:
    """The error of method `a` less that of `b`, for the seed least favourable to `a`, over cells and by user."""

    a: str
    b: str
    loss: str
    over_cells: Mean
    by_user: Mean

    @property
    def metric(self) -> str:
        """By which they are compared."""
        return METRICS[self.loss]


def contrast(test: Feedback, a: Tested, b: Tested) -> MethodGap:
    """Seed by seed, by the loss of both."""
    cells = [paired(*pair) for pair in zip(a.losses(test.rating), b.losses(test.rating), strict=True)]
    users = [_by_user(test, *pair, METRICS[a.loss]) for pair in zip(a.predictions, b.predictions, strict=True)]
    return MethodGap(a=a.by, b=b.by, loss=a.loss, over_cells=_least(cells), by_user=_least(users))


def _least(by_seed: Sequence[Mean]) -> Mean:
    """The seed least favourable to `a`: the largest gap that is not negative, or else the largest p."""
    return max(by_seed, key=lambda gap: (gap.value >= 0, gap.value if gap.value >= 0 else gap.pvalue))


def _by_user(test: Feedback, a: Floats, b: Floats, metric: str) -> Mean:
    """The paired difference with users as what is drawn, from `evaluate`."""
    import polars as pl

    plain = feedback(columns(test))
    frames = {
        name: pl.DataFrame({"user": plain.user, "item": plain.item, "score": score})
        for name, score in (("a", a), ("b", b))
    }
    result = evaluate(frames, plain, metrics=[metric], estimators=["naive"])
    gap = result.difference("a", "b", metric=metric, estimator="naive")
    return Mean(gap.value, gap.stderr, gap.pvalue)


def contrast_table(name: str, caption: str, rows: Sequence[tuple[str, MethodGap]]) -> Table:
    """Differences and their p-values, each with its label."""
    cells = [
        (
            f"{label}, {c.metric.upper()}", Value(value=c.over_cells.value, error=c.over_cells.stderr),
            pvalue(c.over_cells.pvalue), Value(value=c.by_user.value, error=c.by_user.stderr),
            pvalue(c.by_user.pvalue),
        )
        for label, c in rows
    ]  # fmt: skip
    return Table(
        name=name,
        caption=f"{caption}, of the seed least favourable to the first method: paired over test cells, as in the "
        "paper, and paired by user, since ratings of one user are not independent",
        columns=("", "over cells", "p", "by user", "p by user"),
        rows=tuple(cells),
    )


def outperforms(name: str, ours: str, theirs: str, how: str, found: Sequence[MethodGap]) -> Claim:
    """The paper's sentence about two methods, by every metric of which there is a contrast."""
    gaps = {c.metric.upper(): c.by_user if how == BY_USER else c.over_cells for c in found}
    metrics = " and ".join(sorted(gaps))
    return Claim(
        text=f"{name}: {ours} outperforms {theirs} in {metrics} (paired t-test {how}, p < 0.001, for each seed)",
        holds=all(gap.value < 0 and gap.pvalue < 0.001 for gap in gaps.values()),
        found="; ".join(f"{metric} {gap.value:+.3f}, p {chance(gap.pvalue)}" for metric, gap in gaps.items())
        + f", each for the seed least favourable to {ours}",
        gist=f"{ours} outperforms {theirs} on {name} in {metrics} (p < 0.001 {how})",
    )
