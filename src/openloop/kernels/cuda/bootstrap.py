"""The Poisson bootstrap on a GPU: W·X with the weights W of the CPU, bit by bit, and sums in float64."""

# Types are checked where torch and Triton need not be installed, and what Triton compiles has none.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import triton
import triton.language as tl

from openloop.errors import InputError
from openloop.kernels.cuda.devices import device_of, fitting_memory, on_device

Floats = npt.NDArray[np.float64]

# splitmix64, as on the CPU: word j of replicate b is mix(start + (b·n + j)·γ), and each of its bytes is a weight.
GAMMA, MIX_1, MIX_2, WORD = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 2**64 - 1

COLUMNS = 16  # a pass, the least that a product of tiles takes
REPLICATES, WORDS = 64, 16  # a tile
PARTS = 8  # of the users; their sums are added in one order, so bits are the same every time


def bootstrap_sums(columns: Any, replicates: int, seed: int, *, device: Any = "cuda") -> Floats:
    """Row b is Σ_u W_bu · columns[u] over columns (U, m): the CPU's sums but for the last bits."""
    at = device_of("bootstrap_sums", device)
    if columns.ndim != 2:
        raise InputError(f"bootstrap_sums: columns must be a users × m array, got shape {tuple(columns.shape)}.")
    if replicates < 1:
        raise InputError(f"bootstrap_sums: replicates must be at least 1, got {replicates}.")
    users, m = columns.shape
    need = 8 * (users * (m + 2 * COLUMNS) + replicates * (PARTS * COLUMNS + 2 * m))
    with fitting_memory("bootstrap_sums", f"{replicates:,} replicates of {users:,} users", need, at):
        return sums(on_device(columns, torch.float64, at), replicates, seed).cpu().numpy()


def sums(X: torch.Tensor, replicates: int, seed: int) -> torch.Tensor:
    """The same from and to the device."""
    U, m = X.shape
    n = (U + 7) // 8  # words a replicate
    per = triton.cdiv(triton.cdiv(n, PARTS), WORDS) * WORDS
    totals = torch.empty((replicates, m), dtype=torch.float64, device=X.device)
    for first in range(0, m, COLUMNS):
        B = torch.zeros((8 * n, COLUMNS), dtype=torch.float64, device=X.device)
        here = X[:, first : first + COLUMNS]
        B[:U, : here.shape[1]] = here
        B = B.view(n, 8, COLUMNS).permute(1, 0, 2).contiguous()  # user 8j + k is B[k, j]
        out = torch.zeros((PARTS, replicates, COLUMNS), dtype=torch.float64, device=X.device)
        grid = (triton.cdiv(replicates, REPLICATES), PARTS)
        _add_sums[grid](B, out, n, per, _start(seed), replicates, BR=REPLICATES, BW=WORDS, M=COLUMNS, num_warps=4)
        totals[:, first : first + COLUMNS] = out.sum(0)[:, : here.shape[1]]
    return totals


def _start(seed: int) -> int:
    """Where the stream begins, as on the CPU; the kernel takes 64 bits as a signed number."""
    z = (seed + GAMMA) & WORD
    z = (z ^ (z >> 30)) * MIX_1 & WORD
    z = (z ^ (z >> 27)) * MIX_2 & WORD
    z ^= z >> 31
    return z - 2**64 if z >= 2**63 else z


@triton.jit(do_not_specialize=["start", "replicates"])
def _add_sums(X, out, n_words, per, start, replicates, BR: tl.constexpr, BW: tl.constexpr, M: tl.constexpr):
    """BR replicates over a part of the users."""
    b = tl.program_id(0) * BR + tl.arange(0, BR)
    low = tl.program_id(1) * per
    high = tl.minimum(low + per, n_words)
    column = tl.arange(0, M)
    sums = tl.zeros([BR, M], tl.float64)
    base = start.to(tl.uint64) + (b.to(tl.uint64) * n_words.to(tl.uint64)) * 0x9E3779B97F4A7C15
    for first in range(low, high, BW):
        j = first + tl.arange(0, BW)
        z = base[:, None] + (j.to(tl.uint64) * 0x9E3779B97F4A7C15)[None, :]
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB
        z = z ^ (z >> 31)
        for k in tl.static_range(8):
            byte = ((z >> (8 * k)) & 255).to(tl.int32)
            # W = Σ_k 1{byte ≥ c_k}, with the CPU's cuts.
            w = tl.where(byte >= 93, 1.0, 0.0) + tl.where(byte >= 191, 1.0, 0.0) + tl.where(byte >= 234, 1.0, 0.0)
            w += tl.where(byte >= 251, 1.0, 0.0) + tl.where(byte >= 255, 1.0, 0.0)
            x = tl.load(X + (k * n_words + j)[:, None] * M + column[None, :], (j < high)[:, None], 0.0)
            sums = tl.dot(w.to(tl.float64), x, sums, out_dtype=tl.float64)
    to = (tl.program_id(1) * replicates + b)[:, None] * M + column[None, :]
    tl.store(out + to, sums, (b < replicates)[:, None])
