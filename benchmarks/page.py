"""The page of the proof, written from what was measured; no number on it is typed by hand."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.cells import Record
from benchmarks.contenders import AUTO, FLOOR, GIVEN, METHODS, OURS, RIVALS
from benchmarks.figures import Drawn, caption, describe_scaling, scaling_points
from benchmarks.measure import render_lines
from benchmarks.scenes import build_network, title_network
from benchmarks.sources import describe_sources
from benchmarks.verdict import (
    CLOSE_TO_COUNTING,
    TIE,
    Outcome,
    errors_by_method,
    fit_exponent,
    group_by,
    judge,
)
from robustbn.adversary import KINDS

WANTED_SHARE = 0.9


def render(
    records: dict[str, list[Record]],
    settings: dict[str, Record],
    drawn: Drawn,
    folder: Path,
    more: Sequence[str] = (),
) -> str:
    """Return the page as Markdown; links to figures are relative to the folder.

    Parameters
    ----------
    settings : of every experiment: command, sources, machine.
    more : sections of other benchmarks, as `page_misfit.render_stored` gives them.
    """
    parts = [*_render_head(records, next(iter(settings.values())))]
    show = _Figures(drawn, folder, settings)
    gallery, real = records.get("gallery", []), records.get("real", [])
    if gallery:
        parts += _with_origin(_render_short(gallery), settings, "gallery")
    parts += _with_origin(_render_methods(records), settings, *records)
    if records.get("paper"):
        parts += _with_origin(_render_paper(records["paper"], show), settings, "paper")
    if gallery:
        parts += _with_origin(_render_gallery(gallery, show), settings, "gallery")
        parts += _with_origin(_render_choices(gallery), settings, "gallery")
    if records.get("peers"):
        parts += _with_origin(_render_peers(records["peers"], show), settings, "peers")
    if real:
        parts += _with_origin(_render_real(real, show), settings, "real")
    if records.get("scaling"):
        parts += _with_origin(_render_scaling(records["scaling"], show), settings, "scaling")
    parts += more
    parts += _with_origin(_render_weak_spots(gallery, real), settings, "gallery", "real")
    parts += _with_origin(_render_failures(records), settings, *records)
    return "\n\n".join(parts) + "\n"


def _with_origin(section: Iterator[str], settings: dict[str, Record], *names: str) -> Iterator[str]:
    """Yield the section with the code that made it, experiment by experiment, below its title."""
    yield next(section)
    made: dict[str, list[str]] = {}
    for name in (name for name in names if name in settings):
        setting = settings[name]
        words = f"`{setting['command']}`, {describe_sources(setting)}"
        made.setdefault(words, []).append(f"`benchmarks/results/proof-{name}.json`")
    if made:
        found = "; ".join(f"{words}: {', '.join(files)}" for words, files in made.items())
        yield f"<sub>Made by {found}.</sub>"
    yield from section


class _Figures:
    """Links to the figures, with their captions."""

    def __init__(self, drawn: Drawn, folder: Path, settings: dict[str, Record]) -> None:
        self.drawn, self.folder, self.settings = drawn, folder, settings

    def link(self, name: str, title: str) -> str:
        if name not in self.drawn:
            return f"*({title}: no figure was drawn.)*"
        svg, png = (Path(os.path.relpath(p, self.folder)).as_posix() for p in self.drawn[name])
        words = caption(self.settings[name.partition("-")[0]])
        return f"![{title}]({svg})\n\n<sub>[PNG]({png}). {words}</sub>"


# --- the head -------------------------------------------------------------------------------------


def _render_head(records: dict[str, list[Record]], setting: Record) -> Iterator[str]:
    machine = setting["machine"]
    every = [r for found in records.values() for r in found]
    n_failed = sum("failed" in r for r in every)
    when = sorted(r["at"] for r in every if "at" in r)
    yield "# Proof: what robustbn brings, and what it costs"
    yield (
        f"Written by `{setting['command']}`; do not edit. `make bench` measures it all again on "
        "your machine (quick: twenty minutes; `make bench-full`: hours). Every number behind the "
        "figures is in `benchmarks/results/proof-*.json`; those of the real tables, the wrong "
        "networks, the rows that miss values and the causes, measured by `python -m benchmarks "
        "real`, `misfit`, `holes` and `causes`, are beside them."
    )
    kind = "quick run: small networks, few rows" if setting["mode"] == "quick" else "full run"
    if setting["n_seeds"] > 1:
        seeds = f"{setting['n_seeds']} seeds from {setting['seed']}; ± is a 95 % interval"
    else:
        seeds = f"one seed, {setting['seed']}; no intervals"
    versions = ", ".join(f"{name} {version}" for name, version in setting["versions"].items())
    lines = [
        f"- This is a {kind}; {seeds}.",
        f"- Machine: {machine['processor']}, {machine['cpus']} CPUs, {machine['memory_gib']} GiB, "
        f"{machine['system']}; instruction set {machine['instruction_set']}.",
        f"- Versions: Python {machine['python']}, {versions}.",
        "- Below each title is the command that made the section, and a hash of the sources it "
        "depends on; `make stale` lists the sections whose sources have changed since.",
        f"- {len(every):,} cells (a cell is one method on one data set), {n_failed} of them failed "
        "or not measured; all of those are listed at the end.",
        "- Each cell has a process and one thread of its own. Cells whose time is compared "
        "(costs, scaling) are measured alone; the others "
        f"{setting['n_jobs']} at a time.",
    ]
    if when:
        lines.append(f"- Measured from {when[0]} to {when[-1]}.")
    yield "\n".join(lines)


def _render_short(gallery: Sequence[Record]) -> Iterator[str]:
    yield "## In short"
    n_pairs = len(group_by(gallery, "network", "adversary"))
    lines = []
    for ours in (GIVEN, AUTO):
        outcomes = judge(gallery, ours)
        if not outcomes:
            lines.append(f"- **{METHODS[ours].title}**: no verdict, for no cell is complete.")
            continue
        n_lowest = sum(o.is_lowest for o in outcomes)
        share = n_lowest / len(outcomes)
        worst = [o for o in outcomes if o.is_worst]
        met = "met" if share >= WANTED_SHARE else "**missed**"
        sentence = (
            f"- **{METHODS[ours].title}**: lowest error of all methods, ties within 2 % included, "
            f"in {n_lowest} of {len(outcomes)} cells of the adversary × network table: "
            f"**{share:.0%}** (wanted: at least {WANTED_SHARE:.0%}, {met}). "
        )
        if worst:
            names = ", ".join(f"{o.adversary} on {title_network(o.network)}" for o in worst)
            sentence += f"**It is the worst of all in {len(worst)}**: {names} (wanted: never)."
        else:
            sentence += "It is the worst of all in none (wanted: never)."
        if len(outcomes) < n_pairs:
            sentence += (
                f" **{n_pairs - len(outcomes)} cells have no verdict**: the run was stopped before "
                "all methods were measured there."
            )
        lines.append(sentence)
    lines.append(
        "- The rivals: " + ", ".join(METHODS[m].title for m in RIVALS) + ". All that can be told "
        "are told the same eps, which in practice nobody knows; the default alone also runs "
        "without it."
    )
    yield "\n".join(lines)


def _render_methods(records: dict[str, list[Record]]) -> Iterator[str]:
    used = {r["method"] for found in records.values() for r in found}
    yield "## What is compared"
    yield "\n".join(
        f"- **{method.title}**: {method.note}." for key, method in METHODS.items() if key in used
    )
    yield (
        "Error is the total variation distance between the learned network and the true one "
        "(`robustbn.total_variation`): exact when the joint states can be enumerated, otherwise "
        f"estimated from draws with a fixed seed (largest standard error here: "
        f"{_largest_error(records):.1g}). The *floor* is the error of counting the good rows "
        "alone. Nobody is given the true tables."
    )


def _largest_error(records: dict[str, list[Record]]) -> float:
    return max((r["tv_error"] for f in records.values() for r in f if "tv_error" in r), default=0.0)


# --- the experiments ------------------------------------------------------------------------------


def _render_paper(records: Sequence[Record], show: _Figures) -> Iterator[str]:
    yield "## The paper's experiment"
    yield (
        "An empty graph, a random tree and a random graph, all binary; eps = 0.1, "
        "N = 10 m / eps²; the bad rows come from another network (a random tree), or have "
        "independent nodes."
    )
    yield show.link("paper", "Error against m")
    methods = _list_methods(records)
    lines = []
    for (network, adversary), cell in group_by(records, "network", "adversary").items():
        errors = errors_by_method(cell)
        m = build_network(network, cell[0]["seed"]).n_configurations
        shown = [errors[k].show() if k in errors else "–" for k in methods]
        lines.append((title_network(network), adversary, str(m), f"{cell[0]['n_rows']:,}", *shown))
    header = ("network", "bad rows", "m", "N", *(METHODS[k].title for k in methods))
    yield render_lines(header, lines, 2)


def _render_gallery(records: Sequence[Record], show: _Figures) -> Iterator[str]:
    yield "## Every adversary, every method"
    sizes = [
        f"{title_network(network)} with N = {group[0]['n_rows']:,}"
        for (network,), group in group_by(records, "network").items()
    ]
    yield (
        f"eps = {records[0]['eps']:g}; {'; '.join(sizes)}. In `none` all rows are good, and those "
        f"who are told eps are told {records[0]['eps']:.0%} all the same."
    )
    for network in dict.fromkeys(r["network"] for r in records):
        name = "gallery-" + network.replace(":", "-")
        yield show.link(name, f"Error as a multiple of the floor, {title_network(network)}")
    yield (
        "The adversaries: "
        + "; ".join(f"*{kind}*: {_describe_adversary(kind)}" for kind in KINDS)
        + "."
    )
    for ours in (GIVEN, AUTO):
        outcomes = judge(records, ours)
        lost = [o for o in outcomes if not o.is_lowest]
        yield f"### Every cell that {METHODS[ours].title} loses"
        if not lost:
            yield f"None of {len(outcomes)}."
            continue
        header = ("network", "adversary", "ours", "lowest", "by", "counting", "floor", "worst")
        yield render_lines(header, [_tabulate_loss(o) for o in lost], 2)


def _tabulate_loss(outcome: Outcome) -> tuple[str, ...]:
    best, error = outcome.best
    counting = outcome.errors.get("counting")
    return (
        title_network(outcome.network),
        outcome.adversary,
        "failed" if outcome.ours is None else f"{outcome.ours:.4f}",
        f"{error:.4f}",
        METHODS[best].title,
        "–" if counting is None else f"{counting:.4f}",
        "–" if outcome.floor is None else f"{outcome.floor:.4f}",
        "**yes**" if outcome.is_worst else "no",
    )


def _render_choices(records: Sequence[Record]) -> Iterator[str]:
    yield "## What you would pick instead"
    yield (
        "Over all cells of the gallery. `R` is the error divided by the floor: geometric mean, and "
        "largest. `lowest` is the share of networks and adversaries where the method is lowest or "
        "within 2 % of it, all methods (both of ours too) taken part. Precision and recall are "
        "those of the rows it distrusts, over the adversaries that make rows; `lost, clean` is the "
        "share of good rows distrusted when all are good. Seconds and memory are medians; memory "
        "is the peak above what the process held, with the rows, before the fit."
    )
    ratios = _ratios_by_method(records)
    lines = []
    for method in (*OURS, *RIVALS):
        mine = [r for r in records if r["method"] == method and "seconds" in r]
        if not mine or method not in ratios:
            continue
        found = ratios[method]
        lines.append(
            (
                METHODS[method].title,
                f"{math.exp(np.mean(np.log([ratio for ratio, _ in found]))):.2f}",
                f"{max(ratio for ratio, _ in found):.1f}",
                f"{np.mean([is_lowest for _, is_lowest in found]):.0%}",
                _mean_share([r.get("precision") for r in mine]),
                _mean_share([r.get("recall") for r in mine]),
                _mean_share([r.get("lost") for r in mine if r["adversary"] == "none"]),
                f"{np.median([r['seconds'] for r in mine]):.2f}",
                f"{np.median([r['peak_bytes'] for r in mine]) / 2**20:.0f}",
            )
        )
    header = ("method", "R", "largest R", "lowest", "precision", "recall", "lost, clean")
    yield render_lines((*header, "seconds", "MiB"), lines)


def _ratios_by_method(records: Sequence[Record]) -> dict[str, list[tuple[float, bool]]]:
    """Return, for each method, its (error / floor, whether it is lowest) in every cell."""
    found: dict[str, list[tuple[float, bool]]] = {}
    for cell in group_by(records, "network", "adversary").values():
        errors = {k: a.mean for k, a in errors_by_method(cell).items()}
        floor = errors.pop(FLOOR, None)
        if not floor or not errors:
            continue
        lowest = min(errors.values())
        for method, error in errors.items():
            found.setdefault(method, []).append((error / floor, error <= TIE * lowest))
    return found


def _mean_share(values: Sequence[float | None]) -> str:
    known = [v for v in values if v is not None]
    return f"{np.mean(known):.1%}" if known else "–"


def _render_peers(records: Sequence[Record], show: _Figures) -> Iterator[str]:
    yield "## What it costs, beside the others"
    sample = records[0]
    yield (
        f"{title_network(sample['network'])}, {sample['n_rows']:,} rows, eps = {sample['eps']:g}; "
        "each alone on the machine, one thread, fastest of up to three rounds. A method is given "
        "its rows in the form it likes best, and that is not counted; one-hot rows are, since "
        "they are part of the way. Memory as above. pgmpy and pyAgrum count: they are compared "
        "with our counts table by table."
    )
    yield show.link("peers", "Seconds and memory")
    lines = []
    for record in sorted(records, key=lambda r: (r["adversary"], r.get("seconds", math.inf))):
        if "failed" in record:
            shown = ("failed", "–", "–", "–")
        else:
            shown = (
                f"{record['seconds']:.3f}",
                f"{record['peak_bytes'] / 2**20:.0f}",
                f"{record['tv']:.4f}" if "tv" in record else "–",
                _show_sameness(record),
            )
        lines.append((record["adversary"], METHODS[record["method"]].title, *shown))
    header = ("bad rows", "method", "seconds", "MiB", "error", "tables")
    yield render_lines(header, lines, 2)


def _show_sameness(record: Record) -> str:
    if "agrees" not in record:
        return "–"
    words = "as our counts" if record["agrees"] else "**differ from our counts**"
    return f"{words} (within {record['difference']:.0e})"


def _render_real(records: Sequence[Record], show: _Figures) -> Iterator[str]:
    yield "## Published networks"
    yield (
        f"Structure and tables as published (read from the files that come with pgmpy), "
        f"N = {records[0]['n_rows']:,}. *network*: {_describe_adversary('network')}; *rowflip*: "
        f"{_describe_adversary('rowflip')}; *flood*: {_describe_adversary('flood')}."
    )
    yield show.link("real", "Error against the share of bad rows")
    methods = _list_methods(records)
    lines = []
    for (network, adversary, eps), cell in group_by(records, "network", "adversary", "eps").items():
        errors = errors_by_method(cell)
        if errors:
            shown = [errors[k].show() if k in errors else "–" for k in methods]
            lines.append((title_network(network), adversary, f"{eps:.0%}", *shown))
    header = ("network", "bad rows", "eps", *(METHODS[k].title for k in methods))
    yield render_lines(header, lines, 2)


def _render_scaling(records: Sequence[Record], show: _Figures) -> Iterator[str]:
    yield "## How it grows"
    yield (
        "Seconds of the fit, fastest of three rounds, contamination unknown, 10 % of the rows from "
        "another network. The dotted line is one pass over the same bytes: NumPy adding them up, "
        "eight at a time. The exponent is the slope of log seconds against log size over all "
        "sizes; a fixed cost at small sizes lowers it, so that of the largest three is given too."
    )
    yield show.link("scaling", "Seconds against rows, nodes, configurations and threads")
    lines = []
    for (experiment,), group in group_by(records, "experiment").items():
        grows = experiment.removeprefix("scaling ")
        for method in ("bytes", "counting", AUTO):
            points = scaling_points(group, grows, method)
            if not points:
                continue
            shown = ", ".join(f"{size:,.0f}: {seconds:.4g}" for size, seconds in points)
            exponents = ["–", "–"]
            if grows != "threads" and len(points) > 1:
                exponents = [
                    f"{fit_exponent(*zip(*part, strict=True)):.2f}"
                    for part in (points, points[-3:])
                ]
            lines.append(
                (grows, describe_scaling(group, grows), METHODS[method].title, shown, *exponents)
            )
    header = ("what grows", "fixed", "method", "size: seconds", "exponent", "largest three")
    yield render_lines(header, lines, 4)


# --- where it does not help -----------------------------------------------------------------------


def _render_weak_spots(gallery: Sequence[Record], real: Sequence[Record]) -> Iterator[str]:
    yield "## Where it does not help"
    yield (
        "From the cells above, for the default without knowledge of eps: those where another "
        "method is lower by more than 2 %, and those where something could be gained and ours has "
        f"still {CLOSE_TO_COUNTING:.0%} of counting's error or more."
    )
    outcomes = [("", o) for o in judge(gallery, AUTO)]
    for (eps,), group in group_by(real, "eps").items():
        outcomes += [(f", eps {eps:.0%}", o) for o in judge(group, AUTO)]
    weak = [(where, o) for where, o in outcomes if not o.is_lowest or o.is_close_to_counting]
    if not weak:
        yield "There are none." if outcomes else "Nothing was measured."
        return
    by_kind: dict[str, list[tuple[str, Outcome]]] = {}
    for where, outcome in weak:
        by_kind.setdefault(outcome.adversary, []).append((where, outcome))
    items = []
    for kind, found in by_kind.items():
        of = sum(o.adversary == kind for _, o in outcomes)
        cells = "; ".join(
            f"{title_network(o.network)}{w}: {_describe_weakness(o)}" for w, o in found
        )
        words = _describe_adversary(kind) if kind != "none" else "all rows are good"
        items.append(f"- **{kind}** ({words}), {len(found)} of {of} cells. {cells}.")
    yield "\n".join(items)
    clean = [o for _, o in outcomes if o.adversary == "none" and o.ours is not None]
    ratios = [o.ours / o.errors["counting"] for o in clean if o.ours and "counting" in o.errors]
    if ratios:
        yield (
            "When all rows are good there is nothing to gain: the error is at most "
            f"{max(ratios):.3f} times that of counting."
        )


def _describe_weakness(outcome: Outcome) -> str:
    if outcome.ours is None:
        return "failed"
    best, error = outcome.best
    words = f"{outcome.ours:.4f}"
    if not outcome.is_lowest:
        words += f", {METHODS[best].title} {error:.4f}"
    counting = outcome.errors.get("counting")
    if counting is not None and best != "counting":
        words += f", counting {counting:.4f}"
    if outcome.floor is not None:
        words += f", floor {outcome.floor:.4f}"
    return words + (" (the worst of all)" if outcome.is_worst else "")


def _render_failures(records: dict[str, list[Record]]) -> Iterator[str]:
    yield "## What failed, or was not measured"
    reasons: dict[tuple[str, str], list[Record]] = {}
    for name, found in records.items():
        for record in found:
            if "failed" in record:
                reasons.setdefault((name, record["failed"]), []).append(record)
    if not reasons:
        yield "Nothing."
        return
    items = []
    for (name, reason), found in reasons.items():
        cells: dict[str, dict[str, None]] = {}
        for r in found:
            where = f"{title_network(r['network'])}/{r['adversary']}"
            cells.setdefault(METHODS[r["method"]].title, {})[where] = None
        words = "; ".join(f"{method}: {', '.join(where)}" for method, where in cells.items())
        items.append(f"- {name}, {len(found)} cells, {reason} ({words})")
    yield "\n".join(items)


def _list_methods(records: Sequence[Record]) -> list[str]:
    used = {r["method"] for r in records}
    return [key for key in METHODS if key in used]


def _describe_adversary(kind: str) -> str:
    words = (KINDS[kind].__doc__ or kind).strip().splitlines()[0].rstrip(".")
    return words[0].lower() + words[1:]
