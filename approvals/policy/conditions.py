"""Conditions in CEL over a call: compiled once, evaluated within bounds, never guessing.

A condition that cannot be evaluated raises `ConditionError`; its rule decides what that means.
"""

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import cel

from approvals.policy.decimals import ordered
from approvals.policy.syntax import FUNCTIONS, METHODS, NAMES, Shape, SyntaxFault, Token, read
from interrupts.paths import Path, look_up
from interrupts.schemas import is_bounded_pattern

MAX_VALUES: Final = 10_000
# Values read, those of a loop as often as it turns; below 100 ns each, so below 50 ms in all.
MAX_WORK: Final = 300_000
CHARACTERS_A_VALUE: Final = 16

# The library logs each error of a function; an agent could fill the log with them.
logging.getLogger("cel").setLevel(logging.CRITICAL)


class ConditionError(Exception):
    """The condition has no answer for this call; the text says why and quotes no value."""


class Facts:
    """What conditions may ask about one call, measured and handed over when first asked for."""

    __slots__ = ("_context", "_is_measured", "_known", "_variables", "size", "widest")

    def __init__(self, **variables: Any) -> None:
        self._variables = variables
        self._known: set[Any] = set()
        self._context: cel.Context | None = None
        self._is_measured = False
        self.size = 0
        self.widest = 0

    def context(self, shape: Shape) -> cel.Context:
        """Return the library's form of what the condition asks for.

        Raises `ConditionError` if the call is too large for it.
        """
        if self._context is None:
            self._context = cel.Context({}, {"decimal": ordered})
        if shape.roots:
            self._add_roots(self._context, shape)
        for found in shape.decimals:
            if found.path and found.path not in self._known:
                self._add_decimal(self._context, found.path)
        return self._context

    def _add_roots(self, context: cel.Context, shape: Shape) -> None:
        if not self._is_measured:
            self._measure()
        if self.size > MAX_VALUES or _work(shape, self) > MAX_WORK:
            raise ConditionError("the call is too large for this condition")
        for root in shape.roots - self._known:
            if root not in self._variables:
                raise ConditionError(f"there is no {root} here")
            context.add_variable(root, self._variables[root])
            self._known.add(root)

    def _add_decimal(self, context: cel.Context, path: Path) -> None:
        self._known.add(path)
        # What is missing or no number stays undefined: asking for it is an error of the condition.
        with suppress(ValueError):
            context.add_variable(_decimal_name(path), ordered(look_up(self._variables, path)))

    def _measure(self) -> None:
        values, characters, pending = 0, 0, [self._variables]
        while pending and values + len(pending) <= MAX_VALUES:
            item: Any = pending.pop()
            values += 1
            if isinstance(item, str):
                characters += len(item)
            elif isinstance(item, dict | list):
                self.widest = max(self.widest, len(item))
                pending += item.values() if isinstance(item, dict) else item
        self._is_measured = True
        self.size = values + len(pending) + characters // CHARACTERS_A_VALUE


