"""What judges rows as plain values, for model files; and back, checked.

Doubles are kept exactly. Fingerprints of repeated rows are not stored: they are made again from the
codes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import uniform_tables
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Vector
from robustbn._core.result import Inferred, Misfit, Repetition, Round, UnevenCopies
from robustbn._core.row_model import Filter, Repeats, RowModel
from robustbn.exceptions import ModelFileError, RobustBNError

Fingerprint = Callable[[Codes], NDArray[np.uint64]]  # of codes of shape (n, d)


def describe_model(model: RowModel) -> dict[str, Any]:
    """Return a row model as plain values."""
    mixture = None
    if model.n_others:
        mixture = {
            "q": model.good.tolist(),
            "bad": model.others.tolist(),
            "shares": model.shares.tolist(),
            "intercept": model.intercept,
            "slope": model.slope,
        }
        if not model.is_bad.all():
            mixture["is_bad"] = model.is_bad.tolist()
    repeats = _lists(asdict(model.repeats))
    del repeats["fingerprints"]
    return {
        "mixture": mixture,
        "filters": [_lists(asdict(each)) for each in model.filters],
        "repeats": repeats,
    }


def build_model(
    document: Any, layout: Layout, fingerprint: Fingerprint, good: Vector | None = None
) -> RowModel:
    """Return a row model.

    Parameters
    ----------
    good : tables of the good rows, for a model that found none of another kind; shape (M,).
    """
    m, given = layout.n_cells, document["mixture"]
    filters, repeats = _build_filters(document, m), _build_repeats(document, layout, fingerprint)
    if given is None:
        nothing = uniform_tables(layout) if good is None else good
        return replace(RowModel.of_good_rows(nothing), filters=filters, repeats=repeats)
    shares = read_array(given["shares"], (None,), "shares", low=0.0, high=1.0)
    is_bad = np.array(given.get("is_bad", [True] * len(shares)), bool)
    if is_bad.shape != shares.shape:
        raise ValueError(f'"is_bad" has shape {is_bad.shape}; expected {shares.shape}')
    return RowModel(
        good=read_array(given["q"], (m,), "q", low=1e-300),
        others=read_array(given["bad"], (m, len(shares)), "bad", low=1e-300),
        shares=shares,
        is_bad=is_bad,
        intercept=float(given["intercept"]),
        slope=float(given["slope"]),
        filters=filters,
        repeats=repeats,
    )


def _build_filters(document: Any, m: int) -> tuple[Filter, ...]:
    filters = []
    for given in document["filters"]:
        edges = read_array(given["edges"], (None,), "edges")
        table = read_array(given["table"], (m, None), "table")
        factors = read_array(given["factors"], (len(edges) + 1,), "factors", low=0.0, high=1.0)
        filters.append(Filter(table, edges, factors))
    return tuple(filters)


def _build_repeats(document: Any, layout: Layout, fingerprint: Fingerprint) -> Repeats:
    given = document["repeats"]
    factors = read_array(given["factors"], (None,), "factors", low=0.0, high=1.0)
    n = len(factors)
    codes = np.array(given["codes"], np.uint16).reshape(n, layout.n_nodes)
    prints = fingerprint(codes) if n else np.empty(0, np.uint64)
    order = np.argsort(prints)
    return Repeats(
        prints[order],
        factors[order],
        read_array(given["first"], (n,), "first")[order].astype(np.int64),
        read_array(given["seen"], (n,), "seen")[order].astype(np.int64),
        read_array(given["expected"], (n,), "expected")[order],
        codes[order],
    )


def describe_rounds(rounds: tuple[Round, ...]) -> list[dict[str, Any]]:
    """Return rounds as plain values."""
    return [asdict(done) for done in rounds]


def build_rounds(document: Any) -> tuple[Round, ...]:
    """Return rounds."""
    return tuple(
        Round(**{**done, "eigenvalues": tuple(map(float, done["eigenvalues"]))})
        for done in document
    )


def describe_misfit(misfit: Misfit | None) -> dict[str, Any] | None:
    """Return how well a network fits as plain values."""
    if misfit is None:
        return None
    return {k: None if v != v else v for k, v in asdict(misfit).items()}  # no NaN in JSON


def build_misfit(document: Any) -> Misfit | None:
    """Return how well a network fits; None where nobody asked."""
    if document is None:
        return None
    return Misfit(
        is_exact=bool(document["is_exact"]),
        nats=float(document["nats"]),
        n_classes=int(document["n_classes"]),
        top=float(document["top"]),
        limit=float(document["limit"]),
        bottom=_or_nan(document.get("bottom")),
        bottom_limit=_or_nan(document.get("bottom_limit")),
    )


def describe_inferred(inferred: Inferred | None) -> dict[str, Any] | None:
    """Return what was inferred of missing values as plain values."""
    return None if inferred is None else _lists(asdict(inferred))


def build_inferred(document: Any, layout: Layout) -> Inferred | None:
    """Return what was inferred of missing values; None where nothing was."""
    if document is None:
        return None
    shape = (layout.n_cells,)
    return Inferred(
        observed_counts=read_array(document["observed_counts"], shape, "observed_counts", low=0.0),
        missing=read_array(document["missing"], (layout.n_nodes,), "missing", low=0.0, high=1.0),
        n_steps=int(document["n_steps"]),
        is_converged=bool(document["is_converged"]),
        left=float(document["left"]),
        n_sampled=float(document["n_sampled"]),
        n_impossible=float(document["n_impossible"]),
    )


def _or_nan(value: Any) -> float:
    return math.nan if value is None else float(value)


def describe_repetition(repetition: Repetition | None) -> dict[str, Any] | None:
    """Return how rows are repeated as plain values."""
    return None if repetition is None else asdict(repetition)


def build_repetition(document: Any) -> Repetition | None:
    """Return how rows are repeated; None where that changes nothing."""
    if document is None:
        return None
    uneven = document["uneven"]
    return Repetition(
        is_design=bool(document["is_design"]),
        is_counted=bool(document["is_counted"]),
        share=float(document["share"]),
        divisor=int(document["divisor"]),
        effect=float(document["effect"]),
        uneven=None if uneven is None else UnevenCopies(**uneven),
    )


def read_kind_counts(document: Any, layout: Layout) -> Vector:
    """Return the weight of each kind on each cell; shape (M, K)."""
    return read_array(document["kind_counts"], (layout.n_cells, None), "kind_counts", low=0.0)


# --- checks ---------------------------------------------------------------------------------------


def _lists(values: dict[str, Any]) -> dict[str, Any]:
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}


def read_array(
    values: Any,
    shape: tuple[int | None, ...],
    name: str,
    low: float = -1e300,
    high: float = 1e300,
) -> Vector:
    """Return numbers as an array of a shape, where None is any length; within bounds."""
    array = np.array(values, np.float64)
    if array.size == 0 and len(shape) == 2 and shape[0] is not None:
        array = array.reshape(shape[0], 0)
    fits = array.ndim == len(shape) and all(
        wanted in (None, found) for wanted, found in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise ValueError(f'"{name}" has shape {array.shape}; expected {shape}')
    if array.size and not (array.min() >= low and array.max() <= high):
        raise ValueError(f'"{name}" has values outside [{low:g}, {high:g}]')
    return array


class explaining:  # noqa: N801 - reads as a word at the place of use
    """Turns whatever is wrong with a part into an error that names the part."""

    def __init__(self, part: str) -> None:
        self._part = part

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        wrong = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
        if isinstance(error, wrong) and not isinstance(error, ModelFileError):
            what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            if isinstance(error, RobustBNError):
                what = str(error)
            raise ModelFileError(f'"{self._part}" of the model file is damaged: {what}.') from None
