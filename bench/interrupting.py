"""`python -m bench.interrupting`: fits from disk that are interrupted, started again, and compared bit by bit.

A fit in a process of its own gets SIGINT or SIGKILL while blocks are being made, and in the middle of a pass. The same
call is then made again and runs to the end; its model must have the bits of a fit that nobody interrupted.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.harness import ROOT
from bench.projected import FACTORS, REG, write_log
from openloop.learners.blocks.disk import READY, UNFINISHED

ITERATIONS, MEMORY = 8, "1 GiB"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.interrupting", description=__doc__)
    parser.add_argument("--rows", type=float, default=3e6, help="default 3e6")
    asked = parser.parse_args()
    rows = int(asked.rows)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_log(folder, rows, max(rows // 72, 1_000), min(27_000, rows // 100))
        print(f"{rows:,} rows, {FACTORS} factors, {ITERATIONS} iterations, memory={MEMORY}", flush=True)
        finished(begin(folder, "whole"))
        for kind in (signal.SIGINT, signal.SIGKILL):
            for moment, reached in MOMENTS.items():
                print(compared(folder, kind, moment, reached), flush=True)


# -- the fit, in a process of its own --------------------------------------------------------------------------


def fit(folder: Path, name: str) -> None:
    from openloop.learners import MF

    model = MF(
        FACTORS, REG, solver="projected", iterations=ITERATIONS, tol=0.0, checkpoint=folder / f"{name}.npz"
    )  # fmt: skip
    model.fit(folder / "log", sample_weight="w", blocks=folder / f"{name}-blocks", memory=MEMORY)
    Q = np.column_stack([model.item_factors_, model.item_bias_])
    np.savez(folder / f"{name}-model.npz", Q=Q, history=model.history_, c=model.intercept_)


def begin(folder: Path, name: str) -> subprocess.Popen[str]:
    program = f"from pathlib import Path; from bench.interrupting import fit; fit(Path({str(folder)!r}), {name!r})"
    return subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> None:
    _, said = process.communicate()
    if process.returncode:
        raise SystemExit(f"bench.interrupting: a fit ended with {process.returncode}: {said.strip()[-300:]}")


# -- and what happens to it ------------------------------------------------------------------------------------


def dealing(folder: Path, name: str) -> bool:
    """Rows lie in files of blocks, and are not sorted yet."""
    return any((folder / f"{name}-blocks" / UNFINISHED).glob("*.rows"))


def passing(folder: Path, name: str) -> bool:
    """Blocks are ready, and iterations were kept."""
    return (folder / f"{name}-blocks" / READY).exists() and (folder / f"{name}.npz").exists()


MOMENTS = {"while blocks are made": dealing, "in the middle of a fit": passing}


def compared(folder: Path, kind: signal.Signals, moment: str, reached: Callable[[Path, str], bool]) -> str:
    """Interrupt a fit at a moment, make it again, and say whether the bits are those of the whole."""
    name = f"{kind.name}-{reached.__name__}"
    process = begin(folder, name)
    while not reached(folder, name):
        if process.poll() is not None:
            finished(process)
            raise SystemExit(f"bench.interrupting: the fit ended before it was {moment}; ask for more --rows.")
        time.sleep(0.002)
    process.send_signal(kind)
    process.communicate()
    kept = _iterations(folder / f"{name}.npz")
    finished(begin(folder, name))
    with np.load(folder / "whole-model.npz") as whole, np.load(folder / f"{name}-model.npz") as other:
        same = all(whole[part].tobytes() == other[part].tobytes() for part in whole.files)
    return f"{kind.name} {moment}: ended with {process.returncode}, {kept} iterations kept; same bits: {same}"


def _iterations(checkpoint: Path) -> int:
    if not checkpoint.exists():
        return 0
    with np.load(checkpoint) as held:
        return len(held["values"]) - 1


if __name__ == "__main__":
    main()
