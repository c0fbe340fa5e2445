"""Your own estimators: `@estimator("name")` on a function of five totals, with its influence.

The function sees an object s with n = |O|, gain = Σδ, weight = Σw, wgain = Σwδ and cells = |C|, each summed over all
users, and returns the estimate. It is called with complex numbers, and with many users left out at once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from openloop.core.estimate import Estimate
from openloop.core.feedback import Floats
from openloop.core.metric import Metric
from openloop.core.moments import Moments
from openloop.core.totals import complex_step
from openloop.core.weights import effective_size
from openloop.errors import InputError, NameFormatError, did_you_mean
from openloop.estimators.naming import PLAIN, Method
from openloop.estimators.shown import METHODS
from openloop.estimators.weighted import BASIS, estimate, flag, mass_flag, plain_diagnostics, undefined
from openloop.support.wording import first_line

TOTALS = ("n", "gain", "weight", "wgain", "cells")  # the order of columns: cells, which no row adds to, come last
WEIGHTED, SIZES = ("weight", "wgain"), ("n", "weight", "cells")
NAME = re.compile(r"[a-z][a-z0-9_.:+-]*")
TAKEN = (*PLAIN, *METHODS, "lists")
LARGE = 1e12  # times the probes: what a prior adds is gone there
AGREE = 1e-6  # relative: how near a derivative must be to a difference, and values to each other

# Totals that a function is tried on: a log of 900 rows, one of positives, one of a twentieth of a small grid.
PROBES = np.array([[900.0, 520.0, 3100.0, 1700.0, 4000.0], [80.0, 78.0, 390.0, 371.0, 500.0],
                   [15.0, 4.0, 160.0, 22.0, 300.0]])  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTotals:
    """The sums over all users that an estimator is a function of: numbers, or arrays of one shape."""

    n: Any  # rows that count: all scored ones of a cell metric, the relevant ones of a user metric
    gain: Any  # Σδ over them
    weight: Any  # Σw, w = 1/p
    wgain: Any  # Σwδ
    cells: Any  # |C|, all candidate cells


class _Watched:
    """Totals that remember which of them were read."""

    def __init__(self, name: str, values: Floats, read: set[str]) -> None:
        self._name, self._values, self._read = name, dict(zip(TOTALS, values, strict=True)), read

    def __getattr__(self, total: str) -> Any:
        if total not in TOTALS:
            raise InputError(f"estimator {self._name!r}: there is no total {total!r}.{did_you_mean(total, TOTALS)}")
        self._read.add(total)
        return self._values[total]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTotals:
    """The function of an estimator on an array (..., m) of the totals that it reads, in their order."""

    function: Callable[[Any], Any]
    names: tuple[str, ...]

    def __call__(self, totals: Any) -> Any:
        """The estimate at each of the totals."""
        known = {name: totals[..., at] for at, name in enumerate(self.names)}
        return self.function(LogTotals(**(dict.fromkeys(TOTALS) | known)))

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle names the estimator, which has the function's name in its module."""
        return _named, (self.function.__module__, self.function.__qualname__)


def _named(module: str, name: str) -> OfTotals:
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    own = found.estimate if isinstance(found, Method) else None
    if not isinstance(own, OwnEstimator):
        raise InputError(
            f"estimator: {module} has no estimator {name!r} any more, which a pickled estimate is made by."
        )
    return own.of


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEstimator:
    """From Moments to an Estimate by a function of the totals."""

    name: str
    of: OfTotals
    scaled: bool  # whether it changes with the scale of the weights

    def __call__(self, m: Moments) -> Estimate:
        """The estimate, with the function's own influence."""
        reason = self.why_undefined(m.metric)
        if reason is not None:
            raise undefined(m, self.name, reason)
        m = m.collapse()
        names = self.of.names
        parts = {name: m.cells if name == "cells" else m.stack(name)[:, 0, 0] for name in names}
        if not m.sums["n"].any():
            raise undefined(m, self.name, "no scored row counts: no rating reaches the threshold")
        weighted = not {*WEIGHTED}.isdisjoint(names)
        found = estimate(
            m, self.name, np.vstack(list(parts.values())).T, self.of, m.powers,
            [(BASIS[name], 0) for name in names if name != "cells"],
            diagnostics=None if weighted else plain_diagnostics(m), carried=_carried(parts),
        )  # fmt: skip
        if not complex_step(self.of, found.columns.sum(axis=0)).any():
            raise undefined(m, self.name, "its function is flat at the totals of this log, so no error follows from it")
        if not np.isfinite(found.value):
            raise undefined(m, self.name, f"its function gives {found.value} at the totals of this log")
        tells = weighted and m.metric.kind == "cell" and (self.scaled or m.scaled)
        return flag(found, *mass_flag(m.mass)) if tells else found

    def why_undefined(self, metric: Metric) -> str | None:
        """Why there is no such estimate of a metric."""
        if metric.kind == "cell":
            return None
        if not metric.pooled:
            return "your own estimator is a function of sums over cells, and this metric is not one"
        if self.scaled or "cells" in self.of.names:
            return "the number of relevant items is unknown, so only functions such as wgain/weight have a meaning"
        return None


