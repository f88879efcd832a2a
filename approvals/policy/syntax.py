"""What a condition may say, read from its tokens before the CEL library compiles it.

The library has no cost limit, compares a text with a number as merely unequal, and looks names up
at run time only. So what would be slow, silently false or misspelt is refused when a policy is
saved: loops are not nested, patterns are literals, `decimal()` stands on both sides of a comparison.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_CHARACTERS: Final = 2000
MAX_NESTING: Final = 32
MAX_ADDITIONS: Final = 10

NAMES: Final = frozenset({"arguments", "tool", "agent", "run", "step", "usage", "time", "history"})
# Of these, what else is asked for is misspelt, or not for conditions to know.
MEMBERS: Final = {
    "step": ("key", "number", "parallel"),
    "usage": ("cost", "seconds", "steps", "tokens"),
    "time": ("at", "date", "hour", "minute", "weekday", "zone"),
    "history": ("denied", "failed", "performed", "refused", "undone", "unknown"),
}
FUNCTIONS: Final = frozenset(
    {"has", "size", "int", "uint", "double", "string", "timestamp", "duration", "decimal"}
)
LOOPS: Final = frozenset({"all", "exists", "exists_one"})
METHODS: Final = frozenset({"contains", "startsWith", "endsWith", "matches", "size"})
_SLOW: Final = frozenset({"map", "filter"})
_WORDS: Final = frozenset({"true", "false", "null", "in"})
_COMPARISONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!="})
_BEFORE: Final = frozenset({"", "(", "[", "{", ",", "&&", "||", "?", ":"})
_AFTER: Final = frozenset({"", ")", "]", "}", ",", "&&", "||", "?", ":"})
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n\f]+)
    |(?P<text>[rR]"[^"\r\n]*"|[rR]'[^'\r\n]*'|"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*')
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?[uU]?)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>&&|\|\||[=!<>]=|[<>!?:.,()\[\]{}+*/%-])""",
    re.VERBOSE | re.ASCII,
)


class SyntaxFault(Exception):
    """The condition says what none may say, at a column that counts from 1."""

    def __init__(self, column: int, detail: str) -> None:
        super().__init__(column, detail)
        self.column = column
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the condition."""

    kind: str
    text: str
    column: int


@dataclass(frozen=True, slots=True)
class Decimal:
    """A `decimal()` whose value needs no evaluation: of a number written out, or of a member.

    It stands from the column `start` to before `end`.
    """

    start: int
    end: int
    number: Token | None
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What bounds the cost of a condition: how often it reads the facts, how often in a loop.

    Members that are read as decimals only are not counted: they are looked up beforehand.
    """

    roots: frozenset[str]
    readings: int
    readings_in_loops: int
    loops: int
    patterns: tuple[Token, ...]
    decimals: tuple[Decimal, ...]
    variables: frozenset[str]  # of the loops

    @property
    def names(self) -> frozenset[str]:
        """Every name of the facts in it, decimals included."""
        return self.roots | {found.path[0] for found in self.decimals if found.path}


_NONE: Final = Token("end", "", 0)


class Reader:
    """The tokens of one condition, and the checks on them."""

    def __init__(self, source: str) -> None:
        self.tokens = list(_tokens(source))
        self.by_column = {token.column: index for index, token in enumerate(self.tokens)}
        self.partner = self._brackets()

    def at(self, index: int) -> Token:
        return self.tokens[index] if 0 <= index < len(self.tokens) else _NONE

    def is_call(self, index: int) -> bool:
        return self.at(index).kind == "name" and self.at(index + 1).text == "("

    def is_member(self, index: int) -> bool:
        return self.at(index - 1).text == "."

    def indexes(self, kind: str) -> Iterator[int]:
        return (index for index, token in enumerate(self.tokens) if token.kind == kind)

    def refuse(self, index: int, detail: str) -> None:
        raise SyntaxFault(self.at(index).column, detail)

    def _brackets(self) -> dict[int, int]:
        partner: dict[int, int] = {}
        opened: list[int] = []
        for index, token in enumerate(self.tokens):
            if token.text in _CLOSING:
                opened.append(index)
                if len(opened) > MAX_NESTING:
                    raise SyntaxFault(token.column, f"Nested deeper than {MAX_NESTING}.")
            elif token.text in _CLOSING.values() and token.kind == "sign":
                if not opened or _CLOSING[self.tokens[opened[-1]].text] != token.text:
                    raise SyntaxFault(token.column, f"{token.text} closes nothing.")
                partner[opened.pop()] = index
        if opened:
            unclosed = self.tokens[opened[-1]]
            raise SyntaxFault(unclosed.column, f"{unclosed.text} is not closed.")
        return partner


