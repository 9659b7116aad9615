"""What a fit shows of itself: frames, the page, figures, sentences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robustbn._core.cells import NO_CELLS
from robustbn._core.origins import ORIGIN_P_VALUE
from robustbn._learn.leftovers import find_leftovers
from robustbn._show import frames
from robustbn._show.measures import Diagnosis
from robustbn._show.progress import showing_progress
from robustbn._show.result import EDGE_P_VALUE, ROWS_SHOWN, FitResult
from robustbn._tables.aside import Aside
from robustbn._tables.sources import build_frame
from robustbn.estimator.base import TableEstimator
from robustbn.exceptions import NotFittedError, SettingError

if TYPE_CHECKING:
    from robustbn._show.page.figures import Plots


class ShownEstimator(TableEstimator):
    """An estimator whose `result_` can be shown: as frames, as a page, in sentences."""

    result_: FitResult
    contamination_: float

    def rows(self, X: Any = None) -> Any:
        """Return a frame with one line per row: row, weight, is_suspicious, why.

        The columns of `id` and `keep` come first. `why` names the cells that count most against a
        row; it is empty for trusted rows. Rows that were left out have weight NaN. The frame is of
        the same library as the table. If the table was streamed, `why` is known only for the
        sampled rows, and so are `id` and `keep` where those of all rows would take more than 256
        MiB.

        Parameters
        ----------
        X : table-like or None, default=None
            The rows to judge; by default those of `fit`.
        """
        self._fitted()
        table = None if X is None else self._encode(X)
        reading = self.reading_ if table is None else table.reading
        return build_frame(frames.row_columns(self.result_, table), reading.kind)

    def moved(self) -> Any:
        """Return a frame with one line per node: how far its table moved, largest first.

        `moved` compares the table with counting all rows by `sum over configurations a of P(a)
        TV(robust[a], plain[a])`, the share of rows in which the node would have another state.
        `error` is the part that sampling alone explains, and `n_eff` is the average effective
        number of trusted rows per configuration. The frame is of the same library as the table.
        """
        self._fitted()
        return build_frame(frames.move_columns(self.result_), self.reading_.kind)

    def missing_edges(self, X: Any = None, *, p_value: float = EDGE_P_VALUE) -> Any:
        """Return a frame with the pairs of nodes that depend on each other without an edge.

        Only trusted rows are used. The columns are parent, child, gain (what the edge would add to
        the log-likelihood, in nats per row), p_value (corrected for the number of pairs) and cells
        (how many the edge would add), the largest gain first. The direction keeps the graph acyclic
        and adds the fewest cells. One missing edge makes pairs around it dependent, too: add one
        edge with `network.with_edges([(parent, child)])`, fit, and look again.

        Parameters
        ----------
        X : table-like or None, default=None
            The rows to look at; by default up to 20,000 rows of `fit`, sampled evenly.
        p_value : float, default=0.01
            The largest p-value to list.
        """
        network, result = self._fitted(), self.result_
        if X is not None:
            table = self._encode(X)
            trust = result.learned.model.weigh(self._load(table))
            q = network.probabilities
            found = find_leftovers(network.layout, q, table.codes, trust, p_value)
        else:
            frames.require_judged(result, "call missing_edges(X)")
            is_usual = p_value == EDGE_P_VALUE
            found = result.deeper.edges if is_usual else result.deeper.find_edges(p_value)
        return build_frame(frames.edge_columns(result, found), self.reading_.kind)

    @property
    def cells_(self) -> Any:
        """A frame with the cells that are likely to be wrong, the most certain first.

        The columns are row, column, seen, likely, probability (that the likely state is the true
        one) and nats (its log-odds); the columns of `id` and `keep` come first. For a table of more
        than a million rows, it has the cells of the rows from which the fit was learned.
        """
        result, found = self.result_, self.result_.learned.cells
        wrong, aside = (NO_CELLS, Aside()) if found is None else (found.wrong, result.aside)
        columns = frames.cell_columns(result.network, wrong, aside)
        return build_frame(columns, "" if found is None else self.reading_.kind)

    @property
    def cell_rates_(self) -> Any:
        """A frame with one line per column, the largest rate first.

        The columns are column, rate (the share of wrong cells), cells (how many are likely to be
        wrong), confusions (the most frequent pairs of the value seen and the likely value), where
        (the value of a context column, or the range of rows, with most wrong cells; empty if the
        rate is the same everywhere) and rate_there (the rate at that place).
        """
        return build_frame(frames.rate_columns(self.result_), self.reading_.kind)

    def where(self, p_value: float = ORIGIN_P_VALUE, *, cells: bool = False) -> Any:
        """Return a frame with the places that have more distrusted rows than chance explains.

        The columns are column, value, rows, distrusted, rate (distrusted / rows), ratio (the rate
        over that of all rows) and p_value (binomial, with Bonferroni's correction for all values
        and ranges that were tested), the smallest p_value first.

        The places are the values of the columns in `context` (see `read_table`), ranges of row
        numbers, and the files if there are several. Times are grouped by hour, day, month or year,
        whichever is the shortest with at most 400 groups; numbers by tenths, or one by one if they
        are whole numbers with at most 1,000 values. Neighbouring ranges are joined. One line may be
        about two columns, if both together explain more than the better one alone. For an array,
        only the row number is used.

        Parameters
        ----------
        p_value : float, default=0.01
            The largest p-value to list.
        cells : bool, default=False
            If True, look for the places of rows with a wrong cell instead, at the default p-value.
        """
        self._fitted()
        aside, deeper = self.result_.aside, self.result_.deeper
        if aside.is_forgotten or (aside.counted is None and self.result_.row_weights is None):
            raise NotFittedError(
                "A model file does not contain the rows of the fit, nor does a large fit after "
                "decide(): fit again, or call decide(bad, good, X)."
            )
        if not 0 < p_value < 1:
            raise SettingError(f"p_value is a number between 0 and 1; found {p_value!r}.")
        of, is_usual = self.result_.learned.cells, p_value == ORIGIN_P_VALUE
        if cells:
            found = [] if of is None else deeper.find_places(np.unique(of.wrong.rows))
        else:
            found = deeper.origins if is_usual else deeper.find_origins(p_value)
        return build_frame(frames.origin_columns(found), self.reading_.kind)

    def ask(self, n: int = 20) -> Any:
        """Return a frame with the rows that you should check, the most informative first.

        The columns are row, weight (the trust in it), group (its number in `groups_`, 0 for none),
        change (how much the tables would change if the answer is unexpected, as a share of rows),
        why, and the row's states; the columns of `id` and `keep` come first. Pass the answers to
        `fit(X, known=...)`, or decide on a whole group with `decide`.

        Parameters
        ----------
        n : int, default=20
            The largest number of rows to return.
        """
        self._fitted()
        return build_frame(frames.question_columns(self.result_, n), self.reading_.kind)

    def summary(self) -> Any:
        """Return a frame with one line per headline figure: figure, value, meaning.

        The figures are rows, rows_left_out, rows_distrusted, contamination, effective_rows,
        largest_move, tables_moved, unseen_configurations, kinds, repeated_rows, rounds, converged
        (1 or 0) and seconds. The frame is of the same library as the table. `moved()` has one line
        per node, and `rows()` one line per row.
        """
        self._fitted()
        return build_frame(frames.summary_columns(self.result_), self.reading_.kind)

    def report(
        self,
        path: str | Path | None = None,
        *,
        title: str | None = None,
        command: str | None = None,
        rows: bool = True,
        max_rows: int = ROWS_SHOWN,
    ) -> str | None:
        """Write the report, one self-contained HTML page; without a path, return it.

        Parameters
        ----------
        path : str or Path or None, default=None
            The file to write; it is written completely or not at all.
        title : str or None, default=None
            The title of the page; by default the name of the table and its number of rows.
        command : str or None, default=None
            The command that repeats the fit; by default the call in Python.
        rows : bool, default=True
            Whether single rows may be shown; False for private data.
        max_rows : int, default=2000
            The largest number of rows to show, the least trusted first.
        """
        from robustbn._networks.files import write_text
        from robustbn._show.page.render import render_page  # loaded only when it is needed

        self._fitted()
        shown = self.result_.shown(title=title, command=command, rows=rows, max_rows=max_rows)
        with showing_progress("Writing the report", self.verbose):
            page = render_page(shown)
        return write_text(page, path)

    def to_markdown(self, *, title: str | None = None, command: str | None = None) -> str:
        """Return the result as Markdown, for a ticket; no single row is shown.

        It has the verdict, the findings with what to do about each, and the cells that moved most.

        Parameters
        ----------
        title : str or None, default=None
            The title of the text; by default the name of the table and its number of rows.
        command : str or None, default=None
            The command that repeats the fit; by default the call in Python.
        """
        from robustbn._show.page.render import render_markdown

        self._fitted()
        return render_markdown(self.result_.shown(title=title, command=command))

    @property
    def plot(self) -> Plots:
        """Figures of the fit: `network()`, `tables(node)`, `rounds()`, `rows()`."""
        from robustbn._show.page.figures import Plots

        self._fitted()
        return Plots(self.result_)

    def diagnose(self) -> Diagnosis:
        """Return which of the paper's conditions on network and rows hold; print the result."""
        self._fitted()
        return self.result_.diagnosis

    def _say_fitted(self) -> str:
        return f"{super()._say_fitted()}, {self.contamination_:.1%} of their weight distrusted"

    def __str__(self) -> str:
        """Return what was found, in a few sentences; the settings alone before `fit`."""
        from robustbn._show.advice import say_fit  # loaded only when it is needed

        return f"{self!r}\n{say_fit(self.result_)}" if hasattr(self, "result_") else repr(self)

    def _repr_html_(self) -> str:
        from robustbn._show.page.inline import fit_html

        return fit_html(self.result_) if hasattr(self, "result_") else super()._repr_html_()
