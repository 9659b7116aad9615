"""What the paper asks of a network and a table, and whether it holds, in plain words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustbn._core.expansion import normalise_counts, sum_over_rows
from robustbn._core.layout import Layout
from robustbn._core.protocols import Vector


@dataclass(frozen=True)
class Diagnosis:
    """The quantities of the paper's theorem, measured.

    Notation: eps contamination, c balance, alpha smallest configuration probability, m
    configurations, N rows.

    Parameters
    ----------
    n_rows : N, the weight of the trusted rows.
    contamination : eps, at least 0.001.
    balance : c, the smallest conditional probability among configurations that occur.
    smallest_configuration : alpha, the smallest probability of a configuration that occurs.
    n_unseen : configurations that never occur.
    n_unidentified : configurations rarer than 2 eps, which bad rows alone could make up.
    rows_wanted : m / eps^2.
    alpha_wanted : `(eps sqrt(ln 1/eps))^(2/3) c^(-1/3)`.
    """

    n_rows: float
    n_configurations: int
    contamination: float
    balance: float
    smallest_configuration: float
    n_unseen: int
    n_unidentified: int
    rows_wanted: float
    alpha_wanted: float

    @property
    def has_enough_rows(self) -> bool:
        """Whether N is at least m / eps^2."""
        return self.n_rows >= self.rows_wanted

    @property
    def theorem_applies(self) -> bool:
        """Whether the paper's conditions on N and alpha both hold."""
        return self.has_enough_rows and self.smallest_configuration >= self.alpha_wanted

    def __str__(self) -> str:
        rows = (
            f"Rows: {self.n_rows:,.0f} trusted; at eps = {self.contamination:.3g} the paper asks "
            f"for about m / eps^2 = {self.rows_wanted:,.0f} (m = {self.n_configurations:,}). "
            f"{'Enough.' if self.has_enough_rows else 'Too few: small corruptions may go unseen.'}"
        )
        wanted = f"{self.alpha_wanted:.2g}" if self.alpha_wanted < 1 else "more than there can be"
        alpha = (
            f"Rarest configuration: {self.smallest_configuration:.2g} of the rows; the theorem "
            f"asks for {wanted}. "
            + (
                "It applies."
                if self.theorem_applies
                else "It does not apply, so there is no proven bound; real networks seldom meet "
                "it, and the method is measured without it."
            )
        )
        balance = f"Balance: the smallest conditional probability is {self.balance:.2g}."
        rare = (
            f"Not to be trusted alone: {self.n_unidentified:,} of {self.n_configurations:,} "
            f"configurations occur in fewer than 2 eps of the rows, {self.n_unseen:,} in none; "
            "their tables could have been made by bad rows only."
        )
        lines = [rows, alpha, balance]
        return "\n".join([*lines, rare] if self.n_unidentified else lines)


def diagnose(layout: Layout, counts: Vector, contamination: float) -> Diagnosis:
    """Measure the paper's quantities on weighted counts."""
    n = float(sum_over_rows(layout, counts))
    pi = layout.sum_configurations(counts) / (n or 1.0)  # rows of nothing but holes show none
    occurs = pi > 0
    q = normalise_counts(layout, counts)
    eps = max(contamination, 1e-3)
    c = float(q[occurs[layout.config_of_cell]].min()) if occurs.any() else 0.0
    alpha = float(pi[occurs].min()) if occurs.any() else 0.0
    return Diagnosis(
        n_rows=n,
        n_configurations=layout.n_configurations,
        contamination=eps,
        balance=c,
        smallest_configuration=alpha,
        n_unseen=int((~occurs).sum()),
        n_unidentified=int((pi < 2 * eps).sum()),
        rows_wanted=layout.n_configurations / eps**2,
        alpha_wanted=float((eps * np.sqrt(np.log(1 / eps))) ** (2 / 3) * max(c, 1e-12) ** (-1 / 3)),
    )