def _carried(parts: dict[str, Floats]) -> Floats:
    """Each user's part in what the estimate is divided by: of the sizes it reads, that which fewest users carry."""
    sizes = [parts[name] for name in SIZES if name in parts] or [np.abs(x) for x in parts.values()]
    return min(sizes, key=effective_size)


def estimator(name: str) -> Callable[[Callable[[Any], Any]], Method]:
    """A decorator that makes an estimator of your own function of totals.

    The function sees an object s with s.n = |O|, s.gain = Σδ, s.weight = Σw, s.wgain = Σwδ and s.cells = |C|, each
    summed over all users. It must be smooth, since it is differentiated by the complex step (Squire & Trapp 1998): no
    abs, no comparison, no rounding. It must be a mean, which settles as the log grows. openloop cannot verify what it
    estimates, so no verdict of an audit rests on it alone.

    Args:
        name: The name of the estimator: lower-case letters, digits and _ . : + -.

    Returns:
        The decorator; the decorated function is then one of `estimators=`.

    Raises:
        NameFormatError: The name is taken, or has other characters.
        InputError: The function is not smooth, or not a mean.

    Examples:
        >>> @ol.estimator("shrunk")
        ... def shrunk(s):
        ...     return s.wgain / (s.weight + 10)
        >>> world = ol.simulate.movie_lovers()
        >>> result = ol.evaluate(world.predictions, world.observe(0), metrics=["mae"], estimators=[shrunk])
        >>> round(result["Y1", "mae", "shrunk"].value, 3)
        0.547
    """
    if not isinstance(name, str) or NAME.fullmatch(name) is None:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NameFormatError(
            f"estimator {name!r}: your own name has lower-case letters, digits and _ . : + -, such as 'shrunk'; "
            'write @ol.estimator("shrunk").'
        )
    if name in TAKEN:
        raise NameFormatError(f"estimator {name!r}: is an estimator of the library; give yours another name.")
    return lambda function: _made(name, function)


def _made(name: str, function: Any) -> Method:
    if not callable(function) or len(inspect.signature(function).parameters) != 1:
        raise InputError(
            f"estimator {name!r}: decorates a function of the totals alone, def {name}(s); parameters belong to a "
            "function around it that returns the estimator."
        )
    of = OfTotals(function=function, names=_read(name, function))
    probes = PROBES[:, [TOTALS.index(total) for total in of.names]]  # (3, m)
    check_smooth(name, of, probes)
    scaled = _scaled(of, probes)
    return Method(
        name=name, estimate=OwnEstimator(name=name, of=of, scaled=scaled),
        weighted=not {*WEIGHTED}.isdisjoint(of.names), scale="always" if scaled else "never",
        totals=of.names, linear=_linear(of, probes), about=_words(function, of.names),
    )  # fmt: skip


def _read(name: str, function: Callable[[Any], Any]) -> tuple[str, ...]:
    """The totals that a function reads, in their order."""
    read = set[str]()
    for probe in PROBES:
        try:
            with np.errstate(all="ignore"):  # what is not finite is refused by its value
                function(_Watched(name, probe, read))
        except (TypeError, ValueError, ZeroDivisionError, FloatingPointError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"estimator {name!r}: failed on totals {_words_of(probe)}: {error}; repair it.") from error
    if not read:
        raise InputError(f"estimator {name!r}: reads none of the totals, so it is the same for every log; read s.n, "
                         "s.gain, s.weight, s.wgain or s.cells.")  # fmt: skip
    return tuple(total for total in TOTALS if total in read)


