"""Exact ranks on a GPU: scores in blocks of users, and one kernel that counts items above and tied items.

Lists are ragged, as in `kernels/ranking.py`. A block's thresholds are read from the block itself: an item then ties
with itself bit by bit. Excluded scores become NaN, which is never counted. Inside the loop nothing waits for the
host. Counts are sums of whole numbers, which atomics add without rounding: same scores, same counts.
"""

# Types are checked where torch and Triton need not be installed, and what Triton compiles has none.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import triton
import triton.language as tl
from torch import Tensor

from openloop.errors import InputError, PredictionError
from openloop.kernels.cuda.devices import device_of, exact_products, free_bytes, interpreted, on_device, too_small

Ints = npt.NDArray[np.int32]
Blocks = Callable[[int, int], Tensor]  # first, last -> scores (B, I) of those of the users who want something

PART = 2048  # scores a program: its counts are then exact in float32
WIDTH = 128  # of a user's list at a time
BLOCK_BYTES, BLOCK_USERS = 2**31, 2048  # a block has at least one of the two: products of few rows are slow
PRECISIONS = ("float32", "split")
FLOATS = (torch.float32, torch.float64)


class ItemLists(NamedTuple):
    """The items of user u are item[ptr[u] : ptr[u + 1]], on the device."""

    ptr: Tensor  # int64
    item: Tensor  # int32


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedLists:
    """Who wants what on a device, and what is excluded for whom."""

    n_items: int
    wanted: ItemLists
    excluded: ItemLists
    users: npt.NDArray[np.int64]  # those who want something

    @property
    def device(self) -> torch.device:
        """Where the lists are."""
        return self.wanted.ptr.device


def ranks(
    scores_of: Callable[[npt.NDArray[np.int64]], Any],
    wanted_ptr: Any,
    wanted_item: Any,
    n_items: int,
    excluded_ptr: Any = None,
    excluded_item: Any = None,
    *,
    device: Any = "cuda",
    block: int | None = None,
) -> tuple[Ints, Ints]:
    """h and e of each wanted item, as `kernels/ranking.py` has them.

    `scores_of` gets an array of users and gives their scores (B, I), float32 or float64, best on the device. Its
    products of float32 there are not rounded to TF32. The block shrinks where the device lacks memory for it.
    """
    asked = wanted_on(device, n_items, wanted_ptr, wanted_item, excluded_ptr, excluded_item)

    def scores(first: int, last: int) -> Tensor:
        users = asked.users[first:last]
        return _checked(scores_of(users), len(users), asked)

    return counted(scores, asked, block)


def factor_ranks(
    user_factors: Any,
    item_factors: Any,
    item_bias: Any,
    wanted_ptr: Any,
    wanted_item: Any,
    excluded_ptr: Any = None,
    excluded_item: Any = None,
    *,
    device: Any = "cuda",
    block: int | None = None,
    precision: Literal["float32", "split"] = "float32",
) -> tuple[Ints, Ints]:
    """`ranks` of the scores P Qᵀ + b by products of float32, or of halves that hold as many bits ("split": faster)."""
    asked = wanted_on(device, len(item_factors), wanted_ptr, wanted_item, excluded_ptr, excluded_item)
    P, Q = _factors(user_factors, item_factors, item_bias, asked.device)
    return counted(product(P[on_device(asked.users, torch.int64, asked.device)], Q, precision), asked, block)


# -- products ------------------------------------------------------------------------------------------------


def product(P: Tensor, Q: Tensor, precision: str = "float32") -> Blocks:
    """Rows of P Qᵀ. "split": by halves with x ≈ hi + lo, as one product hi·lo + lo·hi + hi·hi that adds in float32."""
    if precision not in PRECISIONS:
        raise InputError(f"factor_ranks: precision must be one of {', '.join(PRECISIONS)}, got {precision!r}.")
    if precision == "float32":
        return lambda first, last: P[first:last] @ Q.T
    # A user's ranks do not change with the scale of her scores; a power of 2 does not change their digits.
    (high, low), (item_high, item_low) = _halves(P, P.abs().amax(1, keepdim=True)), _halves(Q, Q.abs().amax())
    users = torch.cat([low, high, high], 1)  # (U, 3K)
    items = torch.cat([item_high, item_low, item_high], 1)  # (I, 3K)
    if interpreted():  # halves have no products on the CPU that add in float32; those of floats are the same numbers
        users, items = users.float(), items.float()
        return lambda first, last: users[first:last] @ items.T
    return lambda first, last: torch.mm(users[first:last], items.T, out_dtype=torch.float32)


def _halves(x: Tensor, largest: Tensor) -> tuple[Tensor, Tensor]:
    """x, scaled by a power of 2 to below 1, as hi + lo: to 22 bits of the largest."""
    _, exponent = torch.frexp(largest)
    x = torch.ldexp(x, -exponent)
    high = x.half()
    return high, (x - high.float()).half()


