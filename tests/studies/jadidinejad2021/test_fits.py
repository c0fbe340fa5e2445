"""Which models are fitted, to what: samples of a log, and the zoo in full and in short."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.jadidinejad2021.fits import larger_data_names, sample, zoo_names
from tests.studies.jadidinejad2021 import many, worlds


def test_a_sample_has_the_rows_of_its_users_and_items_and_no_empty_ones():
    _, log, _ = worlds.logs()
    part = sample(log, 30, 10, np.random.default_rng(0))
    assert part.n_users <= 30
    assert part.n_items <= 10
    assert set(part.user) == set(range(part.n_users))
    assert set(part.item) == set(range(part.n_items))
    assert len(sample(log, 10**6, 10**6, np.random.default_rng(0))) == len(log)
    again = sample(log, 30, 10, np.random.default_rng(0))
    assert (part.fingerprint, part.rating.tolist()) == (again.fingerprint, again.rating.tolist())


@pytest.mark.usefixtures("cornac")
def test_a_quick_run_has_fewer_models():
    full, quick = (zoo_names(many.Plain(quick=q)) for q in (False, True))
    assert len(full) == 104
    assert set(quick) < set(full)
    assert len(quick) < 20
    larger = larger_data_names(many.Plain(quick=False))
    assert set(larger) < set(full)
