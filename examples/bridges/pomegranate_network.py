"""Give a robustly learned network to pomegranate, which then scores rows."""

import numpy as np
import torch

import robustbn
from robustbn.simulate import corrupt

truth = robustbn.random_network("tree", 16, cards=3, random_state=5)
good = robustbn.sample(truth, 20_000, random_state=1)
codes, is_bad = corrupt(good, truth, "product", eps=0.1, random_state=2)
learned = robustbn.RobustEstimator(truth, random_state=0).fit(codes).network_

model = learned.to_pomegranate()  # names and labels stay behind: column k is learned.nodes[k]
first = 500
score = model.log_probability(torch.tensor(codes[:first].astype(np.int64))).numpy()
good_score, bad_score = score[~is_bad[:first]].mean(), score[is_bad[:first]].mean()
print(f"mean log-likelihood: good rows {good_score:.2f}, bad rows {bad_score:.2f}")

back = robustbn.BayesianNetwork.from_pomegranate(model, nodes=learned.nodes, states=learned.states)
print(
    f"largest change of a probability: {np.abs(back.probabilities - learned.probabilities).max()}"
)
assert np.allclose(back.probabilities, learned.probabilities, rtol=0, atol=1e-7)
assert good_score > bad_score
