"""Fit an estimator to a table whose rows are in memory, in a stream or on a cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from robustbn._core.advice import Advice, Either, Setting, warn
from robustbn._core.allocate import telling_memory
from robustbn._core.config import RobustConfig, Streaming, TableConfig
from robustbn._core.result import Round
from robustbn._core.structure import some
from robustbn._learn.completion import Complete, complete
from robustbn._learn.known import decide_groups, refit_decided
from robustbn._learn.places import (
    Fitted,
    Watch,
    decide_in_memory,
    fit_in_memory,
    fit_on_dask,
    fit_stream,
    without_copies,
)
from robustbn._means.fit import fit_with_oracle
from robustbn._rows.stream.find import find_place
from robustbn._show.progress import showing_progress
from robustbn._show.result import FitResult
from robustbn._tables.coded import Table, as_sides, as_weights
from robustbn.estimator.finding import build_result
from robustbn.exceptions import (
    ContextWarning,
    ConvergenceWarning,
    DataError,
    NotFittedError,
    SettingError,
    SmallSampleWarning,
)
from robustbn.network import BayesianNetwork

if TYPE_CHECKING:
    from robustbn.estimator.robust import RobustEstimator


@telling_memory("Learning the tables")
def fit_to(
    fit: RobustEstimator,
    X: Any,
    sample_weight: ArrayLike | None = None,
    known: ArrayLike | None = None,
    *,
    reading: TableConfig | None = None,
    watch: Watch | None = None,
) -> None:
    """Fit an estimator to a table."""
    fit._check_settings()
    config, place = read_config(fit), choose_place(fit, X)
    is_default = fit.method == "filter" and fit.schedule == "joint"
    for name, given in (("sample_weight", sample_weight), ("known", known)):
        if given is not None and not is_default:
            raise SettingError(
                f"{name} is supported only by the method 'filter' with the schedule 'joint'."
            )
    if known is not None and place != "memory":
        raise SettingError(
            "known is supported only for rows in memory: set place to 'memory', or fit a smaller "
            "part of the table."
        )
    if not is_default and place != "memory":
        raise SettingError(
            "A table that is not in memory is fitted by the method 'filter' with the schedule "
            "'joint'."
        )
    start = time.perf_counter()
    weights = sides = None
    with (
        threadpool_limits(limits=1, user_api="blas"),  # its idle threads spin on our cores
        showing_progress("Reading the table", fit.verbose) as say,
    ):
        watch = watch or _watching(fit.verbose, say)
        if place == "memory":
            network, table = fit._read(X)
            table = without_copies(network, table, config)
            weights, sides = as_weights(sample_weight, table), as_sides(known, table)
            method = None if is_default else fit_with_oracle
            complete = _completing(fit, network, table.reading.config)
            found = fit_in_memory(network, table, weights, config, watch, method, complete, sides)
        else:
            network = _needed_network(fit)
            found = _fit_elsewhere(fit, X, place, sample_weight, config, reading, watch)
    result = build_result(fit, network, found, time.perf_counter() - start)
    with fit._all_or_nothing():
        fit._note_columns(X, network)
        _store(fit, result)
        fit._weights, fit._sides = weights, sides
    _warn_if_unsure(result)


def choose_place(fit: RobustEstimator, X: Any) -> str:
    """Return where rows are processed: in "memory", in a "stream", or on "dask"."""
    return find_place(X, fit._given_network(), fit.place, fit.streaming or Streaming())


def decide_again(fit: RobustEstimator, bad: Sequence[int], good: Sequence[int], X: Any) -> None:
    """Mark some groups of a fit as bad and others as good; see `RobustEstimator.decide`."""
    result, network = fit.result_, fit.result_.network
    old, judged = result.learned, result.judged
    if X is None and judged is None:
        raise NotFittedError(
            "A model file does not contain the rows of the fit: call decide(bad, good, X) with "
            "them."
        )
    if X is None and (old.recorded or old.cells or fit._sides is not None):
        raise NotFittedError(
            "With missing values, wrong cells or known rows, a decision needs the rows of the fit "
            "again. Call decide(bad, good, X) with these rows; robustbn fit does so with --place "
            "memory."
        )
    columns = [
        check_groups(name, given, old.model.n_others)
        for name, given in (("bad", bad), ("good", good))
    ]
    model = decide_groups(old.model, *columns)
    if X is None and judged is not None:
        new = refit_decided(old, model)
        judged = judged.judged_again(lambda codes: new.model.weigh(result.deeper.load(codes)))
        found = Fitted(new, result.reading, judged, result.aside.without_counts())
    else:
        table = _encode_again(fit, X)
        complete = _completing(fit, network, table.reading.config)
        found = decide_in_memory(
            network, table, old, model, read_config(fit), fit._weights, fit._sides, complete
        )
    _store(fit, build_result(fit, network.with_cpts(None), found, result.seconds))


def check_groups(name: str, numbers: Sequence[int], n_groups: int) -> list[int]:
    """Return the columns of groups, given their numbers from 1; refuse unknown numbers."""
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    for number in numbers:
        if not (isinstance(number, int | np.integer) and 0 < number <= n_groups):
            there = (
                f"the numbers of groups_, 1 to {n_groups}"
                if n_groups
                else "none: there is no group"
            )
            raise SettingError(f"{name} must be numbers of groups ({there}); found {number!r}.")
    return [int(number) - 1 for number in numbers]


def _store(fit: RobustEstimator, result: FitResult) -> None:
    """Set the result, and warn about tables that could not be learned."""
    fit.result_ = result
    fit._warn_of_tables(result.has_prior)


def _encode_again(fit: RobustEstimator, X: Any) -> Table:
    """Return the rows of `fit` as codes; refuse other rows, and rows whose weights are lost."""
    network, n = fit.result_.network, fit.result_.n_rows
    table = fit._encode(X, has_context=True)
    table = without_copies(network, table, read_config(fit))
    if len(table) != n:
        raise DataError(f"X must be the {n:,} rows of fit; found {len(table):,}.")
    if fit._weights is None and not np.isclose(fit.result_.learned.n_rows, n):
        raise NotFittedError(
            "The rows of this fit were weighted, and the weights are not stored: fit again before "
            "you decide."
        )
    return table


def read_config(fit: RobustEstimator) -> RobustConfig:
    """Return the settings of a robust fit, checked."""
    names = (each.name for each in fields(RobustConfig) if each.name != "seed")
    return RobustConfig(**{n: getattr(fit, n) for n in names}, seed=_seed(fit.random_state))


def _seed(random_state: Any) -> int:
    """Return a seed from any `random_state` that scikit-learn accepts."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return int(np.random.default_rng(random_state).integers(2**63))


