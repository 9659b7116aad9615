"""Tables that are read in stretches, and what they are compared with."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from robustbn import RobustEstimator, Streaming, random_network, sample
from robustbn._learn.places import Watch
from robustbn.adversary import corrupt
from robustbn.estimator.learning import fit_to

N_ROWS = 24_000
NETWORK = random_network("tree", 12, random_state=3)
TRUTH = sample(NETWORK, N_ROWS, random_state=3)
CODES = corrupt(TRUTH, NETWORK, "flipped", eps=0.15, random_state=3)[0]


def as_table(codes, names=NETWORK.nodes):
    columns = {n: pa.array(codes[:, k].astype(str)) for k, n in enumerate(names)}
    return pa.table({"id": np.arange(len(codes)), **columns})


def write_folder(folder, codes=CODES, n_files=7, order=None, **settings):
    """Write rows as Parquet files; return the rows in the order in which they will be read."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = np.array_split(codes, n_files)
    pieces = pieces if order is None else [pieces[k] for k in order]
    for k, piece in enumerate(pieces):
        pq.write_table(as_table(piece), folder / f"part-{k:03}.parquet", **settings)
    return np.concatenate(pieces)


def stream(table, part=None, **settings):
    """Fit to a table in stretches; `part` is told of every part."""
    names = [each.name for each in fields(Streaming) if each.name in settings]
    streaming = Streaming(**{name: settings.pop(name) for name in names})
    settings = {"random_state": 0, "place": "stream"} | settings
    fit = RobustEstimator(NETWORK, streaming=streaming, **settings)
    fit_to(fit, table, watch=None if part is None else Watch(part=part))
    return fit


def in_memory(codes, **settings):
    return RobustEstimator(NETWORK, random_state=0, **settings).fit(codes)


def assert_same(streamed, held, atol=1e-9):
    np.testing.assert_allclose(
        streamed.network_.probabilities, held.network_.probabilities, atol=atol
    )
    np.testing.assert_allclose(streamed.counts_, held.counts_, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(streamed.row_weights_, held.row_weights_, atol=1e-6)
    assert streamed.contamination_ == pytest.approx(held.contamination_, abs=1e-9)


def assert_identical(a, b):
    np.testing.assert_array_equal(a.counts_, b.counts_)
    np.testing.assert_array_equal(a.network_.probabilities, b.network_.probabilities)
    np.testing.assert_array_equal(a.row_weights_, b.row_weights_)
    assert a.contamination_ == b.contamination_


def everything_in(folder):
    return sorted(str(f.relative_to(folder)) for f in folder.rglob("*"))


def as_text(codes, sep=","):
    lines = [sep.join(NETWORK.nodes), *(sep.join(map(str, row)) for row in codes.tolist())]
    return "\n".join(lines) + "\n"


def write_kind(kind, folder, codes):
    folder.mkdir()
    for k, piece in enumerate(np.array_split(codes, 2)):
        file = folder / f"part-{k}.{kind}"
        if kind == "arrow":
            feather.write_feather(as_table(piece), file)
        elif kind == "csv":
            file.write_text(as_text(piece))
        elif kind == "csv.gz":
            file.write_bytes(gzip.compress(as_text(piece).encode()))
        else:
            rows = (dict(zip(NETWORK.nodes, map(str, row), strict=True)) for row in piece.tolist())
            file.write_text("\n".join(map(json.dumps, rows)))
    return folder