def _tokens(source: str) -> Iterator[Token]:
    place = 0
    last = _NONE
    while place < len(source):
        found = _TOKEN.match(source, place)
        if found is None or source.startswith(("//", "'''", '"""'), place):
            raise SyntaxFault(place + 1, f"{source[place]} is not taken here.")
        kind = found.lastgroup or ""
        token = Token(kind, found[0], place + 1)
        if kind == "text" and last.kind in ("name", "text", "number"):
            raise SyntaxFault(token.column, "A text follows what it cannot follow.")
        place = found.end()
        last = token
        if kind != "space":
            yield token


def read(source: str) -> Shape:
    """Read a condition; raises `SyntaxFault` at the first thing that none may say."""
    if len(source) > MAX_CHARACTERS:
        raise SyntaxFault(MAX_CHARACTERS + 1, f"At most {MAX_CHARACTERS} characters.")
    reader = Reader(source)
    loops = _loops(reader)
    variables = {body[0] for body in loops}
    _check_calls(reader)
    _check_members(reader)
    _check_additions(reader)
    decimals = tuple(_decimals(reader))
    looked_up = {reader.by_column[found.start] + 2 for found in decimals if found.path}
    readings = [index for index in _readings(reader, variables, loops) if index not in looked_up]
    inside = sum(_is_inside(index, loops) for index in readings)
    return Shape(
        roots=frozenset(reader.at(index).text for index in readings),
        readings=len(readings) - inside,
        readings_in_loops=inside,
        loops=len(loops),
        patterns=tuple(_patterns(reader, loops)),
        decimals=decimals,
        variables=frozenset(variables),
    )


_Loop = tuple[str, int, int]  # the variable, and where the body begins and ends


def _loops(reader: Reader) -> list[_Loop]:
    loops: list[_Loop] = []
    for index in reader.indexes("name"):
        if reader.at(index).text not in LOOPS or not reader.is_member(index):
            continue
        if not reader.is_call(index):
            continue
        variable = reader.at(index + 2)
        if variable.kind != "name" or reader.at(index + 3).text != ",":
            reader.refuse(index, f"{reader.at(index).text}() takes a name and what holds of it.")
        end = reader.partner[index + 1]
        if end == index + 4 or _has_comma(reader, index + 3, end):
            reader.refuse(index, f"{reader.at(index).text}() takes a name and what holds of it.")
        if variable.text in NAMES | FUNCTIONS | _WORDS:
            reader.refuse(index + 2, f"{variable.text} already means something else.")
        if _is_inside(index, loops):
            reader.refuse(index, "Loops are not nested.")
        loops.append((variable.text, index + 4, end))
    return loops


def _is_inside(index: int, loops: list[_Loop]) -> bool:
    return any(start <= index < end for _, start, end in loops)


def _check_calls(reader: Reader) -> None:
    for index in reader.indexes("name"):
        name = reader.at(index).text
        if reader.is_member(index) and not _has_members(reader.at(index - 2)):
            reader.refuse(index - 1, "A member belongs to something.")
        if not reader.is_call(index):
            continue
        known = METHODS | LOOPS if reader.is_member(index) else FUNCTIONS
        if name in _SLOW:
            reader.refuse(index, f"{name}() is not taken; use all(), exists() or exists_one().")
        if name not in known:
            reader.refuse(index, f"There is no function {name}() here.")
        if name == "decimal":
            _check_decimal(reader, index)


