"""`python -m bench.gpu`: the kernels of `openloop/kernels/cuda` on this machine's GPU, checked, then timed.

Needs NumPy, torch and Triton, and nothing installed. `--json FILE` keeps the lines, and `--write FILE` puts those of an
earlier run into docs/performance.md. Times are medians by the device's events, with compiled kernels and random inputs
that are on the device, unless a line says otherwise. The bare product is torch's, in the same blocks, TF32 off.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench import gpu_checks
from bench.gpu_inputs import RanksCase, log_of, problem, starts

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
MARKS = ("<!-- gpu: begin -->", "<!-- gpu: end -->")
FIT_SWEEPS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A measurement: milliseconds, and what they are compared with."""

    what: str
    size: str
    ms: float
    base: float | None = None  # ms of the bare product
    target: str = ""
    met: bool | None = None
    note: str = ""

    @property
    def row(self) -> str:
        """A row of the table."""
        ratio = "" if self.base is None else f"{self.ms / self.base:.2f}× of {_time(self.base)}"
        said = {None: "", True: "met", False: "**missed**"}[self.met]
        return f"| {self.what} | {self.size} | {_time(self.ms)} | {ratio} | {self.target} | {said} | {self.note} |"


def _time(ms: float) -> str:
    return f"{ms / 1e3:.3g} s" if ms >= 1e3 else f"{ms:.3g} ms"


def page(found: dict[str, Any]) -> str:
    """The table as Markdown."""
    head = "| what | size | time | product | target | | note |\n|---|---|---|---|---|---|---|"
    rows = [Line(**line).row for line in found["lines"]]
    checks = "\n".join(f"- {check}" for check in found["checks"])
    return "\n".join([f"Measured on {found['machine']}.", "", head, *rows, "", "Checked before:", "", checks])


# -- timing --------------------------------------------------------------------------------------------------


def timed(call: Callable[[], Any], rounds: int = 7) -> float:
    """Milliseconds of the device, the median."""
    import torch

    call()
    torch.cuda.synchronize()
    found = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end))
    return statistics.median(found)


def wall(call: Callable[[], Any], rounds: int = 3) -> float:
    """Milliseconds of the host, the median."""
    import torch

    call()
    found = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        found.append(1e3 * (time.perf_counter() - start))
    return statistics.median(found)


# -- ranks ---------------------------------------------------------------------------------------------------


RANKS = (
    (RanksCase(U=30_000, I=20_000, K=64), None, None),
    (RanksCase(U=138_000, I=27_000, K=64), None, None),
    (RanksCase(U=138_000, I=27_000, K=64, excluded=145), 2.1, 1.5),
    (RanksCase(U=138_000, I=27_000, K=64, excluded=145, heavy=True), None, None),
    (RanksCase(U=138_000, I=27_000, K=128, excluded=145), None, None),
    (RanksCase(U=1_000_000, I=1_000_000, K=64, excluded=100, rounds=1), None, None),
)


def bench_ranks(*, quick: bool) -> Iterator[Line]:
    """Ranks by either precision, beside the bare product."""
    from openloop.kernels.cuda import ranking

    for case, target, split in RANKS[: 3 if quick else None]:
        P, Q = case.factors()
        asked = ranking.wanted_on("cuda", case.I, *case.lists())
        P = P[asked.users]  # but for those whose list is empty
        base, note = bare(P, Q, ranking.block_users(asked), case.rounds)
        for precision, most in (("float32", target), ("split", split)):
            ms = timed(partial(counted, P, Q, precision, asked), case.rounds)
            met, said = (None, "") if most is None else (ms / base <= most, f"≤ {most}×")
            what = "ranks" if precision == "float32" else 'ranks, `precision="split"`'
            yield Line(what=what, size=case.size, ms=ms, base=base, target=said, met=met, note=note)
        if target is not None:
            P, Q, *lists = (part.cpu().numpy() for part in (*case.factors(), *case.lists()))
            ms = wall(partial(ranking.factor_ranks, P, Q, None, *lists))
            yield Line(
                what="the same from NumPy arrays",
                size=case.size,
                ms=ms,
                note="lists checked and sent, on the host's clock",
            )


