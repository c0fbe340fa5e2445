"""Parameters that cannot be are refused by every learner, with the learner, the name and the value."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.data.simulate import movie_lovers
from openloop.errors import InputError
from openloop.learners import ADG, AUC, DR, MF, WMF, JointMNAR, MixtureMNAR, OrdinalMF, Popularity, RelMF
from tests.facts import facts

LOG = movie_lovers(users=30, items=20).observe(0)
FACTORS = [MF, WMF, ADG, AUC, DR, RelMF, OrdinalMF, JointMNAR]

CASES = [
    *((learner, "factors", value) for learner in FACTORS for value in (-1, 2.5, 21)),
    *((learner, "rng", -1) for learner in [*FACTORS, MixtureMNAR]),
    *((learner, "threads", 0) for learner in FACTORS if learner not in (DR, RelMF)),
    *((learner, "reg", value) for learner in (MF, WMF, ADG, AUC, DR) for value in (-1, np.nan)),
    *((learner, "iterations", 0) for learner in (MF, WMF, MixtureMNAR)),
    *((learner, "tol", -1) for learner in (MF, WMF, MixtureMNAR)),
    *((learner, name, value) for learner in (OrdinalMF, JointMNAR)
      for name, value in (("sweeps", 1.5), ("burn", -1), ("thin", 0), ("chains", 0))),
    *((learner, name, value) for learner in (ADG, AUC)
      for name, value in (("rate", 0), ("updates", 1e6), ("init", 0.0), ("threshold", "4"))),
    (ADG, "gamma", 0), (MF, "bias_reg", np.inf), (MF, "loss", "absolut"), (MF, "solver", "choleski"),
    (MF, "dtype", "float16"), (WMF, "positive", 0.01), (WMF, "rest", np.nan), (WMF, "target", "ratings"),
    (DR, "weights", "mdrd"), (DR, "variant", "as-coded"), (DR, "mix", 2), (DR, "clip", 0.5), (DR, "folds", 1),
    (DR, "imputation", Popularity()), (DR, "imputation", RelMF()), (JointMNAR, "missing_factors", 0),
    (JointMNAR, "unobserved", 1.5), (MixtureMNAR, "components", 0), (MixtureMNAR, "missing", "cpt"),
    (MixtureMNAR, "component_prior", 0), (MixtureMNAR, "rating_prior", -1.0), (MixtureMNAR, "offset_sd", np.inf),
    (MixtureMNAR, "restarts", 0),
]  # fmt: skip


@pytest.mark.parametrize(("learner", "name", "value"), CASES)
def test_a_parameter_that_cannot_be_is_refused(learner, name, value):
    given = {name: value} if learner is MixtureMNAR else {"factors": 2} | {name: value}
    more = {"propensities": np.full(len(LOG), 0.5)} if learner in (DR, RelMF) else {}
    shown = type(value).__name__ if hasattr(value, "fit") else repr(value)
    with pytest.raises(InputError, match=facts(learner.__name__, name, shown)):
        learner(**given).fit(LOG, **more)
