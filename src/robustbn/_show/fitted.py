"""A fitted estimator as others see it: a report, figures, a summary, a piece of a notebook.

The report room knows no estimator; here one is turned into the plain values that it asks for.
"""

from __future__ import annotations

import inspect
import platform
from collections.abc import Hashable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from robustbn._core import __version__
from robustbn._core.config import is_same
from robustbn._core.kinds import BadKind
from robustbn._core.layout import Codes
from robustbn._core.numbers import count
from robustbn._core.origins import Origin
from robustbn._core.protocols import Rows, Vector
from robustbn._core.result import Inferred, Misfit, RepeatedRow, Round, Vanishing
from robustbn._core.trust import TRUST_EDGES, JudgedRows
from robustbn._show.diagnosis import Diagnosis
from robustbn._show.gathered import explain_rows, name_singled
from robustbn._show.page import MissingEdge, Report, render_markdown, render_page, verdict
from robustbn._show.page.content import as_text
from robustbn._show.page.inline import estimator_html, network_html
from robustbn._show.pairs import show_pair
from robustbn._show.reasons import Explainer
from robustbn._show.words import say_unseen
from robustbn._tables.aside import Aside
from robustbn._tables.coded import Reading
from robustbn.exceptions import NotFittedError, SettingError
from robustbn.network import BayesianNetwork

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS_SHOWN = 2_000
MOST_EDGES = 5
ALWAYS_SHOWN = ("contamination", "method", "schedule", "prior", "random_state")


class FittedEstimator(Protocol):
    """What a report asks of an estimator: the attributes of a fitted `RobustEstimator`."""

    network_: BayesianNetwork
    plain_network_: BayesianNetwork
    counts_: Vector
    contamination_: float
    converged_: bool
    status_: str
    repeats_: list[RepeatedRow]
    history_: list[Round]
    misfit_: Misfit | None
    inferred_: Inferred | None
    vanishing_: list[Vanishing]
    unseen_configurations_: list[tuple[str, dict[str, Hashable]]]
    reading_: Reading
    fit_seconds_: float
    _fit: Any
    _judged: JudgedRows
    _aside: Aside

    def _find_missing_edges(self) -> list[Any]:
        """Return the pairs that depend on each other without an edge."""

    @property
    def explainer_(self) -> Explainer:
        """What says why a row is distrusted."""

    @property
    def kinds_(self) -> list[BadKind]:
        """The kinds of bad rows, largest first."""

    def _kinds(self) -> Any:
        """Return the kinds of bad rows, and where their sums are."""

    def diagnose(self) -> Diagnosis:
        """Return what the paper asks, measured."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name."""

    def _find_origins(self) -> list[Origin]:
        """Return where bad rows come from."""

    def _pseudo_counts(self, network: BayesianNetwork) -> Any:
        """Return what is added to every cell."""

    def _say_few_rows(self) -> str:
        """Return that there are too few rows for the network; nothing if there are not."""

    def _load_codes(self, codes: Codes) -> Rows:
        """Return rows that kernels can judge."""


def build_report(
    fit: FittedEstimator,
    *,
    title: str | None = None,
    command: str | None = None,
    rows: bool = True,
    max_rows: int = ROWS_SHOWN,
    edges: bool = False,
) -> Report:
    """Return all that a page says of a fit. Time grows with `max_rows`, not with the rows read.

    Parameters
    ----------
    title : of the page; by default the name of the table and how many rows it has.
    command : what repeats the fit; by default the call in Python.
    rows : whether single rows, and values of columns beside the network, may be shown; False for
        private data.
    max_rows : how many of them at the most, least trusted first.
    edges : whether the edges that are missing are looked for.
    """
    if not hasattr(fit, "_judged"):
        raise NotFittedError(
            "A report needs the trust in the rows of the fit, and a model from a file does not "
            "hold it: fit the table again, or judge rows with rows(X)."
        )
    if max_rows < 0:
        raise SettingError(f"max_rows is a number of rows, at least 0; found {max_rows!r}.")
    reading = fit.reading_
    origins = fit._find_origins()
    return Report(
        network=fit.network_,
        plain_network=fit.plain_network_,
        counts=fit._fit.counts_in_rows,
        plain_counts=fit._fit.plain_counts_in_rows,
        n_rows=reading.n_rows,
        n_distrusted=fit._judged.trust.n_distrusted,
        effective_rows=fit._judged.trust.effective_rows,
        contamination=fit.contamination_,
        converged=fit.converged_,
        status=fit.status_,
        weight_edges=TRUST_EDGES,
        weight_counts=fit._judged.trust.counts.astype(np.int64),
        kinds=fit.kinds_ if rows else [kind.without_values() for kind in fit.kinds_],
        repeats=fit.repeats_,
        rounds=fit.history_,
        rows=explain_rows(fit, max_rows) if rows else (),
        rows_hidden=not rows,
        dropped=say_dropped(reading),
        diagnosis=str(fit.diagnose()),
        settings=_settings(fit),
        versions=versions(),
        seconds=fit.fit_seconds_,
        command=_call(fit) if command is None else command,
        title=_title(reading) if title is None else title,
        table=reading.where if reading.kind == "file" else "",
        misfit=fit.misfit_,
        few_rows=fit._say_few_rows(),
        missing=reading.say_missing(),
        inferred=fit.inferred_,
        n_missing={node: n for node, n in reading.n_missing.items() if n and reading.n_holes},
        vanishing=tuple(fit.vanishing_),
        edges=show_edges(fit) if edges else (),
        row_names=tuple(fit._aside.names) if rows else (),
        kept_names=name_singled(fit) if rows else {},
        origins=origins if rows else [origin.without_values() for origin in origins],
    )


