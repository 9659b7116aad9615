"""Values that say the same as others of their column in another form, and how they are rewritten.

A column is days, numbers, codes or words, whichever reads most of its cells. Most cells are written
in one form, and a value that carries the same content in another one is rewritten. A form must not
carry content of its own: numbers with a unit must be numbers like those without.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, NamedTuple

from robustbn._tables.date_forms import decide_days, read_day
from robustbn._tables.number_forms import (
    PLAIN,
    Number,
    NumberForm,
    Unit,
    as_number,
    find_number_form,
    read_numbers,
)
from robustbn._tables.values import WORDS_FOR_MISSING

LOOKED_AT = 1000  # texts of a column, by which it is decided what it is
LEAST_CODE = 5  # letters and digits of a code: in a shorter one, a dash may be a range or a score
LEAST_WORD = 4  # letters and digits of a word that gets another case: a shorter may be a symbol
_CODE = re.compile(r"\(?\w[\w ()./:,-]*")  # marks that part it, and say nothing
_CLASSES = str.maketrans(ascii_uppercase + ascii_lowercase + digits, "A" * 26 + "a" * 26 + "0" * 10)
_GAP = re.compile(r"[\s,;/]+")


class Rewriting(NamedTuple):
    """What a text becomes in the form of its column, and how likely it is that it says the same."""

    likely: str
    probability: float


class Rewritten(NamedTuple):
    """A table whose values are in the forms of their columns."""

    columns: dict[str, list[str]]  # a text for each row
    changes: dict[tuple[int, str], Rewriting]  # what was rewritten, by row and column
    # cells that were not, but are in another form with a probability of 0.5 or more
    n_doubtful: int


Counts = Mapping[str, int]  # cells of each text of a column
Rewritings = dict[str, Rewriting]


def rewrite_table(
    table: Mapping[str, Sequence[str]], probability: float, *, is_plain: bool = False
) -> Rewritten:
    """Return a table in which what says the same, with a probability, is written the same way."""
    columns = {name: list(column) for name, column in table.items()}
    changes: dict[tuple[int, str], Rewriting] = {}
    splits = sorted(split_joined(table), key=lambda split: split.probability)
    for split in splits:  # the most certain one last
        if split.probability >= probability:
            columns[split.column][split.row] = split.likely
            changes[split.row, split.column] = Rewriting(split.likely, split.probability)
    n_doubtful = len({s[:2] for s in splits if s.probability >= 0.5} - changes.keys())
    for name, column in columns.items():
        found = rewrite_column(column, is_plain=is_plain)
        for row, text in enumerate(column if found else ()):
            likely, p = found.get(text, (text, 0.0))
            n_doubtful += 0.5 <= p < probability
            if p >= probability:
                at_first = changes.get((row, name), Rewriting("", 1.0)).probability
                changes[row, name] = Rewriting(likely, p * at_first)
                column[row] = likely
    return Rewritten(columns, changes, n_doubtful)


def rewrite_column(column: Sequence[str], *, is_plain: bool = False) -> Rewritings:
    """Return the texts of a column that are in another form than most, and what they become.

    is_plain : whether numbers lose their unit if none of its spellings is common, even if no number
        is without, and marks of missing values become empty, even if all are alike.
    """
    counts = Counter(column)
    marks = {text: n for text, n in counts.items() if _is_mark(text)}
    filled = {text: n for text, n in counts.items() if text not in marks}
    some = dict(list(filled.items())[:: -(-len(filled) // LOOKED_AT) or 1])
    kinds = (_rewrite_days, _rewrite_numbers, _rewrite_codes)
    kind = max(kinds, key=lambda kind: kind(some, is_plain)[1])
    found, share = kind(filled, is_plain)
    if share <= 0.5 or kind is _rewrite_codes:
        both = [*found.items(), *_rewrite_words(filled).items()]
        found = dict(sorted(both, key=lambda each: each[1].probability))  # the likelier one
    if share <= 0.5:
        return found
    target = "" if is_plain else max(marks, key=lambda text: marks[text], default="")
    is_word = target.strip() in WORDS_FOR_MISSING
    return found | {m: Rewriting(target, share) for m in marks if is_word and m != target}


def _is_mark(text: str) -> bool:
    """Whether a text may stand for a missing value; in a column of words it may be one of them."""
    return text.strip() in WORDS_FOR_MISSING or not any(map(str.isalnum, text))


def _share(some: float, all_of: float) -> float:
    """Return a share as it is expected of few cells, too: at first it is a half, of one cell."""
    return (some + 0.5) / (all_of + 1)


def _total(counts: Counts, texts: Any) -> int:
    return sum(counts[text] for text in texts)


# --- days -----------------------------------------------------------------------------------------


def _rewrite_days(counts: Counts, _: bool) -> tuple[Rewritings, float]:
    """Return the days in another form than most, and the share of cells that are days."""
    readings = {text: days for text in counts if (days := read_day(text))}
    share = _share(_total(counts, readings), sum(counts.values()))
    cells: Counter[Any] = Counter()
    for text, days in readings.items():
        cells.update(dict.fromkeys(days, counts[text]))
    if not cells:
        return {}, share
    common, n = cells.most_common(1)[0]
    is_open = any(cells[form] == n and form.order != common.order for form in cells)
    if is_open or n <= _total(counts, readings) / 2:
        return {}, share
    others = {text: days for text, days in readings.items() if common not in days}
    decided = zip(others, decide_days(others.values(), common), strict=True)
    return {
        text: Rewriting(common.write(day), share) for text, day in decided if day is not None
    }, share


# --- numbers --------------------------------------------------------------------------------------


def _rewrite_numbers(counts: Counts, is_plain: bool) -> tuple[Rewritings, float]:
    """Return the numbers in another form than most, and the share of cells that are numbers."""
    numbers = read_numbers(counts)
    share = _share(_total(counts, numbers), sum(counts.values()))
    units = Counter[Unit]()
    for text, number in numbers.items():
        units[number.unit] += counts[text]
    form = find_number_form(numbers, counts)
    usual = [number.value for number in numbers.values() if form.fits(number)]
    if is_plain and len(units) > 1 and form.unit is None:
        most = units.most_common(1)[0][0]
        usual = [number.value for number in numbers.values() if number.unit == most]
        form = NumberForm(PLAIN, "", ".", "")
    others = {text: number for text, number in numbers.items() if not form.fits(number)}
    if not usual or not others:
        return {}, share
    is_like = {text: min(usual) <= n.value <= max(usual) for text, n in others.items()}
    by_unit: dict[str, list[str]] = {}
    for text, number in others.items():
        by_unit.setdefault(number.unit.initial, []).append(text)
    carries_none = {
        initial: _tell_alike(counts, texts, [text for text in texts if is_like[text]], others)
        for initial, texts in by_unit.items()
    }
    found = {}
    for text, number in others.items():
        p = 1.0
        if form.unit is not None and number.unit.word != form.unit.word:
            p = carries_none[number.unit.initial] * _agree(number.unit, form.unit, units)
        found[text] = Rewriting(form.write(number), share * p)
    return found, share


def _tell_alike(
    counts: Counts, texts: list[str], alike: list[str], numbers: Mapping[str, Number]
) -> float:
    """Return how likely the numbers of a unit are like the usual ones; few different say little."""
    n_different = len({numbers[text].value for text in alike})
    return _total(counts, alike) / _total(counts, texts) * _share(n_different, n_different)


def _agree(unit: Unit, target: Unit, units: Counter[Unit]) -> float:
    """Return how likely two units are one: an abbreviation has the initial of its word."""
    # A number that has none, or gets none, has the unit that is beside others of its column.
    if target.text and unit.text:
        return float(target.initial == unit.initial)
    initial = target.initial or unit.initial
    same = sum(n for each, n in units.items() if each.text and each.initial == initial)
    return same / sum(n for each, n in units.items() if each.text)


# --- codes ----------------------------------------------------------------------------------------


def _rewrite_codes(counts: Counts, _: bool) -> tuple[Rewritings, float]:
    """Return the codes with other marks between their parts than most, and the share of codes."""
    # Codes have the same letters and digits at the same places: telephone numbers, for example.
    contents = {text: re.sub(r"[\W_]", "", text) for text in counts if _CODE.fullmatch(text)}
    shapes = {text: _form(content).lower() for text, content in contents.items()}
    cells, forms = Counter[str](), Counter[str]()
    for text, shape in shapes.items():
        cells[shape] += counts[text]
    shape, n = cells.most_common(1)[0] if cells else ("", 0)
    codes = [text for text in shapes if shapes[text] == shape]
    for text in codes:
        forms[_form(text)] += counts[text]
    common, n_common = forms.most_common(1)[0] if forms else ("", 0)
    is_code = "0" in shape and len(shape) >= LEAST_CODE and not _is_decimal(common)
    if not is_code or n_common <= n / 2:
        return {}, 0.0
    share = _share(n, sum(counts.values()))
    found = {}
    for text in (text for text in codes if _form(text) != common):
        is_split_alike = _splits(text) == _splits(common) or not (_splits(text) and _splits(common))
        if is_split_alike and not _is_decimal(text):
            found[text] = Rewriting(_fill(common, contents[text]), share)
    return found, share


def _form(text: str) -> str:
    """Return a text with A for each capital, a for each other letter and 0 for each digit."""
    return text.translate(_CLASSES)


def _splits(text: str) -> set[int]:
    """Return after how many letters and digits of a text there is something else."""
    ends = [re.sub(r"[\W_]", "", text[: k + 1]) for k, c in enumerate(text) if not c.isalnum()]
    n = sum(map(str.isalnum, text))
    return {len(end) for end in ends if 0 < len(end) < n}


def _is_decimal(text: str) -> bool:
    return as_number(text) is not None and not text.isdigit()


def _fill(form: str, content: str) -> str:
    """Return a form with letters and digits in their places."""
    left = iter(content)
    return "".join(
        c if not c.isalnum() else next(left).upper() if c == "A" else next(left).lower()
        for c in form
    )


# --- words ----------------------------------------------------------------------------------------


def _rewrite_words(counts: Counts) -> Rewritings:
    """Return the words in another case than most, or with other blanks."""
    # They become the same word in the common form; where it does not occur, all capitals or none,
    # if the column is so. If words recur in the column, most of those in another form should be
    # known in the common one, too: otherwise they are words of another sort, which are written so.
    looks = {text: _look(text) for text in counts if text.upper() != text.lower()}
    cells, n_known = Counter[Any](), Counter[Any]()
    for text, look in looks.items():
        cells[look] += counts[text]
    common, n = cells.most_common(1)[0] if cells else (None, 0)
    usual = [text for text in looks if looks[text] == common]
    known = {_fold(text): text for text in sorted(usual, key=lambda text: counts[text])}
    for text in (text for text in looks if _fold(text) in known):
        n_known[looks[text]] += counts[text]
    single = sum(counts[text] == 1 for text in usual) / max(n, 1)
    found = {}
    for text in (text for text in looks if looks[text] != common):
        look = looks[text]
        is_form = min((n_known[look] + 0.5) / (cells[look] * (1 - single) + 0.5), 1.0)
        same = known.get(_fold(text), text)
        if counts[same] > counts[text]:
            found[text] = Rewriting(same, min(n / cells.total(), is_form))
        elif common and (likely := _recase(text, common[0])) is not None:
            unknown = is_form * single
            p = unknown / (unknown + 1 - is_form) if unknown else 0.0
            found[text] = Rewriting(likely, min(_share(len(usual), len(looks)), p))
    return found


def _look(text: str) -> tuple[str, bool]:
    """Return the case of a text, and whether its blanks are single and inside."""
    case = "upper" if text.isupper() else "lower" if text.islower() else "mixed"
    return case, text == " ".join(text.split())


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def _recase(text: str, case: str) -> str | None:
    """Return a word in the case of its column; None if its own case may say something."""
    own = _look(text)[0]
    if own == case or (own == "mixed" and not text.istitle()):
        return None
    is_word = sum(map(str.isalnum, text)) >= LEAST_WORD
    return {"upper": text.upper(), "lower": text.lower()}.get(case) if is_word else None


# --- cells that hold the value of another column as well ------------------------------------------

# `San Diego CA` in the column of cities is a city and a state, if the state is missing there and CA
# is one of the states.


class Split(NamedTuple):
    """A cell that held two values, or the one that was empty, and what it becomes."""

    row: int
    column: str
    likely: str
    probability: float


def split_joined(columns: Mapping[str, Sequence[str]]) -> Iterator[Split]:
    """Yield the cells that end with a value of another column, and those where it was missing."""
    # A text may end so by chance: as often as it does in rows where the other column has its value.
    # That is weighed for all pairs of columns, since all are looked at. What is left must be a
    # value of its column, or most of the missing values must be found so.
    n_pairs = len(columns) * (len(columns) - 1)
    texts = {name: {t for t in set(column) if _GAP.search(t)} for name, column in columns.items()}
    for other, values in columns.items():
        empty = [row for row, value in enumerate(values) if not value]
        labels = set(values) - {""}
        for name in columns if empty and labels else ():
            parts = {} if name == other else _find_joined(texts[name], labels)
            joined = [row for row in empty if columns[name][row] in parts]
            if not joined:
                continue
            n_there = sum(text in parts for text in columns[name]) - len(joined)
            n_filled = len(values) - len(empty)
            p = _tell_chance(len(joined), len(empty) * (n_there + 1) / (n_filled + 1), n_pairs)
            known = set(columns[name])
            for row in joined:
                first, last = parts[columns[name][row]]
                is_value = 1.0 if first in known else len(joined) / len(empty)
                yield Split(row, name, first, p * is_value)
                yield Split(row, other, last, p * is_value)


def _find_joined(texts: set[str], labels: set[str]) -> dict[str, tuple[str, str]]:
    """Return the texts that end with a label, each without it, and the label."""
    most = max(len(_GAP.findall(label)) for label in labels) + 1
    found = {}
    for text in texts:
        for gap in list(_GAP.finditer(text))[-most:]:
            if gap.start() and text[gap.end() :] in labels:
                found[text] = text[: gap.start()], text[gap.end() :]
                break
    return found


def _tell_chance(n: int, expected: float, n_pairs: int) -> float:
    """Return the probability that a cell of n has a reason, given so many by chance (Chernoff)."""
    if n <= expected:
        return 0.0
    log_chance = n - expected + n * math.log(expected / n)
    return (1 - min(n_pairs * math.exp(log_chance), 1.0)) * (1 - expected / n)
