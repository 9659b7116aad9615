"""What `fit --output-dir` writes beside the network and the report."""

from __future__ import annotations

import csv
import glob
import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustbn._cli.files import wants_raw
from robustbn._cli.networks import EXAMPLE
from robustbn._cli.screen import as_json
from robustbn._core.file_names import name_of
from robustbn._core.formulas import guard_cell
from robustbn._show.measures import interval
from robustbn._show.result import FitResult

if TYPE_CHECKING:
    from robustbn._cli.fit import Job

CPT_COLUMNS = ("node", "parents", "state", "robust", "naive", "delta", "n_eff", "low", "high")


def write_cpts(result: FitResult, path: Path) -> None:
    """Write a line a cell: both estimates, the rows behind them, a 95 % interval of the robust one.

    `parents` is `name=state` of each parent, with `; ` between them; `n_eff` the weight of the
    trusted rows that show the configuration.
    """
    network, layout = result.network, result.network.layout
    q, plain = network.probabilities, result.plain_network.probabilities
    n_rows = layout.sum_configurations(result.counts)[layout.config_of_cell]
    low, high = interval(q, n_rows)
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CPT_COLUMNS)
        as_is: Callable[[str], str] = str if wants_raw() else guard_cell
        for cell in range(network.n_cells):
            node, parents, state = network.describe_cell(cell)
            given = "; ".join(f"{name}={label}" for name, label in parents.items())
            figures = (q[cell], plain[cell], q[cell] - plain[cell])
            bounds = (low[cell], high[cell])
            writer.writerow(
                [
                    *(as_is(str(text)) for text in (node, given, state)),
                    *(repr(float(v)) for v in figures),
                    f"{n_rows[cell]:.6g}",
                    *(f"{v:.6g}" for v in bounds),
                ]
            )


def describe_run(
    path: Path, job: Job, result: FitResult, facts: Mapping[str, Any], seconds: Mapping[str, float]
) -> None:
    """Write what was run on what, so that it can be run again."""
    config = job.config
    document = {
        "format": "robustbn-run",
        "version": 1,
        "command": job.command_line,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": result.versions,
        "inputs": {
            "network": hash_files(job.network_path),
            "table": hash_files(job.table_path),
        },
        "seed": job.options["seed"],
        "settings": {
            name: value
            for name, value in job.options.items()
            if name not in ("output", "report", "weights", "model", "clean", "output_dir", "force")
        },
        "reading": {name: getattr(config, name) for name in vars(config)},
        "seconds": dict(seconds),
        "result": {name: value for name, value in facts.items() if name != "files"},
        "files": facts["files"],
    }
    text = json.dumps(as_json(document), indent=1, ensure_ascii=True, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def hash_files(text: str) -> list[dict[str, Any]]:
    """Return name, size and SHA-256 of the files behind an argument."""
    if text.startswith(EXAMPLE):
        return [{"path": text}]
    path = Path(text)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file())
    elif path.exists():
        files = [path]
    else:
        matches = glob.glob(text, recursive=True)  # noqa: PTH207
        files = sorted(Path(p) for p in matches if Path(p).is_file())
    found: list[dict[str, Any]] = []
    for file in files:
        name = name_of(file)
        try:
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:  # the fit may have skipped it
            found.append({"path": name, "error": str(error)})
            continue
        found.append({"path": name, "bytes": file.stat().st_size, "sha256": digest})
    return found
