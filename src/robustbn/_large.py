"""Robust fits of tables that are not held in memory: which they are, and one such run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._config import RobustConfig, TableConfig
from robustbn._fit import RobustFit, fit_robustly
from robustbn._memory import physical_bytes
from robustbn._model_file import build_verdict, describe_verdict
from robustbn._passes import load_rows
from robustbn._protocols import Survey
from robustbn._read.network_json import to_text
from robustbn._result import Round
from robustbn._stream.cache import CodeCache
from robustbn._stream.checkpoint import Checkpoint
from robustbn._stream.data import Progress, RowsInStream
from robustbn._stream.parts import CodeStream, open_stream
from robustbn._stream.weights import WeightFiles
from robustbn._table import Reading
from robustbn._version import __version__
from robustbn.network import BayesianNetwork

MEMORY_SHARE = 0.25  # codes of rows that take more than this of the memory are not held


@dataclass(frozen=True)
class StreamConfig:
    """Where a long run keeps and writes things; see `RobustEstimator`."""

    on_error: str = "raise"
    cache: str | os.PathLike[str] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    weights_to: str | os.PathLike[str] | None = None


@dataclass(frozen=True, eq=False)
class LargeFit:
    """A robust fit of rows that are not in memory.

    Parameters
    ----------
    fit : what was found.
    reading : how the rows were read.
    numbers, codes : rows that are distrusted among those the verdict was learned from.
    """

    fit: RobustFit
    reading: Reading
    numbers: NDArray[np.int64]
    codes: NDArray[np.uint8]


def is_large(table: Any, network: BayesianNetwork) -> bool:
    """Whether a table lies in files, and its codes would take much of the memory."""
    limit = MEMORY_SHARE * physical_bytes()
    if isinstance(table, str | os.PathLike):
        from robustbn._read.table_files import find_files, is_packed, open_file

        files = find_files(os.fspath(table))
        if not is_packed(files):  # text: a value takes two bytes or more
            return sum(file.stat().st_size for file in files) / 2 > limit
        source = open_file(os.fspath(table), sep=None, encoding="utf-8")
        return (source.n_rows or 0) * network.n_nodes > limit
    if type(table).__module__.startswith("pyarrow") and hasattr(table, "count_rows"):
        return bool(table.count_rows() * network.n_nodes > limit)
    return callable(table)


def fit_stream(
    network: BayesianNetwork,
    table: Any,
    config: RobustConfig,
    reading: TableConfig,
    where: StreamConfig,
    tell: Callable[[Round], None],
    progress: Progress = lambda *_: None,
) -> LargeFit:
    """Fit robustly to rows that are read in stretches: the same answer as in memory.

    Two passes over the files, one with a cache; memory O(sample).
    """
    backend = None if config.backend == "stream" else config.backend
    config = replace(config, backend=backend)
    stream = open_stream(table, network, reading, on_error=where.on_error)
    data = RowsInStream(
        stream,
        on_error=where.on_error,
        backend=backend,
        n_threads=config.n_threads,
        pack=describe_verdict,
        unpack=lambda document: build_verdict(document, network, backend),
        progress=progress,
    )
    if where.checkpoint is not None:
        data.checkpoint = Checkpoint(Path(where.checkpoint), _identity(stream, config))
    if where.cache is not None:
        data.cache = CodeCache(Path(where.cache), network.layout, backend)
    if where.weights_to is not None:
        names = [part.name for part in stream.parts]
        data.weight_files = WeightFiles(Path(where.weights_to), names)
    kept = _Keeping(data)
    try:
        fit = fit_robustly(network, kept, None, config, tell)
        if data.weight_files:
            data.weight_files.finish()
    finally:
        if data.weight_files:
            data.weight_files.discard()
        if data.cache:
            data.cache.clear()
    if data.checkpoint:
        data.checkpoint.clear()
    survey = kept.surveyed
    trust = fit.weigh(load_rows(network, survey.codes, backend, config.n_threads))
    doubtful = np.flatnonzero(trust < 0.5)
    found = Reading(
        n_read=data.n_read,
        n_rows=survey.n_rows,
        n_missing=dict(data.tally.missing),
        n_unknown=dict(data.tally.unknown),
        ignored=stream.ignored,
        kind="file",
        where=os.fspath(table) if isinstance(table, str | os.PathLike) else "The stream",
        config=stream.config,
        skipped=dict(stream.skipped),
    )
    return LargeFit(fit, found, survey.numbers[doubtful], survey.codes[doubtful])


class _Keeping:
    """The rows of a stream, with the survey kept for whoever asks later."""

    def __init__(self, data: RowsInStream) -> None:
        self._data = data
        self.judge, self.remember, self.all_rows = data.judge, data.remember, data.all_rows
        self.surveyed: Survey

    def survey(self, weights: Any, n_most: int, seed: int) -> Survey:
        self.surveyed = self._data.survey(weights, n_most, seed)
        return self.surveyed


def _identity(stream: CodeStream, config: RobustConfig) -> dict[str, str]:
    """Return what a run is of: a checkpoint of another is refused."""
    files = []
    for part in stream.parts:
        path = Path(part.name)
        state = path.stat() if path.exists() else None
        files.append(f"{part.name} {state.st_size} {state.st_mtime_ns}" if state else part.name)
    settings = replace(config, n_threads=None)
    return {
        "version": __version__,
        "network": _digest(to_text(stream.network.with_cpts(None))),
        "data": _digest("\n".join(files)),
        "settings": _digest(f"{settings} {stream.config}"),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
