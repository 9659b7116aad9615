"""The Python boundary of the kernels: wrong types, shapes, strides, sizes, codes, counts.

Every call must be refused by a Python error, or give what the NumPy kernels give; one that ends the
process is found by the seed that was printed before it.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Layout
from robustbn._core.protocols import TwoSides
from robustbn._rows.kernels import _native, native
from robustbn._rows.kernels import numpy as specification

REFUSED = (TypeError, ValueError, OverflowError, MemoryError, IndexError, BufferError)
KINDS = ("f2", "f4", "f8", "i1", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "O", ">f8", ">u2")
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    5,
    255,
    256,
    257,
    2**16,
    2**31 - 1,
    2**31,
    -(2**31),
    2**62,
    2**63,
    2**64 - 1,
)
CALLS = (
    "encode", "count", "count_columns", "project", "score", "gram", "divide", "divide_apart",
    "odds", "divide_in_two",
    "fingerprints", "sample", "plan", "holes", "add", "expect", "posterior",
    "pairs",
)  # fmt: skip
MOST_CELLS = 2**20
MOST_PAIRED = 1000  # cells of a layout whose pairs are counted: the NumPy kernels take long
CLOSE = 1e-3  # relative: one side sums in float32


def draw_layout(rng: random.Random) -> Layout:
    """Return a small layout, with holes in some columns now and then."""
    d = rng.randint(1, 6)
    cards = [rng.choice([1, 2, 2, 3, 5, 17, 256, 300]) for _ in range(d)]
    families = []
    for i in range(d):
        family, size = [i], cards[i]
        for p in rng.sample(range(i), min(i, rng.randint(0, 2))):
            if size * cards[p] <= 2000:
                family.insert(0, p)
                size *= cards[p]
        families.append(tuple(family))
    holed = [c for c in range(d) if rng.random() < 0.3]
    return Layout(tuple(cards), tuple(families)).with_holes(holed)


def draw_codes(layout: Layout, n: int, generator: np.random.Generator) -> NDArray[Any]:
    """Return codes of rows, holes among them, shape (n, d)."""
    columns = [generator.integers(0, c, n) for c in layout.codes_per_column]
    return np.stack(columns, axis=1).astype(layout.code_dtype)


def change(value: Any, rng: random.Random) -> Any:
    """Return something else in place of an argument: another type, shape, size or content."""
    if isinstance(value, np.ndarray):
        return change_array(value, rng)
    if isinstance(value, list | tuple):
        return change_list(list(value), rng)
    if isinstance(value, bool | int):
        return rng.choice([*NUMBERS, None, "1", 0.5, value + 1, value - 1])
    return rng.choice([None, 1, "x", np.zeros(3)])


def change_list(values: list[Any], rng: random.Random) -> Any:
    """Return a list with an entry more, fewer, other or elsewhere."""
    how = rng.randrange(6)
    if how == 0 or not values:
        return rng.choice([None, [], 3, "ab", [[]], values + values])
    k = rng.randrange(len(values))
    if how == 1:
        return values[:k] + values[k + 1 :]
    if how == 2:
        return [*values, values[k]]
    if how == 3:
        return rng.sample(values, len(values))
    return [*values[:k], change(values[k], rng), *values[k + 1 :]]


def change_array(array: NDArray[Any], rng: random.Random) -> Any:
    """Return an array of another type, shape, order, alignment or with other values."""
    how = rng.randrange(12)
    if how == 0:
        return array.astype(rng.choice(KINDS), casting="unsafe")
    if how == 1:
        return array[:-1] if len(array) else np.zeros((1, *array.shape[1:]), array.dtype)
    if how == 2:
        return np.concatenate([array, array[:1] if len(array) else array])
    if how == 3:
        return array[None] if rng.random() < 0.5 else array.reshape(-1)
    if how == 4:
        return np.repeat(array, 2, axis=0)[::2]
    if how == 5:
        return np.asfortranarray(array) if array.ndim == 2 else array[::-1]
    if how == 6:
        frozen = array.copy()
        frozen.flags.writeable = False
        return frozen
    if how == 7:  # not aligned
        room = np.zeros(array.nbytes + 8, np.uint8)[rng.choice([1, 2, 3]) :][: array.nbytes]
        moved = room.view(array.dtype).reshape(array.shape)
        moved[...] = array
        return moved
    if how == 8:
        return rng.choice([None, [], "x", 3, array.tolist()])
    if how == 9:
        return (
            np.broadcast_to(array[:1], (max(len(array), 1), *array.shape[1:]))
            if len(array)
            else array
        )
    changed = array.copy()
    if changed.size and changed.dtype != object:
        odd = [0, 1, 255, 2**16 - 1, -1, np.nan, np.inf, 1e300]
        with np.errstate(all="ignore"):
            changed.flat[rng.randrange(changed.size)] = np.array(rng.choice(odd)).astype(
                changed.dtype
            )
    return changed


class Scene:
    """A layout with rows, and the arguments that a kernel should be called with."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.layout = rng, draw_layout(rng)
        generator = np.random.default_rng(rng.randrange(2**32))
        self.n = rng.choice([0, 1, 2, 255, 256, 257, 600])
        self.codes = draw_codes(self.layout, self.n, generator)
        self.rows = native.encode(self.layout, self.codes, 2)
        self.expected = specification.encode(self.layout, self.codes)
        r, cells = rng.choice([1, 3, 16, 17]), self.layout.n_cells
        self.table = generator.random((cells, r))
        self.offset = generator.random(r)
        self.weights = generator.random(self.n).astype(rng.choice(["f4", "f8"]))
        self.lines = generator.random((self.n, r)).astype("f4")
        self.q = self.table[:, 0] / self.table[:, 0].sum()

    def arguments(self, name: str) -> list[Any]:
        """Return what a kernel of a name is called with when nothing is wrong."""
        plan, packed, n, r = self.rows.plan, self.rows.packed, self.n, self.table.shape[1]
        counts, two = np.zeros(self.layout.n_cells), self.rng.choice([1, 2])
        weights = self.rng.choice([None, self.weights])
        if name == "encode":
            return [plan, self.codes, np.zeros_like(packed), two]
        if name == "count":
            return [plan, packed, n, weights, counts, two]
        if name == "count_columns":
            return [plan, packed, n, self.lines, np.zeros_like(self.table), two]
        if name == "project":
            return [plan, packed, n, self.table, self.offset, np.zeros((n, r), "f4"), two]
        if name == "score":
            return [plan, packed, n, self.table, self.offset, np.zeros(n, "f4"), two]
        if name == "gram":
            return [
                plan,
                packed,
                n,
                self.table,
                self.offset,
                weights,
                np.zeros_like(self.table),
                two,
            ]
        if name == "divide":
            parts = np.zeros((self.layout.n_cells, r + 1))
            masses = np.zeros(r + 2)
            return [plan, packed, n, self.table, self.offset, weights, parts, masses, two]
        if name == "divide_apart":
            against, sums = self.lines[:, 0].copy(), np.zeros((2, r))
            parts = np.zeros_like(self.table)
            return [plan, packed, n, self.table, self.offset, against, weights, parts, sums, two]
        if name == "odds":
            first, odds = self.rng.randrange(r), np.zeros(n, "f4")
            return [plan, packed, n, self.table, self.offset, first, odds, two]
        if name == "divide_in_two":
            parts, line = np.zeros((self.layout.n_cells, r + 1)), [self.rng.randrange(r), 0.5, 0.9]
            rest = [weights, parts, np.zeros(r + 1), np.zeros(n, "f4"), two]
            return [plan, packed, n, self.table, self.offset, *line, *rest]
        return [plan, packed, n, np.zeros(n, np.uint64), two]

    def wanted(self, name: str, given: list[Any]) -> Any:
        """Return what the NumPy kernels give for arguments that were accepted."""
        if name == "count":
            return self.expected.count(given[3])
        if name == "count_columns":
            return self.expected.count(given[3])
        if name == "project":
            return self.expected.project(given[3], given[4])
        if name == "score":
            return self.expected.score(given[3], given[4])
        if name == "gram":
            return self.expected.gram(given[3], given[4], given[5])
        if name == "divide":
            divided = self.expected.divide(given[3], given[4], given[5])
            return np.append(divided.masses, divided.log_sum)
        if name == "divide_apart":
            apart = self.expected.divide_apart(given[3], given[4], given[5], given[6])
            return np.stack([apart.masses, apart.log_sums])
        if name == "odds":
            return self.expected.odds(given[3], given[4], given[5])
        if name == "divide_in_two":
            sides = TwoSides(given[5], given[6], given[7])
            return self.expected.divide_in_two(given[3], given[4], sides, given[8]).odds
        return None


