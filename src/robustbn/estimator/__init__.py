"""Estimators: learn a network's tables from rows, with the face of scikit-learn."""

from robustbn.estimator.counting import MaximumLikelihoodEstimator
from robustbn.estimator.one_call import fit
from robustbn.estimator.robust import RobustEstimator

__all__ = ["MaximumLikelihoodEstimator", "RobustEstimator", "fit"]
