"""Markov chains: sweeps of several in step, kept draws, resuming, and whether they have mixed.

A sampler says where a chain begins, makes a sweep, and says what to watch and what to keep. Its states are frozen
dataclasses of arrays. All randomness is a function of the key of a sweep, so a chain that was interrupted goes on with
the same bits, and one that is made longer begins with the same draws.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats
from openloop.errors import InputError
from openloop.kernels.streams import stream_word
from openloop.learners.base import check_whole
from openloop.learners.checkpoints import Clock, Progress, check_checkpoint, resumed, save
from openloop.support.arguments import generator
from openloop.support.atomic import FilePath
from openloop.support.progress import check_progress, progress

RHAT, ENOUGH = 1.05, 100  # beyond and below which a note says that draws may not be enough
UNMARKED = ("sweeps", "threads", "progress", "checkpoint", "rng")  # parameters that leave a chain's first sweeps alone


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepKey:
    """Which sweep of which chain this is, and whether proposals may still adapt."""

    seed: int
    chain: int
    sweep: int
    burning: bool

    def word(self, role: int) -> np.uint64:
        """Where the numbers of one role in this sweep begin."""
        return stream_word(self.seed, self.chain, self.sweep, role)


class Sampler(Protocol):
    """What runs as a chain; a state is a frozen dataclass of arrays."""

    def begin(self, seed: int, chain: int) -> Any:
        """The first state of a chain."""
        ...

    def sweep(self, state: Any, key: SweepKey) -> Any:
        """The next state."""
        ...

    def watched(self, state: Any) -> dict[str, float]:
        """Identified quantities, by which chains are judged."""
        ...

    def kept(self, state: Any) -> dict[str, Array]:
        """What a kept draw holds; it is kept in single precision."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPlan:
    """How long chains run and what is kept of them."""

    who: str
    sweeps: int  # of each chain, those of burn-in included
    burn: int
    thin: int
    chains: int
    threads: int
    seed: int
    show: bool
    checkpoint: FilePath | None
    mark: str  # of the learner, its parameters and the log

    @classmethod
    def of(cls, model: Any, feedback: Feedback) -> ChainPlan:
        """The plan that a learner's parameters ask for."""
        sweeps, burn, thin = check_whole(model, "sweeps"), check_whole(model, "burn", 0), check_whole(model, "thin")
        who = type(model).__name__
        if sweeps < burn + thin:
            raise InputError(
                f"{who}: sweeps must be at least burn + thin = {burn + thin}, or no draw is kept, got {sweeps}; raise "
                f"sweeps=, or lower burn= ({burn}) or thin= ({thin})."
            )
        seed = int(generator(who, model.rng).integers(2**63))
        return cls(
            who=who, sweeps=sweeps, burn=burn, thin=thin, chains=check_whole(model, "chains"), seed=seed,
            threads=thread_count(model), show=check_progress(who, model.progress),
            checkpoint=check_checkpoint(who, model.checkpoint), mark=_mark(model, feedback, seed),
        )  # fmt: skip

    def key(self, chain: int, sweep: int) -> SweepKey:
        """Of sweep 1, 2, …"""
        return SweepKey(seed=self.seed, chain=chain, sweep=sweep, burning=sweep <= self.burn)

    def keeps(self, sweep: int) -> bool:
        """Whether the state after a sweep is kept."""
        return sweep > self.burn and (sweep - self.burn) % self.thin == 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChainRun:
    """Kept draws of all chains, one chain after the other, (S, …), and what was watched, (chains, sweeps - burn)."""

    draws: Mapping[str, Array]
    traces: Mapping[str, Floats]

    @property
    def diagnostics(self) -> dict[str, dict[str, float]]:
        """Of each watched quantity R̂, effective draws, mean and standard deviation."""
        return {
            name: {
                "rhat": split_rhat(x), "ess": effective_sample_size(x), "mean": float(x.mean()), "sd": float(x.std())
            }
            for name, x in self.traces.items()
        }  # fmt: skip


def thread_count(model: Any) -> int:
    """The number of threads that a model's parameter asks for: None for one per core."""
    return (os.cpu_count() or 1) if model.threads is None else check_whole(model, "threads")


def run_chains(sampler: Sampler, plan: ChainPlan) -> ChainRun:
    """All sweeps of all chains; an interruption leaves a checkpoint from which the same call goes on.

    One that comes before the chains have begun leaves the checkpoint as it was, which may be none.
    """
    clock = Clock()
    with (
        ThreadPoolExecutor(min(plan.chains, plan.threads)) as pool,
        progress(plan.who, plan.sweeps, show=plan.show) as advance,
    ):
        advance(0, "begins; the first fit compiles, which takes up to a minute")
        at = resumed(sampler, plan)
        try:
            while at.sweep < plan.sweeps:
                _step(sampler, plan, at, pool)
                advance(at.sweep, f"sweep {at.sweep:,} of {plan.sweeps:,}")
                if plan.checkpoint is not None and clock.due():
                    save(at, plan)
        finally:  # an interruption too
            if plan.checkpoint is not None:
                save(at, plan)
    draws = [draw for chain in at.draws for draw in chain]
    return ChainRun(draws=stacked(draws), traces=stacked_traces(at.traces))


