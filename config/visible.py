"""Text that others wrote, as HTML in which nothing is invisible, reordered or padded away.

Escaped, and then: each character that shows as nothing, as a blank, or turns the text around is a
label in its place; long runs of blank lines, of spaces and of combining marks are counted; domains
that are not plain ASCII get their punycode beside them, and a mark where scripts are mixed. The
work is linear in the text.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from typing import Final

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

BLANK_LINES: Final = 3  # more of them in a row are counted
SPACES: Final = 40
MARKS: Final = 5  # combining marks on one character
_KEPT: Final = frozenset("\n\t ")
_LABELLED: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
# Letters, marks and symbols that show as nothing: Default_Ignorable_Code_Point of Unicode's
# DerivedCoreProperties.txt beyond the categories above, and the blank of Braille.
_BLANK: Final = (
    *range(0x034F, 0x0350),
    *range(0x115F, 0x1161),
    *range(0x17B4, 0x17B6),
    *range(0x180B, 0x1810),
    *range(0x3164, 0x3165),
    *range(0xFE00, 0xFE10),
    *range(0xFFA0, 0xFFA1),
    *range(0x2800, 0x2801),
    *range(0xE0000, 0xE1000),
)
_SHORT: Final = {
    0x00: "NUL",
    0x08: "BS",
    0x0D: "CR",
    0x1B: "ESC",
    0x7F: "DEL",
    0xA0: "NBSP",
    0xAD: "SHY",
    0x061C: "ALM",
    0x200B: "ZWSP",
    0x200C: "ZWNJ",
    0x200D: "ZWJ",
    0x200E: "LRM",
    0x200F: "RLM",
    0x2028: "LINE SEP",
    0x2029: "PARA SEP",
    0x202A: "LRE",
    0x202B: "RLE",
    0x202C: "PDF",
    0x202D: "LRO",
    0x202E: "RLO",
    0x2060: "WJ",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0xFEFF: "BOM",
}


def _ranges(wanted: set[str]) -> str:
    """Return the inside of a character class with every character of these categories."""
    found: list[tuple[int, int]] = []
    blank = frozenset(_BLANK) if wanted is _HIDDEN else frozenset()
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if char in _KEPT or (unicodedata.category(char) not in wanted and code not in blank):
            continue
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in found)


_HIDDEN: Final = set(_LABELLED)
_PLAIN: Final = re.compile(r"[\x20-\x7e\n]*")
_PUNYCODE: Final = re.compile(r"\bxn--", re.IGNORECASE)
_PADDING: Final = re.compile(rf"(?:\n *+){{{BLANK_LINES + 2}}}| {{{SPACES + 1}}}")


@lru_cache(maxsize=1)
def _unusual() -> re.Pattern[str]:
    """Match what is not shown as it stands; built at the first text that is not plain ASCII."""
    hidden = _ranges(_HIDDEN)
    marks = _ranges({"Mn", "Me"})
    return re.compile(
        rf"(?P<padding>[ \t\n]{{{BLANK_LINES + 2},}})"
        rf"|(?P<hidden>[{hidden}])(?P=hidden)*"
        rf"|(?P<marks>[{marks}]{{{MARKS + 1},}})"
        rf"|(?P<name>(?:(?![{hidden}])[\w%+.@-])++)"
    )


def visible(text: object) -> SafeString:
    """Return the text as HTML that shows every character of it."""
    raw = str(text)
    if _PLAIN.fullmatch(raw) and not (_PADDING.search(raw) or _PUNYCODE.search(raw)):
        return mark_safe(escape(raw))  # noqa: S308 - escaped
    parts: list[str] = []
    end = 0
    for found in _unusual().finditer(raw):
        shown = _shown(found)
        if shown is not None:
            parts += (escape(raw[end : found.start()]), shown)
            end = found.end()
    parts.append(escape(raw[end:]))
    return mark_safe("".join(parts))  # noqa: S308 - each part is escaped or a label


def hidden_characters(text: object) -> int:
    """Return how many characters of the text show as nothing or turn it around."""
    raw = str(text)
    if _PLAIN.fullmatch(raw):
        return 0
    return sum(len(one[0]) for one in _unusual().finditer(raw) if one.lastgroup == "hidden")


def labelled(text: str) -> str:
    """Return a text, or HTML, with a label without markup for each run of a hidden character."""
    made = _unusual().sub(
        lambda found: f"[{_named(found[0][0])}]" if found.lastgroup == "hidden" else found[0], text
    )
    return mark_safe(made) if isinstance(text, SafeString) else made  # noqa: S308 - as it was


def _shown(found: re.Match[str]) -> str | None:
    text = found[0]
    match found.lastgroup:
        case "hidden":
            return _label(_named(text[0]), len(text), _full_name(text[0]))
        case "marks":
            return _label(f"{len(text)} combining marks", 1, "they would cover other lines")
        case "padding":
            return _padding(text)
        case _:
            return _foreign_name(text)


def _label(short: str, times: int, full: str) -> str:
    counted = f"{short} \u00d7{times:,}" if times > 1 else short
    return f'<span class="inv" title="{escape(full)}">{escape(counted)}</span>'


def _named(char: str) -> str:
    code = ord(char)
    number = f"U+{code:04X}"
    return f"{number} {_SHORT[code]}" if code in _SHORT else number


def _full_name(char: str) -> str:
    return unicodedata.name(char, "no character that can be shown").lower()


def _padding(run: str) -> str | None:
    """Count what a run of blanks hides; None: it is shown as it stands."""
    lines = run.count("\n")
    if lines > BLANK_LINES + 1:
        last = run.rpartition("\n")[2]
        spaces = len(run) - lines - len(last)
        told = f"{lines:,} line breaks" + (f" and {spaces:,} spaces" if spaces else "")
        return f"{_label(told, 1, 'blank lines')}\n{_padding(last) or last}"
    if not re.search(rf"[ \t]{{{SPACES + 1}}}", run):
        return None
    return re.sub(
        rf"[ \t]{{{SPACES + 1},}}", lambda one: _label(f"{len(one[0]):,} spaces", 1, "blanks"), run
    )


def _foreign_name(token: str) -> str | None:
    """Mark a domain or address that is not plain ASCII, or is written so as to seem so."""
    if token.isascii():
        notes = _spelt_out(token) if _PUNYCODE.search(token) else []
    elif "@" in token.strip("@") or "." in token.strip("."):
        notes = [*_mixed(token), *_punycode(token)]
    else:
        notes = []
    if not notes:
        return None
    return f'{escape(token)}<span class="inv">{escape("; ".join(notes))}</span>'


def _mixed(token: str) -> list[str]:
    """Name the scripts of the token's letters, by the first word of their names, where they differ."""
    found = {unicodedata.name(char, "?").split()[0] for char in token if char.isalpha()}
    return [f"mixed scripts: {', '.join(sorted(found)).lower()}"] if len(found) > 1 else []


def _punycode(token: str) -> list[str]:
    domain = token.rpartition("@")[2].strip(".")
    if domain.isascii():
        return []
    try:
        return [domain.encode("idna").decode()]
    except UnicodeError:
        return ["no valid domain"]


def _spelt_out(token: str) -> list[str]:
    domain = token.rpartition("@")[2].strip(".")
    try:
        read = domain.encode().decode("idna")
    except UnicodeError:
        return []
    return [f"reads as {read}", *_mixed(read)]
