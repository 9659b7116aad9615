"""Estimators: learn a network's tables from rows, with the face of scikit-learn."""

from robustbn.estimator.counting import MaximumLikelihoodEstimator
from robustbn.estimator.one_call import compare, fit
from robustbn.estimator.robust import RobustEstimator

__all__ = ["MaximumLikelihoodEstimator", "RobustEstimator", "compare", "fit"]
