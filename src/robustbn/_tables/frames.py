"""Results as frames of the kind that the caller works with."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any


def build_frame(columns: Mapping[str, Any], kind: str) -> Any:
    """Return columns as a frame: of pandas, polars or pyarrow if that is what the caller has.

    A caller who came with an array or a file gets what is installed, in this order.
    """
    import narwhals as nw

    if kind not in ("pandas", "polars", "pyarrow"):
        kind = next(k for k in ("pandas", "polars", "pyarrow") if find_spec(k))
    backend: Any = kind
    return nw.from_dict(dict(columns), backend=backend).to_native()
