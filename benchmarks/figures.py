"""Figures of the proof: readable by the colour-blind, and in black and white.

Every line has its own marker and dash beside its colour; the heat map has numbers in its cells, and
a frame round the lowest. Each figure says in its last line where its numbers come from.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells import Record
from benchmarks.contenders import AUTO, FLOOR, GIVEN, METHODS, OURS, RIVALS
from benchmarks.measure import say
from benchmarks.scenes import build_network, title_network
from benchmarks.sources import describe_sources
from benchmarks.verdict import TIE, average, errors_by_method, fit_exponent, group_by

Drawn = dict[str, tuple[Path, ...]]

# colour (Okabe and Ito's), marker, dash
STYLES: dict[str, tuple[str, str, str]] = {
    FLOOR: ("#000000", "", ":"),
    "counting": ("#999999", "s", "-"),
    "one_shot": ("#E69F00", "^", "--"),
    "que_paper": ("#56B4E9", "D", "-."),
    AUTO: ("#D55E00", "o", "-"),
    GIVEN: ("#0072B2", "x", "--"),
    "trimmed": ("#009E73", "v", "-."),
    "forest": ("#CC79A7", "P", ":"),
    "hbos": ("#F0E442", "*", "--"),
    "ecod": ("#882255", "<", ":"),
    "lof": ("#44AA99", ">", "-."),
    "distinct": ("#332288", "h", ":"),
    "bytes": ("#000000", "", ":"),
    "pgmpy": ("#117733", "p", "-"),
    "pyagrum": ("#AA4499", "d", "-"),
}


def caption(setting: Record) -> str:
    """Return where the numbers come from, in one sentence."""
    machine = setting["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in setting["versions"].items())
    seeds = f"seed {setting['seed']}"
    if setting["n_seeds"] > 1:
        seeds = f"seeds {setting['seed']} to {setting['seed'] + setting['n_seeds'] - 1}"
    made = f"{describe_sources(setting)}; " if setting.get("sources") else ""
    return (
        f"{machine['processor']}, {machine['cpus']} CPUs, {machine['memory_gib']} GiB, "
        f"{machine['system']}; Python {machine['python']}, {versions}; {made}{seeds}; "
        f"{setting['command']}"
    )


def draw_all(records: dict[str, list[Record]], setting: Record, folder: Path) -> Drawn:
    """Draw what the records allow, as SVG and PNG; return the files by name of the figure."""
    try:
        import matplotlib as mpl
    except ImportError as missing:
        say(f"no figures: {missing}")
        return {}
    drawn: Drawn = {}
    with mpl.rc_context({"svg.hashsalt": "robustbn", "font.size": 8, "axes.grid": False}):
        for name, draw in _list_figures(records):
            try:
                drawn[name] = _save(draw(), folder / f"proof-{name}", setting)
            except Exception as error:  # a figure must not cost the numbers
                say(f"figure {name} could not be drawn: {type(error).__name__}: {error}")
    return drawn


def _list_figures(records: dict[str, list[Record]]) -> list[tuple[str, Callable[[], Any]]]:
    found: list[tuple[str, Callable[[], Any]]] = []
    if _has_errors(records.get("paper", [])):
        found.append(("paper", lambda: draw_paper(records["paper"])))
    for (network,), group in group_by(records.get("gallery", []), "network").items():
        if _has_errors(group):
            name = "gallery-" + network.replace(":", "-")
            found.append((name, lambda group=group: draw_gallery(group)))  # type: ignore[misc]
    if _has_errors(records.get("real", [])):
        found.append(("real", lambda: draw_real(records["real"])))
    if any("seconds" in r for r in records.get("peers", [])):
        found.append(("peers", lambda: draw_peers(records["peers"])))
    if any("seconds" in r for r in records.get("scaling", [])):
        found.append(("scaling", lambda: draw_scaling(records["scaling"])))
    return found


def _has_errors(records: Sequence[Record]) -> bool:
    return any("tv" in record for record in records)


# --- error ----------------------------------------------------------------------------------------


def draw_paper(records: Sequence[Record]) -> Any:
    """Draw error against m: a column a structure, a row an adversary."""
    by_panel = {
        (adversary, structure): group
        for (adversary,), rows in group_by(records, "adversary").items()
        for structure, group in _by_structure(rows).items()
    }
    adversaries = list(dict.fromkeys(a for a, _ in by_panel))
    structures = list(dict.fromkeys(s for _, s in by_panel))
    figure, axes = _make_grid(len(adversaries), len(structures))
    for (adversary, structure), group in by_panel.items():
        panel = axes[adversaries.index(adversary)][structures.index(structure)]
        lines: dict[str, list[tuple[float, float, float]]] = {}
        for (network,), cell in group_by(group, "network").items():
            m = build_network(network, cell[0]["seed"]).n_configurations
            for method, error in errors_by_method(cell).items():
                lines.setdefault(method, []).append((m, error.mean, error.reach))
        _plot_lines(panel, lines)
        panel.set(title=f"{structure}; bad rows: {adversary}", xlabel="m", ylabel="total variation")
    _add_legend(figure, axes)
    return figure


def _by_structure(records: Sequence[Record]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        kind, *sizes = record["network"].split(":")
        name = f"{kind}, d = {sizes[0]}" if kind == "graph" else kind
        groups.setdefault(name, []).append(record)
    return groups


def draw_real(records: Sequence[Record]) -> Any:
    """Draw error against eps: a column an adversary, a row a network."""
    networks = list(dict.fromkeys(r["network"] for r in records if "tv" in r))
    adversaries = list(dict.fromkeys(r["adversary"] for r in records if "tv" in r))
    figure, axes = _make_grid(len(networks), len(adversaries))
    for i, network in enumerate(networks):
        for j, adversary in enumerate(adversaries):
            lines: dict[str, list[tuple[float, float, float]]] = {}
            here = [r for r in records if (r["network"], r["adversary"]) == (network, adversary)]
            for (eps,), cell in group_by(here, "eps").items():
                for method, error in errors_by_method(cell).items():
                    lines.setdefault(method, []).append((100 * eps, error.mean, error.reach))
            _plot_lines(axes[i][j], lines)
            axes[i][j].set(
                title=f"{title_network(network)}; bad rows: {adversary}",
                xlabel="bad rows, %",
                ylabel="total variation",
            )
    _add_legend(figure, axes)
    return figure


def _plot_lines(panel: Any, lines: dict[str, list[tuple[float, float, float]]]) -> None:
    for method in (m for m in METHODS if m in lines):
        color, marker, dash = STYLES[method]
        x, y, reach = (np.array(column) for column in zip(*sorted(lines[method]), strict=True))
        width = 2.0 if method == AUTO else 1.2
        label = METHODS[method].title
        # open markers of two sizes: lines that lie on one another can still be told apart
        size = 7 if method == AUTO else 4
        style = {"color": color, "marker": marker or None, "linestyle": dash, "linewidth": width}
        panel.plot(x, y, label=label, markersize=size, markerfacecolor="none", **style)
        if np.isfinite(reach).all():
            panel.fill_between(
                x, np.maximum(y - reach, y / 10), y + reach, color=color, alpha=0.15, linewidth=0
            )
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.grid(which="major", color="#dddddd", linewidth=0.5)
    _set_ticks(panel, {x for line in lines.values() for x, _, _ in line})


def draw_gallery(records: Sequence[Record]) -> Any:
    """Draw error divided by the floor: a row an adversary, a column a method."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    adversaries = list(dict.fromkeys(r["adversary"] for r in records))
    methods = [m for m in (*OURS, *RIVALS) if any(r["method"] == m for r in records)]
    ratios, labels = np.full((len(adversaries), len(methods)), math.nan), []
    for i, adversary in enumerate(adversaries):
        errors = errors_by_method(r for r in records if r["adversary"] == adversary)
        floor = errors[FLOOR].mean if FLOOR in errors else math.nan
        labels.append(f"{adversary}  ({'–' if math.isnan(floor) else f'{floor:.3f}'})")
        for j, method in enumerate(methods):
            if method in errors:
                ratios[i, j] = errors[method].mean / floor
    figure = Figure(figsize=(0.75 * len(methods) + 1.8, 0.27 * len(adversaries) + 1.8))
    figure.set_layout_engine("constrained")
    panel = figure.subplots()
    most = float(np.nanmax(ratios, initial=10.0))
    image = panel.imshow(
        ratios, norm=LogNorm(1, max(most, 10.0), clip=True), cmap="cividis", aspect="auto"
    )
    _write_ratios(panel, ratios, most)
    panel.set_xticks(range(len(methods)), [_break(METHODS[m].title) for m in methods])
    panel.set_yticks(range(len(adversaries)), labels)
    panel.tick_params(length=0, labelsize=7)
    panel.xaxis.tick_top()
    sample = records[0]
    figure.suptitle(
        f"{title_network(sample['network'])}: total variation as a multiple of the floor, "
        f"N = {sample['n_rows']:,}, eps = {sample['eps']:g}\n"
        "(in brackets: the floor; framed: lowest, or within 2 % of it)",
        fontsize=8,
    )
    figure.colorbar(image, ax=panel, pad=0.01, fraction=0.03)
    return figure


