"""Kernels from another build in place of the installed ones: `pytest -p fuzz.built`.

`ROBUSTBN_BUILT` names the extension module; it is loaded before anything asks for the kernels.
"""

from __future__ import annotations

import importlib.util
import os
import sys

NAME = "robustbn._rows.kernels._native"


def load(path: str) -> None:
    """Load an extension module under the name of the installed kernels."""
    spec = importlib.util.spec_from_file_location(NAME, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no extension module.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)


if os.environ.get("ROBUSTBN_BUILT"):
    load(os.environ["ROBUSTBN_BUILT"])
