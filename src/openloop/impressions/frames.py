"""`ShownFrameSource`: impressions that stay in their engine, and their sums by cluster and position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import Array, Floats, distinct
from openloop.core.shown_moments import Examined, ShownMoments
from openloop.errors import InputError
from openloop.estimators.shown import EXAMINED
from openloop.impressions.examined import examined_by
from openloop.impressions.joining import JoinedRows, join_rankers
from openloop.impressions.question import ShownQuestion
from openloop.impressions.support import LogSupport
from openloop.support.frames import MAX_COLUMNS, collected, flag, only_row, plain_ids

SUMS = ("shown", "requests", "weight", "wgain", "matches", "squares", "clicks", "click_squares")


def frame_source(
    models: Mapping[str, Any], log: Any, exam: Any, asked: ShownQuestion, until: ExitStack
) -> ShownFrameSource:
    """A log of impressions in a frame, with rankers in frames of the same engine."""
    joined = join_rankers(models, log, asked, until)
    examined = examined_by(exam, None, joined.depth)
    has = joined.logged.__contains__
    support = LogSupport(
        requests=has("request"), whole=joined.whole, propensity=has("propensity"), exposure=has("exposure"),
        prefix=has("prefix"), slate=has("slate"), pool=has("pool"),
        shuffled=has("shuffled") and bool(only_row(joined.frame.select(nw.col("z").max()))["z"]),
        theta=examined is not None, affine=examined is not None and examined.offset is not None,
        reorders=asked.reorders, in_frame=True,
    )  # fmt: skip
    if asked.reorders and not joined.whole:
        raise InputError('evaluate: some requests lack a position; candidates="shown" then needs ol.read.')
    notes = [] if has("user") else ["the log names no users: intervals are over requests"]
    if examined is not None and examined.fitted:
        notes.append("θ's error counts as independent of this log; read it with ol.read where θ was fitted on it")
    return ShownFrameSource(joined, asked, examined, support, [*notes, *support.notes])


class ShownFrameSource:
    """Answers by group-bys inside the engine; see `comparing.ShownSource`."""

    def __init__(
        self,
        joined: JoinedRows,
        asked: ShownQuestion,
        examined: Examined | None,
        support: LogSupport,
        notes: list[str],
    ) -> None:
        self.models, self.support, self.notes = joined.models, support, tuple(notes)
        self._joined, self._examined, self._depth = joined, examined, joined.depth
        clusters = int(only_row(joined.frame.select(nw.col("g").n_unique()))["g"])
        if clusters > asked.max_users:
            raise InputError(
                f"evaluate: sums of {clusters:,} users or requests would leave the engine, and max_users is "
                f"{asked.max_users:,}; pass a larger one, or read the log with ol.read."
            )

    def moments(self, model: str, kind: str, *, robust: bool = False) -> ShownMoments:
        """The moments of one ranker under one kind of weights."""
        frame = self._weighted(self.models.index(model), kind)
        ids, sums = self._sums(frame)
        over = {name: sums[name].sum(axis=0) for name in ("matches", "squares", "clicks", "click_squares")}
        P = self._depth * (2 if self.support.affine else 1)
        slopes = self._slopes(frame, kind, sums) if kind in EXAMINED else (np.zeros(P), np.zeros(P))
        return ShownMoments(
            kind=kind, requests=sums["requests"].sum(axis=1), shown=sums["shown"], weight=sums["weight"],
            wgain=sums["wgain"], matches=over["matches"], squares=over["squares"], clicks=float(over["clicks"].sum()),
            click_squares=float(over["click_squares"].sum()), slope_wgain=slopes[0], slope_wtheta=slopes[1],
            examined=self._examined, denominator=self.support.denominator, reordered=self.support.reorders,
            per="request" if self.support.requests else "impression", ids=ids,
        )  # fmt: skip

    # -- weights ---------------------------------------------------------------------------------------------

    def _weighted(self, at: int, kind: str) -> Any:
        """The rows with the ranker's rank r, the weight w, the gain x, and 1 for those that take part."""
        frame = self._joined.frame.with_columns(nw.col(f"r{at}").alias("r"), nw.lit(1.0).alias("part"))
        frame = self._reordered(frame) if self.support.reorders else frame
        gain = nw.col("c")
        if kind in EXAMINED:
            frame = frame.with_columns(self._below().alias("below"))
            weight = self._top(kind) / nw.col("below")
            if kind == "affine" and self._examined is not None and self._examined.offset is not None:
                gain = gain - at_place("k", self._examined.offset)
        elif kind == "pi":
            frame, weight = _with_slate_weight(frame)
        elif kind == "iips":
            weight = flag(nw.col("r") == nw.col("k")) / nw.col("p")
        else:
            frame = _with_first_miss(frame, self._depth)
            hit = nw.col("k") < nw.col("miss") if kind == "rips" else nw.col("d") < nw.col("miss")
            weight = flag(hit) / nw.col("prefix" if kind == "rips" else "slate")
        return frame.with_columns(weight.alias("w"), gain.alias("x"))

    def _reordered(self, frame: Any) -> Any:
        """Ranks among the shown items; what is not listed comes last, as shown."""
        K = float(self._depth)
        last = only_row(frame.select(nw.col("r").max()))["r"] + 1.0
        order = nw.when(nw.col("r") > 0).then(nw.col("r")).otherwise(nw.lit(last))
        frame = frame.with_columns((order * (K + 1.0) + nw.col("k")).alias("order"))
        return frame.with_columns(nw.col("order").rank("min").over("n").cast(nw.Float64()).alias("r"))

    def _top(self, kind: str) -> Any:
        r = nw.col("r")
        if kind == "dcg":
            listed = nw.when(r > 0).then(r).otherwise(nw.lit(1.0))
            return flag(r > 0) / (listed + 1.0).log(2)
        return flag((r > 0) & (r <= nw.col("d"))) * at_place("r", self._theta)

    def _below(self) -> Any:
        theta = self._theta
        if self.support.denominator == "exposure":
            total = nw.lit(0.0)
            for j in range(1, self._depth + 1):
                total = total + self._exposed(j)
            return total
        if self.support.denominator == "propensity":
            return nw.col("p") * at_place("d", np.cumsum(theta))
        return at_place("k", theta)

    def _exposed(self, j: int) -> Any:
        """θ_j·π0_j, 0 beyond K_n."""
        return flag(nw.col("d") >= j) * nw.col(f"e{j}") * float(self._theta[j - 1])

    @cached_property
    def _plain_theta(self) -> Floats:
        return np.ones(self._depth) if self._examined is None else self._examined.theta

    @cached_property
    def _theta(self) -> Floats:
        """θ; without requests θ_k times the share of rows at k, as for rows in memory."""
        if self.support.requests:
            return self._plain_theta
        once = self._joined.frame.select("k", nw.lit(1.0).alias("rows"))
        table = collected(once.group_by("k").agg(nw.col("rows").sum()))
        shown = np.zeros(self._depth)
        shown[table["k"].to_numpy().astype(np.int64) - 1] = table["rows"].cast(nw.Float64()).to_numpy()
        return self._plain_theta * np.maximum(shown, 1) / shown.mean()

    # -- sums ------------------------------------------------------------------------------------------------

    def _sums(self, frame: Any) -> tuple[Array, dict[str, Floats]]:
        """Sums by cluster and position, (U, K) each, and the ids of the clusters."""
        w, c, part = nw.col("w"), nw.col("c"), nw.col("part")
        last = nw.col("k") == nw.col("d") if self.support.requests else nw.col("k") > 0
        named = frame.select(
            "g", "k", shown=part, requests=part * flag(last), weight=w, wgain=w * nw.col("x"), matches=flag(w != 0),
            squares=w * w, clicks=w * c, click_squares=w * c * w * c,
        )  # fmt: skip
        table = collected(named.group_by("g", "k").agg(*(nw.col(name).sum() for name in SUMS)))
        own = plain_ids(table["g"])
        ids = distinct(own)
        place = np.searchsorted(ids, own), table["k"].to_numpy().astype(np.int64) - 1
        sums = {name: np.zeros((len(ids), self._depth)) for name in SUMS}
        for name, found in sums.items():
            found[place] = table[name].cast(nw.Float64()).to_numpy()
        return ids, sums

    def _slopes(self, frame: Any, kind: str, sums: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """∂Σwx and ∂Σwθ by log θ, as `kernels.examining.examined_slopes`; of the affine model also by b."""
        w = nw.col("w")
        named = frame.filter(w != 0).select(
            "r", "k", "d", gain=w * nw.col("x"), mass=w * at_place("k", self._plain_theta)
        )
        table = collected(named.group_by("r", "k", "d").agg(nw.col("gain").sum(), nw.col("mass").sum()))
        r, k, d = (table[name].to_numpy().astype(np.int64) for name in "rkd")
        both = np.stack([table[name].cast(nw.Float64()).to_numpy() for name in ("gain", "mass")])  # (2, cells)
        found = np.zeros((2, self._depth))
        if kind != "dcg":
            np.add.at(found.T, r - 1, both.T)
        if self.support.denominator == "exposure":
            found -= self._exposure_shares(frame)
        elif self.support.denominator == "propensity":
            inside = np.arange(self._depth) < d[:, None]  # (cells, K)
            found -= both @ (inside * self._theta / np.cumsum(self._theta)[d - 1][:, None])
        else:
            np.subtract.at(found.T, k - 1, both.T)
        weight = sums["weight"].sum(axis=0)
        if kind == "affine":
            return np.concatenate([found[0], sums["shown"].sum(axis=0) - weight]), np.zeros(2 * self._depth)
        return found[0], found[1] + self._plain_theta * weight

    def _exposure_shares(self, frame: Any) -> Floats:
        """Σwx·s_l and Σwθ·s_l, s_l = θ_lπ0_l/Σθπ0; (2, K)."""
        w = nw.col("w")
        gains = {"gain": w * nw.col("x"), "mass": w * at_place("k", self._plain_theta)}
        found = np.zeros((2, self._depth))
        for start in range(1, self._depth + 1, MAX_COLUMNS // 2):
            part = range(start, min(start + MAX_COLUMNS // 2, self._depth + 1))
            named = {f"{name}{j}": x * self._exposed(j) / nw.col("below") for name, x in gains.items() for j in part}
            row = only_row(frame.select(**named).select(*(nw.col(name).sum() for name in named)))
            for g, name in enumerate(gains):
                found[g, [j - 1 for j in part]] = [float(row[f"{name}{j}"]) for j in part]
        return found


def _with_first_miss(frame: Any, depth: int) -> Any:
    """The frame with the first position of each request where the model shows another item, K + 1 where none."""
    own = nw.when(nw.col("r") == nw.col("k")).then(nw.lit(depth + 1.0)).otherwise(nw.col("k"))
    named = frame.select("n", own.alias("miss"))
    return frame.join(named.group_by("n").agg(nw.col("miss").min()), on="n", how="left")


def _with_slate_weight(frame: Any) -> tuple[Any, Any]:
    """Shuffled requests as the rows that take part, and their weight: see `ImpressionSource._pi_weights`."""
    r, K, m, z = (nw.col(name) for name in ("r", "d", "m", "z"))
    named = frame.select("n", same=flag(r == nw.col("k")), both=flag((r > 0) & (r <= K)))
    lists = named.group_by("n").agg(nw.col("same").sum(), nw.col("both").sum())
    frame = frame.join(lists, on="n", how="left").with_columns(z.alias("part"))
    M, O = nw.col("same"), nw.col("both")
    room = nw.when(m > K).then(K * (m - K)).otherwise(nw.lit(1.0))
    rest = nw.when(m > K).then((m * O - K * K) / room).otherwise(nw.lit(0.0))
    return frame, z * ((m - 1.0) * (rest + M - O / K) + 1.0)


def at_place(column: str, values: Floats) -> Any:
    """values[column − 1] as an expression, of any value where the column is not 1 … K: a tree of comparisons."""
    return _branch(column, [float(v) for v in values], 1)


def _branch(column: str, values: Sequence[float], first: int) -> Any:
    if len(values) == 1:
        return nw.lit(values[0])
    half = len(values) // 2
    below = _branch(column, values[:half], first)
    return nw.when(nw.col(column) < first + half).then(below).otherwise(_branch(column, values[half:], first + half))
