"""Files to networks, and back. One file a format."""

from __future__ import annotations

from pathlib import Path

from robustbn._read.network_json import network_from_json, network_to_json
from robustbn.exceptions import NetworkError
from robustbn.network import BayesianNetwork

EXAMPLES = ("alarm",)


def read_network(path: str | Path) -> BayesianNetwork:
    """Read a network from a `.json` file written by `write_network`."""
    path = Path(path)
    _require_json(path)
    return network_from_json(path.read_text(encoding="utf-8"), source=str(path))


def write_network(network: BayesianNetwork, path: str | Path) -> None:
    """Write a network to a `.json` file; every probability is written exactly."""
    path = Path(path)
    _require_json(path)
    path.write_text(network_to_json(network), encoding="utf-8")


def example_network(name: str = "alarm") -> BayesianNetwork:
    """Return a published network that ships with the package.

    >>> import robustbn
    >>> robustbn.example_network("alarm")
    BayesianNetwork(37 nodes, 46 edges, 243 configurations, 752 cells, with tables)
    """
    if name not in EXAMPLES:
        raise ValueError(f"No example network {name!r}; there are {', '.join(EXAMPLES)}.")
    from importlib.resources import files  # slow to import, and seldom needed

    file = files("robustbn") / "_data" / f"{name}.json"
    return network_from_json(file.read_text(encoding="utf-8"), source=f"example {name}")


def _require_json(path: Path) -> None:
    if path.suffix != ".json":
        raise NetworkError(f"{path}: networks are read from and written to .json files.")
