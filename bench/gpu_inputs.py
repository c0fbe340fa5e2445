"""What `bench.gpu` measures on: lists, factors and rows on the device, drawn with fixed seeds."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class RanksCase:
    """Users, items and factors, the mean number of wanted items, and how many are excluded of each user."""

    U: int
    I: int
    K: int
    wanted: int = 20
    excluded: int = 0
    heavy: bool = False  # lists of a lognormal law
    rounds: int = 7

    @property
    def size(self) -> str:
        """The case in words."""
        lists = ", ragged lists" if self.heavy else ""
        out = f", {self.excluded} excluded" if self.excluded else ""
        return f"{self.U:,} × {self.I:,} × {self.K}, {self.wanted} wanted{out}{lists}"

    def lists(self) -> tuple[Any, ...]:
        """Wanted and excluded items on the device; excluded ones ascend."""
        import torch

        g = torch.Generator("cuda").manual_seed(self.U)
        mean = torch.full((self.U,), float(self.wanted), device="cuda")
        n = torch.poisson(mean, generator=g).long()
        if self.heavy:
            n = (mean * torch.exp(torch.randn(self.U, device="cuda", generator=g) - 0.5)).long().clamp(max=2000)
        ptr = torch.cat([n.new_zeros(1), n.cumsum(0)])
        item = torch.randint(0, self.I, (int(ptr[-1]),), device="cuda", generator=g, dtype=torch.int32)
        if not self.excluded:
            return ptr, item
        x, gap = self.excluded, self.I // self.excluded
        first = torch.arange(x, dtype=torch.int32, device="cuda") * gap
        out = torch.randint(0, gap, (self.U, x), device="cuda", generator=g, dtype=torch.int32) + first
        return ptr, item, torch.arange(self.U + 1, device="cuda") * x, out.view(-1)

    def factors(self) -> tuple[Any, Any]:
        """P and Q on the device."""
        import torch

        g = torch.Generator("cuda").manual_seed(self.I)
        P, Q = (torch.randn(n, self.K, device="cuda", generator=g) for n in (self.U, self.I))
        return P, Q


def log_of(U: int, I: int, N: int) -> SimpleNamespace:
    """Rows by user as host arrays; users' numbers of rows are lognormal, items' a power law."""
    import torch

    g = torch.Generator("cuda").manual_seed(0)

    def drawn(p: Any) -> Any:
        edges = p.double().cumsum(0)
        parts = [2**22] * (N // 2**22) + [N % 2**22]
        uniform = (torch.rand(n, device="cuda", generator=g, dtype=torch.float64) for n in parts)
        return torch.cat([torch.searchsorted(edges, u * edges[-1]).clamp_(max=len(p) - 1).int() for u in uniform])

    user = drawn(torch.exp(1.1 * torch.randn(U, device="cuda", generator=g)))
    item = drawn((torch.arange(I, device="cuda") + 30.0).pow(-0.95))
    user, order = user.sort(stable=True)
    ptr = torch.cat([torch.zeros(1, dtype=torch.long, device="cuda"), torch.bincount(user, minlength=U).cumsum(0)])
    y, w = torch.randn(N, device="cuda", generator=g), torch.rand(N, device="cuda", generator=g) * 1.8 + 0.1
    found = (ptr, item[order], y, w)
    return SimpleNamespace(
        **dict(zip(("ptr", "partner", "y", "w"), (part.cpu().numpy() for part in found), strict=True))
    )


def problem(K: int, *, offsets: bool = True, prior: Any = None, loss: int = 0) -> SimpleNamespace:
    """As `kernels/least_squares.py` has it."""
    penalty = np.append(np.full(K, 5.0), 1.0) if offsets else np.full(K, 5.0)
    return SimpleNamespace(penalty=penalty, offsets=offsets, prior=prior, loss=loss, smoothing=0.05)


def starts(U: int, I: int, K: int) -> list[Any]:
    rng = np.random.default_rng(3)
    sides = [np.zeros((n, K + 1), np.float32) for n in (U, I)]
    for side in sides:
        side[:, :K] = rng.standard_normal((len(side), K), np.float32) / np.sqrt(K)
    return sides
