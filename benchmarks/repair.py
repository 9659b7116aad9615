"""`python -m benchmarks repair`: wrong cells corrected, in public tables with known errors.

`robustbn repair` is run on each dirty table with a network drawn from what its columns mean
(`NETWORKS`), and its output compared with the clean table, cell by cell. The tables
(`NAME-dirty.csv.gz`, `NAME-clean.csv.gz`) are read from a folder. What wrong cells do to the
tables of a network is measured by `python -m benchmarks cells`.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from benchmarks.measure import Goal, Report, Settings, Table, installed_versions, say
from robustbn.cli import main as command

SOURCES = ("src/robustbn/_cli/**/*", "src/robustbn/cli.py", "benchmarks/cleaning_peer.py")
PEER, PEER_LIMIT_S = Path(__file__).parent / "cleaning_peer.py", 400.0
SYSTEM = "Raha and Baran"
PLAIN = "robustbn, --forms plain"
Record = dict[str, Any]

# F1 that a third party measured on the same files (qzkinhit/Uniclean-bench-Result)
PUBLISHED = {
    "hospital": {"UniClean": 0.88, "HoloClean": 0.63, "BigDansing": 0.60, "Baran": 0.58,
                 "Horizon": 0.58},
    "flights": {"UniClean": 0.65, "HoloClean": 0.48, "Baran": 0.63},
    "beers": {"UniClean": 0.84, "HoloClean": 0.05, "Baran": 0.80},
    "rayyan": {"UniClean": 0.00, "HoloClean": 0.01, "Baran": 0.30},
}  # fmt: skip
NETWORKS: dict[str, dict[str, list[str]]] = {
    "hospital": {
        "provider_number": [], "name": ["provider_number"], "address_1": ["provider_number"],
        "city": ["provider_number"], "state": ["city"], "zip": ["provider_number"],
        "county": ["city"], "phone": ["provider_number"], "type": ["provider_number"],
        "owner": ["provider_number"], "emergency_service": ["provider_number"],
        "measure_code": [], "condition": ["measure_code"], "measure_name": ["measure_code"],
        "state_average": ["measure_code", "state"],
    },
    "flights": {
        "flight": [], "sched_dep_time": ["flight"], "act_dep_time": ["flight"],
        "sched_arr_time": ["flight"], "act_arr_time": ["flight"],
    },
    "beers": {
        "brewery_id": [], "brewery_name": ["brewery_id"], "city": ["brewery_id"],
        "state": ["brewery_id", "city"], "style": [], "abv": ["style"], "ibu": ["style"],
        "ounces": ["style"],
    },
    "rayyan": {
        "journal_title": [], "jounral_abbreviation": ["journal_title"],
        "journal_issn": ["journal_title"], "article_language": ["journal_title"],
        "article_jvolumn": [], "article_jissue": ["article_jvolumn"],
    },
}  # fmt: skip
KEYS = {"flights": "flight"}  # all rows of one describe the same thing
NOTE = (
    "Repair: `robustbn repair` with a network drawn from what the columns mean. Raha and Baran "
    "(package `raha`) are run with their defaults (`benchmarks/cleaning_peer.py`): they are told "
    "what is right in 20 rows, and these rows count as repaired; one seed, so that their figure "
    "has no interval. The other systems rely on rules or on labelled rows, and are quoted, not "
    "run: the Python registry has no package of HoloClean, BClean, UniClean or Horizon. Precision: "
    "changes that give the clean value; recall: wrong cells that do. With `--forms plain`, "
    "numbers lose units that are spelt in several ways, and words for missing values become empty: "
    "by default, nothing is written in a form that the column does not have."
)


def run(settings: Settings) -> Report:
    """Repair every table of the folder."""
    folder = Path(settings.folder)
    there = [name for name in NETWORKS if (folder / f"{name}-dirty.csv.gz").exists()]
    records: list[Record] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in there:
            records.append({"table": name, **repair(name, folder)})
            say(str(records[-1]))
            records.append({"table": name, "system": PLAIN, **repair(name, folder, "plain")})
            say(str(records[-1]))
        for name in () if settings.quick else there if settings.full else there[:1]:
            records.append({"table": name, "system": SYSTEM, **run_peer(name, folder)})
            say(str(records[-1]))
    missing = [f"{name}: not in the folder" for name in NETWORKS if name not in there]
    missing += [f"{SYSTEM}, {r['table']}: {r['failed']}" for r in records if "failed" in r]
    return Report(
        "repair",
        "Repair of public tables with known errors",
        NOTE,
        settings,
        installed_versions(["robustbn", "numpy", "raha"]),
        (tabulate_repair(records), tabulate_systems(records)),
        tuple(records),
        () if settings.quick else tuple(find_goals(records)),
        tuple(missing),
    )


def repair(name: str, folder: Path, forms: str = "common") -> Record:
    """Return how many cells were wrong, how many were changed, and how many of those rightly."""
    dirty, clean = (read_lines(folder / f"{name}-{kind}.csv.gz") for kind in ("dirty", "clean"))
    edges = [(p, node) for node, parents in NETWORKS[name].items() for p in parents]
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as place:
        paths = {k: Path(place) / f"{k}.csv" for k in ("edges", "dirty", "mended")}
        write_lines(paths["edges"], [("parent", "child"), *edges])
        write_lines(paths["dirty"], dirty)
        arguments = ["repair", str(paths["edges"]), str(paths["dirty"]), "-o", str(paths["mended"])]
        arguments += ["--forms", forms, *(["--key", KEYS[name]] if name in KEYS else [])]
        start = time.perf_counter()
        with redirect_stdout(StringIO()):
            command.main(arguments, standalone_mode=False)
        seconds = time.perf_counter() - start
        mended = read_lines(paths["mended"])
    cells = [
        (d, m, c)
        for lines in zip(dirty[1:], mended[1:], clean[1:], strict=True)
        for d, m, c in zip(*lines, strict=True)
    ]
    return {
        "wrong": sum(d != c for d, _, c in cells),
        "changed": sum(d != m for d, m, _ in cells),
        "right": sum(d != m == c for d, m, c in cells),
        "seconds": seconds,
    }


def run_peer(name: str, folder: Path) -> Record:
    """Return the same of Raha and Baran, or why they have none."""
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as place:
        for kind in ("dirty", "clean"):
            write_lines(Path(place) / f"{kind}.csv", read_lines(folder / f"{name}-{kind}.csv.gz"))
        command = [sys.executable, str(PEER), "dirty.csv", "clean.csv", "0"]
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # it starts processes
        try:
            done = subprocess.run(
                command, cwd=place, env=os.environ | one_thread | {"TMPDIR": place},
                capture_output=True, text=True, timeout=PEER_LIMIT_S, check=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"failed": f"took more than {PEER_LIMIT_S:g} s"}
        except subprocess.CalledProcessError as error:
            return {"failed": (error.stderr.strip().splitlines() or ["no message"])[-1][:200]}
    found: Record = json.loads(done.stdout.splitlines()[-1])
    return found


def read_lines(path: Path) -> list[list[str]]:
    """Return the lines of a CSV file, compressed or not."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as text:
        return list(csv.reader(text))