def _write_ratios(panel: Any, ratios: Any, most: float) -> None:
    from matplotlib.patches import Rectangle

    for i, line in enumerate(ratios):
        lowest = np.nanmin(line, initial=math.inf)
        for j, ratio in enumerate(line):
            if math.isnan(ratio):
                panel.text(j, i, "–", ha="center", va="center", fontsize=7)
                continue
            is_dark = math.log(max(ratio, 1)) < 0.55 * math.log(max(most, 10.0))
            color = "white" if is_dark else "black"
            text = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
            panel.text(j, i, text, ha="center", va="center", color=color, fontsize=7)
            if ratio <= TIE * lowest:
                frame = Rectangle((j - 0.45, i - 0.42), 0.9, 0.84, fill=False, ec="white", lw=1.4)
                panel.add_patch(frame)


def _break(title: str) -> str:
    return "\n".join(textwrap.wrap(title, 11))


# --- cost -----------------------------------------------------------------------------------------


def draw_peers(records: Sequence[Record]) -> Any:
    """Draw seconds and peak memory of every method: a bar each, a column an adversary."""
    from matplotlib.figure import Figure

    measured = [r for r in records if "seconds" in r]
    adversaries = list(dict.fromkeys(r["adversary"] for r in measured))
    figure = Figure(figsize=(4.5 * len(adversaries), 0.5 + 0.9 * len(RIVALS) / 2))
    figure.set_layout_engine("constrained")
    axes = figure.subplots(1, 2 * len(adversaries), squeeze=False)[0]
    for k, adversary in enumerate(adversaries):
        here = sorted(
            (r for r in measured if r["adversary"] == adversary), key=lambda r: -r["seconds"]
        )
        titles = [METHODS[r["method"]].title for r in here]
        seconds = [r["seconds"] for r in here]
        memory = [max(r["peak_bytes"] / 2**20, 0.1) for r in here]
        shades = ["#D55E00" if r["method"] in OURS else "#888888" for r in here]
        hatches = ["//" if r["method"] in OURS else "" for r in here]
        for panel, values, unit in (
            (axes[2 * k], seconds, "seconds"),
            (axes[2 * k + 1], memory, "peak memory, MiB"),
        ):
            panel.barh(titles, values, color=shades, hatch=hatches, edgecolor="black", lw=0.5)
            panel.set(xscale="log", xlabel=unit, title=f"bad rows: {adversary}")
            panel.tick_params(labelsize=7)
        axes[2 * k + 1].set_yticks(range(len(titles)), [""] * len(titles))
    return figure


