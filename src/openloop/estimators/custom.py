"""Your own estimators: `@estimator("name")` on a function of five totals, with its influence.

The function sees an object s with n = |O|, gain = Σδ, weight = Σw, wgain = Σwδ and cells = |C|, each summed over all
users, and returns the estimate. It is called with complex numbers, and with many users left out at once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
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
WEIGHTED, SIZES = {"weight", "wgain"}, ("n", "weight", "cells")
NAME = re.compile(r"[a-z][a-z0-9_.:+-]*")
TAKEN = (*PLAIN, *METHODS, "lists")
LARGE = 1e12  # times the probes: what a prior adds is gone there
AGREE = 1e-6  # relative: how near a derivative must be to a difference, and values to each other

# Totals that a function is tried on: a log of 900 rows, one of positives, one of a twentieth of a small grid.
PROBES = np.array([[900.0, 520.0, 3100.0, 1700.0, 4000.0], [80.0, 78.0, 390.0, 371.0, 500.0],
                   [15.0, 4.0, 160.0, 22.0, 300.0]])  # fmt: skip


class LogTotals:
    """The sums over all users that an estimator is a function of, numbers or arrays of one shape.

    They are n, the rows that count (all scored ones of a cell metric, the relevant ones of a user metric); gain = Σδ
    over them; weight = Σw, w = 1/p; wgain = Σwδ; and cells = |C|, all candidate cells. `names_read` are those that were
    read.
    """

    def __init__(self, **totals: Any) -> None:
        self._totals, self.names_read = totals, set[str]()

    def __getattr__(self, name: str) -> Any:
        if name not in TOTALS:
            raise AttributeError(f"there is no total {name!r}.{did_you_mean(name, TOTALS)}")
        self.names_read.add(name)
        return self._totals[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTotals:
    """The function of an estimator on an array (..., m) of the totals that it reads, in their order."""

    function: Callable[[Any], Any]
    names: tuple[str, ...]

    def __call__(self, totals: Any) -> Any:
        """The estimate at each of the totals."""
        return self.function(LogTotals(**{name: totals[..., column] for column, name in enumerate(self.names)}))

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle names the estimator, which has the function's name in its module."""
        return _named, (self.function.__module__, self.function.__qualname__)


def _named(module: str, name: str) -> OfTotals:
    method: Any = import_module(module)
    for part in name.split("."):
        method = getattr(method, part, None)
    if not isinstance(method, Method) or not isinstance(method.estimate, OwnEstimator):
        raise InputError(
            f"estimator: {module} has no estimator {name!r} any more, which a pickled estimate is made by."
        )
    return method.estimate.formula


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEstimator:
    """From Moments to an Estimate by a function of the totals."""

    name: str
    formula: OfTotals
    scaled: bool  # whether it changes with the scale of the weights

    def __call__(self, m: Moments) -> Estimate:
        """The estimate, with the function's own influence."""
        reason = self.why_undefined(m.metric)
        if reason is None and not m.sums["n"].any():
            reason = "no scored row counts: no rating reaches the threshold"
        if reason is not None:
            raise undefined(m, self.name, reason)
        m = m.collapse()
        parts = {name: m.cells if name == "cells" else m.stack(name)[:, 0, 0] for name in self.formula.names}
        # Each user's part in what the estimate is divided by: of the sizes it reads, that which fewest users carry.
        sizes = [parts[name] for name in SIZES if name in parts] or [np.abs(part) for part in parts.values()]
        is_weighted = not WEIGHTED.isdisjoint(parts)
        result = estimate(
            m, self.name, np.vstack(list(parts.values())).T, self.formula, m.powers,
            [(BASIS[name], 0) for name in parts if name != "cells"],
            diagnostics=None if is_weighted else plain_diagnostics(m), carried=min(sizes, key=effective_size),
        )  # fmt: skip
        if not complex_step(self.formula, result.columns.sum(axis=0)).any():
            raise undefined(m, self.name, "its function is flat at the totals of this log, so no error follows from it")
        if not np.isfinite(result.value):
            raise undefined(m, self.name, f"its function gives {result.value} at the totals of this log")
        knows_mass = is_weighted and m.metric.kind == "cell" and (self.scaled or m.scaled)
        return flag(result, *mass_flag(m.mass)) if knows_mass else result

    def why_undefined(self, metric: Metric) -> str | None:
        """Why there is no such estimate of a metric."""
        if metric.kind == "cell":
            return None
        if not metric.pooled:
            return "your own estimator is a function of sums over cells, and this metric is not one"
        if self.scaled or "cells" in self.formula.names:
            return "the number of relevant items is unknown, so only functions such as wgain/weight have a meaning"
        return None


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
    formula = OfTotals(function=function, names=_names_read(name, function))
    probes = PROBES[:, [TOTALS.index(total) for total in formula.names]]  # (3, m)
    _check_smooth(name, formula, probes)

    def agree(values: Any) -> bool:
        return bool(np.allclose(values, formula(probes), rtol=AGREE, atol=0.0))

    # Whether all weights times one factor change it, so that it needs the scale of the propensities.
    scaled = not agree(formula(probes * [3.0 if total in WEIGHTED else 1.0 for total in formula.names]))
    # Whether the estimate of a difference of gains is the difference of estimates: it is additive in gains.
    part = np.array([{"gain": 0.3, "wgain": 0.8}.get(total, 1.0) for total in formula.names])
    rest = np.where(part < 1, 1 - part, 1.0)
    totals = ", ".join(formula.names)
    return Method(
        name=name, estimate=OwnEstimator(name=name, formula=formula, scaled=scaled),
        weighted=not WEIGHTED.isdisjoint(formula.names), scale="always" if scaled else "never",
        totals=formula.names, linear=agree(formula(part * probes) + formula(rest * probes)),
        about=f"{first_line(function, 'an estimator of your own')}; a function of the totals {totals}",
    )  # fmt: skip


