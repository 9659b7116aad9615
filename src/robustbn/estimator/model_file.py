"""A fitted estimator as a file: plain JSON, versioned, exact doubles, nothing that can run.

`{"format": "robustbn-model", "version": 1, "estimator", "versions", "settings", "network",
"reading", "fit"}`. `network` is a network file of its own (see `docs/networks.md`), with the
learned tables; `fit` holds how rows are judged. Trust in rows is not stored: it belongs with the
rows, and `weights(X)` gives it again.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from robustbn._core.config import TableConfig
from robustbn._core.documents import (
    build_inferred,
    build_misfit,
    build_model,
    build_repetition,
    build_rounds,
    describe_inferred,
    describe_misfit,
    describe_model,
    describe_repetition,
    describe_rounds,
    explaining,
    read_array,
    read_kind_counts,
)
from robustbn._core.elsewhere import name_of
from robustbn._core.kinds import Cause
from robustbn._core.layout import Layout
from robustbn._core.protocols import Vector
from robustbn._core.result import Inferred, Recorded, RobustFit
from robustbn._core.version import __version__
from robustbn._networks import MAX_CELLS
from robustbn._networks.files import decode, encode, find_file, read_bytes, write_bytes
from robustbn._networks.json import read_parts, to_text
from robustbn._networks.parts import build_network
from robustbn._rows.memory import fingerprint_codes
from robustbn._tables.coded import Reading
from robustbn.estimator.kinds import FoundKinds, describe_found
from robustbn.estimator.model_checks import check_document
from robustbn.exceptions import ModelFileError
from robustbn.network import BayesianNetwork

MODEL_FORMAT = "robustbn-model"
MODEL_VERSION = 1


def write_model(path: str | Path, document: Mapping[str, Any]) -> None:
    """Write a model as JSON, under a temporary name first; `.gz` is compressed."""
    head = {
        "format": MODEL_FORMAT,
        "version": MODEL_VERSION,
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
    path = find_file(path)
    if path.suffix.lower() in (".pkl", ".pickle", ".joblib"):
        raise ModelFileError(f"{path} is refused: a pickle may run code when it is opened.")
    text, path = decode(read_bytes(path), name_of(path)), name_of(path)
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a model file: {error}") from None
    if not isinstance(document, dict) or document.get("format") != MODEL_FORMAT:
        raise ModelFileError(f'{path} is not a model file: "format" must be "{MODEL_FORMAT}".')
    if document.get("version") != MODEL_VERSION:
        raise ModelFileError(
            f"{path} has version {document.get('version')!r}; this release reads version "
            f"{MODEL_VERSION}. A newer release of robustbn may read it."
        )
    for name in ("settings", "network", "reading", "fit"):
        if not isinstance(document.get(name), dict):
            raise ModelFileError(f'{path}: "{name}" is missing or not an object.')
    check_document(document, path)
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
    names = ("n_read", "n_rows", "kind", "where", "n_incomplete")
    plain = {name: getattr(reading, name) for name in names}
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
    with explaining("reading"):
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
            n_incomplete=int(document.get("n_incomplete", 0)),
        )


def describe_fit(fit: RobustFit, plain: Vector, found: FoundKinds) -> dict[str, Any]:
    """Return what a robust fit found as plain values.

    Parameters
    ----------
    plain : tables by counting; shape (M,).
    found : the kinds of bad rows; their causes are stored, single rows are not.
    """
    return {
        "counts": fit.counts.tolist(),
        "plain_counts": fit.plain_counts.tolist(),
        "plain_probabilities": plain.tolist(),
        "n_rows": fit.n_rows,
        "n_trusted": fit.n_trusted,
        "unit": fit.unit,
        **describe_model(fit.model),
        "kind_counts": fit.kind_counts.tolist(),
        "found_counts": found.counts.tolist(),
        "causes": [None if kind.cause is None else asdict(kind.cause) for kind in found.kinds],
        "rounds": describe_rounds(fit.rounds),
        "converged": fit.converged,
        "status": fit.status,
        "misfit": describe_misfit(fit.misfit),
        "inferred": describe_inferred(fit.inferred),
        "repetition": describe_repetition(fit.repetition),
        "recorded": None if fit.recorded is None else asdict(fit.recorded),
    }


def build_fit(
    document: Any, network: BayesianNetwork, kernels: str | None
) -> tuple[RobustFit, Vector]:
    """Return a robust fit, without the trust in its rows, and the tables by counting."""
    layout, m = network.layout, network.n_cells
    with explaining("fit"):
        prints = fingerprint_codes(network, kernels)
        model = build_model(document, layout, prints, network.probabilities)
        if not float(document["n_rows"]) > 0:
            raise ValueError('"n_rows" must be above 0')
        fit = RobustFit(
            counts=read_array(document["counts"], (m,), "counts", low=0.0),
            plain_counts=read_array(document["plain_counts"], (m,), "plain_counts", low=0.0),
            weights=None,
            n_rows=float(document["n_rows"]),
            n_trusted=float(document["n_trusted"]),
            unit=float(document.get("unit", 1.0)),
            model=model,
            kind_counts=read_kind_counts(document, layout),
            rounds=build_rounds(document["rounds"]),
            converged=bool(document["converged"]),
            status=str(document["status"]),
            misfit=build_misfit(document.get("misfit")),
            inferred=build_inferred(document.get("inferred"), layout),
            repetition=build_repetition(document.get("repetition")),
            recorded=_build_recorded(document.get("recorded"), layout),
        )
        plain = read_array(document["plain_probabilities"], (m,), "plain_probabilities", low=0.0)
    return fit, plain


def _build_recorded(document: Any, layout: Layout) -> Recorded | None:
    """Return how many rows record each state; None where no value is missing."""
    if document is None:
        return None
    sizes = {"states": sum(layout.cards), "configurations": layout.n_configurations}
    return Recorded(
        **{name: read_array(document[name], (n, 2), name, low=0.0) for name, n in sizes.items()}
    )


def build_kinds(document: Any, network: BayesianNetwork, fit: RobustFit, n_rows: int) -> FoundKinds:
    """Return the kinds of bad rows, without examples; files of old tell no causes.

    Parameters
    ----------
    n_rows : of the table.
    """
    shape = (network.n_cells, fit.kind_counts.shape[1] + 1)
    counts = np.hstack([fit.kind_counts, np.zeros((shape[0], 1))]) * (n_rows / fit.n_rows)
    with explaining("fit"):
        if document.get("found_counts") is not None:
            counts = read_array(document["found_counts"], shape, "found_counts", low=0.0)
        causes = [_build_cause(each, network) for each in document.get("causes", ())]
    return describe_found(network, fit, counts, n_rows, causes)


def _build_cause(document: Any, network: BayesianNetwork) -> Cause | None:
    if document is None:
        return None
    cause = Cause(
        str(document["name"]),
        tuple(str(column) for column in document["columns"]),
        float(document["confidence"]),
        str(document["text"]),
    )
    unknown = [column for column in cause.columns if column not in network.nodes]
    if unknown or not 0 <= cause.confidence <= 1:
        raise ValueError(f'"causes" holds {unknown or cause.confidence!r}, which cannot be')
    return cause


def read_inferred(document: Any, network: BayesianNetwork) -> Inferred | None:
    """Return what was inferred of missing values; None where nothing was."""
    with explaining("fit"):
        return build_inferred(document.get("inferred"), network.layout)


def as_cells(values: Any, network: BayesianNetwork, name: str) -> Vector:
    """Return one number a cell, none negative; shape (M,)."""
    with explaining("fit"):
        return read_array(values, (network.n_cells,), name, low=0.0)
