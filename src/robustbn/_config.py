"""What a caller chooses, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real

CEILING = 0.45  # more than this cannot be told from a majority


@dataclass(frozen=True)
class RobustConfig:
    """Settings of the robust fit; see `RobustEstimator`."""

    contamination: float | str = "auto"
    method: str = "filter"
    schedule: str = "joint"
    polish: bool = True
    sample_rows: int | None = None
    seed: int = 0
    n_threads: int | None = None
    backend: str | None = None

    def __post_init__(self) -> None:
        check_contamination(self.contamination)
        if self.schedule not in ("joint", "paper"):
            raise ValueError(f"Unknown schedule {self.schedule!r}; choose joint or paper.")
        if self.sample_rows is not None and not (
            isinstance(self.sample_rows, Integral) and self.sample_rows >= 1
        ):
            raise ValueError(
                f"sample_rows is a number of rows, at least 1, or None; found {self.sample_rows!r}."
            )

    @property
    def ceiling(self) -> float:
        """Largest share of the rows that may be distrusted: twice eps, if eps is given."""
        if isinstance(self.contamination, str):
            return CEILING
        return min(CEILING, 2 * float(self.contamination))


def check_contamination(value: float | str) -> None:
    """Refuse what is not a share of rows below one half."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"contamination is a number or 'auto'; found {value!r}.")
        return
    if not isinstance(value, Real) or math.isnan(value) or not 0 < value < 0.5:
        hint = ""
        if value == 0:
            hint = " If every row can be trusted, use MaximumLikelihoodEstimator."
        elif isinstance(value, Real) and 1 <= value < 50:
            hint = f" Did you mean {value / 100:.2f}?"
        raise ValueError(
            "contamination is the share of bad rows: above 0, below 0.5 (a majority of the rows "
            f"must be good), or 'auto'; found {value!r}.{hint}"
        )