def draw_scaling(records: Sequence[Record]) -> Any:
    """Draw seconds against rows, nodes, configurations and threads."""
    panels = [
        (e.removeprefix("scaling "), g) for (e,), g in group_by(records, "experiment").items()
    ]
    figure, axes = _make_grid(1, len(panels))
    for panel, (grows, group) in zip(axes[0], panels, strict=True):
        for method in ("bytes", "counting", AUTO):
            points = scaling_points(group, grows, method)
            if not points:
                continue
            sizes, seconds = zip(*points, strict=True)
            exponent = fit_exponent(sizes, seconds)
            color, marker, dash = STYLES[method]
            label = METHODS[method].title
            if len(points) > 2:
                label += f" (exponent {exponent:.2f})"
            style = {"color": color, "marker": marker or None, "linestyle": dash}
            panel.plot(sizes, seconds, label=label, markerfacecolor="none", **style)
        panel.set(xscale="log", yscale="log", xlabel=grows, ylabel="seconds")
        panel.set_title(describe_scaling(group, grows), fontsize=7)
        low, high = panel.get_ylim()
        panel.set_ylim(low, high * (high / low) ** 0.45)  # room for the legend
        panel.legend(fontsize=6, loc="upper left")
        panel.grid(which="major", color="#dddddd", linewidth=0.5)
        _set_ticks(panel, {_size(record, grows) for record in group})
    return figure


