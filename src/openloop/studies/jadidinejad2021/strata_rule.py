"""How many strata to form: the number within which the held-out feedback is as alike as with any other.

The rule looks at the held-out part alone, apart from propensities, and sees nothing of the open loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021.methods import HeldOutCells, strata_of_cells
from openloop.studies.jadidinejad2021.models import stream
from openloop.studies.jadidinejad2021.scores import Ints

NUMBERS = tuple(range(1, 11))  # Figure 4: 1 to 10 strata
FOLDS = 10


def number_of_strata(held: HeldOutCells, grid: Floats, among: str, seed: int) -> tuple[int, Floats]:
    """The number of strata by the rule, and the mean error with each number, (10,); of nDCG without a cut."""
    strata = [strata_of_cells(held, grid, n)[1] for n in NUMBERS]
    errors = errors_within(held.cells.discounts(among, None), strata, stream(seed, "folds"))
    return least_number(errors, NUMBERS), errors.mean(axis=1)


def errors_within(gain: Floats, strata: Sequence[Ints], rng: np.random.Generator) -> Floats:
    """How unlike the feedback is within strata, (cells,) for each way to form them: squared errors, (ways, cells).

    The stratification principle asks for strata within which the feedback is as alike as possible. What a stratum
    averages are the gains of relevant cells, (M, cells); each is predicted by the mean of its stratum over other
    folds, and a model's squared errors are relative to their mean with one stratum.
    """
    n = gain.shape[1]
    fold = rng.permutation(np.arange(n) % FOLDS)
    found = [_errors(gain, stratum, fold) for stratum in strata]  # (M, cells) each
    plain = _errors(gain, np.zeros(n, np.int64), fold).mean(axis=1, keepdims=True)
    varied = plain[:, 0] > 0
    return np.array([(errors[varied] / plain[varied]).mean(axis=0) for errors in found])


def least_number(errors: Floats, numbers: tuple[int, ...]) -> int:
    """The smallest number whose error is within a standard error of the least (Breiman et al. 1984, section 3.4.3)."""
    mean = errors.mean(axis=1)
    best = int(np.argmin(mean))
    enough = mean <= mean[best] + errors[best].std(ddof=1) / np.sqrt(errors.shape[1])
    return numbers[int(np.argmax(enough))]


def _errors(gain: Floats, stratum: Ints, fold: Ints) -> Floats:
    member = np.eye(stratum.max() + 1)[stratum]  # (cells, S)
    found = np.empty(gain.shape)
    for f in np.unique(fold):
        out = fold == f
        size = member[~out].sum(axis=0)
        means = np.where(size > 0, gain[:, ~out] @ member[~out] / np.maximum(size, 1), gain[:, ~out].mean(1)[:, None])
        found[:, out] = np.square(gain[:, out] - means[:, stratum[out]])
    return found