def _needed_network(fit: RobustEstimator) -> BayesianNetwork:
    network = fit._given_network()
    if network is None:
        raise SettingError("A table that is not in memory needs a network: give network=...")
    return network


def _fit_elsewhere(
    fit: RobustEstimator,
    X: Any,
    place: str,
    sample_weight: ArrayLike | None,
    config: RobustConfig,
    reading: TableConfig | None,
    watch: Watch,
) -> Fitted:
    """Fit to rows in a stream or on a cluster."""
    network = _needed_network(fit)
    reading = reading or TableConfig(fit.on_unknown, fit.on_missing, fit.bins)
    if reading.on_missing == "state":
        raise SettingError(
            "missing='state' is supported only for rows in memory, because a stream does not tell "
            "in advance which columns have missing values. Add the state 'missing' to the "
            "network, or have missing values inferred ('use')."
        )
    if fit.missing_is_evidence:
        raise SettingError("missing_is_evidence is supported only for rows in memory.")
    complete = _completing(fit, network, reading)
    if place == "dask":
        return fit_on_dask(network, X, sample_weight, config, reading, watch, complete)
    if sample_weight is not None:
        raise DataError("sample_weight is supported only for rows in memory.")
    streaming = fit.streaming or Streaming()
    return fit_stream(network, X, config, reading, streaming, watch, complete)


def _completing(
    fit: RobustEstimator, network: BayesianNetwork, reading: TableConfig
) -> Complete | None:
    """Return how missing values are inferred; None if they are not."""
    if reading.on_missing != "use":
        return None
    return partial(complete, network.layout, fit._pseudo_counts(network))


# --- progress and warnings ------------------------------------------------------------------------


def _watching(verbose: bool | int | None, say: Callable[[str], None]) -> Watch:
    """Return how progress is shown: one line per round if `verbose`, else the progress line."""
    if verbose:
        return Watch(_tell_round, _tell_part)
    return Watch(
        lambda done: say(
            f"Fitting: round {done.number}, {done.removed:.1%} of the rows distrusted"
        ),
        lambda what, done, of: say(f"{what[:1].upper()}{what[1:]}: part {done} of {of}"),
    )


def _tell_part(what: str, done: int, total: int) -> None:
    """Print how many parts of a table are done."""
    if total > 1:
        print(f"{what}: {done} of {total} files", file=sys.stderr)


def _tell_round(done: Round) -> None:
    """Print what a round found and did."""
    spectrum = ""
    if done.eigenvalues:
        spectrum = (
            f"top eigenvalue {done.eigenvalues[0]:.3f}, good rows up to {done.threshold:.3f}; "
        )
    undone = "" if done.is_accepted else ", undone: the excess would have grown"
    print(
        f"round {done.number}: {done.action}{undone}; {spectrum}{done.removed:.2%} distrusted "
        f"({done.wall_s:.2f} s)",
        file=sys.stderr,
    )


def _warn_if_unsure(result: FitResult) -> None:
    """Warn about unreadable columns, a fit that did not converge, and too few rows."""
    damaged = result.aside.damaged
    if damaged:
        many = len(damaged) > 1
        warn(
            Advice(
                f"Column{'s' if many else ''} {some(list(damaged))} cannot be read, and "
                f"{'are' if many else 'is'} not used to find where bad rows come from; the "
                "network's columns are not affected. "
                f"{next(iter(damaged.values())).rstrip('.')}. Say which columns to look at with ",
                Setting("context", Either("[...]", "A,B")),
                ", or ",
                Setting("context", Either("()", "none")),
                " for none.",
            ),
            ContextWarning,
        )
    if not result.converged:
        warn(result.status, ConvergenceWarning)
    if result.few_rows:
        warn(
            f"{result.few_rows} With so few rows only gross corruption can be detected: interpret "
            "the tables with care, or use a simpler network.",
            SmallSampleWarning,
        )
