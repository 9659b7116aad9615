"""A fitted estimator as a file: plain JSON, versioned, exact doubles, nothing that can run.

`{"format": "robustbn-model", "version": 1, "estimator", "versions", "settings", "network",
"reading", "fit"}`. `network` is a network file of its own (see `docs/networks.md`), with the
learned tables; `fit` holds how rows are judged. Trust in rows is not stored: it belongs with the
rows, and `weights(X)` gives it again.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from robustbn._core.config import TableConfig
from robustbn._core.protocols import Vector
from robustbn._core.result import Round
from robustbn._core.version import __version__
from robustbn._learn.conductor import RobustFit, Verdict
from robustbn._learn.density_filter import Filter
from robustbn._learn.population import Mixture
from robustbn._learn.repeats import Repeats
from robustbn._learn.rounds import Learned
from robustbn._networks import MAX_CELLS
from robustbn._networks.files import decode, encode, read_bytes, write_bytes
from robustbn._networks.json import read_parts, to_text
from robustbn._networks.parts import build_network
from robustbn._rows.memory import load_rows
from robustbn._tables.table import Reading
from robustbn.exceptions import ModelFileError, RobustBNError
from robustbn.network import BayesianNetwork

FORMAT = "robustbn-model"
VERSION = 1


def write_model(path: str | Path, document: Mapping[str, Any]) -> None:
    """Write a model as JSON, under a temporary name first; `.gz` is compressed."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "versions": {
            "robustbn": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
    try:
        text = json.dumps(
            {**head, **document}, ensure_ascii=False, allow_nan=False, indent=1, default=_plain
        )
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: this estimator cannot be written: {error}.") from None
    write_bytes(encode(text, str(path)), Path(path))