def _factors(user: Any, item: Any, bias: Any, device: torch.device) -> tuple[Tensor, Tensor]:
    """[P 1] and [Q b], with columns of 0 up to a multiple of 8: products of aligned rows are faster."""
    P, Q = (on_device(side, torch.float32, device) for side in (user, item))
    if P.ndim != 2 or Q.ndim != 2 or P.shape[1] != Q.shape[1]:
        raise InputError(f"factor_ranks: factors must be U×K and I×K, got {tuple(P.shape)} and {tuple(Q.shape)}.")
    K = P.shape[1] + (bias is not None)
    wide = [torch.zeros((len(side), -(-K // 8) * 8), device=device) for side in (P, Q)]
    for to, side in zip(wide, (P, Q), strict=True):
        to[:, : side.shape[1]] = side
    if bias is not None:
        wide[0][:, K - 1] = 1
        wide[1][:, K - 1] = on_device(bias, torch.float32, device)
    return wide[0], wide[1]


# -- lists and scores at the door ----------------------------------------------------------------------------


def wanted_on(
    device: Any, n_items: int, wanted_ptr: Any, wanted_item: Any, excluded_ptr: Any = None, excluded_item: Any = None
) -> WantedLists:
    """The lists, checked, on the device."""
    at, n_users = device_of("ranks", device), len(wanted_ptr) - 1
    wanted = _lists("wanted", wanted_ptr, wanted_item, (n_users, n_items), at)
    if excluded_ptr is None or excluded_item is None:
        excluded_ptr, excluded_item = np.zeros(n_users + 1, np.int64), np.empty(0, np.int32)
    excluded = _lists("excluded", excluded_ptr, excluded_item, (n_users, n_items), at)
    rises = torch.ones(len(excluded.item) + 1, dtype=torch.bool, device=at)  # from the item before
    rises[1:-1] = excluded.item.diff() > 0
    rises[excluded.ptr] = True  # each list starts anew
    if not bool(rises.all()):
        raise InputError("ranks: a user's excluded items must ascend, each once; sort them by (user, item).")
    users = torch.nonzero(wanted.ptr.diff())[:, 0].cpu().numpy()
    return WantedLists(n_items=n_items, wanted=wanted, excluded=excluded, users=users)


def _lists(name: str, ptr: Any, item: Any, shape: tuple[int, int], device: torch.device) -> ItemLists:
    n_users, n_items = shape
    found = ItemLists(on_device(ptr, torch.int64, device), on_device(item, torch.int32, device))
    size = len(found.item)
    ends = found.ptr[[0, -1]].tolist()
    if len(found.ptr) != n_users + 1 or ends != [0, size] or bool((found.ptr.diff() < 0).any()):
        raise InputError(f"ranks: {name}_ptr must rise from 0 to {size} and have {n_users + 1} entries.")
    if size:
        low, high = (int(end) for end in torch.aminmax(found.item))
        if low < 0 or high >= n_items:
            raise InputError(f"ranks: {name} items must lie in 0…{n_items - 1}, got {low}…{high}.")
    return found


def _checked(scores: Any, n_users: int, asked: WantedLists) -> Tensor:
    """Scores that may be written to; those of fewer bits are refused, since their rounding makes ties."""
    block = scores if isinstance(scores, Tensor) else torch.tensor(np.asarray(scores), device=asked.device)
    if tuple(block.shape) != (n_users, asked.n_items):
        raise InputError(f"ranks: scores must be {n_users} users × {asked.n_items} items, got {tuple(block.shape)}.")
    if block.dtype not in FLOATS:
        raise InputError(f"ranks: scores must be float32 or float64, got {block.dtype}; return scores.float().")
    block = block.detach().to(asked.device)
    # Excluded scores are overwritten; the model may have kept the tensor.
    return block.clone(memory_format=torch.contiguous_format) if len(asked.excluded.item) else block.contiguous()


# -- counting ------------------------------------------------------------------------------------------------


def counted(scores: Blocks, asked: WantedLists, block: int | None = None) -> tuple[Ints, Ints]:
    """Blocks of scores to counts on the host; half as many users a block each time memory runs out."""
    h, e, missing = count(scores, asked, block)
    expected = asked.excluded.ptr.diff()[on_device(asked.users, torch.int64, asked.device)]
    bad = torch.nonzero(missing != expected)
    if len(bad):
        raise PredictionError(f"ranks: user {asked.users[int(bad[0])]} has NaN scores, which have no rank; use -inf.")
    return h.cpu().numpy(), e.cpu().numpy()


def count(scores: Blocks, asked: WantedLists, block: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """h and e on the device, and how many of each user's scores are NaN, which should be as many as are excluded."""
    users = on_device(asked.users, torch.int64, asked.device)
    h, e = torch.zeros((2, len(asked.wanted.item)), dtype=torch.int32, device=asked.device)
    missing = torch.zeros(len(users), dtype=torch.int32, device=asked.device)
    step, first = block or block_users(asked), 0
    with torch.no_grad(), exact_products():
        while first < len(users):
            last = min(first + step, len(users))
            try:
                _count_block(scores(first, last), users[first:last], asked, (h, e, missing[first:last]))
            except torch.cuda.OutOfMemoryError as error:
                if step == 1:
                    raise too_small(
                        "ranks", "a user's scores beside what their model takes", 4 * asked.n_items, asked.device
                    ) from error
                step = max(1, step // 2)
                torch.cuda.empty_cache()
                continue
            first = last
    return h, e, missing


def block_users(asked: WantedLists) -> int:
    """Users a block; half of what is free is left to whatever makes the scores."""
    row = 4 * asked.n_items
    fit = min(max(BLOCK_BYTES, BLOCK_USERS * row), free_bytes(asked.device) // 2) // max(row, 1)
    if fit < 1:
        raise too_small("ranks", "a user's scores, twice", 2 * row, asked.device)
    return fit


def _count_block(S: Tensor, users: Tensor, asked: WantedLists, found: tuple[Tensor, Tensor, Tensor]) -> None:
    h, e, missing = found
    T = torch.empty(len(h), dtype=S.dtype, device=S.device)
    unusual = torch.empty(len(users), dtype=torch.int32, device=S.device)
    n = asked.n_items
    _prepare[(len(users),)](S, users, *asked.wanted, *asked.excluded, T, unusual, e, n, WIDTH=WIDTH, num_warps=4)
    grid = (len(users), triton.cdiv(n, PART))
    _count[grid](S, users, asked.wanted.ptr, T, unusual, h, e, missing, n, PART=PART, num_warps=1)


@triton.jit
def _prepare(
    S, users, wanted_ptr, wanted_item, excluded_ptr, excluded_item, T, unusual, E, n_items, WIDTH: tl.constexpr
):
    """A user's thresholds out of the user's scores, and NaN into the excluded ones; e is 1 where one is wanted."""
    b = tl.program_id(0).to(tl.int64)
    u, row, k = tl.load(users + b), S + b * n_items, tl.arange(0, WIDTH)
    first, last = tl.load(wanted_ptr + u), tl.load(wanted_ptr + u + 1)
    odd = tl.zeros([WIDTH], tl.int32)  # thresholds for which `_count` cannot take its shorter way
    for w in range(first, last, WIDTH):
        at = w + k
        t = tl.load(row + tl.load(wanted_item + at, at < last, 0), at < last, 1.0)
        tl.store(T + at, t, at < last)
        odd += ((tl.abs(t) < 7.888609052210118e-31) | (tl.abs(t) == float("inf"))).to(tl.int32)
    tl.store(unusual + b, tl.sum(odd))
    tl.debug_barrier()
    first_out, last_out = tl.load(excluded_ptr + u), tl.load(excluded_ptr + u + 1)
    for x in range(first_out, last_out, WIDTH):
        at = x + k
        i = tl.load(excluded_item + at, at < last_out, 0)
        tl.store(row + i, tl.full([WIDTH], float("nan"), S.dtype.element_ty), at < last_out)
    tl.debug_barrier()
    if last_out > first_out:
        for w in range(first, last, WIDTH):
            at = w + k
            s = tl.load(row + tl.load(wanted_item + at, at < last, 0), at < last, 0.0)
            tl.store(E + at, tl.where(s == s, 0, 1), at < last)


@triton.jit
def _count(S, users, ptr, T, unusual, H, E, missing, n_items, PART: tl.constexpr):
    """A part of a user's row against all of the user's thresholds: 1 above, 2^-12 tied, 0 below, and for NaN 0."""
    b = tl.program_id(0).to(tl.int64)
    u = tl.load(users + b)
    c = tl.program_id(1) * PART + tl.arange(0, PART)
    s = tl.load(S + b * n_items + c, c < n_items, float("nan"))
    beyond = tl.maximum((tl.program_id(1) + 1) * PART - n_items, 0)
    lost = tl.sum(tl.where(s == s, 0.0, 1.0)).to(tl.int32) - beyond
    tl.atomic_add(missing + b, lost, lost > 0, sem="relaxed")
    first, last = tl.load(ptr + u), tl.load(ptr + u + 1)
    if (tl.load(unusual + b) == 0) & (S.dtype.element_ty == tl.float32):
        # A subtraction and a saturating fma, at half the cost of two comparisons: unless s = t, |s - t| is at least
        # 2^-125 for a finite |t| from 2^-100 on, which 2^126 makes at least 1.
        for w in range(first, last):
            x = (s - tl.load(T + w)) * 8.507059173023462e37 + 1 / 4096
            _add(tl.minimum(tl.maximum(x, 0.0), 1.0), H + w, E + w)
    else:
        for w in range(first, last):
            t = tl.load(T + w)
            _add(tl.where(s > t, 1.0, tl.where(s == t, 1 / 4096, 0.0)), H + w, E + w)


@triton.jit
def _add(x, h, e):
    """Whole numbers and 4096ths of a sum, to the counts above and tied."""
    n = (tl.sum(x) * 4096).to(tl.int32)
    tl.atomic_add(h, n >> 12, n >= 4096, sem="relaxed")
    tl.atomic_add(e, n & 4095, (n & 4095) > 0, sem="relaxed")
