"""How kernels are compiled: functions put into their callers, and sums that may run in vector lanes."""

from __future__ import annotations

from numba import njit

SUMMING = {"reassoc", "contract", "nsz"}  # lets a sum run in vector lanes; NaN and inf keep their meaning

# Called functions that are kept apart may be run in the version of one process or of another, which differ in how they
# order a sum: only what is put into the kernel itself gives the same bits when it is compiled and when it is loaded.
inlined = njit(inline="always")
