"""The log-likelihood of the observed rows of a joint model, by its definition."""

from __future__ import annotations

import numpy as np

from openloop.kernels.joint_cells import chances, observed_chances
from openloop.learners.solvers.joint_state import Sweeping
from tests.joint_cases import POOL, drawn, from_prior, key_of, rows_of


def test_the_likelihood_of_observed_rows_by_its_definition():
    state = from_prior(np.random.default_rng(0))
    rows = rows_of(*drawn(state, np.random.default_rng(1)))
    user, item, code = rows.places
    both = chances(state.ratings, user, item) * observed_chances(state.observing, user, item)
    truth = np.log(both[np.arange(len(code)), code]).sum()
    np.testing.assert_allclose(Sweeping.of(rows, state, key_of(0), POOL).observed(state), truth, rtol=1e-9)
