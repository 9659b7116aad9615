"""A share of rows as an option: 0.1, 10 % or auto; or in percent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    Kind = click.ParamType[Any]
else:
    Kind = click.ParamType


class Share(Kind):
    """A share of rows: 0.1 or 10%; "auto" where that is allowed."""

    name = "SHARE"

    def __init__(self, may_be_auto: bool = True) -> None:
        self._may_be_auto = may_be_auto

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return a number, or "auto"."""
        if isinstance(value, float) or (value == "auto" and self._may_be_auto):
            return value
        text = str(value).strip()
        try:
            share = float(text.rstrip("% ")) / (100 if text.endswith("%") else 1)
        except ValueError:
            auto = " or auto" if self._may_be_auto else ""
            self.fail(f"{value!r} is not a share of rows, such as 0.1 or 10%{auto}.", param, ctx)
        if self._may_be_auto:
            from robustbn._core.config import check_contamination

            try:
                check_contamination(share)
            except ValueError as error:
                self.fail(str(error), param, ctx)
        return share


class Percent(Kind):
    """A share of rows in percent: 5 or 5%."""

    name = "PCT"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return a number from 0 to 100."""
        try:
            percent = float(str(value).strip().rstrip("% "))
        except ValueError:
            percent = -1.0
        if not 0 <= percent <= 100:
            self.fail(f"{value!r} is not a share in percent, from 0 to 100: 5 or 5%.", param, ctx)
        return percent
