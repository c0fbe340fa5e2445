"""Words that results share: lists of names, percentages, p-values, factors; one way to write each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from openloop.errors import SHOWN, listing

TURNS = {"gamma": "Γ*", "rho": "ρ*", "kappa": "κ*"}  # what says where an order turns


def first_line(function: Callable[..., Any], otherwise: str) -> str:
    """What a function says of itself, without its full stop."""
    words = (function.__doc__ or "").strip().splitlines()
    return words[0].strip().rstrip(".") if words else otherwise


def cut(text: str) -> str:
    """Text of another program, as a message shows it: no more of it than of a value."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def joined(names: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def percent(share: float) -> str:
    """A share in percent; neither 0 nor 100 for what is only near."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 or 0.9 < share < 1 else f"{100 * share:.0f} %"


def level_of(level: float) -> str:
    """95 %."""
    return f"{100 * level:g} %"


def three_digits(value: float) -> str:
    """A number with three digits; rounding in the last bits of a sum does not change them, as at 0.2375."""
    return f"{float(f'{value:.12g}'):.3g}"


def chance(p: float) -> str:
    """A p-value behind its sign: "< 0.001", "= 0.023"."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.995 else "= 1"


def pvalue(p: float) -> str:
    """A p-value by itself, as in a table: "< 0.001", "0.023"."""
    return chance(p).removeprefix("= ")


def times(gamma: float | None) -> str:
    """Γ*, as a factor."""
    return "–" if gamma is None else "∞" if math.isinf(gamma) else f"{gamma:.3g}×"


def critical(name: str, value: float | None) -> str:
    """Γ*, ρ* or κ* in a table: factors, and a share; ∞ where the order never turns."""
    if value is None or math.isinf(value) or name != "kappa":
        return times(value)
    return percent(value)


def estimands(found: Mapping[str, str]) -> str:
    """What estimators estimate, those of one estimand together: "snips per relevant item; naive on what was seen"."""
    alike: dict[str, list[str]] = {}
    for name, what in found.items():
        alike.setdefault(what, []).append(name)
    return "; ".join(f"{', '.join(names)} {what}".rstrip() for what, names in alike.items())


def rows_at(positions: Sequence[int]) -> str:
    """Rows of an input by their numbers, of positions from 0: "row 4 (the first row below a header is 1)"."""
    numbers = [position + 1 for position in positions]
    named = f"row {numbers[0]:,}" if len(numbers) == 1 else f"rows {listing(numbers)}"
    return f"{named} (the first row below a header is 1)"


def counted(n: int, noun: str) -> str:
    """1 row, 2 rows."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def reasons(skipped: Mapping[tuple[str, str], str]) -> list[str]:
    """Each reason once, with the estimators and metrics that it holds for; `skipped` is by (metric, estimator)."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for (metric, estimator), why in skipped.items():
        alike.setdefault(why.removeprefix(f"{estimator} of {metric}"), []).append((metric, estimator))
    found: list[str] = []
    for rest, keys in alike.items():
        metrics, estimators = (", ".join(dict.fromkeys(names)) for names in zip(*keys, strict=True))
        found.append(f"{estimators} of {metrics}{rest}")
    return found


def one_line(value: Any, width: int | None = None) -> Any:
    """A setting in a table: numbers and text as they are, all else on one line, cut to a width."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    text = " ".join(repr(value).split())
    return text if width is None or len(text) <= width else f"{text[: width - 1]}…"


def lasting(seconds: float) -> str:
    """0.73 s, 95 s, 4.2 min, 11 h."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.2g} {unit}" if seconds < 100 * length else f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.2g} s" if seconds < 100 else f"{seconds:.0f} s"
