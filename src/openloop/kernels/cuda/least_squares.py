"""Half a sweep of weighted alternating least squares on a GPU: a program per user, by conjugate gradients.

What is solved is what `kernels/least_squares.py` says. A row of P or X has the D entries of its vector, D a power of 2
and those beyond the factors 0, which they stay; with offsets the next entry is its own. No program writes what another
reads, and each adds in one order: same bits every time.
"""

# Types are checked where torch and Triton need not be installed, and what Triton compiles has none.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
import triton
import triton.language as tl
from torch import Tensor

from openloop.errors import InputError
from openloop.kernels.cuda.devices import GIB, device_of, fitting_memory, on_device

if TYPE_CHECKING:  # these need numba, which the kernels here do not
    from openloop.kernels.least_squares import Problem, Rows

Array = npt.NDArray[Any]

LONG = 2048  # rows from which on a user gets a program of many warps
OFFSET_WIDTH = 4  # entries an offset takes: rows begin at multiples of 16 bytes
LEAST = 16  # entries of a vector


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRows:
    """`Rows` on a device, and who has some, those with the most first."""

    ptr: Tensor
    partner: Tensor
    y: Tensor
    w: Tensor
    order: Tensor
    long: int  # the first of `order` that have more rows than LONG

    @classmethod
    def of(cls, rows: Rows, device: Any) -> DeviceRows:
        """The rows, sent there."""
        at = device_of("half_sweep", device)
        for name in ("y", "w"):
            if getattr(rows, name).dtype != np.float32:
                raise InputError(f"half_sweep: {name} must be float32 on a GPU, got {getattr(rows, name).dtype}.")
        ptr, partner = on_device(rows.ptr, torch.int64, at), on_device(rows.partner, torch.int32, at)
        return cls.ordered(ptr, partner, on_device(rows.y, torch.float32, at), on_device(rows.w, torch.float32, at))

    @classmethod
    def ordered(cls, ptr: Tensor, partner: Tensor, y: Tensor, w: Tensor) -> DeviceRows:
        """Rows that are there, with who has most of them."""
        n = ptr.diff()
        order = n.argsort(descending=True, stable=True)[: int((n > 0).sum())]
        return cls(ptr, partner, y, w, order, int((n > LONG).sum()))

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def turned(self, n_partners: int) -> DeviceRows:
        """The same rows by partner."""
        users = torch.arange(len(self), dtype=torch.int32, device=self.ptr.device)
        owner = torch.repeat_interleave(users, self.ptr.diff(), output_size=len(self.y))
        to = torch.argsort(self.partner, stable=True)
        counts = torch.bincount(self.partner, minlength=n_partners)
        ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return DeviceRows.ordered(ptr, owner[to], self.y[to], self.w[to])


@dataclass(frozen=True, slots=True)
class Layout:
    """How vectors of `factors` entries, and with offsets one more, lie on a device."""

    factors: int
    offsets: bool

    @property
    def D(self) -> int:  # noqa: N802 - the kernel's letter
        """Entries of a vector: a power of 2."""
        return max(LEAST, triton.next_power_of_2(self.factors))

    @property
    def width(self) -> int:
        """Entries of a row."""
        return self.D + (OFFSET_WIDTH if self.offsets else 0)

    def sent(self, P: Array, device: Any) -> Tensor:
        """Rows of `factors` entries, or one more, to the device."""
        at = device_of("half_sweep", device)
        if P.dtype != np.float32:
            raise InputError(f"half_sweep: factors must be float32 on a GPU, got {P.dtype}; use dtype='float32'.")
        out = torch.zeros((len(P), self.width), device=at)
        own = on_device(P, torch.float32, at)
        out[:, : self.factors] = own[:, : self.factors]
        if self.offsets:
            out[:, self.D] = own[:, -1]
        return out

    def fetched(self, P: Tensor) -> Array:
        """The rows back on the host."""
        columns = [P[:, : self.factors], *([P[:, self.D : self.D + 1]] if self.offsets else [])]
        return torch.cat(columns, 1).cpu().numpy()

    def penalty(self, given: Array, device: torch.device) -> Tensor:
        """λ of each entry of a row."""
        out = torch.zeros(self.width, device=device)
        own = on_device(given, torch.float32, device)
        out[: self.factors] = own[: self.factors]
        if self.offsets:
            out[self.D] = own[-1]
        return out


def fit_bytes(rows: int, shape: tuple[int, int], width: int) -> int:
    """What alternating needs at most: rows in both orders, a sort of them, and P and Q four times each."""
    return rows * (12 * 2 + 8 * 4) + sum(shape) * (4 * width * 4 + 64) + GIB // 16


