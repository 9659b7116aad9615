"""Name what may have made a kind of bad rows: the cause that explains it, if one clearly does.

A cause explains a kind if good rows, spoilt as it would spoil them, have the kind's tables: the
share of the nats between the kind and good rows that this brings. Tables of the kind's own bring
all of them, with far more numbers. No cause is named that does not explain nearly all, or that
another explains about as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustbn._core.layout import Codes
from robustbn._core.protocols import Vector
from robustbn._learn.causes.joins import find_joins
from robustbn._learn.causes.labels import find_swapped_labels
from robustbn._learn.causes.moves import find_moved
from robustbn._learn.causes.sides import Sides
from robustbn._learn.causes.suspects import Suspect, find_noise, find_stuck
from robustbn._learn.causes.templates import Templates, find_templates, share_copied

COPIES, POPULATION = "copies", "another population"
SPECIAL = {"stuck columns": "defaults"}  # a default that every row shows
EXPLAINS = 0.85  # share of nats between a kind and good rows that a cause must explain
EXPLAINS_NOISE = 0.97  # the same of noise and defaults: small real groups reach 0.96
EXPLAINS_UNLIKE = 0.98  # the same of unrelated columns: small real groups reach 0.96
UNRELATED = 0.1  # share of nats by which columns must be seen not to depend as among good rows
AHEAD = 0.05  # share of nats by which it must be ahead of any other
COMPLETE = 0.97  # share of nats: a cause that explains so much need not be far ahead
AHEAD_NATS = 30.0  # nats by which it then must be ahead
SIMPLER = 0.03  # share of nats that a simpler cause may explain less than what it is a case of
TOGETHER = 0.9  # share of nats of all kinds together, for a cause that they have in common
COVERED = 0.5  # share of rows of a kind that are near few templates: copies
COPIED = 0.8  # nats of own tables that templates must bring: other causes bring up to 0.6
MOST_EXPLAINED = 0.7  # share of nats that any other cause may explain of another population
LEFT = 8.0  # nats a row, or left by any other cause: other causes leave up to 4
BREADTH = 0.4  # share of tables in which another population differs, and four at least


@dataclass(frozen=True, eq=False)
class Named:
    """A cause that was found.

    Parameters
    ----------
    name : as in `robustbn.Cause`.
    columns : that it spoils.
    explained : share of what tells the kind from good rows that it explains.
    details : what words are made of; depends on the name.
    """

    name: str
    columns: tuple[int, ...]
    explained: float
    details: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Inquiry:
    """What all supposed causes explain of a kind.

    Parameters
    ----------
    suspects : the best of each name, the shortest description first.
    explained : by each of them.
    """

    sides: Sides
    suspects: tuple[Suspect, ...]
    explained: tuple[float, ...]
    templates: Templates | None

    @classmethod
    def of(cls, sides: Sides) -> Inquiry:
        """Try every cause."""
        tried = [
            *find_stuck(sides),
            *find_joins(sides),
            *find_swapped_labels(sides),
            *find_moved(sides),
            *find_noise(sides),
        ]
        tried.sort(key=lambda s: s.trial.total - sides.price * s.n_parameters, reverse=True)
        best: dict[str, Suspect] = {}
        for suspect in tried:
            best.setdefault(suspect.name, suspect)
        nats = {s: _count_nats(sides, s) for s in best.values()}
        suspects = tuple(
            sorted(nats, key=lambda s: nats[s] - sides.price * s.n_parameters, reverse=True)
        )
        whole = max(sides.unexplained, 1e-9)
        explained = tuple(nats[s] / whole for s in suspects)
        return cls(sides, suspects, explained, find_templates(sides))

    def decide(self) -> Named | None:
        """Return the cause that explains the kind; None if none does, or two do."""
        if self.sides.unexplained <= 0:
            return None
        return self._copies() or self._clearest() or self._population()

    def _copies(self) -> Named | None:
        templates, sides = self.templates, self.sides
        if templates is None or templates.covered < COVERED:
            return None
        n = len(sides.network)
        own = float(sides.paid[:n].sum()) / sides.n_rows
        rival = max(
            (float(s.trial.gain[:n].sum()) for s in self.suspects if is_of_rows(s)), default=0.0
        )
        if templates.gain < max(COPIED * own, 0.97 * rival / sides.n_rows):
            return None
        details = {"templates": templates.rows, "noise": templates.noise}
        return Named(COPIES, tuple(range(sides.n_columns)), templates.covered, details)

    def _clearest(self) -> Named | None:
        if not self.suspects:
            return None
        first, explained = self.suspects[0], self.explained[0]
        for suspect, share in zip(self.suspects, self.explained, strict=True):
            if SPECIAL.get(suspect.name) == first.name and share > explained - SIMPLER:
                first, explained = suspect, share
        akin = {first.name, SPECIAL.get(first.name)} | {
            special for special, general in SPECIAL.items() if general == first.name
        }
        is_shuffled = bool(first.details.get("is_all_apart"))  # columns unrelated, each as usual
        others = (
            e
            for s, e in zip(self.suspects, self.explained, strict=True)
            if s.name not in akin and (is_of_rows(s) or not is_shuffled)
        )
        ahead = explained - max(others, default=0.0)
        is_ahead = ahead >= AHEAD or (
            explained >= COMPLETE and ahead * self.sides.unexplained >= AHEAD_NATS
        )
        least = _least_explained(first)
        if explained < least or not is_ahead or not self._is_enough(first):
            return None
        return Named(first.name, first.columns, min(explained, 1.0), first.details)

    def _is_enough(self, suspect: Suspect) -> bool:
        """Return whether a cause that draws columns by themselves is all that there is to say.

        Where the kind's columns depend on one another, tables of its own say more for their price.
        And columns that hardly vary do not show whether they still depend as among good rows: it
        must be seen that they do not.
        """
        if is_of_rows(suspect):
            return True
        sides = self.sides
        worth = suspect.trial.total - sides.price * suspect.n_parameters
        apart = -float(sides.of_kind.agreement(sides.of_good, sides.pairs).sum())
        return (
            worth >= float(np.maximum(sides.paid, 0).sum())
            and apart >= UNRELATED * sides.unexplained
        )

    def _population(self) -> Named | None:
        """Return another population, or many copies, if tables of its own say far more."""
        sides = self.sides
        paid = sides.paid[: len(sides.network)]
        n_broken = int(np.count_nonzero(paid > 0))
        nats_a_row = sides.unexplained / sides.n_rows
        most = max(
            MOST_EXPLAINED,
            min(EXPLAINS, 1 - LEFT / max(nats_a_row, 1e-9)),
        )
        is_simple = any(
            share > most if is_of_rows(suspect) else self._is_enough(suspect)
            for suspect, share in zip(self.suspects, self.explained, strict=True)
        )
        if is_simple or n_broken < max(4, BREADTH * sides.n_columns):
            return None
        copied = share_copied(sides)
        if copied >= COVERED:
            details = {"templates": None, "noise": 0.0}
            return Named(COPIES, tuple(range(sides.n_columns)), copied, details)
        gain = 0.0 if self.templates is None else self.templates.gain * sides.n_rows
        if gain > 0.75 * COPIED * float(paid.sum()):
            return None
        columns = np.argsort(-paid, kind="stable")[:n_broken]
        named = tuple(sides.network[i][-1] for i in columns.tolist())
        left = 1 - max((e for e in self.explained), default=0.0)
        return Named(POPULATION, named, float(np.clip(left, 0, 1)), {})


def _least_explained(suspect: Suspect) -> float:
    """Return the share that a cause must explain: more of one that small real groups resemble."""
    if not is_of_rows(suspect):
        return EXPLAINS_UNLIKE
    if suspect.name in ("noise", "defaults"):
        return EXPLAINS_NOISE
    return EXPLAINS


def _count_nats(sides: Sides, suspect: Suspect) -> float:
    """Return the nats that a cause explains, if it spoils rows also as those of them seen to be."""
    if not is_of_rows(suspect):
        return suspect.trial.total
    return max(suspect.trial.total, sides.attempt_held(suspect.trial.spoilt))


def is_of_rows(suspect: Suspect) -> bool:
    """Return whether a cause is made of good rows, not of columns drawn each by itself."""
    return bool(suspect.details.get("is_uniform", True))


def name_causes(
    kinds: Sequence[Sides], unheld: Sides | None
) -> tuple[list[Named | None], Named | None]:
    """Return the cause of each kind, and that of the bad rows that no kind holds.

    One cause may make several kinds: those that it explains together have it in common.

    Parameters
    ----------
    kinds, unheld : rows of each, all beside the same good rows.
    """
    found = [Inquiry.of(sides).decide() for sides in kinds]
    if len(kinds) > 1:
        together = Inquiry.of(join_sides(kinds)).decide()
        if together is not None and together.name != POPULATION:
            agree = all(named is not None and named.name == together.name for named in found)
            if agree or together.explained >= TOGETHER:
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
    first = kinds[0]
    return Sides(
        first.cards,
        first.network,
        np.concatenate([sides.codes for sides in kinds]),
        np.concatenate([sides.weights for sides in kinds]),
        first.good_codes,
        first.good_weights,
        first.of_good,
        first.rng,
        _hold_together([sides.hold for sides in kinds if sides.hold is not None]),
    )


def _hold_together(holds: Sequence[Callable[[Codes], Vector]]) -> Callable[[Codes], Vector]:
    return lambda codes: np.sum([hold(codes) for hold in holds], axis=0)
