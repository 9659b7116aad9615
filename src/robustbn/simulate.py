"""Draw networks, rows of a network, and rows that an adversary has corrupted.

Examples
--------
>>> from robustbn.simulate import corrupt, random_network, sample
>>> network = random_network("tree", 20, random_state=0)
>>> rows, is_bad = corrupt(sample(network, 1000, 0), network, "product", 0.1, random_state=0)
>>> int(is_bad.sum())
100
"""

from robustbn._networks.random_networks import STRUCTURES as KINDS
from robustbn._networks.random_networks import random_network
from robustbn._rows.draw import sample
from robustbn.adversary import corrupt

__all__ = ["KINDS", "corrupt", "random_network", "sample"]
