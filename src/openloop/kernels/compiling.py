"""How kernels are compiled: put into their callers, with sums in vector lanes, once for arrays of any origin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from openloop.kernels.caching import keep

SUMMING = {"reassoc", "contract", "nsz"}  # lets a sum run in vector lanes; NaN and inf keep their meaning

# Called functions that are kept apart may be run in the version of one process or of another, which differ in how they
# order a sum: only what is put into the kernel itself gives the same bits when it is compiled and when it is loaded.
inlined = numba.njit(inline="always")


def njit(*, cache: bool, **options: Any) -> Callable[[Any], Any]:
    """numba's njit; with `cache` the compiled code is kept between runs, if it can be."""
    compiled = numba.njit(**options)
    return (lambda function: keep(compiled(function))) if cache else compiled


def fixed(*arrays: Any) -> Any:
    """Contiguous views that may not be written to: kernels are compiled anew for arrays that may be."""
    views = [np.ascontiguousarray(array).view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    return tuple(views)


def fix(record: Any, *names: str) -> None:
    """Put such views in the place of a frozen record's arrays."""
    for name, view in zip(names, fixed(*(getattr(record, name) for name in names)), strict=True):
        object.__setattr__(record, name, view)
