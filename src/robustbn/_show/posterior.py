"""What is known of each table, as a distribution: its parameters, intervals, networks drawn."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.dirichlet import JEFFREYS, LEAST_ADDED, beta_quantile
from robustbn._core.expansion import normalise_counts
from robustbn._core.protocols import Vector
from robustbn._core.result import RobustFit
from robustbn._networks.libraries import find_inference
from robustbn._show.words import name_cells
from robustbn._tables.sources import build_frame
from robustbn.exceptions import NetworkError, SettingError
from robustbn.network import BayesianNetwork

HARDLY = 0.5  # rows: what is left of distrusted ones, less than one row, is no sign of a state


class Posterior(Mapping[str, NDArray[np.float64]]):
    """What is known of the tables of a fit: a mapping from each node to Dirichlet parameters.

    The array of a node has the shape of its table: `posterior["x"] - prior` are the rows, as so
    many as they are worth, that show each state. Rows that are trusted in part, groups that may be
    bad or not, copies, and cells that were inferred are worth less than rows that are sure.

    Parameters
    ----------
    network : with the learned tables.
    parameters : of the Dirichlet distributions; shape (M,).
    rows : what the rows of each configuration are worth; shape (m,).
    counts : weight of the trusted rows on each cell; shape (M,).
    has_prior : whether a prior, other than Jeffreys', says something of each configuration; (m,).
    kind : of frames that are made.

    Examples
    --------
    >>> from robustbn import BayesianNetwork, MaximumLikelihoodEstimator
    >>> coin = BayesianNetwork({"coin": []}, {"coin": ["heads", "tails"]})
    >>> fit = MaximumLikelihoodEstimator(coin, prior=1).fit([[0], [0], [1], [0]])
    >>> fit.posterior()["coin"]
    array([4., 2.])
    """

    def __init__(
        self,
        network: BayesianNetwork,
        parameters: Vector,
        rows: Vector,
        counts: Vector,
        has_prior: NDArray[np.bool_],
        kind: str = "",
    ) -> None:
        self.network, self._has_prior = network, has_prior
        self._parameters, self._rows, self._counts, self._kind = parameters, rows, counts, kind
        self._tables = network.tables_of(parameters)

    def __getitem__(self, node: str) -> NDArray[np.float64]:
        return self._tables[node]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        return f"Posterior({self.network!r}, worth {self._rows.sum():,.0f} rows in all tables)"

    def limits(
        self, level: float = 0.95, cells: NDArray[np.int64] | slice = slice(None)
    ) -> tuple[Vector, Vector]:
        """Return the ends of the intervals of all cells, or of some, by equal tails; two vectors.

        Without a prior, a state that no row shows begins at 0, one that all rows show ends at 1.
        """
        if not 0 < level < 1:
            raise SettingError(f"level must be a number between 0 and 1; found {level!r}.")
        layout, of = self.network.layout, self.network.layout.config_of_cell[cells]
        a, counts = self._parameters[cells], self._counts[cells]
        b = layout.sum_configurations(self._parameters)[of] - a
        tail, is_sure = (1 - level) / 2, b <= 0  # of a node with one state
        b = np.where(is_sure, 1.0, b)
        low, high = beta_quantile(tail, a, b), beta_quantile(1 - tail, a, b)
        others = layout.sum_configurations(self._counts)[of] - counts
        is_flat = ~self._has_prior[of]
        low = np.where(is_sure, 1.0, np.where(is_flat & (counts <= HARDLY), 0.0, low))
        return low, np.where(is_sure | (is_flat & (others <= HARDLY)), 1.0, high)

    def widest(self, most: int) -> list[dict[str, Any]]:
        """Return the nodes whose tables are known least: their rows, intervals, widest cell."""
        network, layout = self.network, self.network.layout
        total = layout.sum_configurations(self._parameters)
        mean = self._parameters / total[layout.config_of_cell]
        half = 1.96 * np.sqrt(mean * (1 - mean) / (total[layout.config_of_cell] + 1))
        weights = np.maximum(self._rows, 1e-9)
        of_node = layout.config_start[:-1]
        typical = layout.sum_configurations(half) / layout.config_cards
        typical = np.add.reduceat(typical * weights, of_node) / np.add.reduceat(weights, of_node)
        seen = np.add.reduceat((self._rows > 0).astype(float), of_node)
        rows = np.add.reduceat(self._rows, of_node) / np.maximum(seen, 1)
        nodes = np.argsort(-typical, kind="stable")[:most]
        starts = layout.cell_start
        shown = (
            half * (self._rows > 0)[layout.config_of_cell]
        )  # what no row shows is plainly unknown
        cells = np.array([starts[i] + shown[starts[i] : starts[i + 1]].argmax() for i in nodes])
        low, high = self.limits(cells=cells)
        return [
            {
                "node": network.nodes[i],
                "rows": float(rows[i]),
                "half": float(typical[i]),
                "cell": network.describe_cell(int(cell)),
                "probability": float(network.probabilities[cell]),
                "low": float(low[k]),
                "high": float(high[k]),
            }
            for k, (i, cell) in enumerate(zip(nodes.tolist(), cells.tolist(), strict=True))
        ]

    def intervals(self, node: str | None = None, level: float = 0.95) -> Any:
        """Return a frame with a line a cell: node, parents, state, probability, low, high, rows.

        `probability` is that of the learned table, `low` and `high` hold the true one with the
        probability `level`, and `rows` is what the rows that show the configuration are worth.

        Parameters
        ----------
        node : whose table; by default all.
        level : of the intervals.
        """
        network, layout = self.network, self.network.layout
        cells = np.arange(layout.n_cells)
        if node is not None:
            if node not in network.parents:
                raise NetworkError(f"There is no node {node!r}.")
            i = network.nodes.index(node)
            cells = cells[layout.cell_start[i] : layout.cell_start[i + 1]]
        low, high = self.limits(level, cells)
        columns = {
            **name_cells(network, cells),
            "probability": network.probabilities[cells],
            "low": low,
            "high": high,
            "rows": self._rows[layout.config_of_cell[cells]],
        }
        return build_frame(columns, self._kind)

    def sample(self, n: int = 1, random_state: Any = None) -> list[BayesianNetwork]:
        """Return networks whose tables are drawn from what is known of them.

        Parameters
        ----------
        n : how many.
        random_state : seed; the same seed gives the same networks.
        """
        layout, rng = self.network.layout, np.random.default_rng(random_state)
        drawn = []
        for _ in range(n):
            cells = np.maximum(rng.standard_gamma(self._parameters), 1e-300)
            drawn.append(
                self.network.with_cpts(
                    cells / layout.sum_configurations(cells)[layout.config_of_cell]
                )
            )
        return drawn

    def query(
        self,
        node: str,
        evidence: Mapping[str, Hashable] | None = None,
        *,
        level: float = 0.95,
        n: int = 200,
        random_state: Any = 0,
        library: str | None = None,
    ) -> Any:
        """Return a frame with a line a state: state, probability, low, high of P(node | evidence).

        The probability is that of the learned network; the interval is that of `n` networks drawn
        from the posterior. Inference is pyAgrum's or, where that is not installed, pgmpy's.

        Parameters
        ----------
        evidence : the states of other nodes.
        level : of the interval.
        n : how many networks are drawn; the ends of the interval vary with it.
        random_state : seed of the draws.
        library : "pyagrum" or "pgmpy"; by default the first that is installed.
        """
        evidence = dict(evidence or {})
        for name, state in [*evidence.items(), (node, None)]:
            if name not in self.network.parents:
                raise NetworkError(f"There is no node {name!r}.")
            if name != node and state not in self.network.states[name]:
                raise NetworkError(f"Node {name!r} has no state {state!r}.")
        if node in evidence:
            raise NetworkError(f"Node {node!r} is both queried and given as evidence.")
        ask = find_inference(library)
        drawn = np.array([ask(one, node, evidence) for one in self.sample(n, random_state)])
        tail = (1 - level) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
        columns = {
            "state": list(self.network.states[node]),
            "probability": ask(self.network, node, evidence),
            "low": low,
            "high": high,
        }
        return build_frame(columns, self._kind)


def find_posterior(
    network: BayesianNetwork, counts: Vector, rows: Vector, added: Vector | float, kind: str
) -> Posterior:
    """Return what is known of tables: the counts, as many rows as they are worth, and a prior."""
    layout = network.layout
    seen = layout.sum_configurations(counts)
    scale = np.divide(rows, seen, out=np.zeros_like(seen), where=seen > 0)[layout.config_of_cell]
    added = np.broadcast_to(added, counts.shape)
    has_prior = layout.sum_configurations(added) > 0
    is_added = has_prior[layout.config_of_cell]
    parameters = counts * scale + np.where(is_added, np.maximum(added, LEAST_ADDED), JEFFREYS)
    return Posterior(network, parameters, rows, counts, has_prior, kind)


def worth_of_rows(network: BayesianNetwork, learned: RobustFit, doubt: Vector | None) -> Vector:
    """Return what the trusted rows of each configuration are worth; shape (m,).

    Notation: for configuration k, C the weight of its rows, V the sum of `w (1 - w)` of the trust
    w in them, q its table, p[g] what rows of group g keep of their weight, D[g] how far q would
    move without them. A row that is trusted by w is there or not, and so is a group, so the
    variance of an estimated probability is `q (1 - q) / C (1 + V / C) + sum over g of
    p (1 - p) D^2`; the rows are worth as many as would have this variance if they were sure. Cells
    that were inferred are worth nothing, which is careful: families that rows show whole count.
    """
    layout, of_config = network.layout, network.layout.sum_configurations
    counts, unit = learned.shown_counts, learned.unit
    seen = of_config(counts)
    variance = (1 + (0 if doubt is None else doubt) / np.maximum(seen, 1)) / np.maximum(seen, 1e-9)
    q, kept = network.probabilities, learned.model.kept
    spread = np.maximum(of_config(q * (1 - q)), 1e-9)
    for k in np.flatnonzero((kept > 0) & (kept < 1)).tolist():
        own, p = learned.group_counts[:, k] / unit, float(kept[k])
        with_it, without = (
            normalise_counts(layout, np.maximum(learned.counts_in_rows + part * own, 0))
            for part in (1 - p, -p)
        )
        variance += p * (1 - p) * of_config((with_it - without) ** 2) / spread
    return np.where(seen > 0, 1 / variance, 0.0) / learned.effect