def _names_read(name: str, function: Callable[[Any], Any]) -> tuple[str, ...]:
    """The totals that a function reads, in their order."""
    read = set[str]()
    for probe in PROBES:
        totals = LogTotals(**dict(zip(TOTALS, probe, strict=True)))
        try:
            with np.errstate(all="ignore"):  # what is not finite is refused by its value
                function(totals)
        except (AttributeError, TypeError, ValueError, ArithmeticError) as error:
            raise InputError(f"estimator {name!r}: failed on the totals {probe.tolist()}: {error}") from error
        read |= totals.names_read
    if not read:
        raise InputError(f"estimator {name!r}: reads none of the totals, so it is the same for every log; read s.n, "
                         "s.gain, s.weight, s.wgain or s.cells.")  # fmt: skip
    return tuple(total for total in TOTALS if total in read)


def _check_smooth(name: str, formula: OfTotals, probes: Floats) -> None:
    """Refuse a function that arrays break, that has no derivative, or that is not a mean; at probes (k, m)."""
    try:
        with np.errstate(all="ignore"):
            values, grown, doubled = (np.asarray(formula(times * probes)) for times in (1.0, LARGE, 2 * LARGE))
            # Derivatives times the totals: what a change of each total by a share of it does.
            steps, differences = (
                np.array([slopes(formula, probe) * probe for probe in probes])
                for slopes in (complex_step, _differences)
            )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"estimator {name!r}: must work on arrays and on complex numbers, by + − * / **, np.sqrt, np.log and "
            f"np.exp; it failed with: {error}."
        ) from error
    if values.shape != (len(probes),) or values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise InputError(
            f"estimator {name!r}: must give one finite real number for each of {len(probes)} logs, got "
            f"{values.tolist()}; work element by element, without sum, mean or max over them."
        )
    size = np.abs(differences).max(axis=1, keepdims=True)
    if not np.all(np.abs(steps - differences) <= AGREE * (np.abs(differences) + size)):
        raise InputError(
            f"estimator {name!r}: its derivatives by the complex step differ from those by differences; leave out abs, "
            "comparisons, rounding and np.real, which lose them."
        )
    if not np.allclose(doubled, grown, rtol=AGREE, atol=0.0):
        raise InputError(
            f"estimator {name!r}: must settle as the log grows, and twice a large log gives {doubled.tolist()} for "
            f"{grown.tolist()}; an estimate is a mean: divide by s.n, s.weight or s.cells."
        )


def _differences(formula: OfTotals, totals: Floats) -> Floats:
    """∇f by central differences of two widths (Richardson), good to about 1e-9."""
    steps = np.diag(1e-4 * totals)  # (m, m)
    near, far = (np.asarray(formula(totals + k * steps)) - formula(totals - k * steps) for k in (1, 2))
    return (8 * near - far) / (12 * 1e-4 * totals)