def fitting(name: str, rows: int, shape: tuple[int, int], layout: Layout, device: Any) -> Any:
    """Refuse a fit that the device has no memory for."""
    what = f"a fit of {rows:,} rows, {shape[0]:,} users and {shape[1]:,} items"
    return fitting_memory(name, what, fit_bytes(rows, shape, layout.width), device_of(name, device))


def penalty_of(P: Tensor, penalty: Tensor) -> Tensor:
    """Σ λ p² over all rows."""
    return (P.square().sum(0, dtype=torch.float64) * penalty).sum()


def half_sweep(rows: DeviceRows, X: Tensor, c: float, P: Tensor, problem: Problem, *, steps: int = 3) -> Tensor:
    """Improve P (U, W), given X (I, W); returns the loss of all rows plus the penalties of P, still on the device.

    The problem's prior, if any, is on the device, (W, W) without offsets.
    """
    if steps < 1:
        raise InputError(f"half_sweep: on a GPU steps of conjugate gradients must be at least 1, got {steps}.")
    if problem.prior is not None and problem.offsets:
        raise InputError("half_sweep: on a GPU a prior needs vectors without offsets; leave one of the two out.")
    layout = Layout(len(problem.penalty) - problem.offsets, problem.offsets)
    D, W, loss = layout.D, layout.width, int(problem.loss)
    penalty = layout.penalty(problem.penalty, P.device)
    prior: Any = problem.prior
    value = torch.zeros(len(P), dtype=torch.float64, device=P.device)
    v = torch.empty_like(rows.w) if loss else rows.w  # weights of the squares above the losses
    d = value if prior is None else torch.empty((len(P), D), device=P.device)  # directions, for products with the prior
    G: Any = value if prior is None else prior.contiguous()
    arrays = (rows.ptr, rows.partner, rows.y, rows.w, v, X, P, penalty, G, d, value)
    shape = {"D": D, "W": W, "OFFSETS": problem.offsets, "PRIOR": prior is not None, "LOSS": loss}
    # Programs of many warps for the few long lists, of one for the many short ones.
    for users, tile, warps in ((rows.order[: rows.long], 16384, 16), (rows.order[rows.long :], 2048, 1)):
        if len(users):
            _solve[(len(users),)](
                users, *arrays, float(c), float(problem.smoothing), steps,
                **shape, BR=max(4, tile // D), BT=min(D, max(4, tile // D)), num_warps=warps,
            )  # fmt: skip
    return value.sum()


@triton.jit
def _rows(r, last, partner, v, X, k, W: tl.constexpr, BR: tl.constexpr):
    """Where the next rows are, their partners' vectors and offsets, and their weights, 0 beyond the last row."""
    at = r + tl.arange(0, BR)
    i = tl.load(partner + at, at < last, 0).to(tl.int64)
    x = tl.load(X + i[:, None] * W + k[None, :])
    return at, i, x, tl.load(v + at, at < last, 0.0)


@triton.jit
def _squares(e, v, y, smoothing, LOSS: tl.constexpr):
    """Residuals and weights of the squares above the losses, and the weighted losses: see `kernels/losses.py`."""
    if LOSS == 0:
        return e, v, v * e * e
    elif LOSS == 1:  # noqa: RET505 - one of three ways is compiled
        size = tl.maximum(tl.abs(e), smoothing)
        v = v / (size + size)
        return e, v, v * (e * e + size * size)
    else:
        z = y - e
        size = tl.abs(z)
        low = tl.exp(-size)
        # tanh(|z|/2)/4|z|, and 1/8 - z²/96 where that loses its digits
        curvature = tl.where(size < 0.01, 0.125 - z * z / 96, (1 - low) / (1 + low) / (4 * tl.maximum(size, 0.01)))
        loss = v * (tl.log(1 + low) + tl.maximum(z, 0.0) - y * z)
        return (y - 0.5) / (2 * curvature) - z, v * curvature, loss


@triton.jit
def _prior_times(G, vector, k, D: tl.constexpr, BT: tl.constexpr):
    """G times a vector in memory."""
    sums = tl.zeros([BT, D], tl.float32)
    for first in range(0, D, BT):
        j = first + tl.arange(0, BT)
        sums += tl.load(G + j[:, None] * D + k[None, :]) * tl.load(vector + j)[:, None]
    return tl.sum(sums, 0)


@triton.jit
def _solve(
    order, ptr, partner, y, w, v, X, P, penalty, G, direction, value, c, smoothing, steps,
    D: tl.constexpr, W: tl.constexpr, OFFSETS: tl.constexpr, PRIOR: tl.constexpr, LOSS: tl.constexpr,
    BR: tl.constexpr, BT: tl.constexpr,
):  # fmt: skip
    u = tl.load(order + tl.program_id(0))
    first, last = tl.load(ptr + u), tl.load(ptr + u + 1)
    k = tl.arange(0, D)
    p, lam = tl.load(P + u * W + k), tl.load(penalty + k)
    a = 0.0
    lam_a = 0.0
    if OFFSETS:
        a, lam_a = tl.load(P + u * W + D), tl.load(penalty + D)
    # One pass over the rows: loss, half the negative gradient g = Σ v e x - (G + diag λ)p, and the diagonal m of A.
    # Sums run over the rows of a tile apart, and are added up at the end.
    gs, ms = tl.zeros([BR, D], tl.float32), tl.zeros([BR, D], tl.float32)
    gas, mas, losses = tl.zeros([BR], tl.float32), tl.zeros([BR], tl.float32), tl.zeros([BR], tl.float64)
    for r in range(first, last, BR):
        at, i, x, q = _rows(r, last, partner, w, X, k, W, BR)
        target = tl.load(y + at, at < last, 0.0)
        e = target - c - a - tl.sum(x * p[None, :], 1)
        if OFFSETS:
            e -= tl.load(X + i * W + D)
        e, q, loss = _squares(e, q, target, smoothing, LOSS)
        if LOSS != 0:
            tl.store(v + at, q, at < last)
        gs += x * (q * e)[:, None]
        ms += x * x * q[:, None]
        gas += q * e
        mas += q
        losses += loss
    g, m = tl.sum(gs, 0) - lam * p, tl.sum(ms, 0) + lam
    now = tl.sum(losses, 0) + tl.sum(lam * p * p, 0)
    if PRIOR:
        shrink = _prior_times(G, P + u * W, k, D, BT)
        g -= shrink
        m += tl.load(G + k * D + k)
        now += tl.sum(p * shrink, 0)
    m = tl.where(m > 0, m, 1.0)  # where it is 0, so is the gradient
    d = g / m
    gz = tl.sum(g * d, 0)
    g_a = 0.0
    m_a = 1.0
    d_a = 0.0
    if OFFSETS:
        g_a, m_a = tl.sum(gas, 0) - lam_a * a, tl.sum(mas, 0) + lam_a
        m_a = tl.where(m_a > 0, m_a, 1.0)
        d_a = g_a / m_a
        gz += g_a * d_a
        now += lam_a * a * a
    rounding = 100 * 1.4210854715202004e-14 * gz  # what is left of gz when g is 0 but for rounding
    going = gz > 0
    for _ in range(steps):
        if LOSS != 0 or PRIOR:
            tl.debug_barrier()  # what was stored is read by other threads, and may be overwritten when they have
        if PRIOR:
            tl.store(direction + u * D + k, d)
            tl.debug_barrier()
        hs, has = tl.zeros([BR, D], tl.float32), tl.zeros([BR], tl.float32)
        for r in range(first, last, BR):
            at, i, x, q = _rows(r, last, partner, v, X, k, W, BR)
            s = q * (tl.sum(x * d[None, :], 1) + d_a)
            hs += x * s[:, None]
            has += s
        h = tl.sum(hs, 0) + lam * d  # h = Ad
        if PRIOR:
            h += _prior_times(G, direction + u * D, k, D, BT)
        curvature = tl.sum(d * h, 0)
        h_a = 0.0
        if OFFSETS:
            h_a = tl.sum(has, 0) + lam_a * d_a
            curvature += d_a * h_a
        going = going & (curvature > 1.1920929e-07 * gz)  # else flat but for rounding
        step = tl.where(going, gz, 0.0) / tl.where(going, curvature, 1.0)
        now -= step * gz
        p += step * d
        g -= step * h
        before = gz
        gz = tl.sum(g * g / m, 0)
        if OFFSETS:
            a += step * d_a
            g_a -= step * h_a
            gz += g_a * g_a / m_a
        going = going & (gz > rounding)
        turn = tl.where(going, gz, 0.0) / tl.where(going, before, 1.0)
        d = g / m + turn * d
        if OFFSETS:
            d_a = g_a / m_a + turn * d_a
    tl.store(P + u * W + k, p)
    if OFFSETS:
        tl.store(P + u * W + D, a)
    tl.store(value + u, now)
