"""Analyse a network as a networkx graph, and bring it back."""

import networkx as nx

import robustbn

alarm = robustbn.example_network("alarm")
graph = alarm.to_networkx()
causes = nx.ancestors(graph, "BP")
print(f"{len(causes)} of {len(graph)} nodes are upstream of BP: {', '.join(sorted(causes))}")
print(f"the longest path: {' -> '.join(nx.dag_longest_path(graph))}")

part = graph.subgraph({"BP", *causes})
network = robustbn.BayesianNetwork.from_networkx(part)
print(network)
assert robustbn.BayesianNetwork.from_networkx(graph) == alarm
assert network.parents["BP"] == alarm.parents["BP"]
