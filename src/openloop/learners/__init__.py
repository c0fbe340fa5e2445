"""FEEDBACK → MODEL: recommenders, each loaded when it is first asked for.

A learner knows nothing about metrics, estimators or propensity models: what corrects for selection enters its fit
as `sample_weight`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openloop.support.lazy import lazily

if TYPE_CHECKING:
    from openloop.learners.adapters.cornac_models import CornacModel
    from openloop.learners.adapters.factors import Factors
    from openloop.learners.adapters.wrapping import wrap
    from openloop.learners.baselines import Bias, GlobalAverage, Popularity, Random
    from openloop.learners.covariate_ridge import Features
    from openloop.learners.doubly_robust import DR, RelMF
    from openloop.learners.exposing import Exposure
    from openloop.learners.implicit import WMF
    from openloop.learners.joint_mnar import JointMNAR
    from openloop.learners.mf import MF
    from openloop.learners.mixture_mnar import MixtureMNAR
    from openloop.learners.model_files.saving import load
    from openloop.learners.ordinal_mf import OrdinalMF
    from openloop.learners.pairwise import ADG, AUC
    from openloop.learners.pure_svd import PureSVD
    from openloop.learners.rating_propensities import RatingPropensities
    from openloop.learners.recalibrated import Recalibrated
    from openloop.learners.stacking import Stack
    from openloop.learners.zoo_models import zoo

__all__ = [
    "MF", "WMF", "ADG", "AUC", "PureSVD", "Stack", "Recalibrated", "Exposure", "Features", "DR", "RelMF",
    "OrdinalMF", "JointMNAR", "MixtureMNAR", "RatingPropensities",
    "Random", "GlobalAverage", "Popularity", "Bias",
    "Factors", "CornacModel", "zoo",
    "load", "wrap",
]  # fmt: skip

# scikit-learn's base class costs over a second, so a learner is imported by its first use.
_NAMES = {
    "mf": "MF",
    "implicit": "WMF",
    "doubly_robust": "DR RelMF",
    "pairwise": "ADG AUC",
    "pure_svd": "PureSVD",
    "stacking": "Stack",
    "recalibrated": "Recalibrated",
    "exposing": "Exposure",
    "covariate_ridge": "Features",
    "ordinal_mf": "OrdinalMF",
    "joint_mnar": "JointMNAR",
    "mixture_mnar": "MixtureMNAR",
    "rating_propensities": "RatingPropensities",
    "baselines": "Random GlobalAverage Popularity Bias",
    "adapters.factors": "Factors",
    "adapters.cornac_models": "CornacModel",
    "zoo_models": "zoo",
    "model_files.saving": "load",
    "adapters.wrapping": "wrap",
}

__getattr__, __dir__ = lazily(__name__, _NAMES, globals(), "learners")
