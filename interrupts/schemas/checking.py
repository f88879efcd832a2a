"""What makes a schema usable; `compiled` makes it ready."""

from collections.abc import Iterator
from typing import Any, Final

import jsonschema_rs

from config.jsontext import canonical, pointer, value_faults
from interrupts.schemas.outline import Fault, Outline, cost_table, outline

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MAX_SCHEMA_BYTES: Final = 64 * 1024
MAX_PATTERNS: Final = 100
MAX_PATTERN_CHARACTERS: Final = 1000
MAX_PATTERN_BYTES: Final = 512 * 1024
MAX_SMALL_PATTERN_BYTES: Final = 64 * 1024
MAX_DETAIL: Final = 300
MAX_WORK: Final = 2_000_000  # subschema evaluations of one validation, well under 1 us each
SMALL_DEPTH, SMALL_SIZE = 4, 100  # a value that every usable schema affords to check
MASK: Final = "the value"


def check_schema(schema: Any) -> list[Fault]:
    """Return what is wrong with the schema of a tool's arguments; none: it can be registered."""
    if found := check_response_schema(schema):
        return found
    if schema.get("type") != "object":
        return [("/type", 'Arguments are an object: the schema says "type": "object".')]
    return []


def check_response_schema(schema: Any) -> list[Fault]:
    """Return what is wrong with the schema of a response's value; none: it can be used."""
    if found := value_faults(schema):
        return found
    if not isinstance(schema, dict):
        return [("", "A schema is an object.")]
    if len(canonical(schema)) > MAX_SCHEMA_BYTES:
        return [("", f"A schema has at most {MAX_SCHEMA_BYTES} bytes.")]
    if schema.get("$schema", DIALECT) not in (DIALECT, DIALECT + "#"):
        return [("/$schema", f"Schemas are written in {DIALECT}.")]
    shape = outline(schema)
    if found := [*shape.faults, *_pattern_faults(shape)]:
        return found
    return _meta_faults(schema) or _cost_faults(shape)


def compiled(schema: Any) -> jsonschema_rs.Draft202012Validator:
    """Make a schema ready: nothing is fetched, formats are asserted, patterns run in linear time."""
    return jsonschema_rs.Draft202012Validator(
        schema,
        offline=True,
        validate_formats=True,
        mask=MASK,
        pattern_options=jsonschema_rs.RegexOptions(size_limit=MAX_PATTERN_BYTES),
    )


def is_bounded_pattern(text: str) -> bool:
    """Say whether a pattern of some other place runs in linear time and little memory."""
    limit = jsonschema_rs.RegexOptions(size_limit=MAX_SMALL_PATTERN_BYTES)
    try:
        jsonschema_rs.Draft202012Validator({"pattern": text}, pattern_options=limit)
    except jsonschema_rs.ValidationError:
        return False
    return True


def _pattern_faults(shape: Outline) -> Iterator[Fault]:
    if len(shape.patterns) > MAX_PATTERNS:
        yield "", f"A schema has at most {MAX_PATTERNS} patterns."
    for place, text in shape.patterns:
        if len(text) > MAX_PATTERN_CHARACTERS:
            yield pointer(*place), f"A pattern has at most {MAX_PATTERN_CHARACTERS} characters."


def _meta_faults(schema: dict[str, Any]) -> list[Fault]:
    try:
        compiled(schema)
    except jsonschema_rs.ValidationError as error:
        return [_meta_fault(error)]
    except ValueError as error:
        return [("", clipped(str(error)))]
    return []


def _meta_fault(error: jsonschema_rs.ValidationError) -> Fault:
    place = pointer(*error.instance_path)
    if error.kind.as_dict().get("format") == "regex":
        return place, (
            "No pattern that runs in linear time and bounded memory "
            "(look-around and back-references are not taken)."
        )
    return place, sentence(error.message)


def _cost_faults(shape: Outline) -> list[Fault]:
    costs = cost_table(shape, MAX_WORK)
    if costs[min(SMALL_DEPTH, len(costs) - 1)] * SMALL_SIZE > MAX_WORK:
        return [("", "The schema branches too much to be checked within bounds.")]
    return []


def sentence(text: str) -> str:
    """Write a fault as a sentence of bounded length."""
    return clipped(f"{text[:1].upper()}{text[1:]}.")


def clipped(text: str) -> str:
    """Cut a text to the length of a detail."""
    return text if len(text) <= MAX_DETAIL else text[: MAX_DETAIL - 1] + "…"
