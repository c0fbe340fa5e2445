"""`ShownSource`: rankers and a log of impressions, answered by passes over blocks of its clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from openloop.blocks.passes import run_blocks
from openloop.blocks.store import Budget, bounds
from openloop.core.feedback import Floats, Ints
from openloop.core.impression_columns import fingerprint_of, rows_digest
from openloop.core.impressions import Impressions
from openloop.core.shown_moments import Examined, ShownMoments
from openloop.data.impressions import ShownColumns
from openloop.errors import UndefinedError
from openloop.impressions.examined import examined_by, theta_of
from openloop.impressions.imputing import FoldRows, ImputedRewards, fold_rows
from openloop.impressions.logs import (
    DealtLog,
    ShownBlock,
    ShownLog,
    deal_impressions,
    deal_scanned,
    scanned_impressions,
)
from openloop.impressions.question import ShownQuestion
from openloop.impressions.rankers import Ranking, is_row_ranks, ranker, row_ranks
from openloop.impressions.reduction import Kind, ShownReduction, ShownSums
from openloop.impressions.support import LogSupport
from openloop.impressions.tables import TableFacts
from openloop.support.fields import fields_of

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """What a first pass tells of the requests of all blocks."""

    requests: int
    gapless: bool
    digest: int
    imputed: ImputedRewards | None


class ShownSource:
    """Rankers and a log, checked; what has been reduced once is kept."""

    def __init__(self, models: Mapping[str, Any], log: Any, exam: Any, question: ShownQuestion) -> None:
        self.models = tuple(models)
        self.log = log if isinstance(log, Impressions) else None
        self._question, budget = question, Budget()
        ranks = {name: row_ranks(name, model, log) for name, model in models.items() if is_row_ranks(model)}
        deal: Any = deal_scanned if self.log is None else deal_impressions
        self._dealt: DealtLog = deal(_opened(log, question) if self.log is None else log, ranks, budget)
        self._bounds = [(first, last) for first, last in bounds(self._dealt.store.rows) if self._has_rows(first, last)]
        theta = theta_of(exam, self._dealt.depth)
        self._rankers = {name: ranker(name, model, self._dealt, question, budget) for name, model in models.items()}
        survey = self._surveyed(theta)
        n_clusters = len(self._dealt.population.users)
        fingerprint = fingerprint_of(survey.requests, n_clusters, len(self._dealt.population.items), survey.digest)
        self._examined = examined_by(exam, theta, fingerprint, n_clusters)
        self._requests = survey.requests
        self.support = self._supported(survey, self._examined)
        self._reduction = ShownReduction(
            examined=self._examined, denominator=self.support.denominator, scale=self._scale(), imputed=survey.imputed
        )
        notes = [] if self._dealt.by == "user" else ["the log names no users: intervals are over requests"]
        notes += [note for made in self._rankers.values() for note in made.notes]
        self.notes = (*notes, *self.support.notes)
        self._counts: dict[bool, tuple[Floats, Floats]] = {}  # requests and shown rows, of shuffled requests or of all
        self._moments: dict[tuple[str, Kind], ShownMoments | str] = {}

    def close(self) -> None:
        """Give memory and disk back."""
        self._dealt.store.close()
        for made in self._rankers.values():
            if made.table is not None:
                made.table.store.close()

    def _has_rows(self, first: int, last: int) -> bool:
        return bool(self._dealt.store.rows[first:last].any())

    def _map(self, work: Callable[[ShownBlock], Result]) -> Iterator[Result]:
        """What `work` makes of each block, in their order."""
        return run_blocks(lambda k: work(self._dealt.block(*self._bounds[k])), len(self._bounds))

    # -- what is there ---------------------------------------------------------------------------------------

    def _surveyed(self, theta: Floats | None) -> Survey:
        """The first pass."""
        question, n_items = self._question, len(self._dealt.population.items)
        robust = theta is not None and any(method.robust for method in question.methods)
        fits = robust and question.imputation is None
        requests, gapless, digest = 0, True, 0

        def survey(block: ShownBlock) -> tuple[int, bool, int, FoldRows | None]:
            log = block.log
            hashed = rows_digest(block.clusters[log.cluster[log.request]], log.position, log.item, log.reward)
            rows = fold_rows(block, theta) if fits and theta is not None else None
            return log.n_requests, log.whole, hashed, rows

        def parts() -> Iterator[FoldRows]:
            nonlocal requests, gapless, digest
            for n_requests, is_gapless, hashed, rows in self._map(survey):
                requests, gapless, digest = requests + n_requests, gapless and is_gapless, (digest + hashed) % 2**64
                if rows is not None:
                    yield rows

        imputed = ImputedRewards.fitted(parts(), n_items)
        if robust and not fits:
            imputed = ImputedRewards.given(question.imputation, n_items)
        return Survey(requests=requests, gapless=gapless, digest=digest, imputed=imputed if robust else None)

    def _supported(self, survey: Survey, examined: Examined | None) -> LogSupport:
        roles = {role.split()[0] for role in self._dealt.roles}
        requests = "request" in roles
        return LogSupport(
            requests=requests, gapless=survey.gapless, propensity=bool({"propensity", "exposure"} & roles),
            exposure="exposure" in roles, prefix="prefix" in roles,
            slate="slate" in roles or (requests and "prefix" in roles), shuffled=self._dealt.shuffled,
            pool="pool" in roles, theta=examined is not None,
            affine=examined is not None and examined.offset is not None, reorders=self._question.reorders,
            random=next((name for name, made in self._rankers.items() if made.is_random), ""),
            unlisted=next((name for name, made in self._rankers.items() if not made.has_lists), ""),
        )  # fmt: skip

    def _scale(self) -> Floats:
        """1; without requests the share of rows at each position, as positions then are not equally frequent."""
        rows = self._dealt.rows
        return np.ones(len(rows)) if self.support.requests else np.maximum(rows, 1) / rows.mean()

    # -- moments ---------------------------------------------------------------------------------------------

    def moments(self, model: str, kind: str, *, robust: bool = False) -> ShownMoments:
        """The moments of one ranker under one kind of weights."""
        key = model, (kind, robust)
        if key not in self._moments:
            self.reduce([(kind, robust)])
        moments = self._moments[key]
        if isinstance(moments, str):
            raise UndefinedError(moments)
        return moments

    def reduce(self, kinds: Iterable[Kind]) -> None:
        """Reduce the rows to moments of these kinds, in one pass."""
        kinds = list(kinds)

        def work(block: ShownBlock) -> tuple[Ints, dict[bool, Any], dict[tuple[str, Kind], ShownSums], Any]:
            rankings = {name: made.ranking(block) for name, made in self._rankers.items()}
            sums = {
                (name, kind): self._reduction.sums(block, ranking, kind[0], robust=kind[1])
                for name, ranking in rankings.items()
                for kind in kinds
            }
            needed = {kind == "pi" for kind, _ in kinds}
            counts = {only: self._reduction.counts(block, shuffled=only) for only in needed}
            return block.clusters, counts, sums, {name: ranking.facts for name, ranking in rankings.items()}

        clusters, counts, sums, facts = zip(*self._map(work), strict=True)
        self._refuse(facts)
        order = np.concatenate(clusters)
        for only in counts[0]:
            self._counts[only] = (
                self._spread(order, [c[only][0] for c in counts]),
                self._spread(order, [c[only][1] for c in counts]),
            )
        for name, kind in list(sums[0]):
            self._moments[name, kind] = self._merged(order, [part.pop((name, kind)) for part in sums], kind[0])

    def _refuse(self, facts: Sequence[dict[str, TableFacts | None]]) -> None:
        for name, made in self._rankers.items():
            if made.table is not None:
                parts = (part for block in facts if (part := block[name]) is not None)
                made.table.refuse(sum(parts, TableFacts()), self._requests)

    def _spread(self, clusters: Ints, parts: list[Floats]) -> Floats:
        """Values of the blocks' clusters in the order of the population; clusters without rows have none."""
        values = np.zeros((len(self._dealt.population.users), *parts[0].shape[1:]))
        values[clusters] = np.concatenate(parts)
        return values

    def _merged(self, clusters: Ints, sums: list[ShownSums], kind: str) -> ShownMoments | str:
        if short := sum(part.short for part in sums):
            return (
                f"pi is undefined: {short:,} lists of the model are shorter than what was shown; give lists of at "
                f"least {self._dealt.depth} items."
            )
        matches, squares, clicks, click_squares = np.concatenate([part.facts for part in sums]).sum(axis=0)
        slope_wgain, slope_wtheta = np.concatenate([part.slopes for part in sums]).sum(axis=0)
        requests, shown = self._counts[kind == "pi"]
        direct = [part.direct for part in sums if part.direct is not None]
        return ShownMoments(
            kind=kind, requests=requests, shown=shown,
            weight=self._spread(clusters, [part.weight for part in sums]),
            wgain=self._spread(clusters, [part.wgain for part in sums]),
            direct=self._spread(clusters, direct) if direct else None,
            matches=matches, squares=squares, clicks=float(clicks.sum()), click_squares=float(click_squares.sum()),
            slope_wgain=slope_wgain, slope_wtheta=slope_wtheta, examined=self._examined,
            denominator=self.support.denominator, reordered=self.support.reorders,
            per="request" if self.support.requests else "impression",
        )  # fmt: skip

    def row_ranks(self) -> dict[str, Ints]:
        """The rank of each row of a log in memory, by model; random models have none."""
        names = [name for name, made in self._rankers.items() if not made.is_random]
        ranks = {name: np.zeros(int(self._dealt.store.rows.sum()), np.int32) for name in names}

        def work(block: ShownBlock) -> tuple[Any, dict[str, Ranking]]:
            return block.log.row, {name: self._rankers[name].ranking(block) for name in names}

        for row, rankings in self._map(work):
            for name, ranking in rankings.items():
                ranks[name][row] = ranking.rank
        return ranks


def _opened(log: Any, question: ShownQuestion) -> ShownLog:
    if isinstance(log, ShownLog):
        return log
    return scanned_impressions(log, ShownColumns(**fields_of(ShownColumns, question)))  # pyright: ignore[reportArgumentType]
