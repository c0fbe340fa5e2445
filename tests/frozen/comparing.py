"""The frozen numbers: how they are kept, a case a line, and how those of today are compared with them."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.frozen.calls import REFUSED, Engine, Numbers
from tests.frozen.cases import DRAWN, LOOSER, Case

API = Path(__file__).with_name("api.json")
DIGITS = 12
ROUNDING = 1e-12  # of a sum that should be 0
REFUSAL = {"refused": True}
Engines = dict[str, Numbers]  # of one case, by the name of the engine

# In the file the first engine that answers has all numbers. Another has those that differ from them, and under
# "without" the names of those that it lacks; {} is the same everywhere.


def answer(case: Case, at: Engine) -> Numbers:
    """The numbers of a case on an engine today, or that it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return {name: plain(value) for name, value in case.ask(at).items()}
        except REFUSED:
            return REFUSAL


def plain(value: Any) -> Any:
    """Numbers of twelve digits and lists of them; what is not defined is None."""
    if isinstance(value, list | tuple) or np.ndim(value) > 0:
        return [plain(part) for part in value]
    if value is None or math.isnan(value):
        return None
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float | np.floating) else int(value)


# -- the file ------------------------------------------------------------------------------------------------


def read(path: Path = API) -> dict[str, Engines]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(found: Mapping[str, Engines], path: Path = API) -> None:
    lines = (f"{json.dumps(name)}:{json.dumps(found[name], separators=(',', ':'))}" for name in sorted(found))
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def updated(frozen: Engines, found: Engines, case: Case) -> Engines:
    """The numbers of a case with those of some engines replaced; what repeats the first engine's is left out."""
    known = frozen | found
    first = next((at for at in case.engines if known.get(at, REFUSAL) != REFUSAL), None)
    return {at: shortened(known, at, first, case) if at in found else known[at] for at in case.engines if at in known}


def shortened(known: Engines, at: str, first: str | None, case: Case) -> Numbers:
    numbers = known[at]
    if first is None or at == first or numbers == REFUSAL:
        return numbers
    short = {n: value for n, value in numbers.items() if not alike(case, n, value, known[first].get(n, {}))}
    lacking = [name for name in known[first] if name not in numbers]
    return short | ({"without": lacking} if lacking else {})


def reference(engines: Engines) -> str | None:
    """The first engine that answers."""
    return next((name for name, numbers in engines.items() if numbers != REFUSAL), None)


# -- comparing -----------------------------------------------------------------------------------------------


def differences(case: Case, engine: str, found: Numbers, frozen: Engines) -> Iterator[str]:
    """What differs from the frozen numbers of an engine.

    Where it lacked a number or refused the case, and now answers, the answer must be that of the first engine. So may
    be the answer where it differed.
    """
    first, then = reference(frozen), frozen.get(engine, REFUSAL)
    common = {} if first is None else frozen[first]
    if found == REFUSAL:
        if then != REFUSAL:
            yield "is refused"
        return
    needed = set() if then == REFUSAL else {*common, *then} - {"without", *then.get("without", ())}
    for name in sorted(needed | {*found} & {*common}):
        wanted = [numbers[name] for numbers in (then, common) if name in numbers]
        if name not in found:
            yield f"{name}: missing, was {wanted[0]}"
        elif not any(alike(case, name, found[name], value) for value in wanted):
            yield f"{name}: {found[name]}, was {wanted[0]}"


def alike(case: Case, name: str, found: Any, wanted: Any) -> bool:
    """Whether numbers are near enough; what was not known before may be known now."""
    if wanted is None:
        return True
    if isinstance(wanted, dict):  # nothing is known
        return False
    if isinstance(wanted, list):
        same_length = isinstance(found, list) and len(found) == len(wanted)
        return same_length and all(alike(case, name, a, b) for a, b in zip(found, wanted, strict=True))
    if found is None or isinstance(found, list):
        return False
    last = name.rpartition(" ")[2]
    rtol = max(case.rtol, LOOSER.get(last, 0.0))
    return found == wanted or abs(found - wanted) <= max(
        rtol * max(abs(found), abs(wanted)), DRAWN.get(last, 0.0), ROUNDING
    )