class Condition:
    """A condition made ready. One that no longer compiles is kept, and never has an answer."""

    __slots__ = ("_program", "_shape", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._program: cel.Program | None = None
        self._shape: Shape | None = None
        try:
            self._shape, self._program = _compiled(source)
        except SyntaxFault:
            return

    @property
    def names(self) -> frozenset[str]:
        """What of the facts it asks about: ``arguments``, ``usage``, and so on."""
        return frozenset() if self._shape is None else self._shape.names

    def holds(self, facts: Facts) -> bool:
        """Say whether the condition is true of the facts; raises `ConditionError`."""
        answer = self._answer(facts)
        if not isinstance(answer, bool):
            raise ConditionError("it is neither true nor false")
        return answer

    def score(self, facts: Facts) -> float:
        """Return the number from 0 to 1 that it gives; raises `ConditionError` if it gives none."""
        answer = self._answer(facts)
        if not isinstance(answer, int | float) or isinstance(answer, bool):
            raise ConditionError("it gives no number")
        if not 0 <= answer <= 1:  # nor is what compares with nothing, such as 0.0 / 0.0
            raise ConditionError("it gives a number outside 0 to 1")
        return answer

    def _answer(self, facts: Facts) -> Any:
        if self._program is None or self._shape is None:
            raise ConditionError("it is no condition that this service reads")
        context = facts.context(self._shape)
        try:
            return self._program.execute(context)
        except LookupError:
            raise ConditionError("a member or an item that it names is not there") from None
        except TypeError:
            raise ConditionError("it compares or combines values of different kinds") from None
        except ArithmeticError:
            raise ConditionError("a calculation in it has no result") from None
        except (RuntimeError, ValueError) as fault:
            raise ConditionError(_why(fault)) from None


def names_of(conditions: Iterable[Condition | None]) -> frozenset[str]:
    """Return what these conditions ask about."""
    return frozenset().union(*(one.names for one in conditions if one is not None))


def _why(fault: Exception) -> str:
    if "decimal" in str(fault)[:40]:
        return "decimal() was given what is no decimal number"
    return "a function in it was given what it does not take"


def _work(shape: Shape, facts: Facts) -> int:
    once = (shape.readings + shape.loops) * facts.size
    return once + shape.readings_in_loops * facts.size * facts.widest


def condition_faults(source: Any, what: str = "condition") -> list[str]:
    """Return why a condition (or a score) cannot be saved, with the column; none: it can."""
    if not isinstance(source, str) or not source.strip():
        return [f"A {what} is a text in CEL."]
    try:
        _compiled(source)
    except SyntaxFault as fault:
        return [f"{fault.detail} (column {fault.column})"]
    return []


def _compiled(source: str) -> tuple[Shape, cel.Program]:
    shape = read(source)
    try:
        program = cel.compile(source)
    except ValueError as fault:
        raise _library_fault(str(fault), source) from None
    for pattern in shape.patterns:
        _check_pattern(pattern)
    _check_references(program, shape)
    folded = _folded(source, shape)
    return shape, program if folded == source else cel.compile(folded)


def _folded(source: str, shape: Shape) -> str:
    """Put what is known beforehand in place of each `decimal()` that asks for it."""
    for found in reversed(shape.decimals):
        number = found.number
        known = f"'{_ordered_literal(number)}'" if number else _decimal_name(found.path)
        source = source[: found.start - 1] + known + source[found.end - 1 :]
    return source


def _decimal_name(path: Path) -> str:
    return "decimal_" + ".".join(path).encode().hex()


def _library_fault(message: str, source: str) -> SyntaxFault:
    """Take the place and the reason out of `ERROR: <input>:LINE:COLUMN: reason`."""
    _, _, told = message.partition("<input>:")
    line, _, rest = told.partition(":")
    column, _, reason = rest.partition(":")
    reason = reason.strip().partition("\n")[0].partition(" expecting ")[0]
    if not (line.isdecimal() and column.isdecimal()):
        return SyntaxFault(1, "The condition cannot be read.")
    before = sum(len(text) + 1 for text in source.split("\n")[: int(line) - 1])
    return SyntaxFault(before + int(column), f"{reason}.")


def _literal(token: Token) -> Any:
    return cel.compile(token.text).execute({})


def _check_pattern(token: Token) -> None:
    if not is_bounded_pattern(_literal(token)):
        raise SyntaxFault(token.column, "No pattern that runs in linear time and bounded memory.")


def _ordered_literal(token: Token) -> str:
    try:
        return ordered(_literal(token))
    except ValueError:
        raise SyntaxFault(token.column, f"{token.text} is no decimal number.") from None


def _check_references(program: cel.Program, shape: Shape) -> None:
    """Refuse what the library reads out of the text and `read` did not."""
    told = program.references()
    named = {name for name in told["functions"] if name[0].isalpha()}
    strange = (named - FUNCTIONS - METHODS) | (set(told["variables"]) - NAMES - shape.variables)
    if strange:
        raise SyntaxFault(1, f"There is no {min(strange)} here.")
