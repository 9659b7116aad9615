"""Name what may have made a kind of bad rows: the cause that explains it, if one clearly does.

A cause explains a kind if good rows, spoilt as it would spoil them, have the kind's tables: the
share of the nats between the kind and good rows that this brings. Tables of the kind's own bring
all of them, with far more numbers. No cause is named that does not explain nearly all, or that
another explains about as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from robustbn._learn.causes.joins import find_joins
from robustbn._learn.causes.labels import find_swapped_labels
from robustbn._learn.causes.moves import find_moved
from robustbn._learn.causes.replaced import find_noise, find_stuck
from robustbn._learn.causes.sides import Sides, Suspect
from robustbn._learn.causes.templates import Templates, find_templates, share_copied
from robustbn._learn.causes.weighed import Weighed

ACTS = (find_stuck, find_joins, find_swapped_labels, find_moved, find_noise)
COPIES, POPULATION = "copies", "another population"
STUCK, DEFAULTS = "stuck columns", "defaults"  # which every row shows, or some
EXPLAINS = 0.85  # share of nats between a kind and good rows that a cause must explain
COMPLETE = 0.97  # the same of noise and defaults, which explain up to 0.96 of small real groups
AHEAD = 0.05  # share of nats by which it must be ahead of any other
AHEAD_NATS = 30.0  # nats by which a cause that explains nearly all must be ahead
UNRELATED = 0.1  # share of nats by which columns must be seen not to depend as among good rows
COVERED = 0.5  # share of rows of a kind that are near few templates: copies
BREADTH = 0.4  # share of tables in which another population differs, and four at least


@dataclass(frozen=True, eq=False)
class Named:
    """A cause that was found."""

    name: str  # as in `robustbn.Cause`
    columns: tuple[int, ...]  # that it spoils
    explained: float  # share of what tells the kind from good rows that it explains
    details: dict[str, Any]  # what words are made of; depends on the name


@dataclass(frozen=True, eq=False)
class Inquiry:
    """What all supposed causes explain of a kind."""

    sides: Sides
    # the best of each name, the shortest description of the kind first
    suspects: tuple[Suspect, ...]

    @cached_property
    def templates(self) -> Templates | None:
        """The rows that the kind's rows may be copies of."""
        return find_templates(self.sides)

    @classmethod
    def of(cls, sides: Sides) -> Inquiry:
        """Try every cause."""
        best: dict[str, Suspect] = {}
        tried = [suspect for find in ACTS for suspect in find(sides)]
        for suspect in sorted(tried, key=lambda s: s.worth, reverse=True):
            best.setdefault(suspect.name, suspect)
        whole = max(sides.unexplained, 1e-9)
        suspects = [replace(s, explained=_count_nats(sides, s) / whole) for s in best.values()]
        suspects.sort(key=lambda s: s.explained * whole - s.cost, reverse=True)
        return cls(sides, tuple(suspects))

    def decide(self) -> Named | None:
        """Return the cause that explains the kind; None if none does, or two do."""
        if self.sides.unexplained <= 0:
            return None
        return self._find_copies() or self._find_clearest() or self._find_population()

    def _find_copies(self) -> Named | None:
        """Return copies of few rows."""
        templates, sides = self.templates, self.sides
        if templates is None or templates.covered < COVERED:
            return None
        n = sides.n_columns
        own = float(sides.paid[:n].sum())
        rival = max((float(s.gain[:n].sum()) for s in self.suspects if s.is_of_rows), default=0.0)
        if templates.gain * sides.n_rows < max(EXPLAINS * own, COMPLETE * rival):
            return None
        return self._name_copies(templates.covered, templates.rows, templates.noise)

    def _name_copies(self, covered: float, rows: Any, noise: float) -> Named:
        every = tuple(range(self.sides.n_columns))
        return Named(COPIES, every, covered, {"templates": rows, "noise": noise})

    def _find_clearest(self) -> Named | None:
        """Return what explains most, if it explains enough and is ahead of all others."""
        if not self.suspects:
            return None
        first = self.suspects[0]
        for suspect in self.suspects:
            is_simpler = first.name == DEFAULTS and suspect.name == STUCK
            if is_simpler and suspect.explained > first.explained - AHEAD:
                first = suspect
        akin = {STUCK, DEFAULTS} if first.name in (STUCK, DEFAULTS) else {first.name}
        is_shuffled = bool(first.details.get("is_all_apart"))  # columns unrelated, each as usual
        others = (
            s.explained
            for s in self.suspects
            if s.name not in akin and (s.is_of_rows or not is_shuffled)
        )
        ahead = first.explained - max(others, default=0.0)
        is_ahead = ahead >= AHEAD or (
            first.explained >= COMPLETE and ahead * self.sides.unexplained >= AHEAD_NATS
        )
        least = COMPLETE if first.name in ("noise", DEFAULTS) else EXPLAINS
        if first.explained < least or not is_ahead or not self._is_enough(first):
            return None
        return Named(first.name, first.columns, min(first.explained, 1.0), first.details)

    def _is_enough(self, suspect: Suspect) -> bool:
        """Return whether a cause that draws columns by themselves is all that there is to say."""
        # Where the kind's columns depend on one another, tables of its own say more for their
        # price. And columns that hardly vary do not show whether they still depend as among good
        # rows: it must be seen that they do not.
        if suspect.is_of_rows:
            return True
        sides = self.sides
        apart = -float(sides.agreement.sum()) / 2
        is_worth_more = suspect.worth >= float(np.maximum(sides.paid, 0).sum())
        return is_worth_more and apart >= UNRELATED * sides.unexplained

    def _find_population(self) -> Named | None:
        """Return another population, or many copies, if no act explains the kind."""
        sides = self.sides
        paid = sides.paid[: sides.n_columns]
        n_broken = int(np.count_nonzero(paid > 0))
        is_simple = any(
            s.explained > EXPLAINS if s.is_of_rows else self._is_enough(s) for s in self.suspects
        )
        if is_simple or n_broken < max(4, BREADTH * sides.n_columns):
            return None
        copied = share_copied(sides)
        if copied >= COVERED:
            return self._name_copies(copied, None, 0.0)
        gain = 0.0 if self.templates is None else self.templates.gain * sides.n_rows
        if gain > 0.75 * EXPLAINS * float(paid.sum()):  # nearly copies
            return None
        broken = tuple(np.argsort(-paid, kind="stable")[:n_broken].tolist())
        most = max((s.explained for s in self.suspects), default=0.0)
        return Named(POPULATION, broken, float(np.clip(1 - most, 0, 1)), {})


