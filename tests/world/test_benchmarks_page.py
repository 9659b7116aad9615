"""The page of the proof is made of stored results alone, and says what they are worth."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

pytest.importorskip(
    "robustbn._rows.kernels._native", reason="the benchmarks measure native kernels"
)

from benchmarks import bench, page, stale
from benchmarks.__main__ import BENCHMARKS, COMMANDS, find
from benchmarks.measure import RESULTS, Goal, Report, Settings, Table, write_report
from benchmarks.page import SECTIONS, Section, find_result, render
from benchmarks.sources import ROOT, entry_of
from benchmarks.stale import find_quotes

HOLES = next(section for section in SECTIONS if section.result == "holes")


def write(folder, measured, *, name="holes", tables=(), goals=(), **settings):
    """Write a report whose first table shows what was measured."""
    first = Table("What is lost", ("where", "loss"), (("here", measured),), "A note.")
    made = Settings(command=f"python -m benchmarks {name}", **settings)
    report = Report(name, "A title", "How it was measured.", made, {"numpy": "9"},
                    (first, *tables), (), tuple(goals), ("2 of 9 cells: too slow",))  # fmt: skip
    return write_report(report, folder)[0]


def shown(folder, section):
    """Return the part of the page that is about a section."""
    text = render(folder, folder / "docs" / "proof.md")
    return text.split(f"\n## {section.title}\n")[1].split("\n## ")[0]


def test_a_section_shows_command_sources_machine_note_and_tables(tmp_path):
    path = write(tmp_path, "0.125")
    text = shown(tmp_path, HOLES)
    made = json.loads(path.read_text())
    words = ("numpy 9", "A note.", "`python -m benchmarks holes`", "How it was measured.")
    words += ("| here | 0.125 |", "2 of 9 cells: too slow.", "benchmarks/results/holes.json")
    for word in (made["sources"], made["machine"]["processor"], *words):
        assert word in text
    assert "Stale" not in text


def test_a_result_of_other_code_says_so(tmp_path):
    path = write(tmp_path, "0.125")
    made = json.loads(path.read_text())["sources"]
    path.write_text(path.read_text().replace(made, "0123456789ab"))
    assert "**Stale: other code than the present one made this.**" in shown(tmp_path, HOLES)
    text = render(tmp_path, tmp_path / "proof.md")
    assert f"{HOLES.title} | **stale** |" in text
    assert f"**{len(SECTIONS)} of {len(SECTIONS)} sections" in text


def test_a_section_without_a_result_names_its_command(tmp_path):
    assert shown(tmp_path, HOLES).strip() == (
        "**Not measured.** `python -m benchmarks holes` measures it."
    )


def test_the_most_thorough_current_result_is_shown(tmp_path):
    full = write(tmp_path, "0.3", full=True)
    write(tmp_path, "0.1", quick=True)
    assert find_result(HOLES, tmp_path).path == full
    made = json.loads(full.read_text())["sources"]
    full.write_text(full.read_text().replace(made, "0123456789ab"))
    found = find_result(HOLES, tmp_path)
    assert (found.path.name, found.is_current) == ("holes-quick.json", True)
    assert "quick: fewer rows, no goals" in shown(tmp_path, HOLES)


def test_goals_that_are_missed_come_first_and_met_ones_are_only_counted(tmp_path):
    goals = [Goal("Harm", "none", "3 of 9", False), Goal("Speed", "≤ 2", "1.4", True)]
    write(tmp_path, "0.1", goals=goals)
    text = render(tmp_path, tmp_path / "proof.md")
    first = text.split("## Goals that are missed")[1].split("\n## ")[0]
    assert "1 of 2." in first
    assert f"| {HOLES.title} | Harm | none | 3 of 9 |" in first
    section = shown(tmp_path, HOLES)
    assert section.index("Missed goals") < section.index("What is lost")
    assert "Speed" not in section
    assert f"{HOLES.title} | current | 1 of 2 |" in text


def test_long_tables_and_many_are_cut_and_the_rest_is_linked(tmp_path):
    lines = tuple((f"row {k}", "1") for k in range(page.MOST_LINES + 5))
    more = tuple(Table(f"Table {k}", ("a", "b"), lines) for k in range(HOLES.n_tables))
    write(tmp_path, "0.1", tables=more)
    section = shown(tmp_path, HOLES)
    assert f"row {page.MOST_LINES - 1} " in section
    assert "… and 5 more." in section
    assert f"row {page.MOST_LINES} " not in section
    assert f"Table {HOLES.n_tables - 1}" not in section
    assert "More tables: [holes.md](../holes.md)." in section


def test_an_empty_table_says_none(tmp_path):
    write(tmp_path, "0.1", tables=[Table("Lost", ("a",), ())])
    assert "**Lost**\n\nNone." in shown(tmp_path, HOLES)


def test_results_from_before_tables_were_kept_are_linked(tmp_path):
    path = write(tmp_path, "0.125")
    stored = json.loads(path.read_text())
    del stored["tables"]
    path.write_text(json.dumps(stored))
    assert "Its tables are in [holes.md](../holes.md)" in shown(tmp_path, HOLES)
    path.with_suffix(".md").unlink()
    assert "Its tables were not kept" in shown(tmp_path, HOLES)


def test_the_figure_of_the_paper_is_drawn_from_its_numbers(tmp_path):
    pytest.importorskip("matplotlib")
    records = [
        {"network": f"tree:{d}", "adversary": "product", "method": m, "tv": 0.1, "seed": 0}
        for d in (5, 9) for m in ("good", "counting", "default_auto")
    ]  # fmt: skip
    path = write(tmp_path, "0.1", name=page.PAPER)
    stored = json.loads(path.read_text())
    path.write_text(json.dumps(stored | {"records": records}))
    section = next(s for s in SECTIONS if s.result == page.PAPER)
    page.main(["--output", str(tmp_path), "--page", str(tmp_path / "proof.md")])
    assert f"![{section.title}](../proof-paper.svg)" in shown(tmp_path, section)
    assert stored["sources"] in (tmp_path / "proof-paper.svg").read_text()


def test_the_figure_of_growth_is_drawn_from_its_numbers(tmp_path):
    pytest.importorskip("matplotlib")
    path = write(tmp_path, "0.1", name="growth")
    stored = json.loads(path.read_text())
    record = {"grows": "N", "sizes": [1, 10], "walls_s": [1, 9], "peak_bytes": [1, 2]}
    path.write_text(json.dumps(stored | {"records": [record | {"exponent": 0.95}]}))
    section = next(s for s in SECTIONS if s.result == "growth")
    page.main(["--output", str(tmp_path), "--page", str(tmp_path / "proof.md")])
    assert f"![{section.title}](../growth.svg)" in shown(tmp_path, section)
    assert stored["sources"] in (tmp_path / "growth.svg").read_text()


def test_the_page_that_is_kept_has_every_section_and_quotes_kept_results():
    kept = page.PAGE.read_text(encoding="utf-8")
    titles = [line for line in kept.splitlines() if line.startswith("## ")]
    assert titles[2:] == [f"## {section.title}" for section in SECTIONS]
    assert find_quotes(page.PAGE) <= {path.stem for path in RESULTS.iterdir()}


# --- measuring all of it --------------------------------------------------------------------------


def test_every_section_has_a_benchmark_and_the_short_forms_fit_into_25_minutes():
    for section in SECTIONS:
        assert (ROOT / "benchmarks" / f"{entry_of(section.result)}.py").exists()
        for command in (section.short, section.full):
            name, *options = shlex.split(command)
            assert find((BENCHMARKS | COMMANDS)[name])
            assert "--quick" not in options  # judges no goals, and its results are not kept
    assert sum(section.minutes for section in SECTIONS) <= 25


@pytest.mark.parametrize("name", [*BENCHMARKS, *COMMANDS])
def test_every_name_of_the_command_line_leads_to_a_function(name):
    assert callable(find((BENCHMARKS | COMMANDS)[name]))


def test_all_sections_are_run_and_one_that_fails_stops_nobody(tmp_path, monkeypatch):
    ran = []

    def measure(command: str, output: Path) -> bool:
        ran.append(command)
        return command != "second"

    sections = [Section(f"s{k}", f"S {k}", short, f"{short} --full", 1)
                for k, short in enumerate(("first", "second", "third"))]  # fmt: skip
    monkeypatch.setattr(bench, "measure", measure)
    monkeypatch.setattr(page, "SECTIONS", sections)
    target = tmp_path / "proof.md"
    with pytest.raises(SystemExit, match="python -m benchmarks second"):
        bench.main(["--output", str(tmp_path), "--page", str(target)])
    assert ran == ["first", "second", "third"]
    assert "## S 2" in target.read_text()
    ran.clear()
    bench.main(["--full", "--only", "s0", "--output", str(tmp_path), "--page", str(target)])
    assert ran == ["first --full"]


def test_a_section_runs_in_a_process_of_its_own_and_its_failure_is_told(tmp_path):
    assert not bench.measure("no-such-benchmark", tmp_path)
    assert bench.measure("stale --help", RESULTS)


# --- what is stale --------------------------------------------------------------------------------


def test_sections_that_were_not_measured_and_an_old_page_are_stale(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "SECTIONS", (HOLES,))
    monkeypatch.setattr(stale, "SECTIONS", (HOLES,))
    target = tmp_path / "proof.md"
    asked = f"  {HOLES.title}: python -m benchmarks holes --full"
    lines = stale.describe_page(tmp_path, target)
    assert lines[1:] == [asked, "proof.md is not what the results give: python -m benchmarks page"]
    write(tmp_path, "0.1", full=True)
    target.write_text(render(tmp_path, target), encoding="utf-8")
    assert stale.describe_page(tmp_path, target) == []
    write(tmp_path, "0.2", full=True)
    assert "not what the results give" in stale.describe_page(tmp_path, target)[0]
