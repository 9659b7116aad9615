"""Algebra on vectors of length M: what counts say about tables."""

from __future__ import annotations

import numpy as np

from robustbn._layout import Layout
from robustbn._protocols import Vector


def normalise_counts(layout: Layout, counts: Vector, pseudo_counts: Vector | float = 0.0) -> Vector:
    """Return `q[k, v] = (C[k, v] + A[k, v]) / sum over v of (C[k, v] + A[k, v])`; shape (M,).

    A configuration with neither counts nor pseudo-counts is uniform.
    """
    smoothed = counts + pseudo_counts
    total = layout.sum_configurations(smoothed)[layout.config_of_cell]
    card = layout.config_cards[layout.config_of_cell]
    uniform = 1.0 / card
    return np.divide(smoothed, total, out=uniform, where=total > 0)


def bdeu_pseudo_counts(layout: Layout, equivalent_sample_size: float) -> Vector:
    """Return `A[k, v] = equivalent_sample_size / (cells of the node)`; shape (M,)."""
    return np.repeat(
        [equivalent_sample_size / n for n in layout.cells_per_node], layout.cells_per_node
    )


def log_probabilities(probabilities: Vector) -> Vector:
    """Return the logarithm, minus infinity for a probability of zero."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)