def _step(sampler: Sampler, plan: ChainPlan, at: Progress, pool: ThreadPoolExecutor) -> None:
    """A sweep of every chain. What is interrupted leaves `at` as before, but for draws that saving cuts off."""
    number = at.sweep + 1

    def moved(chain: int) -> tuple[Any, dict[str, float]]:
        state = sampler.sweep(at.states[chain], plan.key(chain, number))
        return state, sampler.watched(state) if number > plan.burn else {}

    found = list(pool.map(moved, range(plan.chains)))
    for chain, (state, watched) in enumerate(found):
        if number > plan.burn:
            at.traces[chain].append(watched)
        if plan.keeps(number):
            at.draws[chain].append({name: np.array(x, np.float32) for name, x in sampler.kept(state).items()})
    at.states, at.sweep = [state for state, _ in found], number


def stacked(records: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Records of the same names as arrays by name."""
    return {name: np.stack([record[name] for record in records]) for name in records[0]}


def stacked_traces(traces: Sequence[Sequence[Mapping[str, float]]]) -> dict[str, Floats]:
    """What was watched by name, (chains, sweeps)."""
    return {name: np.array([[record[name] for record in chain] for chain in traces]) for name in traces[0][0]}


def _mark(model: Any, feedback: Feedback, seed: int) -> str:
    params = {name: value for name, value in model.get_params(deep=False).items() if name not in UNMARKED}
    digest = hashlib.blake2b(f"{type(model).__name__} {sorted(params.items())!r} {seed}".encode(), digest_size=16)
    digest.update(feedback.fingerprint.encode())
    digest.update(np.ascontiguousarray(feedback.rating).data)
    return digest.hexdigest()


# -- whether chains have mixed -------------------------------------------------------------------------------
# Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021, Eq. 1 to 4 and 10 to 13, without ranks. Each chain is split into
# halves, which gives M chains of N draws; W is the mean of their variances, B/N the variance of their means.


def split_rhat(draws: Floats) -> float:
    """√(var⁺/W), var⁺ = (N - 1)/N W + B/N, of draws (chains, n): near 1 when halves agree; NaN of fewer than 4.

    Chains that stay at different values have an infinite one.
    """
    _, W, above = _variances(_halves(draws))
    if W > 0:
        return float(np.sqrt(above / W))
    return float("inf") if above > 0 else float("nan")


def effective_sample_size(draws: Floats) -> float:
    """MN/τ, τ = -1 + 2ΣP_t with P_t = ρ_2t + ρ_2t+1 as long as they are positive, none above the one before."""
    halves = _halves(draws)
    (M, N), (covariances, W, above) = halves.shape, _variances(halves)
    if not above > 0:
        return float("nan")
    rho = 1 - (W - covariances.mean(axis=0)) / above
    rho[0] = 1
    pairs = rho[: N - N % 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: ends[0] if len(ends) else len(pairs)])
    tau = max(-1 + 2 * float(pairs.sum()), 1 / np.log10(M * N))  # draws that alternate are not worth endlessly many
    return M * N / tau


def _halves(draws: Floats) -> Floats:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])


def _variances(x: Floats) -> tuple[Floats, float, float]:
    """Autocovariances of each chain (M, N), those of lag 0 over N - 1; W; var⁺."""
    N = x.shape[1]
    if N < 2:
        return np.zeros(x.shape), 0.0, 0.0
    centred = x - x.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * N)
    covariances = np.fft.irfft(np.abs(spectrum) ** 2)[:, :N] / (N - 1)
    W = float(covariances[:, 0].mean())
    return covariances, W, (N - 1) / N * W + float(np.var(x.mean(axis=1), ddof=1))


def mixing_notes(diagnostics: Mapping[str, Mapping[str, float]]) -> list[str]:
    """A sentence where chains disagree, or draws are few."""
    poor = [name for name, d in diagnostics.items() if not (d["rhat"] <= RHAT and d["ess"] >= ENOUGH)]
    if not poor:
        return []
    rhat, ess = max(diagnostics[n]["rhat"] for n in poor), min(diagnostics[n]["ess"] for n in poor)
    found = (
        f"{len(poor)} of {len(diagnostics)} monitored quantities, such as {poor[0]!r}, have a split R̂ of up to "
        f"{rhat:.2f} or "
    )
    return [f"{found}as few as {ess:.0f} effective draws; these draws may not be enough: raise sweeps="]