def show_edges(fit: FittedEstimator, most: int = MOST_EDGES) -> tuple[MissingEdge, ...]:
    """Return the edges that the network misses most, if it does not describe the rows."""
    if fit.misfit_ is None or fit.misfit_.is_exact:
        return ()
    found = fit._find_missing_edges()[:most]
    return tuple(show_pair(fit.network_, fit._judged, edge) for edge in found)


def report_page(fit: FittedEstimator, **settings: Any) -> str:
    """Return the page of a fit; settings are those of `build_report`."""
    return render_page(build_report(fit, edges=True, **settings))


def report_markdown(fit: FittedEstimator, **settings: Any) -> str:
    """Return a fit as text for a ticket; settings are those of `build_report`."""
    return render_markdown(build_report(fit, edges=True, max_rows=0, **settings))


def summary_columns(fit: FittedEstimator) -> dict[str, Sequence[Any]]:
    """Return the headline figures: their names, their values, and what they mean.

    A model from a file does not know the trust in its rows, nor how long its fit took: NaN.
    """
    has_rows = hasattr(fit, "_judged")
    nan, reading = float("nan"), fit.reading_
    report = build_report(fit, rows=False) if has_rows else None
    moves = _moves_of(fit) if report is None else report.moves
    top = int(np.argmax(moves.moved))
    lines = [
        ("rows", reading.n_rows, "rows that were read and judged"),
        ("rows_left_out", reading.n_dropped, "rows that were read and not judged"),
        (
            "rows_distrusted",
            report.n_distrusted if report else nan,
            "rows whose weight is below one half",
        ),
        ("contamination", fit.contamination_, "share of the rows' weight that is distrusted"),
        (
            "effective_rows",
            report.effective_rows if report else nan,
            "rows' worth of information that is left",
        ),
        (
            "largest_move",
            moves.moved[top],
            f"share of rows in which {fit.network_.nodes[top]} would have another state",
        ),
        ("tables_moved", moves.is_significant.sum(), "tables that moved by more than their error"),
        ("unseen_configurations", len(fit.unseen_configurations_), _meaning_of_unseen(fit)),
        ("kinds", len(fit.kinds_), "kinds of bad rows that were found"),
        ("repeated_rows", len(fit.repeats_), "rows that appear more often than they may"),
        ("rounds", len(fit.history_), "rounds of the fit"),
        ("converged", fit.converged_, fit.status_),
        (
            "seconds",
            getattr(fit, "fit_seconds_", nan),
            "time of the fit, and of reading unless that was done before",
        ),
    ]
    names, values, meanings = zip(*lines, strict=True)
    return {"figure": list(names), "value": [float(v) for v in values], "meaning": list(meanings)}


def _meaning_of_unseen(fit: FittedEstimator) -> str:
    has_prior = bool(np.any(fit._pseudo_counts(fit.network_)))
    got = "the prior alone" if has_prior else "uniform tables (prior=1 smooths)"
    return f"parent configurations that no trusted row shows: {got}"


def fitted_text(fit: FittedEstimator) -> str:
    """Return a fitted robust estimator in a few sentences."""
    reading, lines = fit.reading_, []
    if hasattr(fit, "_judged"):
        report = build_report(fit, edges=True, max_rows=0)
        lines.append(verdict(report))
        rows = f"{report.n_distrusted:,} of {count(report.n_rows, 'row')}"
        lines.append(f"{rows} {'is' if report.n_distrusted == 1 else 'are'} distrusted.")
    else:
        share = f"{fit.contamination_:.1%} of their weight distrusted"
        lines.append(f"From a file: fitted to {count(reading.n_rows, 'row')}, {share}.")
    lines.append(fit.status_)
    has_prior = bool(np.any(fit._pseudo_counts(fit.network_)))
    lines.append(say_unseen(fit.unseen_configurations_, fit.network_, has_prior=has_prior))
    lines.append(reading.say_missing())
    return "\n".join([repr(fit), *(line for line in lines if line)])


