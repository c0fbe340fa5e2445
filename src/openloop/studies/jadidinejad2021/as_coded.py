"""The published code's way (github.com/terrierteam/stratified_recsys_eval), function by function.

Where it differs from the text: the propensity is n^γ above x_min and the bare count up to it, on training and test
part together, where the text has n^((γ+1)/2); strata have equal width; training items stay in the ranking; models are
fitted again, on the whole log, for the open loop; the gain of IPS is 2^(1/p) − 1, normalised by its own ideal, with the
p of another item; and the test under Steiger's name is Williams' t, for one tail, on τ instead of Pearson's r.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openloop.audits.rankings import williams
from openloop.core.feedback import Array, Floats
from openloop.propensity.popularity import Popularity

Ints = npt.NDArray[np.int64]
WIDENED = 0.001  # pandas.cut moves the lowest edge down by this share of the range, so that the least value is inside
LEVEL = 0.05


def ranks(scores: Floats, order: Ints, user: Array, item: Array) -> Array:
    """The ranks of cells by scores (U, I): the items of `order`, which training shows, are sorted, and turned round.

    Ties fall as NumPy's quicksort of the time leaves them, where openloop averages over their orders: so GA, which ties
    all items, gets the published value. NumPy now sorts floats by the processor's vector instructions, which leave ties
    otherwise, each in its way; long doubles it still sorts as then. An item that is not ranked has 0.
    """
    rank = np.zeros(scores.shape, np.int32)
    for u in np.unique(user):
        row = order[np.argsort(scores[u, order].astype(np.longdouble))[::-1]]
        rank[u, row] = np.arange(1, len(row) + 1)
    return rank[user, item]


def propensities(item: Array, n_items: int, n_users: int) -> Floats:
    """n^γ for items above x_min and n for the others, (I,); 0 for an item that the log does not show."""
    counts = np.bincount(item, minlength=n_items).astype(np.float64)
    model = Popularity(variant="as_coded")
    model.fit_counts(counts[counts > 0], n_users)
    found = np.zeros(n_items)
    found[counts > 0] = np.exp(model.log_scores_)
    return found


def strata(propensity: Floats, n: int) -> Ints:
    """The stratum of each row of the test part, 0 … n − 1, of equal width and right-closed, as pandas.cut has them.

    Empty ones count, where openloop's strata of equal width leave them out.
    """
    low, high = propensity.min(), propensity.max()
    if low == high:
        return np.zeros(len(propensity), np.int64)
    edges = np.linspace(low, high, n + 1)
    edges[0] -= WIDENED * (high - low)
    return np.searchsorted(edges, propensity, side="left") - 1


def ips_gain(propensity: Floats, order: Ints) -> Floats:
    """The gain of a relevant item in the code's IPS-nDCG, (I,): 2^(1/p) − 1.

    The code asks its table, whose keys are ids, for Cornac's index. So the j-th item that the training part shows gets
    the p of the item whose id is j. Where the table has none the gain stays 1.
    """
    looked_up = np.zeros(len(propensity))
    looked_up[order] = propensity[: len(order)]
    seen = looked_up > 0
    return np.exp2(np.divide(1.0, looked_up, out=np.ones(len(looked_up)), where=seen)) - 1


def differs(x_target: float, y_target: float, xy: float, n: int) -> bool:
    """Whether the code's test tells the τ of two methods apart: half of the two-sided p of Williams' t, below 0.05."""
    if max(abs(xy), abs(x_target), abs(y_target)) >= 1 or x_target == y_target:
        return False  # the code's p is NaN or a half there
    return williams(x_target, y_target, xy, n).pvalue / 2 < LEVEL
