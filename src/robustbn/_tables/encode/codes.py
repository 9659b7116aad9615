"""Codes and weights that a caller hands over as arrays, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustbn._core.layout import Codes
from robustbn.exceptions import CodeRangeError, DataError
from robustbn.network import BayesianNetwork

MOST_WEIGHT = 1e100  # of all rows; its square is still a number
SIDES = {"1": 1, "+1": 1, "good": 1, "-1": -1, "bad": -1} | dict.fromkeys(
    ("0", "", "nan", "none", "<na>"), 0
)  # what people write of a row that they know


def as_codes(X: ArrayLike, network: BayesianNetwork) -> Codes:
    """Return the codes as an array of shape (N, d), without a copy if they are bytes or two each.

    Whether each code is a state of its node is checked later, in the pass that packs the rows.
    """
    array = np.asarray(X)
    if array.ndim != 2:
        raise DataError(
            f"Rows must be an array of shape (rows, {network.n_nodes}); found "
            f"{array.ndim} dimension(s), shape {array.shape}."
        )
    if array.shape[1] != network.n_nodes:
        raise DataError(
            f"Rows have {array.shape[1]} columns; the network has {network.n_nodes} nodes. "
            f"Column k belongs to network.nodes[k]: {_first_names(network)}."
        )
    if array.dtype in (np.uint8, np.uint16):
        return array
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype.kind not in "iu":
        raise _wrong_type(array, network)
    dtype = network.layout.code_dtype
    if array.size and (array.min() < 0 or array.max() > np.iinfo(dtype).max):
        cards = np.array(network.layout.cards)
        row, column = (int(v) for v in np.argwhere((array < 0) | (array >= cards))[0])
        raise CodeRangeError(
            row, column, int(array[row, column]), int(cards[column]), network.nodes[column]
        )
    return array.astype(dtype)


def check_weights(weights: ArrayLike | None, n_rows: int) -> NDArray[np.floating[Any]] | None:
    """Return row weights as a float array of shape (N,): finite, not negative, not all zero."""
    if weights is None:
        return None
    try:
        array = np.asarray(weights)
        if array.dtype not in (np.float32, np.float64):
            array = array.astype(np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise DataError(f"Row weights must be numbers: {error}") from None
    if array.shape != (n_rows,):
        raise DataError(
            f"There must be one weight a row, shape ({n_rows},); found shape {array.shape}."
        )
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"Row weights must be finite and not negative; found {array[row]} at row {row} "
            f"({int(wrong.sum())} such weights)."
        )
    if n_rows and not array.any():
        raise DataError("Every row weight is zero: there is nothing to learn from.")
    with np.errstate(over="ignore"):
        total = float(array.sum(dtype=np.float64))
    if total > MOST_WEIGHT:
        raise DataError(
            f"Row weights overflow: together they are {total:.3g}, more than {MOST_WEIGHT:g}. "
            "Divide them by their mean; they are numbers of rows."
        )
    return array


def check_known(known: ArrayLike | None, n_rows: int) -> NDArray[np.int8] | None:
    """Return what is known of rows as an array of +1 (good), -1 (bad) and 0; shape (N,)."""
    if known is None:
        return None
    try:
        array = np.asarray(known)
    except ValueError as error:
        raise DataError(f"known has one value a row: {error}") from None
    if array.shape != (n_rows,):
        raise DataError(f"known has one value a row, shape ({n_rows},); found shape {array.shape}.")
    if array.dtype.kind in "biuf":
        sides = np.nan_to_num(array.astype(np.float64))
    else:
        words, place = np.unique(array.astype(str), return_inverse=True)
        known_words = [SIDES.get(word.strip().lower().removesuffix(".0"), np.inf) for word in words]
        sides = np.array(known_words, np.float64)[place]
    wrong = ~np.isin(sides, (-1, 0, 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        found = repr(str(array[row])) if isinstance(array[row], str) else array[row]
        raise DataError(
            "known is good (1), bad (-1) or, for the other rows, nothing (0); found "
            f"{found} at row {row}."
        )
    return sides.astype(np.int8)


def require_rows(n_rows: int) -> None:
    """Refuse to learn from nothing."""
    if n_rows == 0:
        raise DataError(
            "There are no rows (N = 0). Tables cannot be learned from nothing; check the file, the "
            "query or the filter that the rows come from."
        )


def _wrong_type(array: NDArray[Any], network: BayesianNetwork) -> DataError:
    advice = (
        "Codes are integers: 0 for the first of network.states[node], 1 for the second, and so on."
    )
    if array.dtype.kind == "f":
        missing = np.argwhere(~np.isfinite(array))
        if len(missing):
            row, column = (int(v) for v in missing[0])
            return DataError(
                f"Row {row}, column {column} ({network.nodes[column]!r}) is {array[row, column]}; "
                f"{len(missing)} values are missing or infinite. {advice} Drop or fill those rows "
                "first."
            )
        return DataError(
            f"Rows have dtype {array.dtype}. {advice} If these are whole numbers, pass "
            "X.astype('uint8')."
        )
    return DataError(f"Rows have dtype {array.dtype}. {advice}")


def _first_names(network: BayesianNetwork, limit: int = 6) -> str:
    names = ", ".join(map(repr, network.nodes[:limit]))
    return names + (", ..." if network.n_nodes > limit else "")
