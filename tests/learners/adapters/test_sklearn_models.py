"""scikit-learn: decompositions with their matrix are what inverse_transform says, or are refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import NMF, PCA, TruncatedSVD

import openloop as ol
from openloop.errors import InputError
from tests.elsewhere import ITEM_IDS, USER_IDS, WORLD, assert_evaluated_as, in_codes
from tests.facts import facts

X = WORLD.ratings.astype(np.float64)
MODELS = {"NMF": NMF(3, init="nndsvda", max_iter=2000), "SVD": TruncatedSVD(3, random_state=0), "PCA": PCA(3)}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_decomposition_says_what_it_makes_of_the_matrix(model):
    made = model.fit(X).inverse_transform(model.transform(X))
    assert_evaluated_as(ol.wrap((model, X), users=USER_IDS, items=ITEM_IDS), in_codes(made))


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (PCA(3).fit(X), ("PCA", "(model, X)")),
        ((PCA(3, whiten=True).fit(X), X), ("PCA", "whitening")),
        ((NMF(3), X), ("NMF", "fit")),
    ],
    ids=["no matrix", "whitened", "unfitted"],
)
def test_what_is_no_product_is_refused(model, told):
    with pytest.raises(InputError, match=facts("wrap", *told)):
        ol.wrap(model)