def _plain(value: Any) -> Any:
    """Return numbers and arrays of NumPy, and ranges, as Python's own."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, range):
        return list(value)
    raise TypeError(f"{value!r} is of type {type(value).__name__}, which a file cannot hold")


def read_model(path: str | Path) -> dict[str, Any]:
    """Read and check the outermost layer of a model file."""
    path = Path(path)
    if path.suffix.lower() in (".pkl", ".pickle", ".joblib"):
        raise ModelFileError(f"{path} is refused: a pickle may run code when it is opened.")
    text = decode(read_bytes(path), str(path))
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a model file: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f'{path} is not a model file: "format" must be "{FORMAT}".')
    if document.get("version") != VERSION:
        raise ModelFileError(
            f"{path} has version {document.get('version')!r}; this release reads version "
            f"{VERSION}. A newer release of robustbn may read it."
        )
    for name in ("settings", "network", "reading", "fit"):
        if not isinstance(document.get(name), dict):
            raise ModelFileError(f'{path}: "{name}" is missing or not an object.')
    return document


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number that a model file may hold")


# --- the parts ------------------------------------------------------------------------------


def describe_network(network: BayesianNetwork) -> Any:
    """Return a network as plain values."""
    return json.loads(to_text(network))


def build_model_network(document: Any, path: str | Path) -> BayesianNetwork:
    """Return the network of a model file."""
    data = json.dumps(document).encode()
    parts = read_parts(data, f"{path}, network")
    return build_network(parts, str(path), tables=True, normalize=False, max_cells=MAX_CELLS)


def describe_reading(reading: Reading) -> dict[str, Any]:
    """Return how a table was read as plain values."""
    config = asdict(reading.config)
    config["labels"] = {n: list(pairs.items()) for n, pairs in reading.config.labels.items()}
    plain = {name: getattr(reading, name) for name in ("n_read", "n_rows", "kind", "where")}
    return {
        **plain,
        "n_missing": dict(reading.n_missing),
        "n_unknown": dict(reading.n_unknown),
        "ignored": list(reading.ignored),
        "skipped": dict(reading.skipped),
        "config": config,
    }


def build_reading(document: Any) -> Reading:
    """Return how the table was read."""
    with _explaining("reading"):
        config = dict(document["config"])
        config["labels"] = {n: dict(pairs) for n, pairs in config["labels"].items()}
        return Reading(
            n_read=int(document["n_read"]),
            n_rows=int(document["n_rows"]),
            n_missing=dict(document["n_missing"]),
            n_unknown=dict(document["n_unknown"]),
            ignored=tuple(document["ignored"]),
            kind=str(document["kind"]),
            where=str(document["where"]),
            config=TableConfig(**config),
            skipped=dict(document.get("skipped", {})),
        )


def describe_fit(fit: RobustFit, plain: Vector) -> dict[str, Any]:
    """Return what a robust fit found as plain values.

    Parameters
    ----------
    plain : tables by counting; shape (M,).
    """
    return {
        "counts": fit.counts.tolist(),
        "plain_counts": fit.plain_counts.tolist(),
        "plain_probabilities": plain.tolist(),
        "n_rows": fit.n_rows,
        "n_trusted": fit.n_trusted,
        **_describe_judging(fit.mixture, fit.filters, fit.repeats, fit.repeated),
        "kind_counts": fit.kind_counts.tolist(),
        "rounds": [asdict(done) for done in fit.rounds],
        "converged": fit.converged,
        "status": fit.status,
    }


def describe_verdict(verdict: Verdict) -> dict[str, Any]:
    """Return how rows are judged as plain values."""
    learned = verdict.learned
    return {
        **_describe_judging(learned.mixture, learned.filters, verdict.repeats, verdict.repeated),
        "kind_counts": verdict.kind_counts.tolist(),
        "rounds": [asdict(done) for done in learned.rounds],
        "top": learned.top,
        "threshold": learned.threshold,
        "stopped": learned.stopped,
    }


def build_verdict(document: Any, network: BayesianNetwork, backend: str | None) -> Verdict:
    """Return how rows are judged."""
    with _explaining("verdict"):
        mixture, filters, repeats, repeated = _build_judging(document, network, backend)
        return Verdict(
            learned=Learned(
                mixture,
                filters,
                _build_rounds(document),
                float(document["top"]),
                float(document["threshold"]),
                str(document["stopped"]),
            ),
            repeats=repeats,
            repeated=repeated,
            kind_counts=_array(
                document["kind_counts"], (network.n_cells, None), "kind_counts", low=0.0
            ),
        )


def _describe_judging(
    mixture: Mixture | None, filters: Sequence[Filter], repeats: Repeats, repeated: Any
) -> dict[str, Any]:
    described = _lists(asdict(repeats))
    del described["fingerprints"]  # each backend has its own; made again from the codes
    return {
        "mixture": None if mixture is None else _lists(asdict(mixture)),
        "filters": [_lists(asdict(each)) for each in filters],
        "repeats": {**described, "codes": repeated.tolist()},
    }


def _build_judging(
    document: Any, network: BayesianNetwork, backend: str | None
) -> tuple[Mixture | None, tuple[Filter, ...], Repeats, Any]:
    m = network.n_cells
    mixture = None
    if document["mixture"] is not None:
        given = document["mixture"]
        shares = _array(given["shares"], (None,), "shares", low=0.0, high=1.0)
        mixture = Mixture(
            q=_array(given["q"], (m,), "q", low=1e-300),
            bad=_array(given["bad"], (m, len(shares)), "bad", low=1e-300),
            shares=shares,
            intercept=float(given["intercept"]),
            slope=float(given["slope"]),
        )
    filters = []
    for given in document["filters"]:
        edges = _array(given["edges"], (None,), "edges")
        table = _array(given["table"], (m, None), "table")
        factors = _array(given["factors"], (len(edges) + 1,), "factors", low=0.0, high=1.0)
        filters.append(Filter(table, edges, factors))
    given = document["repeats"]
    factors = _array(given["factors"], (None,), "factors", low=0.0, high=1.0)
    n = len(factors)
    codes = np.array(given["codes"], np.uint8).reshape(n, network.n_nodes)
    prints = load_rows(network, codes, backend).fingerprints() if n else np.empty(0, np.uint64)
    order = np.argsort(prints)
    repeats = Repeats(
        prints[order],
        factors[order],
        _array(given["first"], (n,), "first")[order].astype(np.int64),
        _array(given["seen"], (n,), "seen")[order].astype(np.int64),
        _array(given["expected"], (n,), "expected")[order],
    )
    return mixture, tuple(filters), repeats, codes[order]


def _build_rounds(document: Any) -> tuple[Round, ...]:
    return tuple(
        Round(**{**done, "eigenvalues": tuple(map(float, done["eigenvalues"]))})
        for done in document["rounds"]
    )


def build_fit(
    document: Any, network: BayesianNetwork, backend: str | None
) -> tuple[RobustFit, Vector]:
    """Return a robust fit, without the trust in its rows, and the tables by counting."""
    m = network.n_cells
    with _explaining("fit"):
        mixture, filters, repeats, repeated = _build_judging(document, network, backend)
        if not float(document["n_rows"]) > 0:
            raise ValueError('"n_rows" must be above 0')
        fit = RobustFit(
            counts=_array(document["counts"], (m,), "counts", low=0.0),
            plain_counts=_array(document["plain_counts"], (m,), "plain_counts", low=0.0),
            weights=None,
            n_rows=float(document["n_rows"]),
            n_trusted=float(document["n_trusted"]),
            mixture=mixture,
            filters=filters,
            repeats=repeats,
            repeated=repeated,
            kind_counts=_array(document["kind_counts"], (m, None), "kind_counts", low=0.0),
            rounds=_build_rounds(document),
            converged=bool(document["converged"]),
            status=str(document["status"]),
        )
        plain = _array(document["plain_probabilities"], (m,), "plain_probabilities", low=0.0)
    return fit, plain


def as_cells(values: Any, network: BayesianNetwork, name: str) -> Vector:
    """Return one number a cell, none negative; shape (M,)."""
    with _explaining("fit"):
        return _array(values, (network.n_cells,), name, low=0.0)


def _lists(values: dict[str, Any]) -> dict[str, Any]:
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}


def _array(
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


class _explaining:  # noqa: N801 - reads as a word at the place of use
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
