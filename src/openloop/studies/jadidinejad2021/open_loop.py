"""What "the open loop" says of the models, in the four senses that code, text and openloop give it."""

from __future__ import annotations

from functools import partial

from openloop.studies.jadidinejad2021.fits import ModelFits
from openloop.studies.jadidinejad2021.methods import Method
from openloop.studies.jadidinejad2021.models import WHOLE, in_log, shown, split_of
from openloop.studies.jadidinejad2021.scores import Mask, holdout

SENSES = {
    "published": "as published: models refitted on the whole log, training items ranked, all ratings",
    "unseen": "the same, without the ratings that are in the log as well",
    "printed": "as printed: the split's own models, training items ranked, all ratings",
    "candidates": "the split's own models, training items neither ranked nor counted",
}
TARGETS = tuple(SENSES)


def targets(fits: ModelFits, split: int) -> dict[str, Method]:
    """The mean nDCG over the open loop's users, in each sense of TARGETS."""
    own, refitted = fits.open_cells(split), fits.open_cells(WHOLE)
    known = refitted.where(shown(fits.given, split_of(fits.given, WHOLE, fits.seed), refitted.user, refitted.item))
    train = split_of(fits.given, split, fits.seed).train
    return {
        "published": partial(holdout, known, "coded"),
        "unseen": partial(holdout, known.where(~in_log(fits.given, known.user, known.item)), "coded"),
        "printed": partial(holdout, own, "all"),
        "candidates": partial(holdout, own.where(~in_log(fits.given, own.user, own.item, train)), "outside"),
    }


def counted_ratings(fits: ModelFits, split: int, target: str) -> Mask:
    """Which of the open loop's ratings, relevant or not, count as "published" or among "candidates"."""
    given, cells = fits.given, (fits.given["open_user"], fits.given["open_item"])
    if target == "published":
        return shown(given, split_of(given, WHOLE, fits.seed), *cells)
    return ~in_log(given, *cells, split_of(given, split, fits.seed).train)