def check_smooth(name: str, of: OfTotals, points: Floats) -> None:
    """Refuse a function that arrays break, that has no derivative, is constant or is not a mean, at points (k, m)."""
    try:
        with np.errstate(all="ignore"):
            _check_arrays(name, of, points)
            for point in points:
                _check_derivative(name, of, point)
            _check_settles(name, of, points)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"estimator {name!r}: must work on arrays and on complex numbers, by + − * / **, np.sqrt, np.log and "
            f"np.exp; it failed with: {error}."
        ) from error


def _check_arrays(name: str, of: OfTotals, points: Floats) -> None:
    single = np.array([_number(name, of(point)) for point in points])  # (k,)
    together = np.asarray(of(points))
    if together.shape != single.shape or not np.allclose(together, single, rtol=AGREE, atol=0.0):
        raise InputError(
            f"estimator {name!r}: of arrays of totals it must give the estimate of each, {single.tolist()}, and gave "
            f"{together.tolist()}; work element by element, without sum, mean or max over them."
        )


def _check_derivative(name: str, of: OfTotals, point: Floats) -> None:
    step, difference = complex_step(of, point) * point, _differences(of, point) * point  # (m,) per share of a total
    size = np.abs(np.concatenate([step, difference])).max()
    if not np.allclose(step, difference, rtol=AGREE, atol=AGREE * size):
        raise InputError(
            f"estimator {name!r}: its derivatives by the complex step are {(step / point).tolist()}, by differences "
            f"{(difference / point).tolist()}; leave out abs, comparisons, rounding and np.real, which lose them."
        )
    if size <= AGREE * abs(_number(name, of(point))):
        raise InputError(f"estimator {name!r}: does not change with the totals; return a function of them.")


def _check_settles(name: str, of: OfTotals, points: Floats) -> None:
    grown, doubled = (np.asarray(of(times * points)) for times in (LARGE, 2 * LARGE))
    if not np.allclose(doubled, grown, rtol=AGREE, atol=0.0):
        raise InputError(
            f"estimator {name!r}: must settle as the log grows, and twice a large log gives {doubled.tolist()} for "
            f"{grown.tolist()}; an estimate is a mean: divide by s.n, s.weight or s.cells."
        )


def _number(name: str, found: Any) -> float:
    value = np.asarray(found)
    if value.shape != () or value.dtype.kind not in "fiu" or not np.isfinite(value):
        raise InputError(
            f"estimator {name!r}: must give one finite real number for one log, got {found!r}; repair its return value."
        )
    return float(value)


def _differences(of: OfTotals, at: Floats) -> Floats:
    """∇f by central differences, good to about 1e-9."""
    steps = np.diag(1e-4 * at)  # (m, m)
    ends = [np.asarray(of(at + k * steps), np.float64) for k in (1, -1, 2, -2)]
    return (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * 1e-4 * at)  # Richardson


def _scaled(of: OfTotals, points: Floats) -> bool:
    """Whether all weights times one factor change it, so that it needs the scale of the propensities."""
    factor = np.array([3.0 if name in WEIGHTED else 1.0 for name in of.names])
    return not np.allclose(of(points * factor), of(points), rtol=AGREE, atol=0.0)


def _linear(of: OfTotals, points: Floats) -> bool:
    """Whether the estimate of a difference of gains is the difference of estimates."""
    parts = {"gain": 0.3, "wgain": 0.8}  # of the gains of one model, the rest being the other's
    one = np.array([parts.get(name, 1.0) for name in of.names])
    other = np.array([1.0 - parts[name] if name in parts else 1.0 for name in of.names])
    return bool(np.allclose(of(one * points) + of(other * points), of(points), rtol=AGREE, atol=0.0))


def _words(function: Callable[..., Any], names: Sequence[str]) -> str:
    """What reports say of it: its docstring's first line, and what it is a function of."""
    said = first_line(function, "an estimator of your own")
    return f"{said}; a function of the totals {', '.join(names)}"


def _words_of(probe: Floats) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in zip(TOTALS, probe, strict=True))
