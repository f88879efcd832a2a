"""Decimal numbers as texts that compare as the numbers do, for a language without decimals."""

import re
from typing import Any, Final

MAX_CHARACTERS: Final = 100
_FORM: Final = re.compile(r"([+-]?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?", re.ASCII)
_BIAS: Final = 5000
_COMPLEMENT: Final = str.maketrans("0123456789", "9876543210")


def ordered(value: Any) -> str:
    """Return a text for a decimal number, such that texts compare exactly as their numbers.

    Taken are a number and its usual text in ASCII digits (`-12.50`, `1e2`), of at most 100
    characters; of a binary fraction, its shortest text. Equal numbers give equal texts. Raises
    `ValueError`, which quotes nothing, for anything else.
    """
    form = _FORM.fullmatch(_text(value))
    if form is None:
        raise ValueError("no decimal number")
    sign, whole, fraction, exponent = form.groups()
    digits = whole + (fraction or "")
    leading = len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    if not digits:
        return "1"
    # The number is 0.digits * 10^point; the bias keeps the point at four digits of one order.
    point = len(whole) - leading + int(exponent or 0) + _BIAS
    positive = f"{point:04d}{digits}"
    if sign != "-":
        return f"2{positive}"
    # Mirrored, with an end above every digit: the longer of two is further below zero.
    return f"0{positive.translate(_COMPLEMENT)}~"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value if len(value) <= MAX_CHARACTERS else ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    return ""
