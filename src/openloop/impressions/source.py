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
from openloop.core.shown_moments import ShownMoments
from openloop.errors import UndefinedError
from openloop.impressions.examined import examined_by, theta_of
from openloop.impressions.imputing import FOLDS, ImputedRewards, fitted, fold_rows
from openloop.impressions.logs import ShownBlock, deal_log
from openloop.impressions.question import ShownQuestion
from openloop.impressions.rankers import Ranker, Ranking, is_row_ranks, ranker, with_ranks
from openloop.impressions.reduction import Kind, ShownReduction, ShownSums
from openloop.impressions.support import LogSupport

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """What a first pass tells of the requests of all blocks."""

    requests: int
    gapless: bool
    fingerprint: str
    imputed: ImputedRewards | None


class ShownSource:
    """Rankers and a log, checked; what has been reduced once is kept."""

    def __init__(self, models: Mapping[str, Any], log: Any, exam: Any, question: ShownQuestion) -> None:
        self.models, self.log = tuple(models), log if isinstance(log, Impressions) else None
        self._question, self._budget = question, Budget()
        ranks = {name: model for name, model in models.items() if is_row_ranks(model)}
        self._log = deal_log(with_ranks(log, ranks), self._budget)
        self._rankers: dict[str, Ranker] = {}
        self._blocks: dict[int, ShownBlock] = {}
        self._counts: dict[bool, list[Floats]] = {}  # requests and shown rows, of shuffled requests or of all
        self._moments: dict[tuple[str, Kind], ShownMoments | str] = {}
        try:
            for name, model in models.items():
                self._rankers[name] = ranker(name, model, self._log, question, self._budget, ranks)
            self._prepare(exam)
        except BaseException:
            self.close()
            raise

    def _prepare(self, exam: Any) -> None:
        """What is found once, for all kinds of weights."""
        counts = self._log.rows
        sizes = self._log.dealt.store.rows
        self._bounds = [(first, last) for first, last in bounds(sizes) if sizes[first:last].any()]
        theta = theta_of(exam, len(counts))
        self._survey = self._surveyed(theta)
        self._examined = examined_by(exam, theta, self._survey.fingerprint, len(self._log.population.users))
        self.support = self._supported()
        # Without requests positions are not equally frequent.
        scale = np.ones(len(counts)) if self.support.requests else np.maximum(counts, 1) / counts.mean()
        self._reduction = ShownReduction(
            examined=self._examined, denominator=self.support.denominator, scale=scale, imputed=self._survey.imputed
        )
        notes = [] if self._log.by == "user" else ["the log names no users: intervals are over requests"]
        notes += [note for made in self._rankers.values() for note in made.notes]
        self.notes = (*notes, *self.support.notes)

    def close(self) -> None:
        """Give memory and disk back."""
        for rows in (self._log.dealt, *(made.table.dealt for made in self._rankers.values() if made.table)):
            rows.store.close()

    def _map(self, work: Callable[[ShownBlock], Result]) -> Iterator[Result]:
        """What `work` makes of each block, in their order."""
        return run_blocks(lambda k: work(self._block(k)), len(self._bounds))

    def _block(self, k: int) -> ShownBlock:
        """A block, which takes the place of its rows while the budget has room."""
        block = self._blocks.get(k)
        if block is None:
            block = self._log.block(*self._bounds[k])
            if self._budget.reserve(block.size):
                self._blocks[k] = block
                self._log.dealt.store.release(*self._bounds[k])
        return block

    # -- what is there ---------------------------------------------------------------------------------------

    def _surveyed(self, theta: Floats | None) -> Survey:
        """The first pass."""
        question, n_items = self._question, len(self._log.population.items)
        robust = theta is not None and any(method.robust for method in question.methods)
        imputed = None
        if robust and question.imputation is not None:
            imputed = ImputedRewards.given(question.imputation, n_items)
        fits = theta if robust and imputed is None else None
        requests, gapless, digest, totals = 0, True, 0, np.zeros((FOLDS * n_items, 2))

        def survey(block: ShownBlock) -> tuple[int, bool, int, Any]:
            log = block.log
            hashed = rows_digest(block.clusters[log.cluster[log.request]], log.position, log.item, log.reward)
            return log.n_requests, log.whole, hashed, None if fits is None else fold_rows(block, fits)

        for n_requests, is_gapless, hashed, rows in self._map(survey):
            requests, gapless, digest = requests + n_requests, gapless and is_gapless, (digest + hashed) % 2**64
            if rows is not None:
                np.add.at(totals, *rows)  # row after row, so that sums do not depend on how buckets make blocks
        fingerprint = fingerprint_of(requests, len(self._log.population.users), n_items, digest)
        return Survey(
            requests=requests, gapless=gapless, fingerprint=fingerprint,
            imputed=imputed if fits is None else fitted(totals),
        )  # fmt: skip

    def _supported(self) -> LogSupport:
        roles, examined = {role.split()[0] for role in self._log.roles}, self._examined
        has = roles.__contains__
        return LogSupport(
            requests=has("request"), gapless=self._survey.gapless, propensity=has("propensity") or has("exposure"),
            exposure=has("exposure"), prefix=has("prefix"), slate=has("slate") or (has("request") and has("prefix")),
            shuffled=self._log.shuffled, pool=has("pool"), theta=examined is not None,
            affine=examined is not None and examined.offset is not None, reorders=self._question.reorders,
            random=next((name for name, made in self._rankers.items() if made.is_random), ""),
            unlisted=next((name for name, made in self._rankers.items() if not made.has_lists), ""),
        )  # fmt: skip

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
        kinds = list(dict.fromkeys(kinds))

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
        for name, made in self._rankers.items():
            if made.table is not None:
                made.table.refuse([part[name] for part in facts], self._survey.requests)
        order = np.concatenate(clusters)
        for only in counts[0]:
            pairs = zip(*(part[only] for part in counts), strict=True)
            self._counts[only] = [self._spread(order, pair) for pair in pairs]
        for name, kind in list(sums[0]):
            self._moments[name, kind] = self._merged(order, [part.pop((name, kind)) for part in sums], kind[0])

    def _spread(self, clusters: Ints, parts: Sequence[Floats]) -> Floats:
        """Values of the blocks' clusters in the order of the population; clusters without rows have none."""
        values = np.zeros((len(self._log.population.users), *parts[0].shape[1:]))
        values[clusters] = np.concatenate(parts)
        return values

    def _merged(self, clusters: Ints, sums: list[ShownSums], kind: str) -> ShownMoments | str:
        if short := sum(part.short for part in sums):
            return (
                f"pi is undefined: {short:,} lists of the model are shorter than what was shown; give lists of at "
                f"least {len(self._log.rows)} items."
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
        ranks = {name: np.zeros(int(self._log.dealt.store.rows.sum()), np.int32) for name in names}

        def work(block: ShownBlock) -> tuple[Any, dict[str, Ranking]]:
            return block.log.row, {name: self._rankers[name].ranking(block) for name in names}

        for row, rankings in self._map(work):
            for name, ranking in rankings.items():
                ranks[name][row] = ranking.rank
        return ranks