def scaling_points(records: Sequence[Record], grows: str, method: str) -> list[tuple[float, float]]:
    """Return (size, seconds) of what was measured, smallest first."""
    found: dict[float, list[float]] = {}
    for record in records:
        if record["method"] == method and "seconds" in record:
            found.setdefault(_size(record, grows), []).append(record["seconds"])
    return [(size, average(found[size]).mean) for size in sorted(found)]


def describe_scaling(records: Sequence[Record], grows: str) -> str:
    """Return what stays the same while something grows."""
    sample = records[0]
    kind = sample["network"].split(":")[0]
    rows, threads = f"N = {sample['n_rows']:,}", f"{sample['n_threads']} thread"
    if grows == "N":
        return f"{title_network(sample['network'])}; {threads}"
    if grows == "d":
        return f"{kind}s; {rows}; {threads}"
    if grows == "m":
        n_cells = sample["n_rows"] * int(sample["network"].split(":")[1])
        return f"{kind}s, N d = {n_cells:,}; {threads}"
    return f"{title_network(sample['network'])}; {rows}"


def _size(record: Record, grows: str) -> float:
    if grows == "N":
        return float(record["n_rows"])
    if grows == "threads":
        return float(record["n_threads"])
    return float(record["network"].split(":")[1 if grows == "d" else 2])


# --- around the figures ---------------------------------------------------------------------------


def _make_grid(n_lines: int, n_columns: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.1 * n_columns, 2.4 * n_lines + 0.9), layout="constrained")
    return figure, figure.subplots(n_lines, n_columns, squeeze=False)


def _set_ticks(panel: Any, places: Iterable[float]) -> None:
    """Mark the sizes that were measured, and 1, 2 and 5 in every decade of the other axis."""
    from matplotlib.ticker import EngFormatter, LogLocator, NullLocator, StrMethodFormatter

    panel.set_xticks(sorted(places))
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    panel.xaxis.set_minor_locator(NullLocator())
    low, high = panel.get_ylim()
    if high / low < 1000:
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    panel.yaxis.set_minor_locator(NullLocator())


def _add_legend(figure: Any, axes: Any) -> None:
    found: dict[str, Any] = {}
    for panel in axes.ravel():
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    n_columns = min(len(found), max(2, int(figure.get_size_inches()[0] / 1.5)))
    figure.legend(found.values(), found.keys(), loc="outside upper center", ncols=n_columns)


def _save(figure: Any, stem: Path, setting: Record) -> tuple[Path, ...]:
    """Write SVG and PNG with the caption below, broken to the width of the figure."""
    width = int(figure.get_size_inches()[0] * 24)
    text = "\n".join(textwrap.wrap(caption(setting), width))
    figure.supxlabel(text, fontsize=5, color="#444444", x=0.01, ha="left")
    svg, png = stem.with_suffix(".svg"), stem.with_suffix(".png")
    made = {"Description": describe_sources(setting)}
    figure.savefig(svg, metadata={**made, "Date": None})
    figure.savefig(png, dpi=150, metadata=made)
    return svg, png
