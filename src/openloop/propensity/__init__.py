"""FEEDBACK → P: models of who saw what, each loaded when it is first asked for.

A propensity model knows nothing about metrics, estimators or recommenders. Its p is about the whole log; code that
scores a part corrects for what the split kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openloop.support.lazy import lazily

if TYPE_CHECKING:
    from openloop.propensity.balanced import Balanced
    from openloop.propensity.boosted import Boosted
    from openloop.propensity.calibrated import Calibrated
    from openloop.propensity.checks.checking import Check, check
    from openloop.propensity.checks.positions import ExaminationChecks, PositionCheck, items_above_check
    from openloop.propensity.examination import Examination
    from openloop.propensity.known import Known
    from openloop.propensity.logistic import Logistic
    from openloop.propensity.low_rank import LowRank
    from openloop.propensity.naive_bayes import NaiveBayes
    from openloop.propensity.popularity import Popularity
    from openloop.propensity.uniform import Uniform

__all__ = [
    "Uniform", "Known", "Popularity", "NaiveBayes", "Logistic", "LowRank", "Boosted", "Calibrated", "Balanced",
    "Examination", "check", "Check", "items_above_check", "PositionCheck", "ExaminationChecks",
]  # fmt: skip

# scikit-learn's base class costs over a second, so a model is imported by its first use.
_NAMES = {
    "uniform": "Uniform",
    "known": "Known",
    "popularity": "Popularity",
    "naive_bayes": "NaiveBayes",
    "logistic": "Logistic",
    "low_rank": "LowRank",
    "boosted": "Boosted",
    "calibrated": "Calibrated",
    "balanced": "Balanced",
    "examination": "Examination",
    "checks.checking": "check Check",
    "checks.positions": "items_above_check PositionCheck ExaminationChecks",
}

__getattr__, __dir__ = lazily(__name__, _NAMES, globals(), "models")
