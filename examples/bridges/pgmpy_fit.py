"""Fit a pgmpy model to rows one in ten of which is bad, and ask it a question."""

import numpy as np
import pandas as pd
from pgmpy.models import DiscreteBayesianNetwork

import robustbn
from robustbn.pgmpy import MaximumLikelihoodEstimator, RobustEstimator, from_pgmpy
from robustbn.simulate import corrupt

truth = robustbn.random_network("tree", 16, cards=3, random_state=5)
good = robustbn.sample(truth, 20_000, random_state=1)
codes, is_bad = corrupt(good, truth, "product", eps=0.1, random_state=2)
rows = pd.DataFrame(np.array(["0", "1", "2"])[codes], columns=truth.nodes)

robust = RobustEstimator(random_state=0)
model = DiscreteBayesianNetwork(truth.edges).fit(rows, estimator=robust)
plain = DiscreteBayesianNetwork(truth.edges).fit(rows, estimator=MaximumLikelihoodEstimator())

far = robustbn.total_variation(from_pgmpy(plain), truth)
near = robustbn.total_variation(from_pgmpy(model), truth)
print(f"distrusted share of the rows: {robust.contamination_:.3f}")
print(f"distance to the truth: {near:.3f} (counting: {far:.3f})")
print(model.get_cpds(truth.nodes[3]))
assert near < far / 3
