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
        """Return a frame with a line a row: row, weight, is_suspicious, why.

        Before them come the columns of `id` and `keep`, if rows keep any; where those of all rows
        would take more than 256 MiB of a table read in stretches or on a cluster, of the rows that
        were drawn. The frame is of the kind that the table was. `why` names the cells that speak
        most against a row; it is empty for rows that are trusted, and of a table read in stretches
        for those that were not drawn. Rows that were left out have weight NaN.

        Parameters
        ----------
        X : rows to judge; by default those of `fit`.
        """
        self._fitted()
        table = None if X is None else self._encode(X)
        reading = self.reading_ if table is None else table.reading
        return build_frame(frames.row_columns(self.result_, table), reading.kind)

    def moved(self) -> Any:
        """Return a frame with a line a node: how far its table moved from counting, most first.

        `moved` is `sum over configurations a of P(a) TV(robust[a], plain[a])`: the share of rows in
        which the node would have another state. `error` is what sampling alone would make of it,
        and `n_eff` the trusted rows, as so many whole ones, that a configuration has on average.
        The frame is of the kind that the table was.
        """
        self._fitted()
        return build_frame(frames.move_columns(self.result_), self.reading_.kind)

    def missing_edges(self, X: Any = None, *, p_value: float = EDGE_P_VALUE) -> Any:
        """Return a frame with a line a pair of nodes that depend on each other without an edge.

        The columns are parent, child, gain (nats a row that the edge would bring), p_value
        (corrected for the number of pairs) and cells (that it would add), largest gain first. The
        direction keeps the graph acyclic and costs fewest cells; an edge that is missing makes
        pairs around it depend on each other too, so add one, fit, and look again:
        `network.with_edges([(parent, child)])`. Found among the trusted rows.

        Parameters
        ----------
        X : rows to look at; by default up to 20,000 of those of `fit`, drawn evenly.
        p_value : largest to be named.
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
        """A frame with a line a cell that is likely to be wrong, the surest first.

        Its columns are row, column, seen, likely, probability (that the likely state is the true
        one) and nats (its log-odds); before them come those of `id` and `keep`. Of a table of more
        than a million rows, those of the rows that the fit was learned from.
        """
        result, found = self.result_, self.result_.learned.cells
        wrong, aside = (NO_CELLS, Aside()) if found is None else (found.wrong, result.aside)
        columns = frames.cell_columns(result.network, wrong, aside)
        return build_frame(columns, "" if found is None else self.reading_.kind)

    @property
    def cell_rates_(self) -> Any:
        """A frame with a line a column: column, rate, cells and confusions, largest rate first.

        `rate` is the share of its cells that are wrong, `cells` the number of those that are likely
        to be, `confusions` what was most often seen for what.
        """
        return build_frame(frames.rate_columns(self.result_), self.reading_.kind)

    def where(self, p_value: float = ORIGIN_P_VALUE, *, cells: bool = False) -> Any:
        """Return a frame with a line a group of rows that holds more distrusted ones than chance.

        The columns are column, value, rows, distrusted, rate (distrusted / rows), ratio (rate over
        that of all rows) and p_value (of the binomial tail, by Bonferroni's correction for all
        values and stretches that were tested), the smallest p_value first; of those too small for a
        number, the most log-likelihood by a rate of their own. Looked at are the columns of
        `context` (see `read_table`), the row number in 100 stretches and, of several files, the
        file; times by the shortest period of which there are at most 400, from hours to years;
        numbers by tenths, whole numbers of at most 1,000 values each by itself. Neighbouring
        stretches are taken together. One line may be about two columns, which hold more together
        than the better one alone; its p_value is corrected for all pairs. Of a table that came as
        an array, the row number alone is looked at.

        Parameters
        ----------
        p_value : largest to be named.
        cells : rows with a wrong cell are looked for instead, at the usual p_value.
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
        """Return a frame with the rows that a person should look at, the most telling first.

        Its columns are row, weight (the trust in it), group (its number in `groups_`, 0 for none),
        change (how much the tables would change if the answer is unexpected, as a share of rows),
        why, and the row's states; before them come the columns of `id` and `keep`. Give the answers
        to `fit(X, known=...)`, or decide on a whole group with `decide`.

        Parameters
        ----------
        n : how many rows, at the most.
        """
        self._fitted()
        return build_frame(frames.question_columns(self.result_, n), self.reading_.kind)

    def summary(self) -> Any:
        """Return a frame with a line a headline figure: figure, value, meaning.

        The figures are rows, rows_left_out, rows_distrusted, contamination, effective_rows,
        largest_move, tables_moved, unseen_configurations, kinds, repeated_rows, rounds, converged
        (1 or 0) and seconds. The frame is of the kind that the table was. `moved()` has a line a
        node, `rows()` a line a row.
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
        """Write the report, one HTML page that needs nothing else; without a path, return it.

        Parameters
        ----------
        path : the file; it is there as a whole or not at all.
        title : of the page; by default the name of the table and how many rows it has.
        command : what repeats the fit; by default the call in Python.
        rows : whether single rows may be shown; False for private data.
        max_rows : how many of them at the most, least trusted first.
        """
        from robustbn._networks.files import encode, write_bytes
        from robustbn._show.page.render import render_page  # its room is not on the light path

        self._fitted()
        page = render_page(
            self.result_.shown(title=title, command=command, rows=rows, max_rows=max_rows)
        )
        if path is None:
            return page
        write_bytes(encode(page, str(path)), Path(path))
        return None

    def to_markdown(self, *, title: str | None = None, command: str | None = None) -> str:
        """Return what was found as Markdown, for a ticket; no single row is shown.

        The verdict, the findings with what to do about each, and the cells that moved most.

        Parameters
        ----------
        title : of the text; by default the name of the table and how many rows it has.
        command : what repeats the fit; by default the call in Python.
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
        """Return what the paper asks of network and rows and whether it holds; print the result."""
        self._fitted()
        return self.result_.diagnosis

    def _say_fitted(self) -> str:
        return f"{super()._say_fitted()}, {self.contamination_:.1%} of their weight distrusted"

    def __str__(self) -> str:
        """Return what was found, in a few sentences; the settings alone before `fit`."""
        from robustbn._show.advice import say_fit  # its room is not on the light path

        return f"{self!r}\n{say_fit(self.result_)}" if hasattr(self, "result_") else repr(self)

    def _repr_html_(self) -> str:
        from robustbn._show.page.inline import fit_html

        return fit_html(self.result_) if hasattr(self, "result_") else super()._repr_html_()
