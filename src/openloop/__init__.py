"""openloop: how good a recommender really is, when its users and the running system chose the data.

The names are in the order of the flow; each is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openloop.support.forking import forks
from openloop.support.lazy import lazily
from openloop.support.version import VERSION

if TYPE_CHECKING:
    from openloop import errors, learners, propensity
    from openloop.audits import paradox, rankings
    from openloop.audits.auditing import audit
    from openloop.audits.planning import Plan, plan
    from openloop.audits.results import Audit
    from openloop.core.comparison import Comparison
    from openloop.core.covariates import Covariates
    from openloop.core.estimate import Estimate
    from openloop.core.feedback import Feedback
    from openloop.core.impressions import Impressions
    from openloop.core.interval import Interval
    from openloop.core.metric import Metric
    from openloop.core.moments import Moments
    from openloop.core.propensities import Propensities, observed_probability
    from openloop.core.vocabulary import Vocabulary
    from openloop.data import datasets, simulate
    from openloop.data.features import covariates
    from openloop.data.reading import read
    from openloop.data.scanning import Log, scan
    from openloop.data.splitting import folds, split
    from openloop.estimators import bounds
    from openloop.estimators.custom import estimator
    from openloop.estimators.doubly_robust import cross_fitted
    from openloop.estimators.naming import dr
    from openloop.estimators.resampling import bootstrap
    from openloop.evaluation import Refit, evaluate
    from openloop.learners.adapters.wrapping import wrap
    from openloop.learners.model_files.saving import load
    from openloop.metrics.naming import metric
    from openloop.moments.inputs import predictions
    from openloop.reporting import figures
    from openloop.reporting.citing import cite
    from openloop.reporting.html import report
    from openloop.selection import Selection, select
    from openloop.studies.kit.running import reproduce

__version__ = VERSION
forks.watch()

# module → names; a name that ends the module's path is the module itself.
_NAMES = {
    "data.reading": "read",
    "data.scanning": "scan Log",
    "data.splitting": "split folds",
    "data.datasets": "datasets",
    "data.simulate": "simulate",
    "core.feedback": "Feedback",
    "core.vocabulary": "Vocabulary",
    "core.impressions": "Impressions",
    "data.features": "covariates",
    "core.covariates": "Covariates",
    "propensity": "propensity",
    "core.propensities": "Propensities observed_probability",
    "learners": "learners",
    "learners.model_files.saving": "load",
    "learners.adapters.wrapping": "wrap",
    "moments.inputs": "predictions",
    "metrics.naming": "metric",
    "core.metric": "Metric",
    "core.moments": "Moments",
    "core.estimate": "Estimate",
    "core.interval": "Interval",
    "estimators.custom": "estimator",
    "estimators.naming": "dr",
    "estimators.bounds": "bounds",
    "estimators.resampling": "bootstrap",
    "estimators.doubly_robust": "cross_fitted",
    "evaluation": "evaluate Refit",
    "core.comparison": "Comparison",
    "selection": "select Selection",
    "audits.auditing": "audit",
    "audits.results": "Audit",
    "audits.planning": "plan Plan",
    "audits.paradox": "paradox",
    "audits.rankings": "rankings",
    "reporting.html": "report",
    "reporting.figures": "figures",
    "studies.kit.running": "reproduce",
    "reporting.citing": "cite",
    "errors": "errors",
}

__all__ = [
    "read", "scan", "Log", "split", "folds", "datasets", "simulate", "Feedback", "Vocabulary", "Impressions",
    "covariates", "Covariates",
    "propensity", "Propensities", "observed_probability",
    "learners", "load", "wrap", "predictions",
    "metric", "Metric", "estimator", "dr",
    "Moments", "Estimate", "Interval", "bounds", "bootstrap", "cross_fitted",
    "evaluate", "Refit", "Comparison", "select", "Selection",
    "audit", "Audit", "plan", "Plan", "paradox", "rankings", "report", "figures", "reproduce", "cite",
    "errors",
]  # fmt: skip

__getattr__, __dir__ = lazily(__name__, _NAMES, globals())