def write_lines(path: Path, lines: Sequence[Sequence[str]]) -> None:
    """Write the lines of a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as text:
        csv.writer(text).writerows(lines)


# --- tables ---------------------------------------------------------------------------------------


def score(record: Record) -> tuple[float, float, float]:
    """Return precision, recall and F1."""
    precision = record["right"] / max(record["changed"], 1)
    recall = record["right"] / max(record["wrong"], 1)
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-12)


def tabulate_repair(records: Sequence[Record]) -> Table:
    """Return what was changed, the table with the largest gap to a published figure first."""
    found = [(r, score(r)) for r in records if "wrong" in r]
    found.sort(key=lambda each: each[1][2] - max(PUBLISHED[each[0]["table"]].values()))
    lines = tuple(
        (
            r["table"],
            r.get("system", "robustbn"),
            f"{r['wrong']:,}",
            f"{r['changed']:,}",
            f"{precision:.2f}",
            f"{recall:.2f}",
            f"{f1:.2f}",
            f"{r['seconds']:.1f}",
        )
        for r, (precision, recall, f1) in found
    )
    header = ("table", "by", "wrong", "changed", "precision", "recall", "F1", "seconds")
    note = "Tables in which the best published figure is farthest ahead first."
    return Table("Repair, measured here", header, lines, note, n_words=2)


def tabulate_systems(records: Sequence[Record]) -> Table:
    """Return F1 beside the published figures."""
    systems = list(dict.fromkeys(s for figures in PUBLISHED.values() for s in figures))
    ours = {r["table"]: score(r)[2] for r in records if "wrong" in r and "system" not in r}
    lines = tuple(
        (table, f"**{f1:.2f}**", *(f"{x:.2f}" if (x := PUBLISHED[table].get(s)) is not None else "–"
                                   for s in systems))
        for table, f1 in ours.items()
    )  # fmt: skip
    note = (
        "Published: measured by a third party on the same files (qzkinhit/Uniclean-bench-Result)."
    )
    return Table("F1, beside published figures", ("table", "robustbn", *systems), lines, note)


def find_goals(records: Sequence[Record]) -> Iterator[Goal]:
    """Yield whether the best published figure is reached, by default and in plain forms."""
    for r in (r for r in records if "wrong" in r and r.get("system", PLAIN) == PLAIN):
        best, (_, _, f1) = max(PUBLISHED[r["table"]].values()), score(r)
        how = " with --forms plain" if "system" in r else ""
        yield Goal(f"Repair F1, {r['table']}{how}", f"≥ {best:.2f}", f"{f1:.2f}", f1 >= best)
