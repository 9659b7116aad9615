"""Ask pyAgrum for a posterior of a robustbn network, and bring the network back unchanged."""

import pyagrum

import robustbn

alarm = robustbn.example_network("alarm")
bn = alarm.to_pyagrum()
engine = pyagrum.LazyPropagation(bn)
engine.setEvidence({"HRBP": "HIGH", "PRESS": "LOW"})
engine.makeInference()

posterior = engine.posterior("INTUBATION")[:]
for state, probability in zip(alarm.states["INTUBATION"], posterior, strict=True):
    print(f"P(INTUBATION = {state} | HRBP = HIGH, PRESS = LOW) = {probability:.4f}")
assert robustbn.BayesianNetwork.from_pyagrum(bn) == alarm
