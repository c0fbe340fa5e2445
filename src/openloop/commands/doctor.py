"""What is installed, what is missing, and what this machine has: the doctor's findings as plain data."""

from __future__ import annotations

import os
import platform
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

from openloop.support.memory import total_memory
from openloop.support.version import VERSION

CORE = {
    "numpy": "numpy", "scipy": "scipy", "narwhals": "narwhals", "polars": "polars", "pyarrow": "pyarrow",
    "numba": "numba", "scikit-learn": "sklearn", "altair": "altair", "vl-convert-python": "vl_convert",
    "jinja2": "jinja2", "markupsafe": "markupsafe", "typer": "typer", "rich": "rich", "safetensors": "safetensors",
    "threadpoolctl": "threadpoolctl",
}  # fmt: skip
EXTRAS = {"duckdb": "duckdb", "pandas": "pandas", "pyspark": "spark", "torch": "torch", "cornac": "cornac"}


def diagnose() -> dict[str, Any]:
    """Packages and machine as plain values; `ok` is false where what every run needs does not work."""
    core = [_core(name, module) for name, module in CORE.items()] + [_kernels()]
    return {
        "ok": all(part["ok"] for part in core),
        "openloop": VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "core": core,
        "optional": [_optional(name, extra) for name, extra in EXTRAS.items()] + [_java()],
        "machine": _machine(),
    }


def _part(name: str, version: str | None, *, ok: bool, problem: str = "", remedy: str = "") -> dict[str, Any]:
    return {"name": name, "version": version, "ok": ok, "problem": problem, "remedy": remedy}


def _version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _core(name: str, module: str) -> dict[str, Any]:
    version = _version(name)
    if version is None:
        return _part(name, None, ok=False, problem="not installed", remedy="pip install openloop")
    try:
        import_module(module)
    except Exception as error:  # noqa: BLE001 (a damaged package may raise anything)
        remedy = f"pip install --force-reinstall {name}"
        return _part(name, version, ok=False, problem=_one_line(error), remedy=remedy)
    return _part(name, version, ok=True)


def _kernels() -> dict[str, Any]:
    """Compiled code is kept in a folder that numba chooses, or among temporary files; else kernels compile anew."""
    remedy = "set NUMBA_CACHE_DIR to a folder that you may write to"
    try:
        folder = import_module("openloop.kernels.ranking").count_above.stats.cache_path
    except Exception as error:  # noqa: BLE001 (as above)
        return _part("kernel cache", None, ok=False, problem=_one_line(error), remedy=remedy)
    if folder is not None and os.access(folder, os.W_OK):
        return _part("kernel cache", folder, ok=True)
    problem = f"{'not writable' if folder else 'no folder can be written'}, so kernels compile anew each time"
    return _part("kernel cache", folder, ok=True, problem=problem, remedy=remedy)


def _optional(name: str, extra: str) -> dict[str, Any]:
    version = _version(name)
    if version is None:
        return _part(name, None, ok=False, problem="not installed", remedy=f"pip install 'openloop[{extra}]'")
    return _part(name, version, ok=True)


def _java() -> dict[str, Any]:
    """pyspark needs it, and does not bring it."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java") or (shutil.which("java", path=str(Path(home) / "bin")) if home else None)
    if program is None:
        remedy = "install Java 17 or newer, or set JAVA_HOME"
        return _part("java", None, ok=False, problem="not found", remedy=remedy)
    return _part("java", program, ok=True)


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _machine() -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cores": cores,
        "memory_gib": _memory(),
        "numba_threads": _numba_threads(),
        "thread_pools": _pools(),
    }


def _memory() -> float | None:
    size = total_memory()
    return None if size is None else round(size / 2**30, 1)


def _numba_threads() -> int | None:
    try:
        return int(import_module("numba").get_num_threads())
    except Exception:  # noqa: BLE001 (reported above, as numba's own problem)
        return None


def _pools() -> list[dict[str, Any]]:
    """BLAS and OpenMP as numpy, SciPy and scikit-learn loaded them."""
    try:
        pools: list[dict[str, Any]] = import_module("threadpoolctl").threadpool_info()
    except Exception:  # noqa: BLE001 (reported above, as threadpoolctl's own problem)
        return []
    wanted = {"kind": "user_api", "library": "prefix", "version": "version", "threads": "num_threads"}
    return [{name: pool.get(key) for name, key in wanted.items()} for pool in pools]
