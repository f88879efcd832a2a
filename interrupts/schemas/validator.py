"""A checked schema made ready, and what a value breaks of it."""

from collections.abc import Hashable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

import jsonschema_rs

from config.errors import MAX_ERRORS
from config.jsontext import pointer
from config.memo import Memo
from interrupts.paths import covered, parse_pointers
from interrupts.schemas.checking import MAX_WORK, compiled, sentence
from interrupts.schemas.outline import Fault, cost_table, outline

MAX_WORK_EXPLAINED: Final = 200_000  # explaining an evaluation takes about 10 us
CHEAP: Final = 4  # evaluations a leaf: whatever fits a request's body is within MAX_WORK

_Place = tuple[str | int, ...]


class Validator:
    """A checked schema; `sensitive` names the places whose values no fault quotes."""

    __slots__ = ("_check", "_costs", "_is_cheap", "_sensitive")

    def __init__(self, schema: dict[str, Any], sensitive: Iterable[str] = ()) -> None:
        self._check = compiled(schema)
        self._costs = cost_table(outline(schema), MAX_WORK)
        self._is_cheap = self._costs[-1] <= CHEAP
        self._sensitive = parse_pointers(sensitive)

    def validate(self, value: Any) -> list[Fault]:
        """Return where `value` breaks the schema, and how: at most 100 places."""
        if not self._is_cheap and self._work(value) > MAX_WORK:
            return [("", "The value is too large or too deep to be checked against this schema.")]
        if self._check.is_valid(value):
            return []
        if self._work(value) > MAX_WORK_EXPLAINED:
            return [("", "The value breaks the schema.")]
        errors = islice(self._check.iter_errors(value), MAX_ERRORS)
        return list(dict.fromkeys(fault for error in errors for fault in self._faults(error)))

    def _work(self, value: Any) -> int:
        size, depth = _size(value)
        return size * self._costs[min(depth, len(self._costs) - 1)]

    def _faults(self, error: jsonschema_rs.ValidationError) -> Iterator[Fault]:
        for place, detail in _explain(error):
            hidden = covered(place, self._sensitive)
            if hidden is None or (hidden == len(place) and error.kind.name == "required"):
                yield pointer(*place), detail
            else:
                yield pointer(*place[:hidden]), f'The value breaks "{error.kind.name}".'


def _explain(error: jsonschema_rs.ValidationError) -> Iterator[tuple[_Place, str]]:
    place: _Place = tuple(error.instance_path)
    told = error.kind.as_dict()
    match error.kind.name:
        case "required":
            yield (*place, told["property"]), "This member is required."
        case "additionalProperties" | "unevaluatedProperties":
            for name in told["unexpected"]:
                yield (*place, name), "No such member is declared."
        case "falseSchema":
            yield place, "Nothing is allowed here."
        case "propertyNames":
            yield place, sentence(f"the name of a member: {told['error'].message}")
        case _:
            yield place, sentence(error.message)


def _size(value: Any) -> tuple[int, int]:
    """Return how many values `value` holds, itself included, and how deep they are nested."""
    size, depth, level = 1, 0, [value]
    while level := [
        child
        for parent in level
        if isinstance(parent, dict | list)
        for child in (parent.values() if isinstance(parent, dict) else parent)
    ]:
        size += len(level)
        depth += 1
    return size, depth


_VALIDATORS: Memo[Validator] = Memo(1024)


def validator_for(
    version: Hashable, schema: dict[str, Any], sensitive: Iterable[str] = ()
) -> Validator:
    """Return the validator of an immutable version of a tool, made at its first use."""
    return _VALIDATORS.get(version, lambda: Validator(schema, sensitive))


def validate_value(schema: dict[str, Any], value: Any) -> list[Fault]:
    """Return where a response's value breaks the checked schema that came with the question."""
    return Validator(schema).validate(value)
