"""Letters of other scripts that look like Latin ones, and words that mix scripts.

The pairs are the common ones of Unicode's confusables.txt (Technical Standard 39) for the scripts
that hold whole alphabets of them; a word all of whose letters are such pairs is taken as one that
is meant to be misread.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_CYRILLIC: Final = "аАВеЕЗіІјЈКМНоОрРсСТуУхХѕЅԁԛԝһӏӀ"  # noqa: RUF001
_GREEK: Final = "αΑΒΕΖΗιΙκΚΜνΝοΟρΡΤυΥΧϲϳ"
_OTHERS: Final = "օսհոզցԼՏԾꓐꓑꓒꓓꓔꓖꓗꓙꓚꓜꓝꓞꓟꓠꓡꓢꓣꓤꓥꓦꓧꓨꓩꓪꓫꓬꓭꓮꓯꓰꓱꓲꓳꓴꓵᎪᎬᎳᏀᏃᏆᏒᏚᏙᎾᎷᎻᏔᏞ"
_LIKE_LATIN: Final = frozenset(_CYRILLIC + _GREEK + _OTHERS)
# Japanese and Korean are written in several scripts at once.
_TOGETHER: Final = frozenset({"HIRAGANA", "KATAKANA", "CJK", "HANGUL", "IDEOGRAPHIC"})


def is_lookalike(text: str) -> bool:
    """Say whether a text could be read as another: scripts mixed, or all letters alike others."""
    letters = [one for one in text if one.isalpha()]
    scripts = {_script(one) for one in letters}
    if len(scripts) > 1 and not scripts <= _TOGETHER:
        return True
    if any(_is_foreign_digit(one) or _is_mark_on_latin(one, scripts) for one in text):
        return True
    return bool(letters) and all(one in _LIKE_LATIN for one in letters)


def _script(letter: str) -> str:
    word = unicodedata.name(letter, "?").split()[0]
    return "CJK" if word.startswith("CJK") else word


def _is_foreign_digit(one: str) -> bool:
    return one.isdigit() and not one.isascii()


def _is_mark_on_latin(one: str, scripts: set[str]) -> bool:
    return unicodedata.category(one) == "Mn" and "LATIN" in scripts
