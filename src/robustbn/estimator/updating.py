"""A fit and more rows: judged by what it knows, added to what it counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from robustbn._core.allocate import telling_memory
from robustbn._core.config import Streaming, is_number
from robustbn._core.groups import FoundGroups
from robustbn._core.protocols import Data, Vector
from robustbn._core.result import Calibration, RobustFit, UsualNumbers
from robustbn._learn.completion import complete
from robustbn._learn.places import open_elsewhere
from robustbn._learn.updating import Added, add_rows, judge_more
from robustbn._rows.memory import RowsInMemory
from robustbn._show.result import Deeper, FitResult
from robustbn._tables.coded import Reading, require_rows
from robustbn.estimator.finding import describe_result, normalise_fit
from robustbn.estimator.groups import describe_found
from robustbn.estimator.learning import choose_place, read_config
from robustbn.exceptions import SettingError
from robustbn.network import BayesianNetwork

if TYPE_CHECKING:
    from robustbn.estimator.robust import RobustEstimator


@telling_memory("Adding rows")
def update_fit(fit: RobustEstimator, X: Any, forgetting: float) -> None:
    """Add rows to a robust fit; see `RobustEstimator.update`."""
    check_forgetting(forgetting)
    before, config = fit.result_, read_config(fit)
    place = choose_place(fit, X)
    network, learned = before.network.with_cpts(None), before.learned
    completing = None
    if before.reading.config.on_missing == "use":
        known = fit._pseudo_counts(network) + forgetting * learned.counts_in_rows
        completing = partial(complete, network.layout, known)
    if place == "memory":
        table = fit._encode(X)
        require_rows(len(table))
        data: Data = RowsInMemory(network, table.codes, fit.kernels, fit.n_threads, table.holed)
        added, reading = judge_more(learned, data, config, completing), table.reading
    else:
        streaming = fit.streaming or Streaming()
        with open_elsewhere(network, X, place, before.reading.config, config, streaming) as data:
            added, reading = judge_more(learned, data, config, completing), data.reading
        require_rows(reading.n_rows)
    reading = add_readings(before.reading, reading, forgetting)
    network, learned, plain = normalise_fit(fit, network, add_rows(learned, added, forgetting))
    deeper: Deeper = _Updated(before, added, forgetting, network, learned, reading.n_rows)
    if before.judged is None:  # all is at hand: one update does not hold on to those before it
        found = {
            name: getattr(deeper, name) for name in ("groups", "calibration", "doubt", "numbers")
        }
        deeper = Deeper(deeper.load, **found)
    with fit._all_or_nothing():
        fit.result_ = describe_result(fit, network, plain, learned, reading, deeper)
        fit._weights = fit._sides = None


def check_forgetting(forgetting: Any) -> None:
    """Refuse what is no share of the old rows."""
    if not (is_number(forgetting) and 0 < forgetting <= 1):
        raise SettingError(
            f"forgetting is the weight of the old rows, above 0 and at most 1; found "
            f"{forgetting!r}."
        )


def add_readings(old: Reading, new: Reading, forgetting: float) -> Reading:
    """Return how all rows were read; old ones, if they are forgotten, as so many as they count."""

    def total(a: int, b: int) -> int:
        return round(forgetting * a) + b

    def by_node(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
        return {node: total(a.get(node, 0), b.get(node, 0)) for node in {**a, **b}}

    return replace(
        old,
        n_read=total(old.n_read, new.n_read),
        n_rows=total(old.n_rows, new.n_rows),
        n_missing=by_node(old.n_missing, new.n_missing),
        n_unknown=by_node(old.n_unknown, new.n_unknown),
        skipped={**old.skipped, **new.skipped},
        n_incomplete=total(old.n_incomplete, new.n_incomplete),
    )


class _Updated(Deeper):
    """What is known of a fit to which rows were added, from the fit before."""

    def __init__(
        self,
        before: FitResult,
        added: Added,
        forgetting: float,
        network: BayesianNetwork,
        learned: RobustFit,
        n_rows: int,
    ) -> None:
        super().__init__(before.deeper.load)
        self._before, self._added, self._forgetting = before, added, forgetting
        self._network, self._learned, self._n_rows = network, learned, n_rows

    @cached_property
    def calibration(self) -> Calibration | None:
        """How surprising good rows were before."""
        return self._before.calibration

    @cached_property
    def numbers(self) -> dict[str, UsualNumbers] | None:
        """Where numbers were before."""
        return self._before.deeper.numbers

    @cached_property
    def doubt(self) -> Vector | None:
        """That of before, and that of the rows that were added."""
        old = 0.0 if self._before.doubt is None else self._before.doubt
        return self._forgetting * old + self._added.doubt

    @cached_property
    def groups(self) -> FoundGroups:
        """The groups with the rows that were added to each; their causes are known."""
        found = self._before.deeper.groups
        counts = self._forgetting * found.counts
        counts[:, :-1] += self._added.fit.group_counts
        causes = {group.number: group.cause for group in found.groups}
        return describe_found(self._network, self._learned, counts, self._n_rows, causes)
