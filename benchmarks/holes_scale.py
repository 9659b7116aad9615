"""What rows with holes cost: beside pyAgrum, in units of one count, and with 500 nodes."""

from __future__ import annotations

import multiprocessing
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cells import Record
from benchmarks.holes_peer import LIMIT_S, learn_elsewhere
from benchmarks.holes_scenes import (
    EVERYONE,
    HoleCell,
    describe_steps,
    find_error,
    hide,
    learn,
    time_once,
    with_holes,
)
from benchmarks.measure import Settings, time_interleaved
from benchmarks.scenes import build_network
from benchmarks.worker import peak_bytes, reset_peak
from robustbn import MaximumLikelihoodEstimator, sample
from robustbn._core.expansion import normalise_counts
from robustbn._learn.completion import complete
from robustbn._rows.memory import find_holed, gather, load_rows

PYAGRUM, SCALE, WIDE = "holes pyagrum", "holes scale", "holes wide"
WIDE_LIMIT_S = 240.0
THREADS = 1


def measure_pyagrum(cell: HoleCell) -> Record:
    """Return error and seconds of pyAgrum's EM, once, and of ours, the fastest of three."""
    network = build_network(cell.source, cell.seed)
    rows = sample(network, cell.n_rows, cell.seed + 1)
    is_hidden = hide(rows, network, cell.way, cell.share, np.random.default_rng([cell.seed, 3]))
    ours = partial(learn, "use", network, rows, is_hidden, EVERYONE)
    timing = time_interleaved({"ours": ours}, Settings(n_rounds=3))["ours"]
    theirs, seconds, cpu_s = learn_elsewhere(
        network, rows, is_hidden, EVERYONE["pseudo_count"], LIMIT_S
    )
    return {
        "tv": find_error(network, ours().network_, cell.seed),
        "seconds": timing.wall_s,
        "cpu_s": min(timing.cpus_s),
        "tv_pyagrum": None if theirs is None else find_error(network, theirs, cell.seed),
        "seconds_pyagrum": seconds,
        "cpu_s_pyagrum": cpu_s,
        "limit_s": LIMIT_S,
    }


def measure_scale(cell: HoleCell) -> Record:
    """Return the seconds of a whole EM beside one count of the same rows without holes.

    The rows are codes in memory. `count` is one pass over rows that are encoded already; `fit` is
    a whole fit by counting, reading included. `gather` and `steps` are the EM beyond the count of
    complete families; `use` is a whole fit of the rows with holes.
    """
    network = build_network(cell.source, cell.seed)
    layout = network.layout
    rows = sample(network, cell.n_rows, cell.seed + 1)
    is_hidden = hide(rows, network, cell.way, cell.share, np.random.default_rng([cell.seed, 3]))
    holed = np.where(is_hidden, np.array(layout.cards, rows.dtype), rows)
    encoded = load_rows(network, rows, None, THREADS)
    observed = load_rows(network, holed, None, THREADS, holed=find_holed(layout, holed)).count()
    learn_holes = partial(complete, layout, EVERYONE["pseudo_count"])
    gathered = gather(network.layout, holed, None, THREADS)
    found = learn_holes(observed, gathered)
    masked = with_holes(rows, is_hidden)
    estimator = partial(MaximumLikelihoodEstimator, network, n_threads=THREADS, **EVERYONE)
    timings = time_interleaved(
        {
            "count": lambda: replace(encoded).count(),  # rows remember their counts
            "gather": lambda: gather(network.layout, holed, None, THREADS),
            "steps": lambda: learn_holes(observed, gathered),
            "fit": lambda: estimator().fit(rows),
            "use": lambda: estimator().fit(masked),
        },
        Settings(n_rounds=5, budget_s=30.0),
    )
    walls = {name: timing.wall_s for name, timing in timings.items()}
    of_complete = network.with_cpts(
        normalise_counts(layout, encoded.count(), EVERYONE["pseudo_count"])
    )
    return {
        **walls,
        "ratio": (walls["gather"] + walls["steps"]) / walls["count"],
        "ratio_fits": walls["use"] / walls["fit"],
        "n_steps": found.inferred.n_steps,
        "n_questions": gathered.questions.n_questions,
        "question_bytes": gathered.n_bytes,
        "tv": find_error(network, network.with_cpts(found.tables), cell.seed),
        "tv_complete": find_error(network, of_complete, cell.seed),
    }


# --- many nodes -----------------------------------------------------------------------------------


def measure_wide(cell: HoleCell) -> Record:
    """Return error, seconds and memory of the EM on a large network, in a process of its own.

    One that takes longer than the limit is ended, and that is the result.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_wide, args=(cell, sender))
    process.start()
    sender.close()
    try:
        if not receiver.poll(WIDE_LIMIT_S):
            return {"cut_off": WIDE_LIMIT_S}
        found: Record = receiver.recv()
    except EOFError:
        raise RuntimeError("the process ended without a result: out of memory?") from None
    finally:
        process.terminate()
        process.join()
    return found


def _send_wide(cell: HoleCell, sender: Any) -> None:
    warnings.simplefilter("ignore")
    try:
        sender.send(_fit_wide(cell))
    except Exception as error:
        sender.send({"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"})


def _fit_wide(cell: HoleCell) -> Record:
    network = build_network(cell.source, cell.seed)
    rows = sample(network, cell.n_rows, cell.seed + 1)
    is_hidden = hide(rows, network, cell.way, cell.share, np.random.default_rng([cell.seed, 3]))
    found: Record = {"nodes": network.n_nodes, "configurations": network.n_configurations}
    for method in ("complete", "observed", "use"):
        before = reset_peak()
        fit, seconds = time_once(partial(learn, method, network, rows, is_hidden, EVERYONE))
        found[f"seconds_{method}"] = seconds
        found[f"bytes_{method}"] = peak_bytes() - before
        found[f"tv_{method}"] = find_error(network, fit.network_, cell.seed)
    return {**found, **describe_steps(fit)}
