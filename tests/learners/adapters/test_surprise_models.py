"""Surprise: its own estimates to rounding, with raw ids, clipped predictions, unclipped ranks and its own baseline."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import UnknownIdError
from openloop.learners.adapters.factors import Factors
from openloop.learners.adapters.wrapped import Wrapped
from tests.elsewhere import ITEMS, KNN, LOG, SVD, USERS, SVDpp, asked, evaluated
from tests.facts import facts


class NMF(SVD):
    """surprise.NMF, by default without biases."""

    def __init__(self):
        super().__init__(biased=False)


ALGORITHMS = {"SVD": SVD, "SVD without biases": lambda: SVD(biased=False), "SVDpp": SVDpp, "NMF": NMF, "KNN": KNN}


@pytest.fixture(params=ALGORITHMS.values(), ids=ALGORITHMS)
def algo(request):
    return request.param()


def placed(model, log=LOG):
    return model.placed(log.users, log.items)


def test_predictions_are_its_estimates_and_ranks_those_before_the_cut(algo):
    model = placed(ol.wrap(algo))
    assert isinstance(model, Wrapped if type(algo) is KNN else Factors)
    clipped, free = asked(algo), asked(algo, clip=False)
    assert (clipped != free).any()
    user, item = np.indices(clipped.shape)
    np.testing.assert_allclose(model.predict(user.ravel(), item.ravel()), clipped.ravel(), atol=1e-12)
    np.testing.assert_allclose(model.predictions(np.arange(5)), clipped[:5], atol=1e-12)
    np.testing.assert_allclose(model.scores(np.arange(5)), free[:5], atol=1e-12)


def test_what_it_never_saw_gets_its_own_baseline(algo):
    more = Vocabulary.of([*USERS.ids, "zoe"]), Vocabulary.of([*ITEMS.ids, 9999])
    log = Feedback.from_arrays(LOG.user, LOG.item, LOG.rating, users=more[0], items=more[1])
    with pytest.raises(UnknownIdError, match=facts("'m'", 1, "31 users", "'zoe'", 'unknown="zero"')):
        evaluated(ol.wrap(algo), log)
    model = placed(ol.wrap(algo, unknown="zero"), log)
    pairs = [("zoe", 100), ("u03", 9999), ("zoe", 9999), ("u03", 107)]
    user, item = more[0].codes([u for u, _ in pairs]), more[1].codes([i for _, i in pairs])
    np.testing.assert_allclose(model.predict(user, item), [algo.predict(u, i).est for u, i in pairs], atol=1e-12)
    assert evaluated(ol.wrap(algo, unknown="zero"), log)["m", "mae", "naive"].value > 0
