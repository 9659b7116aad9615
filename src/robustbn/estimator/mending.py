"""A table with its wrong cells corrected, as `RobustEstimator.repair` returns it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustbn._core.cells import NO_CELLS, CellModel, FoundCells, WrongCells
from robustbn._rows.cells import judge_cells, name_wrong
from robustbn._show.frames import cell_columns
from robustbn._tables.coded import Table
from robustbn._tables.sources import build_frame
from robustbn.exceptions import DataError, SettingError

if TYPE_CHECKING:
    from robustbn.estimator.robust import RobustEstimator

ONE_WRITING = 0.9  # share of a state's cells with the same text; below it, the state is a range


class Repaired(NamedTuple):
    """A corrected table, and a frame of the changes.

    Parameters
    ----------
    table : of the kind that it was; nothing else is changed.
    changes : a frame with a line a change, the surest first: row, column, seen, likely,
        probability, nats.
    """

    table: Any
    changes: Any


def repair_table(fit: RobustEstimator, X: Any, probability: float) -> Repaired:
    """Return a table in which cells above a probability of being wrong are corrected."""
    if not 0.5 <= probability <= 1:
        raise SettingError(f"probability is a number from 0.5 to 1; found {probability!r}.")
    table, found = fit._encode(X), fit.result_.learned.cells
    wrong = NO_CELLS
    if found is not None:
        model, parts = _place(found, table)
        judged = judge_cells(
            model, table.codes, groups=parts, holed=bool(table.holed), key=found.seed,
            kernels=fit.kernels, n_threads=fit.n_threads,
        )  # fmt: skip
        wrong = name_wrong(model, judged, parts, fit.kernels, fit.n_threads).above(probability)
    if isinstance(X, np.ndarray) and np.issubdtype(X.dtype, np.integer):
        mended = X.copy()
        mended[_rows_of(table, wrong), wrong.columns] = wrong.likely
    else:
        mended, wrong = _mend_frame(fit, X, table, wrong)
    shown = wrong if table.kept is None else wrong.numbered(table.kept)
    columns = cell_columns(fit.network_, shown, table.aside)
    return Repaired(mended, build_frame(columns, table.reading.kind))


def _place(found: FoundCells, table: Table) -> tuple[CellModel, NDArray[np.int32] | None]:
    """Return how rows are judged, and the part of each; if they are those of the fit, by place."""
    wrong = found.wrong
    rows = wrong.rows if table.kept is None else np.searchsorted(table.kept, wrong.rows)
    is_there = found.by is not None and len(found.by.parts) == len(table)
    if is_there and (table.codes[rows, wrong.columns] == wrong.seen).all():
        return found.place(len(table))
    return found.model, None


def _rows_of(table: Table, wrong: WrongCells) -> NDArray[np.int64]:
    """Return the rows of the whole table, of which some may have been left out."""
    return wrong.rows if table.kept is None else table.kept[wrong.rows]


def _mend_frame(
    fit: RobustEstimator, X: Any, table: Table, wrong: WrongCells
) -> tuple[Any, WrongCells]:
    """Return a frame with likely values as they are written elsewhere in it, and what changed."""
    # A column whose states are ranges of numbers keeps its values: which one is meant is not known.
    import narwhals as nw

    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        raise DataError(
            f"repair needs a pandas, polars or Arrow frame, or an array of codes; found a "
            f"{type(X).__name__}. For a text file, use `robustbn repair` on the command line."
        ) from None
    names = {fit.reading_.config.rename.get(name, name): name for name in frame.columns}
    is_kept = np.ones(len(wrong), bool)
    for j in np.unique(wrong.columns).tolist():
        name, at = names[table.nodes[j]], np.flatnonzero(wrong.columns == j)
        series = frame[name]
        written = {
            v: _find_writing(series, table, j, v) for v in np.unique(wrong.likely[at]).tolist()
        }
        is_kept[at] = [written[v] is not None for v in wrong.likely[at].tolist()]
        at = at[is_kept[at]]
        if len(at):
            rows = _rows_of(table, wrong)[at].tolist()
            values = [written[v] for v in wrong.likely[at].tolist()]
            frame = frame.with_columns(series.scatter(rows, values))
    return frame.to_native(), wrong.picked(is_kept)


def _find_writing(series: Any, table: Table, j: int, state: int) -> Any:
    """Return the text of a state in a column; None if there is none, or more than one."""
    rows = np.flatnonzero(table.codes[:, j] == state)
    rows = rows if table.kept is None else table.kept[rows]
    if not len(rows):
        return None
    counts = series[rows.tolist()].value_counts(sort=True)
    value, n = counts.row(0)
    return value if n >= ONE_WRITING * len(rows) else None
