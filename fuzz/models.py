"""Model files with values changed at random: our error, or a model that works."""

from __future__ import annotations

import json
import random
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import robustbn
from robustbn.exceptions import DataError, RobustBNError
from robustbn.simulate import corrupt

ODD = (
    None, True, False, "", "x", "1", -1, 0, 1, 0.5, -0.5, 7, 1e308, -1e308, 1e-320, 2**31, 2**63,
    10**30, [], {}, [[]], [1.0], {"a": 1}, [None], "é" * 2000,
)  # fmt: skip


def make_models(folder: Path) -> dict[str, tuple[Any, Any]]:
    """Return documents of models of several kinds, each with rows to judge."""
    tree = robustbn.random_network("tree", 4, cards=2, random_state=0)
    rows = robustbn.sample(tree, 4000, random_state=0)
    dirty, _ = corrupt(rows, tree, "network", eps=0.15, random_state=1)
    dirty[:300] = dirty[0]
    holed = {node: dirty[:, k].astype(float) for k, node in enumerate(tree.nodes)}
    for values in holed.values():
        values[::7] = np.nan
    holed = {n: [tree.states[n][int(v)] if v == v else None for v in c] for n, c in holed.items()}
    made = {
        "robust": (robustbn.RobustEstimator(tree, random_state=0), dirty),
        "misses": (robustbn.RobustEstimator(tree, random_state=0), holed),
        "counting": (robustbn.MaximumLikelihoodEstimator(tree), dirty),
    }
    documents = {}
    for name, (estimator, table) in made.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(table).save(folder / "model.json")
        head = dirty[:50] if table is dirty else {n: c[:50] for n, c in table.items()}
        documents[name] = json.loads((folder / "model.json").read_text()), head
    return documents


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value of a document."""
    yield path
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = list(enumerate(value))[:6]  # those that follow are of the same kind
    for key, inner in pairs:
        yield from paths_of(inner, (*path, key))


def change(document: Any, rng: random.Random) -> tuple[Any, str]:
    """Return a copy with one to three values changed, and what was changed."""
    copy, said = json.loads(json.dumps(document)), []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        paths = list(paths_of(copy))[1:]
        if not paths:
            break
        path = rng.choice(paths)
        place = copy
        for key in path[:-1]:
            place = place[key]
        how = rng.randrange(10)
        if how == 0 and isinstance(place, list):
            place.append(place[path[-1]])
        elif how == 1:
            del place[path[-1]]
        elif how == 2:
            other = copy
            for key in rng.choice(paths):
                if isinstance(other, dict | list):
                    try:
                        other = other[key]
                    except (KeyError, IndexError):
                        break
            place[path[-1]] = json.loads(json.dumps(other))
        else:
            place[path[-1]] = rng.choice(ODD)
        said.append(f"{path} by {how}")
    return copy, "; ".join(said)


def check_model(path: Path, rows: Any, folder: Path, name: str) -> None:
    """Load a model; use it in every way, if it can be loaded."""
    kind = robustbn.RobustEstimator
    if name == "counting":
        kind = robustbn.MaximumLikelihoodEstimator
    try:
        model = kind.load(path)
    except RobustBNError:
        return
    str(model)
    repr(model)
    model.save(folder / "again.json")
    kind.load(folder / "again.json")
    try:
        model.score(rows)
    except DataError:  # other names or states: these rows are not its own
        return
    if name != "counting":
        model.weights(rows)
        model.predict(rows)
        str(model.summary())
        model.moved()
        str(model.kinds_)


def run(n: int, seed: int) -> int:
    """Check `n` changed models; return how many are neither refused nor work."""
    n_wrong = 0
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(scratch)
        documents = make_models(folder)
        for k in range(n):
            rng = random.Random(f"{seed} {k}")  # noqa: S311
            name = rng.choice(list(documents))
            changed, said = change(documents[name][0], rng)
            try:
                (folder / "model.json").write_text(json.dumps(changed))
                check_model(folder / "model.json", documents[name][1], folder, name)
            except Exception as error:
                n_wrong += 1
                print(f"{name} {seed} {k}: {said}: {type(error).__name__}: {str(error)[:200]}")
    return n_wrong