def _check_members(reader: Reader) -> None:
    for index in reader.indexes("name"):
        known = MEMBERS.get(reader.at(index).text)
        named = reader.at(index + 2)
        if known is None or reader.is_member(index) or reader.at(index + 1).text != ".":
            continue
        if named.text not in known and not reader.is_call(index + 2):
            of = reader.at(index).text
            reader.refuse(index + 2, f"{of} has no {named.text}; it has {', '.join(known)}.")


def _has_members(token: Token) -> bool:
    is_name = token.kind == "name" and token.text not in _WORDS
    return is_name or token.kind == "text" or token.text in _CLOSING.values()


def _check_decimal(reader: Reader, index: int) -> None:
    end = reader.partner[index + 1]
    if end == index + 2 or _has_comma(reader, index + 1, end):
        reader.refuse(index, "decimal() takes one value.")
    on_the_left = (
        reader.at(index - 1).text in _BEFORE
        and reader.at(end + 1).text in _COMPARISONS
        and reader.at(end + 2).text == "decimal"
        and reader.is_call(end + 2)
    )
    on_the_right = (
        reader.at(index - 1).text in _COMPARISONS
        and reader.at(index - 2).text == ")"
        and _opened_by_decimal(reader, index - 2)
        and reader.at(end + 1).text in _AFTER
    )
    if not (on_the_left or on_the_right):
        reader.refuse(index, "decimal() is compared with decimal(), and with nothing else.")


def _has_comma(reader: Reader, start: int, end: int) -> bool:
    index = start + 1
    while index < end:
        if reader.at(index).text == ",":
            return True
        index = reader.partner.get(index, index) + 1
    return False


def _opened_by_decimal(reader: Reader, end: int) -> bool:
    start = next(opening for opening, closing in reader.partner.items() if closing == end)
    return reader.at(start - 1).text == "decimal"


def _check_additions(reader: Reader) -> None:
    additions = [index for index in reader.indexes("sign") if reader.at(index).text == "+"]
    if len(additions) > MAX_ADDITIONS:
        reader.refuse(additions[MAX_ADDITIONS], f"At most {MAX_ADDITIONS} additions.")


def _readings(reader: Reader, variables: set[str], loops: list[_Loop]) -> Iterator[int]:
    for index in reader.indexes("name"):
        name = reader.at(index).text
        if reader.is_member(index) or reader.is_call(index) or name in _WORDS:
            continue
        if name in NAMES:
            yield index
        elif not (name in variables and _is_bound(index, name, loops)):
            reader.refuse(index, f"There is no {name} here; there are {', '.join(sorted(NAMES))}.")


def _is_bound(index: int, name: str, loops: list[_Loop]) -> bool:
    # The variable itself stands two tokens before the body.
    return any(name == bound and start - 2 <= index < end for bound, start, end in loops)


def _patterns(reader: Reader, loops: list[_Loop]) -> Iterator[Token]:
    for index in reader.indexes("name"):
        if reader.at(index).text != "matches" or not reader.is_call(index):
            continue
        if reader.at(index + 2).kind != "text" or reader.at(index + 3).text != ")":
            reader.refuse(index, "matches() takes a pattern that is written out.")
        if _is_inside(index, loops):
            reader.refuse(index, "matches() does not stand in a loop.")
        yield reader.at(index + 2)


def _decimals(reader: Reader) -> Iterator[Decimal]:
    for index in reader.indexes("name"):
        if reader.at(index).text != "decimal" or not reader.is_call(index):
            continue
        closing = reader.partner[index + 1]
        inside = reader.tokens[index + 2 : closing]
        start, end = reader.at(index).column, reader.at(closing).column + 1
        if len(inside) == 1 and inside[0].kind in ("text", "number"):
            yield Decimal(start, end, inside[0], ())
        elif _is_path(inside):
            yield Decimal(start, end, None, tuple(token.text for token in inside[::2]))


def _is_path(tokens: list[Token]) -> bool:
    """Say whether the tokens are a name of the facts and members of it: `arguments.a.b`."""
    return (
        len(tokens) % 2 == 1
        and tokens[0].text in NAMES
        and all(token.kind == "name" for token in tokens[::2])
        and all(token.text == "." for token in tokens[1::2])
    )
