"""Columns by place on the page, where some columns have no edge."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tests.commands import call


def test_a_page_shows_a_stretch_of_rows_beside_a_column_without_edges(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    smokes = rng.random(4_000) < 0.4
    coughs = rng.random(4_000) < np.where(smokes, 0.8, 0.1)
    coughs[1_000:1_400] = True
    frame = pd.DataFrame({"smokes": smokes, "coughs": coughs}).replace({True: "yes", False: "no"})
    frame["town"] = rng.choice(["Bonn", "Cork", "Graz"], len(frame))
    frame.to_csv("rows.csv", index=False)
    call("check", "rows.csv", "--report", "page.html")
    assert "row number" in (tmp_path / "page.html").read_text("utf-8")
