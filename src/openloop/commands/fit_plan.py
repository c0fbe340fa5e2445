"""`openloop doctor --plan`: sizes written as `rows=1e9` to what a projected fit takes, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, asdict, fields
from typing import Any

from openloop.errors import InputError, did_you_mean, listing
from openloop.learners.blocks.costs import FitCost, FitSize, from_disk, in_memory, on_spark

LIMITS = (
    "Times are for the machine on which the constants were measured; yours may be twice or half as fast.",
    "Times on all cores assume that cores add up, which was measured with two.",
    "Reading the log, making its blocks, ranks, the audit and waiting for a disk are not included.",
)
UNMEASURED = "No network was measured: 'network=1e9', in bytes per second, adds the time of transfers."


def planned(given: Sequence[str]) -> dict[str, Any]:
    """The plan of a fit of these sizes, in memory, from disk and on Spark."""
    size = _size(given)
    costs = [work(size) for work in (in_memory, from_disk, on_spark)]
    limits = [*LIMITS, *([UNMEASURED] if size.network is None else [])]
    return {"asked": asdict(size), "fits": [_told(cost, size) for cost in costs], "limits": limits}


def _told(cost: FitCost, size: FitSize) -> dict[str, Any]:
    """A cost with the clock time of all passes; those of the network, where its speed is known, among them."""
    seconds = cost.clock + (cost.network or 0.0)
    return asdict(cost) | {"fit_cpu": cost.cpu * size.passes, "fit_clock": seconds * size.passes}


def _size(given: Sequence[str]) -> FitSize:
    known = {f.name: f.default is MISSING for f in fields(FitSize)}
    found: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or name not in known:
            raise InputError(
                f"plan: {text!r} is not a size and its value, such as 'rows=1e9'.{did_you_mean(name, list(known))}"
            )
        if name in found:
            raise InputError(f"plan: {name} is there twice, as {found[name]:g} and as {value}; keep one.")
        found[name] = _number(name, value)
    missing = [name for name, needed in known.items() if needed and name not in found]
    if missing:
        raise InputError(f"plan: needs {listing(missing)} too; write each as 'rows=1e9'.")
    return FitSize(**found)


def _number(name: str, text: str) -> int | float:
    """A number, whole where it is, so that 1e9 is one of rows."""
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"plan: {name} must be a number, got {text!r}; write '{name}=1000'.") from None
    return int(value) if value.is_integer() else value
