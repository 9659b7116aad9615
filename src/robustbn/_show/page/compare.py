"""The page of two fits side by side, in the look of the report, and a piece for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from robustbn._show.comparison import ChangedCell, ChangedKind, say_misfit_of
from robustbn._show.page.render import page_file, page_style, script_hash
from robustbn._show.words import as_text, percent, shorten
from robustbn.exceptions import MissingDependencyError

TABLES_SHOWN = 60
LISTED_INLINE = 8


def render_comparison(
    facts: Mapping[str, Any], kinds: Sequence[ChangedKind], cells: Sequence[ChangedCell]
) -> str:
    """Return the page as the text of one HTML file; nothing else is needed to show it.

    Parameters
    ----------
    facts : as `comparison_facts` gives them.
    cells : those that moved most rows.
    """
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingDependencyError("A page needs jinja2: pip install jinja2") from error
    script = page_file("compare.js")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(text=as_text, percent=percent, misfit=say_misfit_of)
    page = environment.from_string(page_file("compare.html.j2")).render(
        facts=facts,
        sides=(facts["first"], facts["second"]),
        tables=facts["tables"][:TABLES_SHOWN],
        kinds=kinds,
        cells=cells,
        tiles=_tiles(facts),
        style=Markup(page_style()),  # noqa: S704  our own files, not the reader's data
        script=Markup(script),  # noqa: S704
        script_hash=script_hash(script),
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _tiles(facts: Mapping[str, Any]) -> list[dict[str, str]]:
    a, b = facts["first"], facts["second"]
    top = facts["tables"][0]
    what = [kind["what"] for kind in facts["kinds"]]
    return [
        {
            "name": "Distrusted",
            "value": f"{percent(a['contamination'])} → {percent(b['contamination'])}",
            "note": "of the rows' weight",
        },
        {"name": "Rows", "value": f"{a['rows']:,} → {b['rows']:,}", "note": "that were judged"},
        {
            "name": "Tables moved",
            "value": f"{facts['tables_moved']:,} of {facts['tables_compared']:,}",
            "note": f"by more than their error; {shorten(as_text(top['node']), 40)} most, by "
            f"{percent(top['moved'])}",
        },
        {
            "name": "Kinds of bad rows",
            "value": f"{a['kinds']} → {b['kinds']}",
            "note": f"{what.count('stayed')} stayed, {what.count('came')} came, "
            f"{what.count('went')} went",
        },
    ]


def comparison_html(facts: Mapping[str, Any]) -> str:
    """Return a comparison as a fragment for a notebook."""
    moved = [table for table in facts["tables"] if table["is_significant"]][:LISTED_INLINE]
    rows = "".join(
        f"<tr><td>{_shown(t['node'])}</td><td>{percent(t['moved'])}</td>"
        f"<td>{percent(t['before'])}</td><td>{percent(t['after'])}</td><td>{t['z']:.1f}</td></tr>"
        for t in moved
    )
    head = "".join(f"<th>{name}</th>" for name in ("table of", "moved", "before", "after", "z"))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""
    kinds = "".join(
        f"<li>{kind['what']}: {_shown('; '.join(kind['unusual'][:2]), 160)}</li>"
        for kind in facts["kinds"][:LISTED_INLINE]
    )
    body = f"<p><strong>{escape(as_text(facts['verdict']))}</strong></p>{table}<ul>{kinds}</ul>"
    page = f'<div class="rbn-inline">{body}</div>'
    return page.encode("utf-8", "replace").decode("utf-8")


def _shown(text: object, longest: int = 40) -> str:
    return escape(shorten(as_text(text), longest))
