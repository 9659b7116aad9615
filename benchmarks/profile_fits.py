"""`python -m benchmarks profile`: where the time of a robust fit goes, by stage and by pass."""

from __future__ import annotations

import cProfile
import pstats
import warnings
from collections.abc import Iterator
from typing import Any

from benchmarks.fit_scenes import FitScene, build_fit_scene, standard_network
from benchmarks.measure import Report, Settings, Table, installed_versions, say

CASES = ("none", "network", "mixture", "rowflip", "edges left out", "20 % holes")
STAGES = {  # function of the stage: (file, name)
    "read": (("estimator/base.py", "_read"),),
    "survey": (("_rows/memory.py", "survey"),),
    "design of copies": (("_learn/multiplicity.py", "heed_design"),),
    "copies": (("_learn/copies.py", "find_copies"),),
    "search": (("_learn/conductor.py", "explain"),),
    "judge groups": (("_learn/judge.py", "judge_groups"),),
    "settle": (("_learn/conductor.py", "_settle"),),
    "filter": (("_learn/density_filter.py", "filter_rest"),),
    "judge all rows": (("_rows/memory.py", "judge"),),
}
PASSES = ("encode", "count", "project", "score", "gram", "divide", "divide_apart", "odds",
          "divide_in_two", "fingerprints", "sample")  # fmt: skip
NOTE = (
    "One fit under Python's profiler, whose own cost is in the times; kernels on all CPUs. Stages "
    "and passes in milliseconds, with the number of passes in parentheses; `rest` of the passes is "
    "what Python and NumPy do between them. Copies are found during the search, and counted there, "
    "too. What is said of the fit is not a stage."
)


def run(settings: Settings) -> Report:
    """Profile every case at both sizes."""
    warnings.simplefilter("ignore")
    network = standard_network(settings.seed)
    stages, passes, records = [], [], []
    for n_rows in (
        (50_000,) if settings.quick else (500_000, 5_000_000) if settings.full else (500_000,)
    ):
        for kind in CASES:
            say(f"profile: {n_rows:,} rows, {kind}")
            scene = build_fit_scene(network, kind, n_rows, settings.seed)
            scene.fit()  # imports, plans
            found = profile(scene)
            records.append({"n_rows": n_rows, "kind": kind, **found})
            first = (f"{n_rows:,}", kind, f"{1e3 * found['total']:.0f}")
            stages.append((*first, *(f"{1e3 * found['stages'][s]:.0f}" for s in STAGES)))
            passes.append((*first, *describe_passes(found)))
    head = ("rows", "what is the matter", "total")
    return Report(
        "profile",
        "Where the time goes",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy"]),
        (
            Table("Stages", (*head, *STAGES), tuple(stages), n_words=2),
            Table("Passes", (*head, *PASSES, "rest"), tuple(passes), n_words=2),
        ),
        tuple(records),
    )


def profile(scene: FitScene) -> dict[str, Any]:
    """Return the seconds of a fit, in all, by stage, and by pass with their number."""
    profiler = cProfile.Profile()
    profiler.runcall(scene.fit)
    stats: Any = pstats.Stats(profiler)
    entries = [(file.replace("\\", "/"), name, values)
               for (file, _, name), values in stats.stats.items()]  # fmt: skip

    def seconds(file: str, function: str) -> tuple[float, int]:
        found = [v for f, name, v in entries if f.endswith(file) and name == function]
        return sum(v[3] for v in found), sum(v[0] for v in found)

    stages = {s: sum(seconds(*where)[0] for where in places) for s, places in STAGES.items()}
    passes = {name: seconds("_rows/kernels/native.py", name) for name in PASSES}
    return {"total": stats.total_tt, "stages": stages, "passes": passes}


def describe_passes(found: dict[str, Any]) -> Iterator[str]:
    """Yield the milliseconds of each kind of pass, and of what is between them."""
    for name in PASSES:
        seconds, n = found["passes"][name]
        yield f"{1e3 * seconds:.0f} ({n})" if n else ""
    yield f"{1e3 * (found['total'] - sum(s for s, _ in found['passes'].values())):.0f}"
