"""Small pictures of the page: the weights, the spectrum before and after, the rounds.

Plain SVG; colours come from the page's classes, every label is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10

from robustbn._core.numbers import count, rounded
from robustbn._core.result import Round
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, percent

WIDTH, HEIGHT = 440.0, 230.0
FEW_ROUNDS = 5  # so many shares have room beside each other on a phone
LEFT, RIGHT, TOP, BOTTOM = 52.0, 12.0, 18.0, 28.0


def draw_weights(result: FitResult) -> str:
    """Return the histogram of the weights; heights are logarithmic, so that few rows still show."""
    counts = [int(c) for c in result.weight_counts]
    edges = [float(e) for e in result.weight_edges]
    tallest = max(10, *counts, 10)
    top = log10(tallest) + 0.15
    floor_y, span = HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP

    def x(weight: float) -> float:
        return LEFT + (weight - edges[0]) / (edges[-1] - edges[0]) * (WIDTH - LEFT - RIGHT)

    def y(count: float) -> float:
        return floor_y - (log10(count) + 0.15) / (top + 0.15) * span

    parts = [
        f'<line class="grid" x1="{LEFT:.0f}" x2="{WIDTH - RIGHT:.0f}" '
        f'y1="{y(10**p):.1f}" y2="{y(10**p):.1f}"/>'
        f'<text class="tick" text-anchor="end" x="{LEFT - 6:.0f}" y="{y(10**p) + 4:.1f}">'
        f"{_compact(10**p)}</text>"
        for p in range(floor(log10(tallest)) + 1)
    ]
    for low, high, n in zip(edges, edges[1:], counts, strict=False):
        if n:
            kind = "bad" if (low + high) / 2 < 0.5 else "good"
            parts.append(
                f'<rect class="{kind}" x="{x(low) + 1:.1f}" width="{x(high) - x(low) - 2:.1f}" '
                f'y="{y(n):.1f}" height="{floor_y - y(n):.1f}">'
                f"<title>{count(n, 'row')} with a trust of {low:.2f} to {high:.2f}</title></rect>"
            )
    middle = (edges[0] + edges[-1]) / 2
    for weight, anchor in ((edges[0], "start"), (middle, "middle"), (edges[-1], "end")):
        parts.append(
            f'<text class="tick" text-anchor="{anchor}" x="{x(weight):.1f}" '
            f'y="{floor_y + 19:.0f}">{weight:g}</text>'
        )
    parts.append(
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor_y}" y2="{floor_y}"/>'
    )
    below = sum(c for low, high, c in zip(edges, edges[1:], counts, strict=False) if low + high < 1)
    return _frame(
        "weights",
        "How many rows have which trust",
        f"{below:,} of {count(sum(counts), 'row')} {'has' if below == 1 else 'have'} a trust below "
        "one half.",
        parts,
    )


def draw_spectrum(rounds: Sequence[Round]) -> str:
    """Return the largest eigenvalues before and after, against what good rows have; "" if none."""
    tested = [r for r in rounds if r.eigenvalues]
    if not tested:
        return ""
    before, after = tested[0], tested[-1]
    scale = _LogScale([*before.eigenvalues, *after.eigenvalues, after.threshold])
    n = max(len(before.eigenvalues), len(after.eigenvalues))

    def x(rank: int) -> float:
        return LEFT + (rank + 0.5) / n * (WIDTH - LEFT - RIGHT)

    parts = [*scale.grid(), _threshold(LEFT, WIDTH - RIGHT, scale.y(after.threshold))]
    for rank, value in enumerate(before.eigenvalues):
        end = after.eigenvalues[rank] if rank < len(after.eigenvalues) else value
        parts.append(
            f'<line class="drop" x1="{x(rank):.1f}" x2="{x(rank):.1f}" '
            f'y1="{scale.y(value):.1f}" y2="{scale.y(end):.1f}"/>'
        )
    for kind, shown in (("before", before), ("after", after)):
        parts.extend(
            f'<circle class="{kind}" cx="{x(rank):.1f}" cy="{scale.y(value):.1f}" r="5">'
            f"<title>{kind}: {value:.3f}</title></circle>"
            for rank, value in enumerate(shown.eigenvalues)
        )
    parts.extend(
        f'<text class="tick" text-anchor="middle" x="{x(rank):.1f}" '
        f'y="{HEIGHT - BOTTOM + 19:.0f}">{rank + 1}</text>'
        for rank in range(n)
    )
    return _frame(
        "spectrum",
        "Unusual variation before and after",
        f"Before, the strongest pattern varied {rounded(before.eigenvalues[0])} times as much as "
        f"in good rows; after, {rounded(after.eigenvalues[0])} times. Good rows stay below "
        f"{rounded(after.threshold)}.",
        parts,
    )


def draw_rounds(rounds: Sequence[Round]) -> str:
    """Return the top eigenvalue and the share distrusted, round by round; "" if none was tested."""
    tested = [r for r in rounds if r.eigenvalues]
    if not tested:
        return ""
    scale = _LogScale([v for r in tested for v in (r.eigenvalues[0], r.threshold)], bottom=84.0)
    n = len(tested)
    step = (WIDTH - LEFT - RIGHT) / n
    most = max(*(r.removed for r in tested), 1e-9)
    strip = HEIGHT - BOTTOM
    parts = [*scale.grid()]
    line = " ".join(
        f"{LEFT + (k + 0.5) * step:.1f},{scale.y(r.eigenvalues[0]):.1f}"
        for k, r in enumerate(tested)
    )
    parts.append(f'<polyline class="drop" points="{line}"/>')
    for k, r in enumerate(tested):
        middle = LEFT + (k + 0.5) * step
        parts.append(_threshold(middle - step * 0.45, middle + step * 0.45, scale.y(r.threshold)))
        kind = "before" if r.eigenvalues[0] > r.threshold else "after"
        parts.append(
            f'<circle class="{kind}" cx="{middle:.1f}" cy="{scale.y(r.eigenvalues[0]):.1f}" '
            f'r="5"><title>round {r.number}: {escape(as_text(r.action))}; '
            f"{r.eigenvalues[0]:.3f}, good rows up to {r.threshold:.3f}</title></circle>"
        )
        height = 30 * r.removed / most
        parts.append(
            f'<rect class="bad" x="{middle - min(step * 0.3, 22):.1f}" '
            f'width="{min(step * 0.6, 44):.1f}" y="{strip - height:.1f}" height="{height:.1f}">'
            f"<title>{percent(r.removed)} distrusted</title></rect>"
        )
        if n <= FEW_ROUNDS or k in (0, n - 1):
            parts.append(
                f'<text class="tick" text-anchor="middle" x="{middle:.1f}" '
                f'y="{strip - height - 5:.1f}">{percent(r.removed)}</text>'
            )
        if n <= 12 or k % ceil(n / 8) == 0:
            parts.append(
                f'<text class="tick" text-anchor="middle" x="{middle:.1f}" '
                f'y="{strip + 19:.0f}">{r.number}</text>'
            )
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{strip}" y2="{strip}"/>')
    return _frame(
        "rounds",
        "What each round saw",
        f"{count(n, 'round')}. The last one distrusts {percent(tested[-1].removed)} of the rows.",
        parts,
    )


class _LogScale:
    """Heights for positive values, with a few round ticks."""

    def __init__(self, values: Sequence[float], bottom: float = BOTTOM) -> None:
        positive = [v for v in values if v > 0] or [1.0]
        self.low, self.high = min(*positive, 0.9) / 1.15, max(*positive, 1.2) * 1.25
        self.bottom = HEIGHT - bottom

    def y(self, value: float) -> float:
        share = log10(max(value, self.low) / self.low) / log10(self.high / self.low)
        return self.bottom - share * (self.bottom - TOP)

    def grid(self) -> list[str]:
        ticks = [f * 10.0**p for p in range(-3, 9) for f in (1, 2, 5)]
        inside = [t for t in ticks if self.low <= t <= self.high]
        if len(inside) > 6:
            inside = [t for t in inside if f"{t:e}"[0] == "1"]
        return [
            f'<line class="grid" x1="{LEFT:.0f}" x2="{WIDTH - RIGHT:.0f}" y1="{self.y(t):.1f}" '
            f'y2="{self.y(t):.1f}"/><text class="tick" text-anchor="end" x="{LEFT - 6:.0f}" '
            f'y="{self.y(t) + 4:.1f}">{t:g}×</text>'
            for t in inside
        ]


def _threshold(left: float, right: float, y: float) -> str:
    return f'<line class="threshold" x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _compact(count: int) -> str:
    """Return a power of ten in four characters: an axis has no room for more."""
    for unit, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{count // unit}{letter}"
    return str(count)


def _frame(name: str, title: str, description: str, parts: Sequence[str]) -> str:
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" '
        f'aria-labelledby="{name}-title {name}-desc"><title id="{name}-title">{escape(title)}'
        f'</title><desc id="{name}-desc">{escape(description)}</desc>{"".join(parts)}</svg>'
    )
