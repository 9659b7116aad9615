"""What a first pass has found so far: counts, rows drawn, what was odd; and its stored form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robustbn._core.protocols import Vector
from robustbn._rows.stream.draw import Drawn, KeyedRows, join
from robustbn._tables.encode import Tally


@dataclass(eq=False)
class Surveyed:
    """The parts that were surveyed.

    Parameters
    ----------
    n_most : rows to draw at the most.
    counts : of all rows, cell by cell.
    sizes, reads : rows of each part that were kept, and that were read.
    missing, unknown : values of each node.
    incomplete : rows from which a value is missing.
    drawn : rows that were drawn, if they were chosen beforehand.
    keyed : rows that were drawn, otherwise.
    unsaved : those of either that no checkpoint holds.
    """

    n_most: int
    counts: Vector
    n_nodes: int
    sizes: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    incomplete: int = 0
    drawn: list[Drawn] = field(default_factory=list)
    unsaved: list[Drawn] = field(default_factory=list)
    keyed: KeyedRows = field(init=False)

    def __post_init__(self) -> None:
        self.keyed = KeyedRows(self.n_most, self.n_nodes)

    @property
    def n_done(self) -> int:
        """Number of parts that were surveyed or skipped."""
        return len(self.sizes)

    @property
    def n_read(self) -> int:
        """Rows that were read."""
        return sum(self.reads)

    def add(self, counts: Vector, drawn: list[Drawn], n_kept: int, n_read: int, odd: Tally) -> None:
        """Take in a part."""
        self.counts += counts
        self.sizes.append(n_kept)
        self.reads.append(n_read)
        self.missing.update(odd.missing)
        self.unknown.update(odd.unknown)
        self.incomplete += odd.incomplete
        self._take(drawn)
        self.unsaved += drawn

    def all_drawn(self) -> Drawn:
        """Return the rows that were drawn, in order."""
        return self.keyed.smallest() if self.keyed.drawn else join(self.drawn, self.n_nodes)

    def _take(self, drawn: list[Drawn]) -> None:
        for each in drawn:
            if len(each.keys):
                self.keyed.add(each)
            else:
                self.drawn.append(each)

    def skip(self) -> None:
        """Pass over a part."""
        self.sizes.append(0)
        self.reads.append(0)

    def store(self, skipped: Mapping[str, str]) -> dict[str, Any]:
        """Return what a checkpoint is to hold, beside what it holds already."""
        fresh = join(self.unsaved, self.n_nodes)
        self.unsaved = []
        return {
            "counts": self.counts,
            "sizes": np.array(self.sizes, np.int64),
            "reads": np.array(self.reads, np.int64),
            "missing": _pairs(self.missing),
            "unknown": _pairs(self.unknown),
            "incomplete": self.incomplete,
            "skipped": _pairs(skipped),
            "numbers": fresh.numbers,
            "codes": fresh.codes,
            "keys": fresh.keys,
        }

    def restore(self, stored: list[dict[str, Any]]) -> dict[str, str]:
        """Take in what a checkpoint holds; return the files that were skipped, and why."""
        last = stored[-1]
        self.counts = last["counts"]
        self.sizes, self.reads = last["sizes"].tolist(), last["reads"].tolist()
        self.missing = Counter({n: int(v) for n, v in last["missing"].tolist()})
        self.unknown = Counter({n: int(v) for n, v in last["unknown"].tolist()})
        self.incomplete = int(last["incomplete"])
        self._take([Drawn(each["numbers"], each["codes"], each["keys"]) for each in stored])
        return dict(last["skipped"].tolist())


def _pairs(values: Mapping[str, Any]) -> np.ndarray[tuple[int, int], np.dtype[np.str_]]:
    pairs = [[name, str(value)] for name, value in values.items()]
    return np.array(pairs, np.str_).reshape(len(pairs), 2)
