"""Types of the extension module built from native/."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes

BLOCK: int

class Plan:
    def __init__(
        self,
        n_codes: Sequence[int],
        cards: Sequence[int],
        columns: Sequence[Sequence[int]],
        widths: Sequence[int],
        folds: Sequence[NDArray[np.uint16]],
        is_blanked: Sequence[bool],
        cells: Sequence[Sequence[NDArray[np.int32]]],
        n_cells: int,
    ) -> None: ...
    @property
    def block_bytes(self) -> int: ...
    @property
    def n_entries(self) -> int: ...

def isas() -> list[str]: ...
def isa() -> str: ...
def use_isa(name: str) -> None: ...
def encode(
    plan: Plan, codes: Codes, packed: NDArray[np.uint8], n_threads: int
) -> tuple[int, int]: ...
def count(
    plan: Plan,
    packed: NDArray[np.uint8],
    n_rows: int,
    weights: NDArray[np.floating] | None,
    counts: NDArray[np.float64],
    n_threads: int,
) -> None: ...
def project(
    plan: Plan,
    packed: NDArray[np.uint8],
    n_rows: int,
    table: NDArray[np.float64],
    offset: NDArray[np.float64],
    y: NDArray[np.float32],
    n_threads: int,
) -> None: ...
def score(
    plan: Plan,
    packed: NDArray[np.uint8],
    n_rows: int,
    table: NDArray[np.float64],
    offset: NDArray[np.float64],
    scores: NDArray[np.float32],
    n_threads: int,
) -> None: ...
def gram(
    plan: Plan,
    packed: NDArray[np.uint8],
    n_rows: int,
    table: NDArray[np.float64],
    offset: NDArray[np.float64],
    weights: NDArray[np.floating] | None,
    total: NDArray[np.float64],
    n_threads: int,
) -> None: ...
def divide(
    plan: Plan,
    packed: NDArray[np.uint8],
    n_rows: int,
    table: NDArray[np.float64],
    offset: NDArray[np.float64],
    weights: NDArray[np.floating] | None,
    counts: NDArray[np.float64],
    sums: NDArray[np.float64],
    n_threads: int,
) -> None: ...
def divide_apart(
    plan: Plan,
    packed: NDArray[np.uint8],
    n_rows: int,
    table: NDArray[np.float64],
    offset: NDArray[np.float64],
    against: NDArray[np.float32],
    weights: NDArray[np.floating] | None,
    counts: NDArray[np.float64],
    sums: NDArray[np.float64],
    n_threads: int,
) -> None: ...
def odds(
    plan: Plan,
    packed: NDArray[np.uint8],
    n_rows: int,
    table: NDArray[np.float64],
    offset: NDArray[np.float64],
    n_first: int,
    odds: NDArray[np.float32],
    n_threads: int,
) -> None: ...
def divide_in_two(
    plan: Plan,
    packed: NDArray[np.uint8],
    n_rows: int,
    table: NDArray[np.float64],
    offset: NDArray[np.float64],
    n_first: int,
    intercept: float,
    slope: float,
    weights: NDArray[np.floating] | None,
    counts: NDArray[np.float64],
    masses: NDArray[np.float64],
    odds: NDArray[np.float32],
    n_threads: int,
) -> None: ...
def count_columns(
    plan: Plan,
    packed: NDArray[np.uint8],
    n_rows: int,
    weights: NDArray[np.float32],
    counts: NDArray[np.float64],
    n_threads: int,
) -> None: ...
def fingerprints(
    plan: Plan,
    packed: NDArray[np.uint8],
    n_rows: int,
    hashes: NDArray[np.uint64],
    n_threads: int,
) -> None: ...
def sample(
    cards: Sequence[int],
    order: Sequence[int],
    parents: Sequence[Sequence[int]],
    thresholds: Sequence[NDArray[np.int32]],
    key: int,
    codes: Codes,
    n_threads: int,
) -> None: ...

class Holes:
    def __init__(
        self,
        cards: Sequence[int],
        families: Sequence[Sequence[int]],
        largest_table: int,
        n_sweeps: int,
        seed: int,
    ) -> None: ...
    def add(
        self, codes: NDArray[np.integer], weights: NDArray[np.floating] | None, n_threads: int
    ) -> tuple[int, int]: ...
    def expect(
        self,
        q: NDArray[np.float64],
        counts: NDArray[np.float64],
        variances: NDArray[np.float64] | None,
        n_threads: int,
    ) -> tuple[float, float]: ...
    def posterior(
        self,
        codes: NDArray[np.integer],
        q: NDArray[np.float64],
        probabilities: NDArray[np.float64],
        log_likelihoods: NDArray[np.float64],
        n_threads: int,
    ) -> tuple[int, int]: ...
    @property
    def n_questions(self) -> int: ...
    @property
    def n_patterns(self) -> int: ...
    @property
    def n_sampled(self) -> float: ...
    @property
    def n_bytes(self) -> int: ...

class Copies:
    def __init__(self, prints: NDArray[np.uint64], least: int) -> None: ...
    @property
    def n_prints(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    def write(
        self, prints: NDArray[np.uint64], seen: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> None: ...

class Pairs:
    def __init__(
        self,
        widths: Sequence[int],
        cells: Sequence[Sequence[NDArray[np.int32]]],
        n_cells: int,
    ) -> None: ...
    def count(
        self,
        packed: NDArray[np.uint8],
        n_rows: int,
        weights: NDArray[np.float64] | None,
        pairs: NDArray[np.float64],
        n_threads: int,
    ) -> None: ...

class CellTables:
    def __init__(
        self,
        cards: Sequence[int],
        parents: Sequence[Sequence[int]],
        is_hashed: Sequence[bool],
        cell_start: NDArray[np.int64],
        cell_keys: NDArray[np.uint64],
        cells: NDArray[np.float64],
        config_start: NDArray[np.int64],
        config_keys: NDArray[np.uint64],
        configs: NDArray[np.float64],
        states: NDArray[np.float64],
        concentration: NDArray[np.float64],
        novelty: NDArray[np.float64],
        near_nodes: Sequence[int],
        near_columns: Sequence[int],
        near_start: NDArray[np.int64],
        near_states: NDArray[np.int32],
    ) -> None: ...

def sweep_cells(
    tables: CellTables,
    seen: NDArray[Any],
    truth: NDArray[Any],
    rates: NDArray[np.float64],
    groups: NDArray[np.int32] | None,
    weights: NDArray[np.float64] | None,
    own: float,
    calm: NDArray[np.float64],
    key: int,
    first_row: int,
    n_sweeps: int,
    n_burn: int,
    asks_gains: bool,
    least: float,
    wrong: NDArray[np.float32] | None,
    counts: NDArray[np.float64] | None,
    gains: NDArray[np.float64] | None,
    n_threads: int,
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.float32],
]: ...
