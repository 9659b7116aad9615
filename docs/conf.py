"""How the site is built: `make docs`."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import robustbn

HERE = Path(__file__).parent
MEASURED = HERE.parent / "benchmarks" / "results"
COPIED = HERE / "generated" / "measured"

project = "robustbn"
author = "The robustbn developers"
version = release = robustbn.__version__
copyright = "The robustbn developers"  # the name that Sphinx reads

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]

# Markdown: headings are link targets as they are on code hosts.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

# Notebooks run at every build, and one that fails ends it.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

# What docstrings have between single backticks is code.
default_role = "literal"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_use_plots = False

bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"

smartquotes = False  # `--option` stays as it is typed
html_theme = "furo"
html_title = f"robustbn {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
copybutton_exclude = ".linenos, .gp, .go"


def copy_measured(_app: object, _config: object) -> None:
    """Bring the pages that the benchmarks wrote, and the rules of the house, into the site."""
    shutil.rmtree(COPIED, ignore_errors=True)
    COPIED.mkdir(parents=True)
    for page in sorted(MEASURED.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        title = "" if text.startswith("# ") else f"# {page.stem.replace('_', ' ')}\n\n"
        (COPIED / page.name).write_text(f"---\norphan: true\n---\n\n{title}{text}", "utf-8")
    for picture in MEASURED.glob("*.svg"):
        shutil.copy(picture, COPIED)
    rules = (HERE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rules = rules.replace("](docs/", "](../")
    (COPIED.parent / "contributing.md").write_text(f"---\norphan: true\n---\n\n{rules}", "utf-8")


def link_inside(_app: object, page: str, source: list[str]) -> None:
    """Point links out of the folder at what the site has of it: pages that were measured, files."""
    measured = r"\]\(\.\./benchmarks/results/([\w-]+\.md)"
    text = re.sub(measured, r"](generated/measured/\1", source[0])
    text = text.replace("](../CONTRIBUTING.md)", "](generated/contributing.md)")
    source[0] = re.sub(r"\[`?([^]`]+)`?\]\((\.\./examples/[^)]+)\)", r"{download}`\1 <\2>`", text)


def setup(app: Any) -> None:
    """Register what is done before pages are read."""
    app.connect("config-inited", copy_measured)
    app.connect("source-read", link_inside)
