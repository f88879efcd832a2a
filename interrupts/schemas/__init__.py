"""JSON Schema (2020-12) of a tool's arguments and of a response's value.

A schema may come from an agent and a value from anyone: a schema is checked once, when it is
registered, and what a validation under it may cost is bounded by its cost table.
"""

from interrupts.schemas.checking import check_response_schema, check_schema, is_bounded_pattern
from interrupts.schemas.outline import declares
from interrupts.schemas.validator import Validator, validate_value, validator_for

__all__ = [
    "Validator",
    "check_response_schema",
    "check_schema",
    "declares",
    "is_bounded_pattern",
    "validate_value",
    "validator_for",
]
