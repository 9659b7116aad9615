"""What a fit found as plain values, for model files; and back, checked.

The values are those of the dataclasses themselves, by msgspec: types are checked, doubles are kept
exactly, nothing of a file can run. Fingerprints of repeated rows are made again from their codes.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from robustbn._core import __version__
from robustbn._core.layout import MOST_CODES, Codes, Layout
from robustbn._core.result import RobustFit
from robustbn._core.row_model import Repeats, RowModel
from robustbn.exceptions import ModelFileError

VERSIONS = {  # those that decide what a fit gives
    "robustbn": __version__,
    "python": platform.python_version(),
    "numpy": np.__version__,
}
Value = TypeVar("Value")
Fingerprint = Callable[[Codes], NDArray[np.uint64]]  # of codes of shape (n, d)

ANY = (-1e300, 1e300)
FROM_ZERO = (0.0, 1e300)
ABOVE_ZERO = (1e-300, 1e300)
WHOLE = (0, 10**15)  # which doubles still hold exactly
SHARE = (-1e-6, 1 + 1e-6)
BOUNDS = {  # of the numbers in an entry, by its name
    **dict.fromkeys(("counts", "plain_counts", "group_counts", "found_counts"), FROM_ZERO),
    **dict.fromkeys(("observed_counts", "plain_probabilities", "good", "expected"), FROM_ZERO),
    **dict.fromkeys(("n_trusted", "n_sampled", "n_impossible", "wall_s"), FROM_ZERO),
    **dict.fromkeys(("states", "configurations", "doubt"), FROM_ZERO),
    **dict.fromkeys(("others", "n_rows", "unit"), ABOVE_ZERO),
    **dict.fromkeys(("n_read", "n_incomplete", "n_missing", "n_unknown", "first", "seen"), WHOLE),
    **dict.fromkeys(("number", "n_kinds", "n_classes", "n_steps", "divisor"), WHOLE),
    **dict.fromkeys(("factors", "shares", "missing"), (0.0, 1.0)),
    **dict.fromkeys(("share", "removed", "confidence"), SHARE),
    "effect": (1.0, 1e300),
    "n_beyond": WHOLE,
    "codes": (0, MOST_CODES - 1),
}


def to_plain(value: Any) -> Any:
    """Return dataclasses, arrays and numbers of NumPy, and ranges, as values that JSON has."""
    import msgspec

    return msgspec.to_builtins(value, enc_hook=_plain, builtin_types=())


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, range):
        return list(value)
    raise TypeError(f"{value!r} is of type {type(value).__name__}, which a file cannot hold")


def from_plain(kind: type[Value], document: Any, where: str) -> Value:
    """Return plain values as any type; refuse what is not of it, by its path below `where`."""
    import msgspec

    with _refusing(where):
        return msgspec.convert(document, kind, dec_hook=_build)


@contextmanager
def _refusing(where: str) -> Iterator[None]:
    """Turn whatever is wrong with a part of a file into an error that says which entry it is."""
    from msgspec import ValidationError

    try:
        yield
    except ValidationError as error:
        said, _, place = str(error).partition(" - at `$")
        place = f"{where}{place.rstrip('`')}".lstrip(".")
        raise ModelFileError(f"{place or 'the file'} is damaged: {said.rstrip('.')}.") from None
    except ModelFileError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{where} is damaged: {error}") from None


def _build(kind: Any, value: Any) -> Any:
    """Return an array of its type, or a label; lists within lists are of one length."""
    if kind is Hashable:
        if value is None or isinstance(value, str | int | float):
            return value
        raise TypeError(f"{value!r} is no label")
    import msgspec

    (dtype,) = get_args(get_args(kind)[1])[:1]
    dtype = dtype if isinstance(dtype, type) else np.uint16  # of codes
    element = {np.float64: float, np.bool_: bool}.get(dtype, int)
    is_matrix = isinstance(value, list) and len(value) > 0 and isinstance(value[0], list)
    try:
        checked = msgspec.convert(value, list[list[element]] if is_matrix else list[element])  # type: ignore[valid-type]
    except msgspec.ValidationError as error:
        raise ValueError(str(error).replace(" - at `$", " at `")) from None  # gets its path
    return np.array(checked, dtype)


def check_numbers(document: Any, where: str) -> None:
    """Refuse a number that its entry cannot hold, with its path."""
    waiting = [(where, "", document)]
    while waiting:
        path, name, value = waiting.pop()
        low, high = BOUNDS.get(name, ANY)
        if isinstance(value, dict):
            inner = ((key if name not in BOUNDS else name, key) for key in value)
            waiting += [(f"{path}.{key}", of, value[key]) for of, key in inner]
        elif isinstance(value, list):
            is_plain = set(map(type, value)) <= {float}
            if is_plain and low <= min(value, default=low) and max(value, default=low) <= high:
                continue
            waiting += [(f"{path}[{k}]", name, each) for k, each in enumerate(value)]
        elif type(value) in (int, float) and not low <= value <= high:
            raise ModelFileError(
                f"{path} must be a number from {low:g} to {high:g}; found {str(value)[:40]}."
            )


# --- what judges rows ----------------------------------------------------------------------------


def describe(fit: RobustFit) -> dict[str, Any]:
    """Return what a fit found as plain values."""
    document: dict[str, Any] = to_plain(fit)
    document["model"]["repeats"]["fingerprints"] = []
    if fit.misfit is not None:  # there is no NaN in JSON: what is not there is NaN
        document["misfit"] = {k: v for k, v in document["misfit"].items() if v == v}
    return document


def build(document: Any, layout: Layout, fingerprint: Fingerprint) -> RobustFit:
    """Return what a fit found, without the trust in its rows; `fingerprint` is of rows of codes."""
    check_numbers(document, "fit")
    fit = from_plain(RobustFit, document, "fit")
    k = fit.model.n_others
    require_shapes(
        "fit", group_counts=(fit.group_counts, (layout.n_cells, k)), chances=(fit.chances, (k,))
    )
    _check_model(fit.model, layout)
    with _refusing("fit.model.repeats"):
        repeats = _with_fingerprints(fit.model.repeats, layout, fingerprint)
    cells = fit.cells
    if cells is not None:
        with _refusing("fit.cells"):
            cells = cells.checked(layout.families, layout.cards)
    return replace(fit, model=replace(fit.model, repeats=repeats), cells=cells)


def _check_model(model: RowModel, layout: Layout) -> None:
    where, m, k = "fit.model", layout.n_cells, model.n_others
    require_shapes(
        where,
        good=(model.good, (m,)),
        shares=(model.shares, (k,)),
        others=(model.others, (m, k)),
        kept=(model.kept, (k,)),
    )
    if k and not model.good.min() >= ABOVE_ZERO[0]:  # its logarithm is taken
        raise ModelFileError(f"{where}.good is damaged: it must be above 0.")
    for each in model.filters:
        require_shapes(
            f"{where}.filters",
            table=(each.table, (m, None)),
            edges=(each.edges, (None,)),
            factors=(each.factors, (len(each.edges) + 1,)),
        )
    repeats = model.repeats
    n = len(repeats.factors)
    require_shapes(
        f"{where}.repeats",
        factors=(repeats.factors, (n,)),
        first=(repeats.first, (n,)),
        seen=(repeats.seen, (n,)),
        expected=(repeats.expected, (n,)),
        codes=(repeats.codes, (n, layout.n_nodes) if n else (0,)),
    )


def _with_fingerprints(repeats: Repeats, layout: Layout, fingerprint: Fingerprint) -> Repeats:
    """Return repeated rows in the order of their fingerprints."""
    codes = repeats.codes.reshape(-1, layout.n_nodes)
    prints = fingerprint(codes) if len(codes) else np.empty(0, np.uint64)
    order = np.argsort(prints)
    return Repeats(
        prints[order],
        repeats.factors[order],
        repeats.first[order],
        repeats.seen[order],
        repeats.expected[order],
        codes[order],
    )


def require_shapes(where: str, **wanted: tuple[NDArray[Any], tuple[int | None, ...]]) -> None:
    """Refuse arrays of another shape than they should have, where None is any length."""
    for name, (array, shape) in wanted.items():
        is_right = array.ndim == len(shape) and all(
            expected in (None, found) for expected, found in zip(shape, array.shape, strict=True)
        )
        if not is_right:
            raise ModelFileError(
                f"{where}.{name} is damaged: it has shape {array.shape}; expected {shape}."
            )
