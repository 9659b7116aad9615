"""Every result carries the hash of its sources, and is stale once they change."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip(
    "robustbn._rows.kernels._native", reason="the benchmarks measure native kernels"
)

from benchmarks import stale, stream
from benchmarks.measure import RESULTS, Report, Settings, write_report
from benchmarks.sources import ROOT, entry_of, find_hash, hash_sources, list_sources
from benchmarks.stale import NEVER_KEPT, describe_stale, find_quotes, find_stale

FILES = {
    "src/robustbn/network.py": "nodes = 3\n",
    "src/robustbn/_show/words.py": "rows = 'rows'\n",
    "native/kernels.cpp": "int one() { return 1; }\n",
    "CMakeLists.txt": "project(robustbn)\n",
    "benchmarks/real.py": "from benchmarks.rows import draw\n",
    "benchmarks/rows.py": 'run = ["-m", "benchmarks.apart"]\n',
    "benchmarks/apart.py": "from benchmarks import page\n",
    "benchmarks/page.py": "from benchmarks import other\n",
    "benchmarks/other.py": "",
    "benchmarks/report.py": 'SOURCES = ("src/robustbn/_show/**/*", "tests/browser.py")\n',
    "tests/browser.py": "",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a repository with a few sources and the folder of its results."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "benchmarks" / "results").mkdir()
    return tmp_path


def names(entry: str, tree: Path) -> set[str]:
    return {path.relative_to(tree).as_posix() for path in list_sources(entry, tree)}


# --- what is hashed -------------------------------------------------------------------------------


def test_a_result_depends_on_package_kernels_and_all_that_its_benchmark_imports_or_starts(tree):
    package = {"src/robustbn/network.py", "native/kernels.cpp", "CMakeLists.txt"}
    modules = {f"benchmarks/{name}.py" for name in ("real", "rows", "apart")}
    assert names("real", tree) == package | modules
    shown = {"benchmarks/report.py", "src/robustbn/_show/words.py", "tests/browser.py"}
    assert names("report", tree) == package | shown


@pytest.mark.parametrize("name", FILES)
def test_the_hash_changes_with_each_source_and_with_nothing_else(tree, name):
    before = hash_sources("real", tree)
    (tree / name).write_text(FILES[name] + "\n# another line\n")
    assert (hash_sources("real", tree) != before) == (name in names("real", tree))


def test_a_source_that_is_named_and_not_there_is_an_error(tree):
    (tree / "tests/browser.py").unlink()
    with pytest.raises(FileNotFoundError, match=r"tests/browser\.py"):
        list_sources("report", tree)


def test_compiled_files_do_not_count(tree):
    before = hash_sources("real", tree)
    (tree / "src/robustbn/__pycache__").mkdir()
    (tree / "src/robustbn/__pycache__/network.cpython-311.pyc").write_bytes(b"1")
    (tree / "src/robustbn/_native.so").write_bytes(b"1")
    assert hash_sources("real", tree) == before


def test_a_benchmark_that_imports_what_is_shown_or_the_commands_depends_on_them():
    for entry in {entry_of(path.stem) for path in RESULTS.iterdir()}:
        found = list_sources(entry)
        modules = [path for path in found if path.parent.name == "benchmarks"]
        text = "".join(path.read_text() for path in modules if path.suffix == ".py")
        rooms = set(re.findall(r"\bfrom robustbn\.(_show|_cli|cli)\b", text))
        assert rooms <= {p.relative_to(ROOT / "src/robustbn").parts[0].removesuffix(".py")
                         for p in found if p.is_relative_to(ROOT / "src")}, entry  # fmt: skip


def test_every_kept_result_has_its_benchmark():
    for path in RESULTS.iterdir():
        assert entry_of(path.stem) in {f.stem for f in (ROOT / "benchmarks").glob("*.py")}


# --- what is written ------------------------------------------------------------------------------


def test_every_file_that_is_written_carries_the_hash(tmp_path):
    report = Report("profile", "A title", "", Settings(command="it"), {}, (), ())
    made = hash_sources("profile_fits")
    data, page = write_report(report, tmp_path)
    assert json.loads(data.read_text())["sources"] == made
    assert f"- Made from sources {made}:" in page.read_text()
    assert [find_hash(path.read_bytes()) for path in (data, page)] == [made, made]
    assert not find_stale(tmp_path)


def test_the_settings_of_a_stream_are_those_that_were_asked_for(tmp_path, monkeypatch):
    asked: list[Settings] = []

    def run(settings: Settings, n_rows: int) -> Report:
        asked.append(settings)
        return Report("stream", f"{n_rows} rows", "", settings, {}, (), ())

    monkeypatch.setattr(stream, "run", run)
    stream.main(["--rows", "7", "--seed", "3", "--rounds", "2", "--output", str(tmp_path)])
    assert (asked[0].seed, asked[0].n_rounds, asked[0].full) == (3, 2, False)
    assert {path.name for path in tmp_path.iterdir()} == {"stream.json", "stream.md"}


# --- what is stale --------------------------------------------------------------------------------


def test_a_result_is_stale_once_a_source_has_changed(tree):
    results = tree / "benchmarks" / "results"
    made = hash_sources("real", tree)
    (results / "real.json").write_text(json.dumps({"sources": made}))
    (results / "real-full.md").write_text(f"- Made from sources {made}: ...")
    assert not find_stale(results, tree)
    (tree / "native/kernels.cpp").write_text("int one() { return 2; }\n")
    found = find_stale(results, tree)
    assert set(found) == {"real.json", "real-full.md"}
    assert made in found["real.json"]
    assert hash_sources("real", tree) in found["real.json"]


def test_results_without_a_hash_or_a_benchmark_are_stale_and_quick_ones_are_not_looked_at(tree):
    results = tree / "benchmarks" / "results"
    for name in ("real.json", "real-quick.json", "gone.md"):
        (results / name).write_text("{}")
    expected = {"real.json": NEVER_KEPT, "gone.md": "there is no benchmarks/gone.py"}
    assert find_stale(results, tree) == expected


def test_a_page_quotes_what_it_links_to_names_or_lists(tree):
    page = tree / "page.md"
    page.write_text(
        "In [a table](../benchmarks/results/real.md), `benchmarks/results/real-full.json`, "
        "all of `benchmarks/results/proof-*.json`.\n<!-- figures: robustness, que_time -->\n"
    )
    assert find_quotes(page) == {"real", "real-full", "robustness", "que_time"}


def test_pages_that_quote_stale_or_missing_results_are_listed(tree):
    results, page, other = tree / "benchmarks" / "results", tree / "page.md", tree / "other.md"
    (results / "real.json").write_text("{}")
    page.write_text("<!-- figures: real, gone -->")
    other.write_text("no figure")
    lines = describe_stale(find_stale(results, tree), results, [page, other])
    text = "\n".join(lines)
    assert "real (.json)" in text
    assert "Pages that quote them:\n  page.md: real\n" in text
    assert text.endswith("not there:\n  page.md: gone")
    assert "other.md" not in text


def test_every_page_quotes_results_that_are_there():
    there = {path.stem for path in RESULTS.iterdir()}
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        assert find_quotes(page) <= there, page


def test_the_command_ends_with_one_if_anything_is_stale(tmp_path, capsys):
    (tmp_path / "real.md").write_text("# Measured long ago\n")
    with pytest.raises(SystemExit) as ended:
        stale.main(["--output", str(tmp_path)])
    assert ended.value.code == 1
    assert NEVER_KEPT in capsys.readouterr().out
