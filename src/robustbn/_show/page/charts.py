"""Small pictures of the page: the weights, the spectrum before and after, the rounds.

Plain SVG; colours come from the page's classes, every label is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10

from robustbn._core.numbers import count, rounded
from robustbn._core.result import Round
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, percent

WIDTH, HEIGHT = 440.0, 230.0
LEFT, RIGHT, TOP, FLOOR = 52.0, 428.0, 18.0, 202.0  # of what is drawn in
FEW_ROUNDS = 5  # so many shares have room beside each other on a phone


@dataclass(frozen=True)
class LogScale:
    """Heights of positive values."""

    low: float
    high: float
    floor: float = FLOOR

    def y(self, value: float) -> float:
        share = log10(max(value, self.low) / self.low) / log10(self.high / self.low)
        return self.floor - share * (self.floor - TOP)

    def grid(self, ticks: Iterable[float], say: Callable[[float], str]) -> list[str]:
        lines = [_line("grid", LEFT, RIGHT, self.y(t)) for t in ticks]
        return lines + [_tick(LEFT - 6, self.y(t) + 4, say(t), "end") for t in ticks]


def draw_weights(result: FitResult) -> str:
    """Return the histogram of the weights; heights are logarithmic, so that few rows still show."""
    counts: list[int] = result.weight_counts.tolist()
    edges: list[float] = result.weight_edges.tolist()
    tallest, first, last = max(10, *counts), edges[0], edges[-1]
    scale = LogScale(10**-0.15, tallest * 10**0.15)

    def x(weight: float) -> float:
        return LEFT + (weight - first) / (last - first) * (RIGHT - LEFT)

    parts = scale.grid([10**p for p in range(floor(log10(tallest)) + 1)], _compact)
    n_below = 0
    for (low, high), n in zip(pairwise(edges), counts, strict=True):
        n_below += n if low + high < 1 else 0
        if n:
            kind = "bad" if low + high < 1 else "good"
            note = f"{count(n, 'row')} with a trust of {low:.2f} to {high:.2f}"
            parts.append(_bar(kind, x(low) + 1, x(high) - 1, scale.y(n), note))
    for weight, anchor in ((first, "start"), ((first + last) / 2, "middle"), (last, "end")):
        parts.append(_tick(x(weight), FLOOR + 19, f"{weight:g}", anchor))
    parts.append(_line("axis", LEFT, RIGHT, FLOOR))
    have = "has" if n_below == 1 else "have"
    said = f"{n_below:,} of {count(sum(counts), 'row')} {have} a trust below one half."
    return _frame("weights", "How many rows have which trust", said, parts)


def draw_spectrum(rounds: Sequence[Round]) -> str:
    """Return the largest eigenvalues before and after, against what good rows have; "" if none."""
    tested = [r for r in rounds if r.eigenvalues]
    if not tested:
        return ""
    before, after = tested[0], tested[-1]
    scale = _scale_of([*before.eigenvalues, *after.eigenvalues, after.threshold])
    n = max(len(before.eigenvalues), len(after.eigenvalues))
    x = [LEFT + (rank + 0.5) / n * (RIGHT - LEFT) for rank in range(n)]
    parts = _eigenvalue_grid(scale)
    parts.append(_line("threshold", LEFT, RIGHT, scale.y(after.threshold)))
    for at, start, end in zip(x, before.eigenvalues, after.eigenvalues, strict=False):
        parts.append(_line("drop", at, at, scale.y(start), scale.y(end)))
    for kind, shown in (("before", before), ("after", after)):
        for at, value in zip(x, shown.eigenvalues, strict=False):
            parts.append(_dot(kind, at, scale.y(value), f"{kind}: {value:.3f}"))
    parts += [_tick(at, FLOOR + 19, str(rank)) for rank, at in enumerate(x, start=1)]
    said = (
        f"Before, the strongest pattern varied {rounded(before.eigenvalues[0])} times as much as "
        f"in good rows; after, {rounded(after.eigenvalues[0])} times. Good rows stay below "
        f"{rounded(after.threshold)}."
    )
    return _frame("spectrum", "Unusual variation before and after", said, parts)


def draw_rounds(rounds: Sequence[Round]) -> str:
    """Return the top eigenvalue and the share distrusted, round by round; "" if none was tested."""
    tested = [r for r in rounds if r.eigenvalues]
    if not tested:
        return ""
    scale = _scale_of([v for r in tested for v in (r.eigenvalues[0], r.threshold)], FLOOR - 56)
    n, step = len(tested), (RIGHT - LEFT) / len(tested)
    most = max(*(r.removed for r in tested), 1e-9)
    at = [(LEFT + (k + 0.5) * step, scale.y(r.eigenvalues[0])) for k, r in enumerate(tested)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    parts = [*_eigenvalue_grid(scale), f'<polyline class="drop" points="{line}"/>']
    for k, (r, (x, y)) in enumerate(zip(tested, at, strict=True)):
        top, share = r.eigenvalues[0], percent(r.removed)
        limit = f"{top:.3f}, good rows up to {r.threshold:.3f}"
        kind = "before" if top > r.threshold else "after"
        half, height = min(step * 0.3, 22), FLOOR - 30 * r.removed / most
        parts += [
            _line("threshold", x - step * 0.45, x + step * 0.45, scale.y(r.threshold)),
            _dot(kind, x, y, f"round {r.number}: {as_text(r.action)}; {limit}"),
            _bar("bad", x - half, x + half, height, f"{share} distrusted"),
        ]
        if n <= FEW_ROUNDS or k in (0, n - 1):
            parts.append(_tick(x, height - 5, share))
        if n <= 12 or k % ceil(n / 8) == 0:
            parts.append(_tick(x, FLOOR + 19, str(r.number)))
    parts.append(_line("axis", LEFT, RIGHT, FLOOR))
    last = percent(tested[-1].removed)
    said = f"{count(n, 'round')}. The last one distrusts {last} of the rows."
    return _frame("rounds", "What each round saw", said, parts)


def _scale_of(values: Sequence[float], bottom: float = FLOOR) -> LogScale:
    positive = [v for v in values if v > 0]
    return LogScale(min(*positive, 0.9, 1.0) / 1.15, max(*positive, 1.0, 1.2) * 1.25, bottom)


def _eigenvalue_grid(scale: LogScale) -> list[str]:
    ticks = [f * 10.0**p for p in range(-3, 9) for f in (1, 2, 5)]
    inside = [t for t in ticks if scale.low <= t <= scale.high]
    if len(inside) > 6:
        inside = [t for t in inside if f"{t:e}"[0] == "1"]
    return scale.grid(inside, lambda t: f"{t:g}×")


def _line(kind: str, x0: float, x1: float, y0: float, y1: float | None = None) -> str:
    """Return a line, level unless it is said where it ends."""
    end = y0 if y1 is None else y1
    return f'<line class="{kind}" x1="{x0:.1f}" x2="{x1:.1f}" y1="{y0:.1f}" y2="{end:.1f}"/>'


def _tick(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text class="tick" text-anchor="{anchor}" x="{x:.1f}" y="{y:.1f}">{text}</text>'


def _dot(kind: str, x: float, y: float, note: str) -> str:
    title = f"<title>{escape(note)}</title>"
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5">{title}</circle>'


def _bar(kind: str, x0: float, x1: float, y: float, note: str) -> str:
    return (
        f'<rect class="{kind}" x="{x0:.1f}" width="{x1 - x0:.1f}" y="{y:.1f}" '
        f'height="{FLOOR - y:.1f}"><title>{escape(note)}</title></rect>'
    )


def _compact(n: float) -> str:
    """Return a power of ten in four characters: an axis has no room for more."""
    for unit, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if n >= unit:
            return f"{n // unit:.0f}{letter}"
    return str(n)


def _frame(name: str, title: str, description: str, parts: Sequence[str]) -> str:
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" '
        f'aria-labelledby="{name}-title {name}-desc"><title id="{name}-title">{escape(title)}'
        f'</title><desc id="{name}-desc">{escape(description)}</desc>{"".join(parts)}</svg>'
    )
