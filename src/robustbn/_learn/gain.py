"""What an explanation is worth: one scale for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np


def find_gain(log_likelihood: Any, n_free: Any, n_rows: Any, n_tried: float = 1.0) -> Any:
    """Return what an explanation brings, in nats; numbers or arrays.

        log-likelihood - n_free / 2 log(n_rows) - log(n_tried)

    log_likelihood : that it brings to the rows.
    n_free, n_rows : its free numbers, and the rows that they are learned from.
    n_tried : candidates that it was chosen from.
    """
    return log_likelihood - 0.5 * n_free * np.log(np.maximum(n_rows, 2.0)) - np.log(n_tried)
