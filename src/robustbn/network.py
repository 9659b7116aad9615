"""BayesianNetwork: nodes, parents, states, tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from robustbn._core.calls import naming_the_nearest
from robustbn._core.config import NodeReading
from robustbn._core.layout import Layout
from robustbn._core.numbers import count
from robustbn._core.structure import (
    check_edges,
    check_parents,
    check_reading,
    check_states,
    some_of,
    sort_topologically,
)
from robustbn._core.tables import (
    check_vector,
    fill_unknown,
    find_wrong_configuration,
    flatten_tables,
)
from robustbn.exceptions import NetworkError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray


class BayesianNetwork:
    """A directed acyclic graph over discrete nodes, with or without probability tables.

    It is immutable: every change returns a new network. The order of `nodes` is the order of the
    keys of `parents`, and the columns of an array of integer codes follow it. It need not be
    topological.

    Notation: d nodes, m configurations (a node with one combination of states of its parents), M
    cells (a configuration with one state of the node).

    Parameters
    ----------
    parents : dict of str to list of str
        The parents of each node, in the order of the axes of its table.
    states : dict of str to list
        The state labels of each node (1 to 65,536, all different).
    cpts : dict of str to array-like or None, default=None
        The table of each node, of shape `(*parent_cards, card)`; the last axis runs over the node's
        own states and sums to 1. A configuration that is all NaN is unknown: its states are treated
        as equally likely, and `is_unknown` marks it.
    reading : dict of str to NodeReading or None, default=None
        How the values of columns become states, for the nodes whose states are not the values
        themselves.

    Examples
    --------
    >>> from robustbn import BayesianNetwork
    >>> sprinkler = BayesianNetwork(
    ...     parents={"rain": [], "wet": ["rain"]},
    ...     states={"rain": ["no", "yes"], "wet": ["no", "yes"]},
    ...     cpts={"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.05, 0.95]]},
    ... )
    >>> sprinkler
    BayesianNetwork(2 nodes, 1 edge, 3 configurations, 6 cells, with tables)
    >>> sprinkler.cpts["wet"][1]
    array([0.05, 0.95])
    """

    @naming_the_nearest
    def __init__(
        self,
        parents: Mapping[str, Iterable[str]],
        states: Mapping[str, Sequence[Hashable]],
        cpts: Mapping[str, ArrayLike] | None = None,
        reading: Mapping[str, NodeReading] | None = None,
    ) -> None:
        checked_parents = check_parents(parents)
        checked_states = check_states(states, checked_parents)
        column = {node: i for i, node in enumerate(checked_parents)}
        layout = Layout(
            cards=tuple(len(s) for s in checked_states.values()),
            families=tuple(
                (*(column[p] for p in ps), column[n]) for n, ps in checked_parents.items()
            ),
        )
        self._parents = MappingProxyType(checked_parents)
        self._states = MappingProxyType(checked_states)
        self._reading = MappingProxyType(check_reading(reading or {}, checked_states))
        self._layout = layout
        self._topological_order = sort_topologically(checked_parents)
        self._probabilities: NDArray[np.float64] | None = None
        self._cpts: Mapping[str, NDArray[np.float64]] | None = None
        self._is_unknown: NDArray[np.bool_] | None = None  # None: no configuration is
        if cpts is not None:
            self._probabilities = flatten_tables(layout, self._parents, cpts)
            if np.isnan(self._probabilities).any():
                self._probabilities, self._is_unknown = fill_unknown(layout, self._probabilities)
                for array in (self._probabilities, self._is_unknown):
                    array.setflags(write=False)
            self._cpts = MappingProxyType(self.tables_of(self._probabilities))
            self.validate()
        self._frozen = True

    # --- what it is ---------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes, in the order of the columns."""
        return tuple(self._parents)

    @property
    def parents(self) -> Mapping[str, tuple[str, ...]]:
        """Parents of each node, in the order of its table's axes."""
        return self._parents

    @property
    def states(self) -> Mapping[str, tuple[Hashable, ...]]:
        """State labels of each node; a code is a position in this tuple."""
        return self._states

    @property
    def reading(self) -> Mapping[str, NodeReading]:
        """How columns are read, of the nodes whose states are not the values themselves."""
        return self._reading

    @property
    def cpts(self) -> Mapping[str, NDArray[np.float64]]:
        """Table of each node, shape `(*parent_cards, card)`, read-only."""
        if self._cpts is None:
            raise self._no_tables()
        return self._cpts

    @staticmethod
    def _no_tables() -> NetworkError:
        return NetworkError(
            "This network has a structure but no tables. Give `cpts=`, fit an estimator to rows "
            "and take its `network_`, or call `with_cpts(...)`."
        )

    @property
    def has_cpts(self) -> bool:
        """Whether the probability tables are there."""
        return self._cpts is not None

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """All tables as one read-only vector of length M, in the order of the layout."""
        if self._probabilities is None:
            raise self._no_tables()
        return self._probabilities

    @property
    def is_unknown(self) -> NDArray[np.bool_]:
        """Whether each configuration was given as NaN; its states count as equally likely."""
        if self._is_unknown is None:
            return np.zeros(self.n_configurations, bool)
        return self._is_unknown

    @cached_property
    def given_cpts(self) -> Mapping[str, NDArray[np.float64]]:
        """Table of each node as it was given: NaN where its probabilities are unknown."""
        if self._is_unknown is None:
            return self.cpts
        is_unknown = self._is_unknown[self._layout.config_of_cell]
        return self.tables_of(np.where(is_unknown, np.nan, self.probabilities))

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All (parent, child) pairs."""
        return tuple((p, n) for n, ps in self._parents.items() for p in ps)

    @property
    def topological_order(self) -> tuple[str, ...]:
        """The nodes with every parent before its children."""
        return self._topological_order

    @property
    def layout(self) -> Layout:
        """Where each cell lives: the integers the kernels need."""
        return self._layout

    @property
    def n_nodes(self) -> int:
        """Number of nodes, d."""
        return self._layout.n_nodes

    @property
    def n_configurations(self) -> int:
        """Number of configurations, m: the paper's m for binary nodes."""
        return self._layout.n_configurations

    @property
    def n_cells(self) -> int:
        """Number of cells, M."""
        return self._layout.n_cells

    d = n_nodes
    m = n_configurations
    M = n_cells

    # --- where a cell lives -------------------------------------------------------------------

    @cached_property
    def _code_of(self) -> dict[str, dict[Hashable, int]]:
        return {n: {label: v for v, label in enumerate(ls)} for n, ls in self._states.items()}

    def cell(self, node: str, parent_states: Mapping[str, Hashable], state: Hashable) -> int:
        """Return the position of one cell in a vector of length M.

        Parameters
        ----------
        node : str
            The node.
        parent_states : dict of str to label
            The state of each of its parents.
        state : label
            The node's own state.

        Examples
        --------
        >>> from robustbn import BayesianNetwork
        >>> net = BayesianNetwork({"a": [], "b": ["a"]}, {"a": ["n", "y"], "b": ["n", "y"]})
        >>> net.cell("b", {"a": "y"}, "n")
        4
        """
        if node not in self._parents:
            raise NetworkError(f"Unknown node {node!r}. Nodes: {some_of(self.nodes)}.")
        wanted = self._parents[node]
        if set(parent_states) != set(wanted):
            raise NetworkError(
                f"Node {node!r} has parents {list(wanted)}; states were given for "
                f"{list(parent_states)}."
            )
        codes = []
        for name, label in [*((p, parent_states[p]) for p in wanted), (node, state)]:
            if label not in self._code_of[name]:
                raise NetworkError(
                    f"Node {name!r} has no state {label!r}. States: {some_of(self._states[name])}."
                )
            codes.append(self._code_of[name][label])
        i = self.nodes.index(node)
        steps = self._layout.strides[i]
        return int(self._layout.cell_start[i]) + sum(
            s * c for s, c in zip(steps, codes, strict=True)
        )

    def describe_cell(self, cell: int) -> tuple[str, dict[str, Hashable], Hashable]:
        """Return (node, states of its parents, its own state) for a cell.

        Parameters
        ----------
        cell : int
            The position of the cell in a vector of length M.

        Examples
        --------
        >>> from robustbn import BayesianNetwork
        >>> net = BayesianNetwork({"a": [], "b": ["a"]}, {"a": ["n", "y"], "b": ["n", "y"]})
        >>> net.describe_cell(4)
        ('b', {'a': 'y'}, 'n')
        """
        if not 0 <= cell < self.n_cells:
            raise NetworkError(f"Cell {cell} does not exist: cells are 0 to {self.n_cells - 1}.")
        i = int(np.searchsorted(self._layout.cell_start, cell, side="right")) - 1
        family = [self.nodes[c] for c in self._layout.families[i]]
        codes = np.unravel_index(
            cell - int(self._layout.cell_start[i]), [len(self._states[n]) for n in family]
        )
        labels = [self._states[n][int(v)] for n, v in zip(family, codes, strict=True)]
        return family[-1], dict(zip(family[:-1], labels[:-1], strict=True)), labels[-1]

    # --- other networks from this one ---------------------------------------------------------

    @classmethod
    @naming_the_nearest
    def from_edges(
        cls,
        edges: Iterable[tuple[str, str]],
        states: Mapping[str, Sequence[Hashable]],
        cpts: Mapping[str, ArrayLike] | None = None,
    ) -> BayesianNetwork:
        """Build a network from (parent, child) pairs; the nodes are in the order of `states`.

        Parents keep the order in which their edges are given.

        Parameters
        ----------
        edges : list of tuple
            The (parent, child) pairs.
        states : dict of str to list
            The state labels of each node.
        cpts : dict of str to array-like or None, default=None
            The tables, as in `BayesianNetwork`.

        Examples
        --------
        >>> from robustbn import BayesianNetwork
        >>> BayesianNetwork.from_edges([("a", "b")], states={"a": [0, 1], "b": [0, 1, 2]})
        BayesianNetwork(2 nodes, 1 edge, 3 configurations, 8 cells, no tables)
        """
        parents: dict[str, list[str]] = {node: [] for node in states}
        for parent, child in check_edges(edges):
            for end in (parent, child):
                if end not in parents:
                    raise NetworkError(
                        f"Edge {parent!r} -> {child!r} names node {end!r}, which has no entry in "
                        f"`states`. Nodes with states: {some_of(parents)}."
                    )
            parents[child].append(parent)
        return cls(parents, states, cpts)

    def with_cpts(
        self, cpts: Mapping[str, ArrayLike] | NDArray[np.float64] | None
    ) -> BayesianNetwork:
        """Return this structure with other tables.

        Parameters
        ----------
        cpts : dict, array or None
            The tables: a dict as in `BayesianNetwork`, a vector of length M, or None for no tables.
        """
        if isinstance(cpts, np.ndarray):
            cpts = self.tables_of(check_vector(self._layout, cpts))
        return BayesianNetwork(self._parents, self._states, cpts, self._reading)

    def label_row(self, codes: Sequence[int]) -> tuple[Hashable, ...]:
        """Return the states of a row of codes, None where a value is missing.

        Parameters
        ----------
        codes : list of int
            One code per node.
        """
        return tuple(
            states[code] if code < len(states) else None
            for states, code in zip(self._states.values(), codes, strict=True)
        )

    def with_edges(self, edges: Iterable[tuple[str, str]]) -> BayesianNetwork:
        """Return the structure with more edges, and without tables.

        Parameters
        ----------
        edges : list of tuple
            The (parent, child) pairs to add.

        Examples
        --------
        >>> from robustbn import BayesianNetwork
        >>> two = BayesianNetwork({"a": [], "b": []}, {"a": ["0", "1"], "b": ["0", "1"]})
        >>> two.with_edges([("a", "b")]).parents["b"]
        ('a',)
        """
        parents = {node: list(names) for node, names in self._parents.items()}
        for parent, child in check_edges(edges):
            for node in (parent, child):
                if node not in parents:
                    raise NetworkError(
                        f"There is no node {node!r} for the edge {parent!r} -> {child!r}. Nodes: "
                        f"{some_of(parents)}."
                    )
            if parent not in parents[child]:
                parents[child].append(parent)
        return BayesianNetwork(parents, self._states, reading=self._reading)

    # --- to and from files and other libraries ------------------------------------------------
    # Each is one call into the room that knows the format or the library, imported when asked.

    def write(self, path: str | Path, format: str | None = None) -> None:
        """Write the network to a file, as `write_network` does.

        Parameters
        ----------
        path : str or Path
            The file; its suffix gives the format.
        format : str or None, default=None
            The format, whatever the suffix.
        """
        from robustbn._networks import write_network

        write_network(self, path, format=format)

    def to_networkx(self) -> Any:
        """Return a `networkx.DiGraph`; nothing is lost.

        Every node carries `states`, `parents` (in the order of the axes of its table) and, if there
        are tables, `cpt` (read-only, shape `(*parent_cards, card)`).
        """
        return _bridges().to_networkx(self)

    @classmethod
    def from_networkx(
        cls, graph: Any, states: Mapping[str, Sequence[Hashable]] | None = None
    ) -> BayesianNetwork:
        """Return the network of an acyclic `networkx.DiGraph` whose nodes are strings.

        It reads the attributes that `to_networkx` writes. In a graph without the attribute
        `parents`, the parents of a node are in the order of its edges.

        Parameters
        ----------
        graph : networkx.DiGraph
            The graph.
        states : dict or None, default=None
            The state labels of each node, in place of the attribute `states`.

        Examples
        --------
        >>> import networkx as nx
        >>> from robustbn import BayesianNetwork
        >>> graph = nx.DiGraph([("rain", "wet"), ("sprinkler", "wet")])
        >>> states = {node: ["no", "yes"] for node in graph}
        >>> BayesianNetwork.from_networkx(graph, states).parents["wet"]
        ('rain', 'sprinkler')
        """
        network: BayesianNetwork = _bridges().from_networkx(graph, states)
        return network

    def to_pgmpy(self) -> Any:
        """Return a `pgmpy.models.DiscreteBayesianNetwork`."""
        return _bridges().to_pgmpy(self)

    @classmethod
    def from_pgmpy(
        cls, model: Any, states: Mapping[str, Sequence[Hashable]] | None = None
    ) -> BayesianNetwork:
        """Return the network of a `pgmpy.models.DiscreteBayesianNetwork`.

        Parameters
        ----------
        model : pgmpy.models.DiscreteBayesianNetwork
            The model, with a table for every node or for none.
        states : dict or None, default=None
            The state labels of each node, for a model without tables.
        """
        network: BayesianNetwork = _bridges().from_pgmpy(model, states)
        return network

    def to_pyagrum(self) -> Any:
        """Return a `pyagrum.BayesNet`, whose labels are text; without tables, its tables are zeros.

        Numbers and truth values become text, and `from_pyagrum(bn, states=...)` restores them.
        Labels of other types are refused, as are labels that become the same text and text that
        pyAgrum cuts off or crashes on.
        """
        return _bridges().to_pyagrum(self)

    @classmethod
    def from_pyagrum(
        cls, bn: Any, states: Mapping[str, Sequence[Hashable]] | None = None
    ) -> BayesianNetwork:
        """Return the network of a `pyagrum.BayesNet`; without tables if all of them are zeros.

        Nodes are in the order of their ids, and parents in the order of their arcs. Labels are the
        text that pyAgrum shows, also for ranges and intervals. Titles and properties are not kept.

        Parameters
        ----------
        bn : pyagrum.BayesNet
            The network to convert.
        states : dict or None, default=None
            Labels that replace the text, for the nodes it names, in the same order.
        """
        network: BayesianNetwork = _bridges().from_pyagrum(bn, states)
        return network

    def to_pomegranate(self, dtype: str = "float32") -> Any:
        """Return a pomegranate `BayesianNetwork`, which keeps neither names nor labels.

        Columns are in the order of `nodes`, and values are codes. A structure without tables gives
        a model to be fitted, which does not know the numbers of states.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default="float32"
            "float32" is what pomegranate uses (about 7 digits); with "float64" the tables are
            exact, and everything works except pomegranate's own `fit`.
        """
        return _bridges().to_pomegranate(self, dtype)

    @classmethod
    def from_pomegranate(
        cls,
        model: Any,
        nodes: Sequence[str] | None = None,
        states: Mapping[str, Sequence[Hashable]] | None = None,
    ) -> BayesianNetwork:
        """Return the network of a pomegranate `BayesianNetwork`.

        Parameters
        ----------
        model : pomegranate BayesianNetwork
            The model to convert.
        nodes : list of str or None, default=None
            The names of the columns; by default "X0", "X1", ...
        states : dict or None, default=None
            The labels of the states; by default 0, 1, ... They are needed if the model was not
            fitted.
        """
        network: BayesianNetwork = _bridges().from_pomegranate(model, nodes, states)
        return network

    # --- checks -------------------------------------------------------------------------------

    def validate(self) -> None:
        """Check every table: finite, in [0, 1], each configuration summing to 1.

        The structure was checked when the network was built. Raises `NetworkError`, which names
        the node and shows the offending values.
        """
        p, describe = self._probabilities, self.describe_cell
        if p is not None and (wrong := find_wrong_configuration(self._layout, describe, p)):
            raise NetworkError(f"The {wrong[-1]}.")

    def _shape_of(self, node: str) -> tuple[int, ...]:
        return tuple(len(self._states[n]) for n in (*self._parents[node], node))

    def tables_of(self, flat: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return a vector of length M as a dict of nodes to arrays shaped like their tables.

        Parameters
        ----------
        flat : array of shape (M,)
            One number per cell.
        """
        start = self._layout.cell_start
        return {
            n: flat[start[i] : start[i + 1]].reshape(self._shape_of(n))
            for i, n in enumerate(self.nodes)
        }

    # --- being a good value -------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(
                f"A BayesianNetwork is immutable: cannot set {name!r}. Use with_cpts(...) or build "
                "a new network."
            )
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BayesianNetwork):
            return NotImplemented
        if not self.has_same_structure(other) or self.has_cpts != other.has_cpts:
            return False
        return not self.has_cpts or (
            np.array_equal(self.probabilities, other.probabilities)
            and np.array_equal(self.is_unknown, other.is_unknown)
        )

    def __hash__(self) -> int:
        return hash((tuple(self._parents.items()), tuple(self._states.items())))

    def has_same_structure(self, other: BayesianNetwork) -> bool:
        """Whether nodes, states and parents are the same and in the same order.

        Parameters
        ----------
        other : BayesianNetwork
            The network to compare with.
        """
        return (
            self.nodes == other.nodes
            and dict(self._parents) == dict(other._parents)
            and dict(self._states) == dict(other._states)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        given = None if self._cpts is None else self.given_cpts
        cpts = None if given is None else {n: np.array(t) for n, t in given.items()}
        parts = dict(self._parents), dict(self._states), cpts, dict(self._reading)
        return BayesianNetwork, parts

    def _repr_html_(self) -> str:
        """Show the network in a notebook."""
        from robustbn._show.page.inline import network_html

        return network_html(self)

    def __repr__(self) -> str:
        n_edges, n_unknown = len(self.edges), int(self.is_unknown.sum()) if self.has_cpts else 0
        unknown = f", {count(n_unknown, 'configuration')} unknown" if n_unknown else ""
        return (
            f"BayesianNetwork({count(self.n_nodes, 'node')}, {count(n_edges, 'edge')}, "
            f"{count(self.n_configurations, 'configuration')}, {count(self.n_cells, 'cell')}, "
            f"{'with' if self.has_cpts else 'no'} tables{unknown})"
        )


def _bridges() -> Any:
    return import_module("robustbn._networks.libraries")