class Plots:
    """Figures of a fit, by matplotlib: `fit.plot.rounds().savefig("rounds.pdf")`.

    Each method returns a `matplotlib.figure.Figure` of its own. Needs `robustbn[plots]`.
    """

    def __init__(self, fit: FittedEstimator) -> None:
        self._report = build_report(fit, rows=False)

    def network(self) -> Figure:
        """Return the network, its nodes coloured by how far their tables moved."""
        from robustbn._show.page.figures import plot_network

        return plot_network(self._report)

    def tables(self, node: str | None = None) -> Figure:
        """Return a node's table, all rows against trusted rows; by default the most moved."""
        from robustbn._show.page.figures import plot_table

        return plot_table(self._report, self._report.moved_tables[0].node if node is None else node)

    def rounds(self) -> Figure:
        """Return what the rounds saw: the eigenvalues against their limit, the share distrusted."""
        from robustbn._show.page.figures import plot_rounds

        return plot_rounds(self._report)

    def rows(self) -> Figure:
        """Return how many rows have which trust."""
        from robustbn._show.page.figures import plot_rows

        return plot_rows(self._report)


def fitted_html(fit: FittedEstimator) -> str:
    """Return a fitted robust estimator as a fragment for a notebook."""
    if hasattr(fit, "_judged"):
        return estimator_html(build_report(fit, edges=True, max_rows=0))
    facts = (
        f"From a file: fitted to {count(fit.reading_.n_rows, 'row')}, {fit.contamination_:.1%} of "
        f"their weight distrusted. {fit.status_}"
    )
    return _paragraph(facts) + network_html(fit.network_)


def settings_html(text: str, network: BayesianNetwork | None) -> str:
    """Return any estimator as a fragment: its settings, and its network if it has one."""
    return _paragraph(text) + ("" if network is None else network_html(network))


def say_dropped(reading: Reading) -> dict[str, int]:
    """Return how many rows were left out, by reason."""
    return {reading.why_dropped: reading.n_dropped} if reading.n_dropped else {}


def versions() -> dict[str, str]:
    """Return the versions that decide what a fit gives."""
    return {
        "robustbn": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _moves_of(fit: FittedEstimator) -> Any:
    from robustbn._show.page.content import measure_moves

    q, plain = fit.network_.probabilities, fit.plain_network_.probabilities
    found = fit._fit
    counts, plain_counts = found.counts_in_rows, found.plain_counts_in_rows
    return measure_moves(fit.network_.layout, q, plain, counts, plain_counts)


def _settings(fit: FittedEstimator) -> dict[str, str]:
    """Return the settings that matter always, and all that differ from the usual, as text."""
    defaults = inspect.signature(type(fit)).parameters
    chosen = {
        name: value
        for name, value in fit.get_params(deep=False).items()
        if name not in ("network", "on_unknown", "on_missing", "bins", "verbose")
        and (name in ALWAYS_SHOWN or not is_same(value, defaults[name].default))
    }
    config = fit.reading_.config
    usual = {
        name: field.default for name, field in inspect.signature(type(config)).parameters.items()
    }
    for name in usual:
        value = getattr(config, name)
        is_empty = isinstance(value, Mapping) and not value
        if not is_same(value, usual[name]) and not is_empty:
            chosen[name] = dict(value) if isinstance(value, Mapping) else value
    if fit.reading_.ignored:
        chosen["columns ignored"] = ", ".join(fit.reading_.ignored)
    return {name: str(value) for name, value in chosen.items()}


def _call(fit: FittedEstimator) -> str:
    """Return the call that repeats a fit, given `network` and `table`."""
    defaults = inspect.signature(type(fit)).parameters
    given = [
        f"{name}={value!r}"
        for name, value in fit.get_params(deep=False).items()
        if name not in ("network", "verbose") and not is_same(value, defaults[name].default)
    ]
    return f"robustbn.{type(fit).__name__}({', '.join(['network', *given])}).fit(table)"


def _title(reading: Reading) -> str:
    rows = count(reading.n_rows, "row")
    return f"{reading.where}, {rows}" if reading.kind == "file" else f"Robust tables from {rows}"


def _paragraph(text: str) -> str:
    page = f'<p style="font-family:monospace;white-space:pre-wrap">{escape(as_text(text))}</p>'
    return page.encode("utf-8", "replace").decode("utf-8")
