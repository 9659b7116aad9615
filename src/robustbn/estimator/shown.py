"""What a fitted robust estimator shows: rows and tables as frames, figures, a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Either, Setting
from robustbn._core.kinds import BadKind
from robustbn._core.layout import Codes
from robustbn._core.origins import Origin
from robustbn._core.protocols import RowVector, Vector
from robustbn._core.result import Misfit, RepeatedRow, RobustFit, Round, Shift, Vanishing
from robustbn._core.trust import DOUBT, JudgedRows
from robustbn._core.tuning import TUNING
from robustbn._core.warn import warn
from robustbn._learn.leftovers import Leftover, find_leftovers
from robustbn._learn.origins import find_origins, name_origins
from robustbn._learn.questions import choose_questions
from robustbn._show.diagnosis import Diagnosis, diagnose
from robustbn._show.reasons import Explainer
from robustbn._show.words import say_few_rows
from robustbn._tables.aside import Aside, beside
from robustbn._tables.coded import Table, some
from robustbn._tables.frames import build_frame
from robustbn.estimator.base import TableEstimator
from robustbn.estimator.kinds import FoundKinds, find_kinds
from robustbn.exceptions import ContextWarning, DataError, NotFittedError, SettingError
from robustbn.network import BayesianNetwork

if TYPE_CHECKING:
    from robustbn._show.fitted import Plots

OF_A_CLASS = "trusted, as one of a group of rows that the network does not describe"
IN_DOUBT = "trusted in part; no single value speaks against it"


class ShownEstimator(TableEstimator):
    """A robust estimator once it is fitted."""

    contamination: float | str
    contamination_: float
    row_weights_: RowVector
    repeats_: list[RepeatedRow]
    plain_network_: BayesianNetwork
    shift_: Shift
    history_: list[Round]
    converged_: bool
    status_: str
    misfit_: Misfit | None
    vanishing_: list[Vanishing]
    offset_: float
    fit_seconds_: float
    _HAS_CONTEXT = True
    _fit: RobustFit
    _judged: JudgedRows
    _leftovers: tuple[JudgedRows, float, list[Leftover]]
    _aside: Aside = Aside()  # of a model from a file, whose rows are not at hand
    _found: FoundKinds | None = None  # once it was asked for
    _weights: RowVector | None = None  # of the rows of `fit`, if they are at hand
    _sides: NDArray[np.int8] | None = None  # of those that are known

    @property
    def kinds_(self) -> list[BadKind]:
        """The kinds of bad rows that were found, largest first; looked into when first asked for.

        Rows that filters or repetition speak against, and that are like no kind, are one too if
        there are enough of them.
        """
        return list(self._kinds().kinds)

    def _kinds(self) -> FoundKinds:
        network = self._fitted()
        if self._found is None:
            origins = None if self._aside.counted else self._find_origins_of
            n = self.reading_.n_rows
            self._found = find_kinds(network, self._fit, self._judged, n, self._load_codes, origins)
        return self._found

    def _find_origins_of(self, numbers: NDArray[np.int64], belongs: Vector) -> list[Origin]:
        """Return where rows of a kind come from; nothing where that is not known.

        Parameters
        ----------
        numbers, belongs : of the rows that are distrusted, and how surely each is of the kind.
        """
        if self._aside.is_forgotten or not hasattr(self, "row_weights_"):
            return []
        trust = np.where(np.isnan(self.row_weights_), np.nan, 1).astype(np.float32)
        trust[numbers] = 1 - belongs
        return find_origins(self._aside.context, trust, TUNING.where_p_value)

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
        return build_frame(*self._judge(X))

    def _judge(self, X: Any) -> tuple[dict[str, Any], str]:
        """Return the columns of `rows`, and the kind of frame to make of them."""
        self._fitted()
        if X is None and not hasattr(self, "row_weights_"):
            raise NotFittedError(
                "A model from a file does not hold the rows it was fitted to, nor does one of too "
                "many rows: call rows(X), or fit with weights_to='...'."
            )
        if X is None:
            weights, reading = self.row_weights_, self.reading_
            doubtful, codes, names = self._judged.numbers, self._judged.codes, self._aside.of()
        else:
            table = self._encode(X)
            judged = self._fit.model.weigh(self._load(table))
            is_bad = np.flatnonzero(judged < DOUBT)
            weights, codes, reading = table.spread(judged), table.codes[is_bad], table.reading
            doubtful = is_bad if table.kept is None else table.kept[is_bad]
            names = table.aside.of()
        why = np.full(len(weights), "", object)
        why[doubtful] = [reason.text for reason in self.explainer_.explain(codes)]
        why[np.isnan(weights)] = f"left out: {reading.why_dropped}"
        columns = {
            "row": np.arange(len(weights)),
            "weight": weights,
            "is_suspicious": weights < DOUBT,
            "why": why,
        }
        return beside(names, columns), reading.kind

    def _encode_again(self, X: Any) -> Table:
        """Return the rows of `fit` as codes; refuse others, and rows whose weights are lost."""
        table, n = self._encode(X, has_context=True), self.reading_.n_rows
        if len(table) != n:
            raise DataError(f"X must be the {n:,} rows of fit; found {len(table):,}.")
        if self._weights is None and not np.isclose(self._fit.n_rows, n):
            raise NotFittedError(
                "The rows of this fit were weighted, and their weights are not at hand: fit again, "
                "and call trust then."
            )
        return table

    def _name_kinds(self, codes: Codes) -> list[str]:
        """Return the cause of the kind that each row is most like, to be put before its reason."""
        found = self._kinds()
        named = {
            column: f"{kind.cause.name}: "
            for column, kind in zip(found.columns, found.kinds, strict=True)
            if kind.cause
        }
        if not named or not len(codes):
            return [""] * len(codes)
        return [
            named.get(column, "") for column in self._fit.model.most_like(self._load_codes(codes))
        ]

    def moved(self) -> Any:
        """Return a frame with a line a node: how far its table moved from counting, most first.

        `moved` is `sum over configurations a of P(a) TV(robust[a], plain[a])`: the share of rows in
        which the node would have another state. `error` is what sampling alone would make of it,
        and `n_eff` the trusted rows, as so many whole ones, that a configuration has on average.
        The frame is of the kind that the table was.
        """
        from robustbn._show.page.content import measure_moves  # its room is not on the light path

        self._fitted()
        moves = measure_moves(
            self.network_.layout,
            self.network_.probabilities,
            self.plain_network_.probabilities,
            self._fit.counts_in_rows,
            self._fit.plain_counts_in_rows,
        )
        order = np.argsort(-moves.moved, kind="stable")
        return build_frame(
            {
                "node": [self.network_.nodes[i] for i in order],
                "moved": moves.moved[order],
                "error": moves.error[order],
                "is_significant": moves.is_significant[order],
                "n_eff": moves.rows_per_configuration[order],
            },
            self.reading_.kind,
        )

    def missing_edges(self, X: Any = None, *, p_value: float = 0.01) -> Any:
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
        found = self._find_missing_edges(X, p_value)
        return build_frame(
            {
                "parent": [self.network_.nodes[edge.parent] for edge in found],
                "child": [self.network_.nodes[edge.child] for edge in found],
                "gain": [edge.gain for edge in found],
                "p_value": [edge.p_value for edge in found],
                "cells": [edge.n_cells for edge in found],
            },
            self.reading_.kind,
        )

    def _find_missing_edges(self, X: Any = None, p_value: float = 0.01) -> list[Leftover]:
        network = self._fitted()
        layout, q = network.layout, network.probabilities
        if X is not None:
            table = self._encode(X)
            trust = self._fit.model.weigh(self._load(table))
            return find_leftovers(layout, q, table.codes, trust, p_value)
        if not hasattr(self, "_judged"):
            raise NotFittedError(
                "A model from a file does not hold the rows it was fitted to: call "
                "missing_edges(X)."
            )
        judged, known = self._judged, getattr(self, "_leftovers", None)
        if known is None or known[:2] != (judged, p_value):  # the page and the terminal ask, too
            found = find_leftovers(layout, q, judged.drawn_codes, judged.drawn_trust, p_value)
            self._leftovers = known = judged, p_value, found
        return known[2]

    def where(self, p_value: float = TUNING.where_p_value) -> Any:
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
        """
        self._fitted()
        is_counted = self._aside.counted is not None
        if self._aside.is_forgotten or not (is_counted or hasattr(self, "row_weights_")):
            raise NotFittedError(
                "A model from a file does not hold the rows it was fitted to, nor does one of many "
                "rows once kinds were trusted: fit again, or call trust(kinds, X)."
            )
        found = self._find_origins(p_value)
        return build_frame(
            {
                "column": [origin.column for origin in found],
                "value": [origin.value for origin in found],
                "rows": [origin.n_rows for origin in found],
                "distrusted": [origin.n_distrusted for origin in found],
                "rate": [origin.rate for origin in found],
                "ratio": [origin.ratio for origin in found],
                "p_value": [origin.p_value for origin in found],
            },
            self.reading_.kind,
        )

    def _find_origins(self, p_value: float = TUNING.where_p_value) -> list[Origin]:
        """Return where bad rows come from; nothing where that is not known."""
        if not 0 < p_value < 1:
            raise SettingError(f"p_value is a number between 0 and 1; found {p_value!r}.")
        aside = self._aside
        if aside.counted is not None:
            return name_origins(aside.counted.tallies, aside.counted.together, p_value)
        if aside.is_forgotten or not hasattr(self, "row_weights_"):
            return []
        return find_origins(aside.context, self.row_weights_, p_value)

    def _warn_of_damaged(self) -> None:
        """Warn of columns beside the network that could not be read."""
        damaged = self._aside.damaged
        if damaged:
            many = len(damaged) > 1
            warn(
                Advice(
                    f"Column{'s' if many else ''} {some(list(damaged))} cannot be read, and "
                    f"{'are' if many else 'is'} left out of where bad rows come from; the "
                    "network's columns are not touched by it. "
                    f"{next(iter(damaged.values())).rstrip('.')}. Say which columns to look at "
                    "with ",
                    Setting("context", Either("[...]", "A,B")),
                    ", or ",
                    Setting("context", Either("()", "none")),
                    " for none.",
                ),
                ContextWarning,
            )

    def ask(self, n: int = 20) -> Any:
        """Return a frame with the rows that a person should look at, the most telling first.

        Its columns are row, weight (the trust in it), kind (its number in `kinds_`, 0 for none),
        change (share of the rows, on average over the nodes, whose state the tables would tell
        otherwise if the answer is not the expected one), why, and the row's states; before them
        come the columns of `id` and `keep`. Tell the
        answers to `fit(X, known=...)`, or trust a whole kind with `trust`.

        Parameters
        ----------
        n : how many rows, at the most.
        """
        return build_frame(self._ask(n), self.reading_.kind)

    def _ask(self, n: int) -> dict[str, Any]:
        """Return the columns of `ask`."""
        network = self._fitted()
        if not hasattr(self, "_judged"):
            raise NotFittedError(
                "A model from a file does not hold the rows it was fitted to: fit again, and ask."
            )
        model, judged = self._fit.model, self._judged
        numbers, codes, trust = judged.candidates()
        drawn = (self._load_codes(judged.drawn_codes), judged.drawn_trust)
        offered = (self._load_codes(codes), trust)
        questions = choose_questions(
            network.layout, model, self._fit.counts, drawn, offered, n, TUNING
        )
        columns = self._kinds().columns
        places = np.array([q.place for q in questions], np.int64)
        reasons = self.explainer_.explain(codes[places])
        asked: dict[str, Any] = {
            "row": numbers[places],
            "weight": trust[places],
            "kind": [columns.index(q.column) + 1 if q.column in columns else 0 for q in questions],
            "change": [q.change for q in questions],
            "why": [
                OF_A_CLASS if question.column < 0 else reason.text or IN_DOUBT
                for question, reason in zip(questions, reasons, strict=True)
            ],
        }
        labels = zip(*(network.label_row(line) for line in codes[places].tolist()), strict=True)
        for node, states in zip(network.nodes, labels, strict=False):
            asked[node if node not in asked else f"{node} (state)"] = list(states)
        return beside(self._aside.of(numbers[places]), asked)

    def summary(self) -> Any:
        """Return a frame with a line a headline figure: figure, value, meaning.

        The figures are rows, rows_left_out, rows_distrusted, contamination, effective_rows,
        largest_move, tables_moved, unseen_configurations, kinds, repeated_rows, rounds, converged
        (1 or 0) and seconds. The frame is of the kind that the table was. `moved()` has a line a
        node, `rows()` a line a row.
        """
        from robustbn._show.fitted import summary_columns  # its room is not on the light path

        self._fitted()
        return build_frame(summary_columns(self), self.reading_.kind)

    def report(
        self,
        path: str | Path | None = None,
        *,
        title: str | None = None,
        command: str | None = None,
        rows: bool = True,
        max_rows: int = 2000,
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
        from robustbn._show.fitted import report_page

        self._fitted()
        page = report_page(self, title=title, command=command, rows=rows, max_rows=max_rows)
        if path is None:
            return page
        write_bytes(encode(page, str(path)), Path(path))
        return None

    def to_markdown(self, *, title: str | None = None, command: str | None = None) -> str:
        """Return what was found as Markdown, for a ticket; no single row is shown.

        The verdict, the kinds of bad rows, where they come from, the edges that are missing, the
        cells that moved most, and what to do next.

        Parameters
        ----------
        title : of the text; by default the name of the table and how many rows it has.
        command : what repeats the fit; by default the call in Python.
        """
        from robustbn._show.fitted import report_markdown

        self._fitted()
        return report_markdown(self, title=title, command=command)

    @property
    def plot(self) -> Plots:
        """Figures of the fit: `network()`, `tables(node)`, `rounds()`, `rows()`."""
        from robustbn._show.fitted import Plots

        self._fitted()
        return Plots(self)

    def _say_few_rows(self) -> str:
        """Return that there are too few rows for the network; nothing if there are not."""
        n = round(self.reading_.n_rows / self._fit.effect)
        which = "different row" if self._fit.effect > 1 else "row"
        return say_few_rows(n, self.network_.layout.n_free, which)

    def _say_fitted(self) -> str:
        return f"{super()._say_fitted()}, {self.contamination_:.1%} of their weight distrusted"

    def __str__(self) -> str:
        """Return what was found, in a few sentences; the settings alone before `fit`."""
        from robustbn._show.fitted import fitted_text  # its room is not on the light path

        return fitted_text(self) if hasattr(self, "network_") else repr(self)

    def _repr_html_(self) -> str:
        from robustbn._show.fitted import fitted_html

        return fitted_html(self) if hasattr(self, "network_") else super()._repr_html_()

    def diagnose(self) -> Diagnosis:
        """Return what the paper asks of network and rows and whether it holds; print the result."""
        network = self._fitted()
        is_auto = isinstance(self.contamination, str)
        eps = self.contamination_ if is_auto else float(self.contamination)
        return diagnose(network.layout, self._fit.counts_in_rows, eps)

    @property
    def explainer_(self) -> Explainer:
        """What says why a row is distrusted."""
        return Explainer(self._fitted(), self._fit.model, self._name_kinds)
