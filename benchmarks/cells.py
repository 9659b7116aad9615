"""A cell is one method on one data set; what was measured in it is kept as soon as it is known.

The notebook is a file of JSON lines, each with the settings of a cell, the version of the code that
ran, and what came out. A run that was interrupted goes on where it ended; a change of the code
starts afresh.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import robustbn

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / ".bench_cache" / "cells.jsonl"
PACKAGE = Path(robustbn.__file__).parent
# What decides a result: the package that is imported, its kernels, and the files that draw rows and
# run methods.
CODE = (
    (PACKAGE, "**/*.py"),
    (ROOT, "native/*"),
    (ROOT, "benchmarks/scenes.py"),
    (ROOT, "benchmarks/contenders.py"),
)

NOT_MEASURED = "not measured: the time limit of the run was reached before"

Record = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One method on one data set.

    Parameters
    ----------
    experiment : what the cell belongs to.
    network : as in `scenes.build_network`.
    adversary : one of `robustbn.adversary.KINDS`, or "none".
    method : a key of `contenders.METHODS`.
    eps : share of bad rows, told to every method that can be told.
    n_rows : N.
    seed : of the network (if it is drawn), its rows, the adversary and the method.
    n_threads : that the method may use.
    n_rounds : how often it is timed; the fastest counts.
    n_draws : rows drawn to estimate the total variation; 0 to leave it out.
    """

    experiment: str
    network: str
    adversary: str
    method: str
    eps: float
    n_rows: int
    seed: int = 0
    n_threads: int = 1
    n_rounds: int = 1
    n_draws: int = 100_000

    @property
    def scene(self) -> tuple[str, str, float, int, int]:
        """What decides the rows: cells with the same scene are given the same rows."""
        return (self.network, self.adversary, self.eps, self.n_rows, self.seed)

    def describe(self) -> str:
        """Return the cell in a few words."""
        return (
            f"{self.experiment}: {self.network}, {self.adversary}, {self.method}, "
            f"{self.n_rows:,} rows, eps {self.eps:g}, seed {self.seed}"
        )


class Notebook:
    """The cells that were measured before, by settings and version of the code.

    A cell is any dataclass whose fields decide what is measured, its `experiment` among them.

    Parameters
    ----------
    path : of the file of JSON lines; made when the first cell is noted.
    version : of the code; lines of other versions are left alone and not used.
    fresh : whether what is in the file is ignored.
    retry : whether cells that failed are measured again.
    """

    def __init__(
        self, path: Path, version: str, *, fresh: bool = False, retry: bool = False
    ) -> None:
        self.path, self.version = path, version
        self._known: dict[str, Record] = {}
        if fresh or not path.exists():
            return
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
                key, result = entry["key"], entry["result"]
            except (json.JSONDecodeError, KeyError, TypeError):
                continue  # a line cut short by an interruption
            if not (retry and "failed" in result):
                self._known[_as_text(key)] = result
            else:
                self._known.pop(_as_text(key), None)

    def find(self, cell: DataclassInstance) -> Record | None:
        """Return what was measured in the cell, or None."""
        return self._known.get(_as_text(self._key(cell)))

    def forget(self, cell: DataclassInstance) -> None:
        """Measure a cell again, whatever was measured before."""
        self._known.pop(_as_text(self._key(cell)), None)

    def note(self, cell: DataclassInstance, result: Record) -> None:
        """Keep what was measured, in memory and at the end of the file."""
        key = self._key(cell)
        result = {**result, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        self._known[_as_text(key)] = result
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "result": result}) + "\n")

    def records(self, cells: Iterable[DataclassInstance]) -> list[Record]:
        """Return settings and results of the cells; those never measured say so."""
        missing = {"failed": NOT_MEASURED}
        return [{**asdict(cell), **(self.find(cell) or missing)} for cell in cells]

    def _key(self, cell: DataclassInstance) -> Record:
        return {**asdict(cell), "code": self.version}


def _as_text(key: Record) -> str:
    return json.dumps(key, sort_keys=True)


@cache
def code_version(*more: str) -> str:
    """Return a hash of the files that decide results; twelve hexadecimal digits.

    Parameters
    ----------
    more : files that decide them, too, from the root of the repository.
    """
    digest = hashlib.sha256()
    for folder, pattern in (*CODE, *((ROOT, name) for name in more)):
        for path in sorted(folder.glob(pattern)):
            if path.is_file():
                digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
