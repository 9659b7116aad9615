"""Networks by name, and rows that an adversary has corrupted: what every method is given."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import Cell
from robustbn import BayesianNetwork, example_network, random_network, read_network, sample
from robustbn.adversary import TAKERS, corrupt

Codes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Scene:
    """A network, its rows after an adversary has been at them, and which rows it made.

    Parameters
    ----------
    network : the truth, with its tables.
    rows : codes of shape (N, d).
    is_bad : whether the adversary made the row; shape (N,).
    good : the rows that a method without enemies would have had.
    """

    network: BayesianNetwork
    rows: Codes
    is_bad: NDArray[np.bool_]
    good: Codes


def build_network(name: str, seed: int) -> BayesianNetwork:
    """Return a network by name: `empty:D`, `tree:D`, `graph:D:M`, `categorical:D:M`, `bif:NAME`.

    The first four are drawn with the seed, d nodes and (a graph) m configurations; categorical
    nodes have 2 to 4 states. `example:NAME` ships with robustbn; `bif:NAME` comes with pgmpy.
    """
    kind, *rest = name.split(":")
    if kind == "example":
        return example_network(rest[0])
    if kind == "bif":
        return read_network(find_bif(rest[0]))
    sizes = [int(size) for size in rest]
    if kind in ("empty", "tree"):
        return random_network(kind, sizes[0], random_state=seed)
    if kind == "graph":
        return random_network("graph", sizes[0], sizes[1], random_state=seed)
    if kind == "categorical":
        return random_network("graph", sizes[0], sizes[1], (2, 4), random_state=seed)
    raise ValueError(f"Unknown network {name!r}; see scenes.build_network.")


def title_network(name: str) -> str:
    """Return the name of a network as the page shows it."""
    kind, *rest = name.split(":")
    if kind in ("example", "bif"):
        return rest[0].upper()
    sizes = [f"{letter} = {size}" for letter, size in zip("dm", rest, strict=False)]
    return ", ".join([kind, *sizes])


def find_bif(name: str) -> Path:
    """Return the path of a published network inside pgmpy, which is not imported."""
    spec = find_spec("pgmpy")
    if spec is None or spec.origin is None:
        raise ImportError("the published networks are read from pgmpy: pip install pgmpy")
    path = Path(spec.origin).parent / "utils" / "example_models" / f"{name}.bif.gz"
    if not path.exists():
        raise FileNotFoundError(f"This pgmpy has no {path.name} among its example models.")
    return path


def draw_scene(
    network: BayesianNetwork, adversary: str, eps: float, n_rows: int, seed: int
) -> Scene:
    """Draw rows and let the adversary ("none": nobody) at them; the same seed, the same scene."""
    good = sample(network, n_rows, seed + 1)
    if adversary == "none":
        return Scene(network, good, np.zeros(n_rows, bool), good)
    kind, _, strength = adversary.partition(" ")
    rows, is_bad = corrupt(
        good, network, kind, eps, seed + 2, strength=float(strength) if strength else None
    )
    return Scene(network, rows, is_bad, good if kind in TAKERS else rows[~is_bad])


def load_scene(cell: Cell, folder: Path) -> Scene:
    """Return the scene of a cell; drawn once, then read from files in the folder."""
    network = build_network(cell.network, cell.seed)
    paths = scene_files(cell, folder)
    if not all(path.exists() for path in paths):
        scene = draw_scene(network, cell.adversary, cell.eps, cell.n_rows, cell.seed)
        for path, array in zip(paths, (scene.rows, scene.is_bad), strict=True):
            _write_at_once(path, array)
        return scene
    rows, is_bad = (np.load(path) for path in paths)
    kind = cell.adversary.partition(" ")[0]
    if cell.method == "good":
        good = sample(network, cell.n_rows, cell.seed + 1) if kind in TAKERS else rows[~is_bad]
    else:
        good = rows[:0]  # nobody else may look
    return Scene(network, rows, is_bad, good)


def scene_files(cell: Cell, folder: Path) -> tuple[Path, Path]:
    """Return the files that hold the rows of a cell, and which of them are bad."""
    stem = hashlib.sha256(repr(cell.scene).encode()).hexdigest()[:16]
    return folder / f"{stem}.rows.npy", folder / f"{stem}.bad.npy"


def _write_at_once(path: Path, array: NDArray[np.generic]) -> None:
    """Write a file that is either whole or not there: another process may look for it."""
    with NamedTemporaryFile(dir=path.parent, suffix=".npy", delete=False) as file:
        np.save(file, array)
    Path(file.name).replace(path)