def agree(found: Any, wanted: Any) -> bool:
    """Whether two results are the same, as far as float32 tells; not where it overflows."""
    found, wanted = np.asarray(found, float), np.asarray(wanted, float)
    if found.shape != wanted.shape:
        return False
    usual = np.isfinite(found) & np.isfinite(wanted) & (np.abs(wanted) < 1e30)
    scale = max(1.0, float(np.abs(wanted[usual]).max(initial=0.0)))
    return bool((np.abs(found[usual] - wanted[usual]) <= CLOSE * scale).all())


def call_pass(scene: Scene, name: str, rng: random.Random) -> str:
    """Call a pass over rows with something wrong; return what is wrong with its answer."""
    given = scene.arguments(name)
    is_rows_changed = False
    # odds that are huge are rounded
    is_divided = name.startswith("divide") or name == "odds"
    untold = (0, 1, 2, 3, 4, 5) if is_divided else (0, 1, 2)
    for k in rng.sample(range(len(given)), rng.choice([0, 1, 1, 1, 2])):
        given[k] = change(given[k], rng)
        is_rows_changed |= k in untold
    try:
        found = getattr(_native, name)(*given)
    except REFUSED:
        return ""
    if name == "encode":
        return "" if isinstance(found, tuple) and len(found) == 2 else f"returned {found!r}"
    if is_rows_changed or name == "fingerprints":
        return ""  # other rows of the same plan: their sums are not known here
    with np.errstate(all="ignore"):  # huge numbers may overflow, in both
        wanted = scene.wanted(name, given)
    if not agree(given[-2], wanted):
        return "another answer than NumPy's"
    return ""


