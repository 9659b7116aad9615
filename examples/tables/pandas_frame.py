"""Learn from a pandas frame with one bad row in ten; see which rows, and which tables moved."""

import pandas as pd

import robustbn
from robustbn.simulate import corrupt

truth = robustbn.random_network("tree", 20, cards=3, random_state=5)
good = robustbn.sample(truth, 20_000, random_state=1)
codes, is_bad = corrupt(good, truth, "product", eps=0.1, random_state=2)
frame = pd.DataFrame(
    {
        node: pd.Categorical.from_codes(codes[:, k], truth.states[node])
        for k, node in enumerate(truth.nodes)
    }
)

fitted = robustbn.RobustEstimator(truth, random_state=0).fit(frame)
rows = fitted.rows()
print(rows[rows["is_suspicious"]].head(3).to_string())
print(fitted.moved().head(3).to_string())
assert (rows["is_suspicious"] == is_bad).mean() > 0.99
