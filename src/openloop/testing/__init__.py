"""Contract checks for your own recommenders, propensity models, metrics and estimators.

Each check tries your object on small simulated worlds. It raises an AssertionError that says what is violated, and
returns None where nothing is. They are for your own tests, as scikit-learn's check_estimator is.

    from openloop.testing import check_recommender

    def test_mine():
        check_recommender(Mine())
"""

from openloop.testing.measures import check_estimator, check_metric
from openloop.testing.models import check_propensity_model, check_recommender

__all__ = ["check_estimator", "check_metric", "check_propensity_model", "check_recommender"]