def call_sample(scene: Scene, rng: random.Random) -> str:
    """Draw rows with something wrong."""
    layout = scene.layout
    thresholds = native.sampling_thresholds(layout, normalise(layout, scene.table[:, 0]))
    codes = np.zeros((scene.n, layout.n_nodes), layout.code_dtype)
    order = list(range(layout.n_nodes))
    given: list[Any] = [
        list(layout.cards), order, [list(layout.families[i][:-1]) for i in order],
        [thresholds[i] for i in order], 7, codes, 2,
    ]  # fmt: skip
    for k in rng.sample(range(len(given)), rng.choice([0, 1, 1, 2])):
        given[k] = change(given[k], rng)
    try:
        _native.sample(*given)
    except REFUSED:
        return ""
    drawn = np.asarray(given[5])
    return "" if (drawn < np.array(given[0])).all() else "a code beyond its states was drawn"


def normalise(layout: Layout, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return tables from positive numbers."""
    total: NDArray[np.float64] = values / layout.sum_configurations(values)[layout.config_of_cell]
    return total


def call_plan(scene: Scene, rng: random.Random) -> str:
    """Make a plan with something wrong; go over rows with it if it can be made."""
    layout, clusters = scene.layout, scene.rows.clusters
    given: list[Any] = [
        list(layout.codes_per_column), list(layout.cards), [list(c.columns) for c in clusters],
        [c.code_bytes for c in clusters], [native.fold_states(layout, c) for c in clusters],
        [c.is_blanked for c in clusters], [native.cells_of_states(layout, c) for c in clusters],
        layout.n_cells,
    ]  # fmt: skip
    for k in rng.sample(range(len(given)), rng.choice([1, 1, 2, 3])):
        given[k] = change(given[k], rng)
    try:
        plan = _native.Plan(*given)
        packed = np.zeros(-(-scene.n // _native.BLOCK) * plan.block_bytes, np.uint8)
        if _native.encode(plan, scene.codes, packed, 2)[0] >= 0:
            return ""
        if given[7] <= MOST_CELLS:  # a count for each of 2^31 would fill the memory, and rightly
            _native.count(plan, packed, scene.n, None, np.zeros(given[7]), 2)
        _native.fingerprints(plan, packed, scene.n, np.zeros(scene.n, np.uint64), 2)
    except REFUSED:
        return ""
    return ""


def call_holes(scene: Scene, name: str, rng: random.Random) -> str:
    """Ask about rows that miss values with something wrong."""
    layout, q = scene.layout, normalise(scene.layout, scene.table[:, 0])
    making: list[Any] = [list(layout.cards), [list(f) for f in layout.families], 4096, 8, 1]
    adding: list[Any] = [scene.codes, rng.choice([None, scene.weights.astype(float)]), 2]
    variance = rng.choice([None, np.zeros(layout.n_cells)])
    expecting: list[Any] = [q, np.zeros(layout.n_cells), variance, 2]
    n_holes = int((scene.codes == np.array(layout.cards)).sum())
    shape = (n_holes, max(layout.cards))
    asking: list[Any] = [scene.codes, q, np.zeros(shape), np.zeros(scene.n), 2]
    changed = {"holes": making, "add": adding, "expect": expecting, "posterior": asking}[name]
    for k in rng.sample(range(len(changed)), rng.choice([0, 1, 1, 2])):
        changed[k] = change(changed[k], rng)
    try:
        if not (isinstance(making[3], int) and making[3] < 1000):  # sweeps: it would take long
            return ""
        holes = _native.Holes(*making)
        if holes.add(*adding)[0] >= 0:
            return ""
        holes.expect(*expecting)
        holes.posterior(*asking)
        holes.n_questions, holes.n_patterns, holes.n_sampled, holes.n_bytes  # noqa: B018
    except REFUSED:
        return ""
    if name in ("holes", "posterior") or adding[0] is not scene.codes:
        return ""
    exact = specification.make_holes(layout, None, 1)
    exact.add(scene.codes, adding[1])
    if np.isfinite(expecting[0]).all() and not holes.n_sampled:
        wanted = exact.expect(np.asarray(expecting[0], float))
        if not agree(expecting[1], wanted.counts):
            return "another answer than NumPy's"
    return ""


def call_pairs(scene: Scene, rng: random.Random) -> str:
    """Count pairs of cells with something wrong."""
    layout, clusters, n = scene.layout, scene.rows.clusters, scene.layout.n_cells
    making: list[Any] = [
        [c.code_bytes for c in clusters], [native.cells_of_states(layout, c) for c in clusters], n,
    ]  # fmt: skip
    weights = rng.choice([None, scene.weights.astype(float)])
    if n > MOST_PAIRED:
        return ""
    counting: list[Any] = [scene.rows.packed, scene.n, weights, np.zeros((n, n)), 2]
    is_made_otherwise = rng.random() < 0.5
    changed = making if is_made_otherwise else counting
    which = rng.sample(range(len(changed)), rng.choice([0, 1, 1, 2]))
    for k in which:
        changed[k] = change(changed[k], rng)
    try:
        _native.Pairs(*making).count(*counting)
    except REFUSED:
        return ""
    if which and (is_made_otherwise or {0, 1} & set(which)):
        return ""  # other rows: their sums are not known here
    if not agree(counting[3], scene.expected.count_pairs(counting[2])):
        return "another answer than NumPy's"
    return ""


def run(n: int, seed: int) -> int:
    """Make `n` calls; return how many gave another answer or another error."""
    n_wrong = 0
    for k in range(n):
        rng = random.Random(f"{seed} {k}")  # noqa: S311
        if k % 10 == 0:
            scene = Scene(random.Random(f"{seed} scene {k}"))  # noqa: S311
        name = rng.choice(CALLS)
        try:
            if name == "sample":
                said = call_sample(scene, rng)
            elif name == "plan":
                said = call_plan(scene, rng)
            elif name == "pairs":
                said = call_pairs(scene, rng)
            elif name in ("holes", "add", "expect", "posterior"):
                said = call_holes(scene, name, rng)
            else:
                said = call_pass(scene, name, rng)
        except Exception as error:
            said = f"{type(error).__name__}: {str(error)[:200]}"
        if said:
            n_wrong += 1
            print(f"{name} {seed} {k}: {said}")
    return n_wrong