def _count_nats(sides: Sides, suspect: Suspect) -> float:
    """Return the nats that a cause explains, if it spoils rows also as those of them seen to be."""
    if not suspect.is_of_rows:
        return suspect.total
    return max(suspect.total, sides.explain_held(suspect.spoilt))


def name_causes(
    kinds: Sequence[Sides], unheld: Sides | None
) -> tuple[list[Named | None], Named | None]:
    """Return the cause of each kind, and that of the bad rows that no kind holds."""
    found = [Inquiry.of(sides).decide() for sides in kinds]
    if len(kinds) > 1:
        together = Inquiry.of(join_sides(kinds)).decide()
        if together is not None and together.name != POPULATION:
            agree = all(named is not None and named.name == together.name for named in found)
            if agree or together.explained >= EXPLAINS:
                found = [together] * len(kinds)
    if unheld is None:
        return found, None
    names = {None if named is None else named.name for named in found}
    if len(names) == 1 and names != {None}:
        together = Inquiry.of(join_sides([*kinds, unheld])).decide()
        if together is not None and {together.name} == names:
            return found, together
    return found, Inquiry.of(unheld).decide()


def join_sides(kinds: Sequence[Sides]) -> Sides:
    """Return the rows of several kinds as those of one."""
    codes = np.concatenate([sides.kind.codes for sides in kinds])
    weights = np.concatenate([sides.kind.weights for sides in kinds])
    holds = [sides.hold for sides in kinds if sides.hold is not None]
    return replace(
        kinds[0],
        kind=Weighed(kinds[0].layout, codes, weights),
        hold=(lambda codes: np.sum([hold(codes) for hold in holds], axis=0)) if holds else None,
    )
