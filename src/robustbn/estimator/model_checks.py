"""What a model file may hold, entry by entry; an error names the path of what is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from robustbn._core.setting_kinds import check_settings
from robustbn.exceptions import ModelFileError, SettingError

Check = Callable[[Any], bool]
MOST_IN_FILE = 1e15  # of whole numbers, which doubles still hold exactly


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_IN_FILE


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_from_zero(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _is_above_zero(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_from_one(value: Any) -> bool:
    return _is_number(value) and value >= 1


def _is_share(value: Any) -> bool:
    return _is_number(value) and -1e-6 <= value <= 1 + 1e-6


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def _maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _mapping_to(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _is_label(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_label, value))


ENTRIES: Mapping[str, tuple[Check, str]] = {
    "reading.n_read": (_is_whole, "a number of rows"),
    "reading.n_rows": (_is_whole, "a number of rows"),
    "reading.n_incomplete": (_is_whole, "a number of rows"),
    "reading.kind": (_is_text, "text"),
    "reading.where": (_is_text, "text"),
    "reading.n_missing": (_mapping_to(_is_whole), "a number of rows for each node"),
    "reading.n_unknown": (_mapping_to(_is_whole), "a number of rows for each node"),
    "reading.ignored": (_list_of(_is_text), "a list of names"),
    "reading.skipped": (_mapping_to(_is_text), "a reason for each file"),
    "reading.config": (lambda value: isinstance(value, dict), "an object"),
    "reading.config.ignore_case": (_is_truth, "true or false"),
    "reading.config.codes": (_maybe(_is_truth), "true, false or null"),
    "reading.config.rename": (_mapping_to(_is_text), "a node for each column"),
    "reading.config.labels": (_mapping_to(_list_of(_is_pair)), "pairs for each node"),
    "reading.config.others": (_mapping_to(_is_label), "a state for each node"),
    "reading.config.periods": (_mapping_to(_is_text), "a period for each node"),
    "reading.config.notations": (_mapping_to(_is_text), "a notation for each node"),
    "reading.config.context": (_maybe(_list_of(_is_text)), "a list of names, or null"),
    "reading.config.keep": (_list_of(_is_text), "a list of names"),
    "reading.config.sep": (_maybe(_is_text), "one character, or null"),
    "reading.config.encoding": (_is_text, "the name of an encoding"),
    "fit.n_rows": (_is_from_zero, "a number from 0"),
    "fit.n_trusted": (_is_from_zero, "a number from 0"),
    "fit.unit": (_is_above_zero, "a number above 0"),
    "fit.converged": (_is_truth, "true or false"),
    "fit.status": (_is_text, "a sentence"),
    "fit.mixture.intercept": (_is_number, "a number"),
    "fit.mixture.slope": (_is_number, "a number"),
    "fit.mixture.is_bad": (_list_of(_is_truth), "true or false for each kind"),
    "fit.repeats.codes": (_list_of(_list_of(_is_whole)), "codes of rows"),
    "fit.rounds[].number": (_is_whole, "a whole number"),
    "fit.rounds[].action": (_is_text, "text"),
    "fit.rounds[].eigenvalues": (_list_of(_is_number), "numbers"),
    "fit.rounds[].threshold": (_is_number, "a number"),
    "fit.rounds[].removed": (_is_share, "a share"),
    "fit.rounds[].n_kinds": (_is_whole, "a whole number"),
    "fit.rounds[].wall_s": (_is_from_zero, "seconds"),
    "fit.rounds[].is_accepted": (_is_truth, "true or false"),
    "fit.misfit.is_exact": (_is_truth, "true or false"),
    "fit.misfit.nats": (_is_number, "a number"),
    "fit.misfit.n_classes": (_is_whole, "a whole number"),
    "fit.misfit.top": (_is_number, "a number"),
    "fit.misfit.limit": (_is_number, "a number"),
    "fit.misfit.bottom": (_maybe(_is_number), "a number or null"),
    "fit.misfit.bottom_limit": (_maybe(_is_number), "a number or null"),
    "fit.inferred.n_steps": (_is_whole, "a whole number"),
    "fit.inferred.is_converged": (_is_truth, "true or false"),
    "fit.inferred.left": (_is_number, "a number"),
    "fit.inferred.n_sampled": (_is_from_zero, "a number from 0"),
    "fit.inferred.n_impossible": (_is_from_zero, "a number from 0"),
    "fit.repetition.is_design": (_is_truth, "true or false"),
    "fit.repetition.is_counted": (_is_truth, "true or false"),
    "fit.repetition.share": (_is_share, "a share"),
    "fit.repetition.divisor": (_is_whole, "a whole number"),
    "fit.repetition.effect": (_is_from_one, "a number from 1"),
    "fit.repetition.uneven": (_maybe(lambda value: isinstance(value, dict)), "an object or null"),
    "fit.repetition.uneven.node": (_is_text, "text"),
    "fit.repetition.uneven.state": (_is_text, "text"),
    "fit.repetition.uneven.times": (_is_number, "a number"),
    "fit.repetition.uneven.elsewhere": (_is_number, "a number"),
    "fit.causes[].name": (_is_text, "text"),
    "fit.causes[].columns": (_list_of(_is_text), "a list of names"),
    "fit.causes[].confidence": (_is_share, "a share"),
    "fit.causes[].text": (_is_text, "text"),
}
KINDS_OF_PARTS: Mapping[str, tuple[type, ...]] = {
    "fit.mixture": (dict, type(None)),
    "fit.repeats": (dict,),
    "fit.filters": (list,),
    "fit.rounds": (list,),
    "fit.misfit": (dict, type(None)),
    "fit.inferred": (dict, type(None)),
    "fit.repetition": (dict, type(None)),
    "fit.recorded": (dict, type(None)),
    "fit.causes": (list,),
}


def check_document(document: Mapping[str, Any], path: str) -> None:
    """Refuse a number that is not finite, an entry of the wrong kind, a setting of the wrong type.

    Parameters
    ----------
    path : of the file, for messages.
    """
    for place, value in _numbers_of(document, ""):
        if not math.isfinite(value) or abs(value) > 1e300:
            raise _wrong(path, place, "a finite number below 1e300", value)
    for place, kinds in KINDS_OF_PARTS.items():
        part = _part(document, place)
        if part is not document and not isinstance(part, kinds):
            raise _wrong(path, place, " or ".join(map(_kind_word, kinds)), part)
    for place, (check, what) in ENTRIES.items():
        for where, value in _entries(document, place):
            if not check(value):
                raise _wrong(path, where, what, value)
    try:
        check_settings(document["settings"])
    except SettingError as error:
        raise ModelFileError(f"{path}, settings: {error}") from None


def _kind_word(kind: type) -> str:
    return "an object" if kind is dict else "a list" if kind is list else "null"


def _part(document: Mapping[str, Any], place: str) -> Any:
    """Return a part of a document; the document itself if it is not there."""
    first, _, second = place.partition(".")
    return document[first].get(second, document)


def _entries(document: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield what is at a place, with its full path; nothing where it is not there."""
    found: Sequence[tuple[str, Any]] = [("", document)]
    for step in place.split("."):
        name = step.removesuffix("[]")
        inner = [
            (f"{where}.{name}".lstrip("."), value[name])
            for where, value in found
            if isinstance(value, dict) and name in value
        ]
        if step.endswith("[]"):
            inner = [
                (f"{where}[{k}]", each)
                for where, values in inner
                if isinstance(values, list)
                for k, each in enumerate(values)
                if each is not None
            ]
        found = inner
    yield from found


def _numbers_of(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every number of a document, with its path."""
    waiting = [(path, value)]
    while waiting:
        where, each = waiting.pop()
        if isinstance(each, dict):
            waiting += [(f"{where}.{name}".lstrip("."), inner) for name, inner in each.items()]
        elif isinstance(each, list):
            if {type(inner) for inner in each} <= {float} and all(map(_is_modest, each)):
                continue
            waiting += [(f"{where}[{k}]", inner) for k, inner in enumerate(each)]
        elif _is_number(each):
            yield where, each if abs(each) < 10**300 else math.inf


def _is_modest(number: float) -> bool:
    return -1e300 < number < 1e300


def _wrong(path: str, place: str, expected: str, found: Any) -> ModelFileError:
    shown = repr(found)
    shown = shown if len(shown) <= 100 else f"{shown[:100]}..."
    return ModelFileError(f"{path}: {place} must be {expected}; found {shown}.")
