"""Two fits side by side: yesterday's and today's, before and after a mend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robustbn._core.numbers import count
from robustbn._networks.files import encode, write_bytes
from robustbn._show.comparison import (
    ChangedCell,
    ChangedKind,
    ChangedTable,
    FitSide,
    common_nodes,
    compare_cells,
    compare_kinds,
    compare_tables,
    comparison_facts,
    refuse_differences,
    say_misfit_of,
)
from robustbn._show.page import Report, verdict
from robustbn._show.page.content import percent
from robustbn._tables.frames import build_frame
from robustbn.estimator.robust import RobustEstimator
from robustbn.exceptions import NetworkError

MOST_LINES = 5  # of tables and of kinds, when a comparison is printed


class Comparison:
    """What differs between two fits of a network.

    Attributes
    ----------
    first, second : the two fits, as plain values: rows, share distrusted, misfit, verdict.
    tables : how far each table moved, most first.
    kinds : the kinds of bad rows that stayed, came and went, with how similar they are.
    verdict : two or three sentences.
    """

    def __init__(self, first: FitSide, second: FitSide, nodes: list[str], kind: str) -> None:
        self.first, self.second = first, second
        self.tables: list[ChangedTable] = compare_tables(first, second, nodes)
        self.kinds: list[ChangedKind] = compare_kinds(first, second, nodes)
        self._kind = kind
        self.verdict: str = self.facts()["verdict"]

    def moved(self) -> Any:
        """Return a frame with a line a node: how far its table moved, most first.

        The columns are node, moved (share of the rows in which it would have another state), error
        (what sampling alone would make of it in 95 of 100 cases), is_significant, and the cell that
        adds most: cell, before, after, z (their difference in standard errors of both).
        """
        cells = [table.cell for table in self.tables]
        columns = {
            "node": [table.node for table in self.tables],
            "moved": [table.moved for table in self.tables],
            "error": [table.error for table in self.tables],
            "is_significant": [table.is_significant for table in self.tables],
            "cell": [cell.says for cell in cells],
            "before": [cell.before for cell in cells],
            "after": [cell.after for cell in cells],
            "z": [cell.z for cell in cells],
        }
        return build_frame(columns, self._kind)

    def cells(self, node: str, most: int = 20) -> list[ChangedCell]:
        """Return the cells of a node's table that are most standard errors apart."""
        if node not in {table.node for table in self.tables}:
            raise NetworkError(f"{node!r} is no node that the two fits have in common.")
        return compare_cells(self.first, self.second, node).largest(most)

    def facts(self) -> dict[str, Any]:
        """Return all of it as plain values, as `robustbn compare --json` prints them."""
        return comparison_facts(self.first, self.second, self.tables, self.kinds)

    def report(self, path: str | Path | None = None) -> str | None:
        """Write one HTML page that needs nothing else; without a path, return it."""
        from robustbn._show.page.compare import render_comparison

        page = render_comparison(self.facts(), self.kinds, self.largest_cells())
        if path is None:
            return page
        write_bytes(encode(page, str(path)), Path(path))
        return None

    def largest_cells(self, most: int = 50) -> list[ChangedCell]:
        """Return the cells, of tables that moved by more than their error, that moved most rows."""
        found: list[ChangedCell] = []
        for table in self.tables:
            if table.is_significant:
                found += self.cells(table.node, most)
        return sorted(found, key=lambda cell: -cell.weight)[:most]

    def __str__(self) -> str:
        facts = self.facts()
        lines = [self.verdict]
        for side in (facts["first"], facts["second"]):
            lines.append(
                f"{side['name']}: {count(side['rows'], 'row')}, {percent(side['contamination'])} "
                f"distrusted, misfit {say_misfit_of(side['misfit'])}. {side['verdict']}"
            )
        for table in self.tables[:MOST_LINES]:
            cell = table.cell
            lines.append(
                f"  {table.node}: moved {percent(table.moved)}, error {percent(table.error)}; "
                f"{cell.says}: {percent(cell.before)} -> {percent(cell.after)} (z = {cell.z:.1f})"
            )
        lines += [f"  kind {kind}" for kind in self.kinds[:MOST_LINES]]
        return "\n".join(lines)

    def __repr__(self) -> str:
        names = f"{self.first.name!r}, {self.second.name!r}"
        return f"Comparison({names}: {count(len(self.tables), 'table')})"

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        from robustbn._show.page.compare import comparison_html

        return comparison_html(self.facts())


def compare(
    first: RobustEstimator | str | Path,
    second: RobustEstimator | str | Path,
    *,
    common: bool = False,
    names: tuple[str, str] = ("first", "second"),
) -> Comparison:
    """Compare two fits of the same network: yesterday's and today's, before and after a mend.

    Parameters
    ----------
    first, second : fitted estimators, or files that `save` wrote.
    common : whether networks may differ: then the nodes that have the same parents and states in
        both are compared.
    names : what to call them.

    Examples
    --------
    >>> import robustbn
    >>> from robustbn.simulate import corrupt
    >>> network = robustbn.random_network("tree", 40, random_state=0)
    >>> good = robustbn.sample(network, 20_000, random_state=0)
    >>> dirty, _ = corrupt(good, network, "product", eps=0.1, random_state=0)
    >>> before, after = (robustbn.fit(network, rows, random_state=0) for rows in (dirty, good))
    >>> found = robustbn.compare(before, after)
    >>> [kind.what for kind in found.kinds]
    ['went']
    >>> bool(found.moved()["is_significant"].any())
    False
    """
    fits = [
        each if isinstance(each, RobustEstimator) else RobustEstimator.load(each)
        for each in (first, second)
    ]
    a, b = (describe_side(fit, name) for fit, name in zip(fits, names, strict=True))
    if not common:
        refuse_differences(a, b)
    nodes = common_nodes(a.network, b.network)
    if not nodes:
        raise NetworkError(f"{a.name} and {b.name} have no node in common that is alike in both.")
    return Comparison(a, b, nodes, fits[0].reading_.kind)


def describe_side(fit: RobustEstimator, name: str) -> FitSide:
    """Return a fit as plain values; one from a file will do."""
    network = fit._fitted()
    found = fit._kinds()
    return FitSide(
        name,
        network,
        fit._fit.counts_in_rows,
        found.kinds,
        found.counts[:, found.columns],
        fit.reading_.n_rows,
        fit.reading_.n_dropped,
        fit.contamination_,
        fit.misfit_,
        fit.converged_,
        fit.status_,
        _verdict_of(fit),
    )


def _verdict_of(fit: RobustEstimator) -> str:
    """Return the verdict on a fit; of one from a file, by the share of the weight."""
    n_rows = fit.reading_.n_rows
    n_distrusted = round(fit.contamination_ * n_rows)
    if hasattr(fit, "_judged"):
        n_distrusted = fit._judged.trust.n_distrusted
    return verdict(
        Report(
            network=fit.network_,
            plain_network=fit.plain_network_,
            counts=fit._fit.counts_in_rows,
            plain_counts=fit._fit.plain_counts_in_rows,
            n_rows=n_rows,
            n_distrusted=n_distrusted,
            effective_rows=float("nan"),
            contamination=fit.contamination_,
            converged=fit.converged_,
            status=fit.status_,
            weight_edges=np.array([0.0, 1.0]),
            weight_counts=np.array([n_rows]),
            misfit=fit.misfit_,
            few_rows=fit._say_few_rows(),
        )
    )
