"""What a fit has to say about a table: one list of findings behind everything that is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SEVERITIES = ERROR, WARNING, NOTE = "error", "warning", "note"  # sure; look at it; worth knowing


TOLD = (  # of a finding, in `--json`
    "kind", "cause", "severity", "probability", "columns", "where", "n_rows", "n_cells", "group",
    "sentence",
)  # fmt: skip


class Kind:
    """What a finding is about, by the name that users read."""

    ROWS = "rows"
    WRONG_CELLS = "wrong cells"
    REPEATED_ROWS = "repeated rows"
    REPEATED_IDS = "repeated ids"
    COLUMN_DIFFERS = "column differs"
    UNREADABLE = "unreadable values"
    MISSING = "missing values"
    MISSING_EDGE = "missing edge"
    NEW_ROWS = "new rows differ"


class Remedy(NamedTuple):
    """What to do about a finding: in words, in a terminal and in Python."""

    say: str
    command: str
    python: str


NO_REMEDY = Remedy("", "", "")


@dataclass(frozen=True)
class Finding:
    """Something in a table that a person should know about.

    Parameters
    ----------
    kind : one of `Kind`.
    severity : "error" (it is wrong), "warning" (look at it) or "note" (worth knowing).
    sentence : what was found, for a person.
    probability : that something is wrong with the data, from 0 to 1.
    columns : the columns that it is about.
    where : the value, or range of values, of each context column that its rows share.
    n_rows, n_cells : how many rows and cells it is about.
    nats : the evidence for it, in nats.
    cause : the name of the mistake, where one is recognised.
    group : the number of the group of rows, from 1; 0 for none.
    advice : what to do about it.
    rows : numbers of some of its rows, from 0, in order.

    Examples
    --------
    >>> found = Finding("unreadable values", "warning", "2 values of age are no numbers.", 0.9)
    >>> str(found)
    'warning: 2 values of age are no numbers.'
    """

    kind: str
    severity: str
    sentence: str
    probability: float
    columns: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    n_rows: int = 0
    n_cells: int = 0
    nats: float = 0.0
    cause: str = ""
    group: int = 0
    advice: Remedy = NO_REMEDY
    rows: tuple[int, ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.severity}: {self.sentence}"

    def as_facts(self) -> dict[str, Any]:
        """Return the finding as plain values, as `--json` prints it."""
        facts = {name: getattr(self, name) for name in TOLD}
        return facts | {"columns": list(self.columns), "advice": self.advice._asdict()}


def rank_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings: the most serious first, wrong before natural, then those of most rows."""
    return sorted(
        findings,
        key=lambda each: (
            SEVERITIES.index(each.severity),
            each.probability < 0.5,
            -each.n_rows,
            -each.probability,
        ),
    )
