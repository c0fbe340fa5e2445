"""What `bench.gpu` checks before it measures: each kernel against plain NumPy or torch, on the device."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.gpu_inputs import RanksCase, log_of, problem, starts


def check_ranks() -> Iterator[str]:
    """Against all comparisons of the same scores, with ties, infinities, tiny numbers and TF32 switched on."""
    import torch

    from openloop.kernels.cuda import ranking
    from openloop.kernels.cuda.devices import exact_products

    case = RanksCase(U=3000, I=5003, K=64, wanted=5, excluded=30)
    P, Q = case.factors()
    Q[:50] = Q[100:150]
    lists = case.lists()
    torch.backends.cuda.matmul.allow_tf32 = True
    loose = P @ Q.T
    with exact_products():
        S = P @ Q.T
    h, e = ranking.factor_ranks(P, Q, None, *lists)
    same = equal_to_all(h, e, S, *lists)
    back = torch.backends.cuda.matmul.allow_tf32
    yield f"ranks of 3,000 × 5,003 with ties and TF32 switched on: {same}; TF32 is on again: {back}"
    torch.backends.cuda.matmul.allow_tf32 = False
    exact = all_counts(P.double() @ Q.double().T, *lists)[0]
    for name, found in (
        ("float32", h),
        ("split", ranking.factor_ranks(P, Q, None, *lists, precision="split")[0]),
        ("TF32", all_counts(loose, *lists)[0].cpu().numpy()),
    ):
        off = np.abs(found - exact.cpu().numpy())
        share, most = np.mean(off > 0), off.max()
        yield f"{name}: {share:.3%} of {len(off):,} ranks differ from those of float64 scores, by {most} at most"
    hard = S.clone()
    hard[hard < -12] = -torch.inf
    hard[hard > 12] = torch.inf
    hard[torch.rand(hard.shape, device="cuda") < 0.2] *= 1e-42
    for scores in (hard, hard.double(), torch.zeros_like(hard)):
        h, e = ranking.ranks(
            lambda users, s=scores: s[torch.as_tensor(users, device="cuda")], *lists[:2], case.I, *lists[2:], block=700
        )
        yield f"scores as {scores.dtype} with infinities, denormals or all alike: {equal_to_all(h, e, scores, *lists)}"


def all_counts(S: Any, ptr: Any, item: Any, out_ptr: Any, out: Any) -> tuple[Any, Any]:
    """h and e by comparing everything with everything."""
    import torch

    U = len(S)
    owner = torch.repeat_interleave(torch.arange(U, device="cuda"), ptr.diff())
    candidate = torch.ones(S.shape, dtype=torch.bool, device="cuda")
    candidate[torch.repeat_interleave(torch.arange(U, device="cuda"), out_ptr.diff()), out.long()] = False
    h, e = [], []
    for part in torch.arange(len(item), device="cuda").split(4096):
        t = S[owner[part], item[part].long()][:, None]
        kept = candidate[owner[part]]
        h.append(((S[owner[part]] > t) & kept).sum(1))
        own = ~candidate[owner[part], item[part].long()]
        e.append(((S[owner[part]] == t) & kept).sum(1) + own)
    return torch.cat(h), torch.cat(e)


def equal_to_all(h: Any, e: Any, S: Any, *lists: Any) -> str:
    above, tied = (part.cpu().numpy() for part in all_counts(S, *lists))
    wrong = int(np.sum((h != above) | (e != tied)))
    if wrong:
        raise SystemExit(f"{wrong} of {len(h)} ranks are wrong")
    return f"all {len(h):,} equal"


def check_fits() -> Iterator[str]:
    """Against the normal equations in float64, and twice for the same bits."""
    import torch

    from openloop.kernels.cuda.least_squares import DeviceRows, Layout, half_sweep

    U, I, N, K = 300, 90, 60_000, 20
    log = log_of(U, I, N)
    P0, X = starts(U, I, K)
    X[:, -1] = np.random.default_rng(0).standard_normal(I)
    for offsets, prior in ((True, False), (False, True)):
        layout, width = Layout(K, offsets), K + offsets
        given, start = layout.sent(X[:, :width], "cuda"), layout.sent(P0[:, :width], "cuda")
        G = 0.01 * given.T @ given if prior else None
        rows = DeviceRows.of(log, "cuda")
        found = []
        for _ in range(2):
            P = start.clone()
            found.append((float(half_sweep(rows, given, 0.1, P, problem(K, offsets=offsets, prior=G), steps=30)), P))
        best, value = solved(log, X[:, :width].astype(float), 0.1, offsets=offsets, rest=0.01 * prior)
        error = np.abs(layout.fetched(found[0][1]) - best)[np.diff(log.ptr) > 0].max()
        off, twice = abs(found[0][0] / value - 1), bool(torch.equal(found[0][1], found[1][1]))
        if error > 1e-4 or off > 1e-5 or not twice:
            raise SystemExit(f"least squares are off: {error}, {off}, same bits {twice}")
        which = "offsets" if offsets else "a prior"
        yield (
            f"users' vectors with {which}, 30 steps: off by {error:.1e} from normal equations in float64, their "
            f"objective by {off:.1e}; same bits twice"
        )
    for loss in (1, 2):
        labels = SimpleNamespace(**{**vars(log), "y": (log.y > 0).astype(np.float32)})
        rows, layout = DeviceRows.of(labels, "cuda"), Layout(K, True)
        turned, P, Q = rows.turned(I), *(layout.sent(side, "cuda") for side in (P0, X))
        values = [
            float(
                half_sweep(rows, Q, 0.0, P, problem(K, loss=loss)) * 0
                + half_sweep(turned, P, 0.0, Q, problem(K, loss=loss))
            )
            + float((P.double().square() * layout.penalty(problem(K).penalty, P.device)).sum())
            for _ in range(12)
        ]
        if not np.all(np.diff(values) <= 1e-6 * np.abs(values[1:])):
            raise SystemExit(f"the objective rose: {values}")
        yield f"{('', 'absolute', 'logistic')[loss]} loss: 12 sweeps from {values[0]:.6g} to {values[-1]:.6g}, never up"


def solved(log: Any, X: Any, c: float, *, offsets: bool, rest: float) -> tuple[Any, float]:
    """The best vectors by the normal equations, and the objective there."""
    P, value, penalty = (
        np.zeros((len(log.ptr) - 1, X.shape[1])),
        0.0,
        np.diag(problem(X.shape[1] - offsets, offsets=offsets).penalty),
    )
    G = penalty + rest * X.T @ X * (rest > 0)
    for u in range(len(P)):
        mine = slice(log.ptr[u], log.ptr[u + 1])
        x, e, q = X[log.partner[mine]], log.y[mine] - c, log.w[mine].astype(float)
        if offsets:
            e, x = e - x[:, -1], np.column_stack([x[:, :-1], np.ones(len(x))])
        if len(x):
            P[u] = np.linalg.solve(x.T @ (q[:, None] * x) + G, x.T @ (q * e))
            value += np.sum(q * (e - x @ P[u]) ** 2) + P[u] @ G @ P[u]
    return P, float(value)


def check_bootstrap() -> Iterator[str]:
    """Against weights drawn with NumPy."""
    import torch

    from openloop.kernels.cuda.bootstrap import bootstrap_sums

    rng = np.random.default_rng(0)
    for users, m in ((3003, 2), (1000, 35)):
        X = rng.random((users, m))
        found, seed = bootstrap_sums(X, 70, 2**63 + 11), 2**63 + 11
        error = np.abs(found / (weights(users, 70, seed) @ X) - 1).max()
        again = np.array_equal(found, bootstrap_sums(torch.tensor(X, device="cuda"), 70, seed))
        if error > 1e-12 or not again:
            raise SystemExit(f"bootstrap sums are off by {error}, same bits {again}")
        yield f"bootstrap of {users:,} users, {m} columns: off by {error:.1e} from the CPU's weights; same bits twice"


def weights(users: int, replicates: int, seed: int) -> Any:
    """The weights of `kernels/bootstrap.py`, which needs numba: splitmix64, whose bytes are weights."""
    gamma, one, two = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))

    def mixed(z: Any) -> Any:
        z = (z ^ (z >> np.uint64(30))) * one
        z = (z ^ (z >> np.uint64(27))) * two
        return z ^ (z >> np.uint64(31))

    n = (users + 7) // 8
    start = mixed(np.array([seed], np.uint64) + gamma)
    words = mixed(start + np.arange(replicates * n, dtype=np.uint64) * gamma)
    byte = words.view(np.uint8).reshape(replicates, 8 * n)[:, :users]
    return np.searchsorted(np.array([93, 191, 234, 251, 255], np.uint8), byte, side="right").astype(float)