def counted(P: Any, Q: Any, precision: str, asked: Any) -> Any:
    """Ranks from and to the device."""
    from openloop.kernels.cuda import ranking

    return ranking.count(ranking.product(P, Q, precision), asked)


def bare(P: Any, Q: Any, step: int, rounds: int) -> tuple[float, str]:
    """The product alone in blocks of `step` users; of very many users a sixteenth, times 16."""
    import torch

    part = 16 if len(P) * len(Q) > 10**11 else 1
    out = torch.empty((min(step, len(P)), len(Q)), device="cuda")
    blocks = P[: len(P) // part].split(step)
    ms = timed(lambda: [torch.mm(block, Q.T, out=out[: len(block)]) for block in blocks], max(3, rounds))
    return ms * part, "product of a 16th of the users, times 16" if part > 1 else ""


# -- factorisation -------------------------------------------------------------------------------------------


FITS = ((138_000, 27_000, 20_000_000, 64), (138_000, 27_000, 20_000_000, 128), (500_000, 100_000, 100_000_000, 64))


def bench_fits(*, quick: bool) -> Iterator[Line]:
    """A sweep, and a whole fit from host arrays."""
    from openloop.kernels.cuda.least_squares import DeviceRows, Layout, half_sweep

    for U, I, N, K in FITS[: 1 if quick else None]:
        log, layout, ends = log_of(U, I, N), Layout(K, True), starts(U, I, K)
        rows = DeviceRows.of(log, "cuda")
        turned, asked = rows.turned(I), problem(K)
        P, Q = (layout.sent(side, "cuda") for side in ends)

        def sweep(asked: Any = asked, rows: Any = rows, turned: Any = turned, P: Any = P, Q: Any = Q) -> Any:
            half_sweep(rows, Q, 0.1, P, asked)
            return half_sweep(turned, P, 0.1, Q, asked)

        def fit(log: Any = log, layout: Any = layout, ends: Any = ends, I: int = I, asked: Any = asked) -> Any:
            here = DeviceRows.of(log, "cuda")
            both, (A, B) = here.turned(I), (layout.sent(side, "cuda") for side in ends)
            for _ in range(FIT_SWEEPS):
                half_sweep(here, B, 0.1, A, asked)
                float(half_sweep(both, A, 0.1, B, asked))  # the host looks whether it settled
            return layout.fetched(A), layout.fetched(B)

        size = f"{N // 10**6} M rows, {U:,} × {I:,}, {K} factors"
        ms, first = timed(sweep), FITS[0] == (U, I, N, K)
        yield Line(
            what="a sweep of ALS", size=size, ms=ms, target="≤ 10 ms" if first else "", met=ms <= 10 if first else None
        )
        if K == 64:
            ms = wall(fit)
            yield Line(
                what=f"a fit of {FIT_SWEEPS} sweeps", size=size, ms=ms, target="≤ 1 s" if first else "",
                met=ms <= 1000 if first else None, note="from and to NumPy arrays, on the host's clock",
            )  # fmt: skip
        if first:
            for name, other in (("absolute", problem(K, loss=1)), ("logistic", problem(K, loss=2))):
                yield Line(what=f"a sweep, {name} loss", size=size, ms=timed(lambda o=other: sweep(o)))
            yield Line(
                what="a sweep of WMF", size=size, ms=timed(positives(rows, turned, ends, K)), note="a prior, no offsets"
            )


def positives(rows: Any, turned: Any, ends: Any, K: int) -> Callable[[], Any]:
    """A sweep with the prior of Hu et al., without offsets."""
    from openloop.kernels.cuda.least_squares import Layout, half_sweep

    layout = Layout(K, False)
    P, Q = (layout.sent(side[:, :K], "cuda") for side in ends)

    def sweep() -> Any:
        half_sweep(rows, Q, 0.0, P, problem(K, offsets=False, prior=0.01 * (Q.T @ Q)))
        return half_sweep(turned, P, 0.0, Q, problem(K, offsets=False, prior=0.01 * (P.T @ P)))

    return sweep


# -- bootstrap -----------------------------------------------------------------------------------------------


def bench_bootstrap(*, quick: bool) -> Iterator[Line]:
    import torch

    from openloop.kernels.cuda.bootstrap import bootstrap_sums, sums

    for m in (2, 16, 64)[: 2 if quick else None]:
        X = torch.rand(1_000_000, m, dtype=torch.float64, device="cuda")
        ms = timed(lambda X=X: sums(X, 10_000, 7), 5)
        target = ("≤ 20 ms", ms <= 20) if m <= 16 else ("", None)
        yield Line(what="bootstrap", size=f"10,000 × 1 M users, {m} columns", ms=ms, target=target[0], met=target[1])
        if m == 2:
            host = X.cpu().numpy()
            ms = wall(lambda X=host: bootstrap_sums(X, 10_000, 7))
            yield Line(
                what="the same from and to NumPy arrays",
                size=f"10,000 × 1 M users, {m} columns",
                ms=ms,
                note="on the host's clock",
            )


# -- the whole -----------------------------------------------------------------------------------------------

PARTS = {
    "ranks": (gpu_checks.check_ranks, bench_ranks),
    "fits": (gpu_checks.check_fits, bench_fits),
    "bootstrap": (gpu_checks.check_bootstrap, bench_bootstrap),
}


def measured(parts: list[str], *, quick: bool) -> dict[str, Any]:
    """Checks and lines of the parts, as they come also printed."""
    import torch
    import triton

    if not torch.cuda.is_available():
        raise SystemExit(f"bench.gpu: torch {torch.__version__} finds no GPU.")
    torch.backends.cuda.matmul.allow_tf32 = False
    memory = torch.cuda.get_device_properties(0).total_memory / 2**30
    versions = f"torch {torch.__version__}, Triton {triton.__version__}"
    machine = f"one {torch.cuda.get_device_name(0)} ({memory:.0f} GiB), {versions}"
    found: dict[str, Any] = {"machine": machine, "checks": [], "lines": []}
    for name in parts:
        check, bench = PARTS[name]
        for said in check():
            print(f"- {said}", flush=True)
            found["checks"].append(said)
        for line in bench(quick=quick):
            print(line.row, flush=True)
            found["lines"].append(asdict(line))
        torch.cuda.empty_cache()
    return found


def write(found: dict[str, Any], path: Path = PAGE) -> None:
    """Put the table between the marks of the page."""
    before, _, rest = path.read_text(encoding="utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not end:
        raise SystemExit(f"{path}: the marks {MARKS[0]} and {MARKS[1]} are missing; put them back.")
    path.write_text(f"{before}{MARKS[0]}\n\n{page(found)}\n\n{MARKS[1]}{after}", encoding="utf-8")
    print(f"written to {path}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.gpu", description=__doc__)
    parser.add_argument("part", nargs="*", help=f"of {', '.join(PARTS)}; none means all")
    parser.add_argument("--quick", action="store_true", help="the lines that have targets, and few others")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the lines go")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="put the lines of this file into docs/performance.md"
    )
    asked = parser.parse_args()
    if asked.write:
        write(json.loads(asked.write.read_text(encoding="utf-8")))
        return
    for name in asked.part:
        if name not in PARTS:
            parser.error(f"no part {name!r}; there are {', '.join(PARTS)}")
    sys.path.insert(0, str(ROOT / "src"))
    found = measured(asked.part or list(PARTS), quick=asked.quick)
    print(f"\n{page(found)}")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
