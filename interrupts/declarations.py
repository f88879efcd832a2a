"""A tool as it is declared: what it may say, and its one full form.

Every fault is ``(pointer, detail)``, the pointer into the declaration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from config.errors import pointer
from config.jsontext import digest
from interrupts.effects import offers_of
from interrupts.effects.validation import (
    DEFAULT_ATTEMPTS,
    DEFAULT_BACKOFF,
    DEFAULT_LEASE,
    DEFAULT_SETTLE_AFTER,
    DEFAULT_TIMEOUT,
    arguments_named,
    check_effect,
    judged_in_urls,
    secrets_named,
)
from interrupts.models import Choice, Effect, Risk
from interrupts.paths import Path, overlaps, parse_pointers
from interrupts.schemas import check_schema
from interrupts.schemas.outline import declares
from interrupts.templates import check_sensitive, check_template
from tenants.api.body import FREE, members, text
from tenants.api.checks import Found, compile_check

Fault = tuple[str, str]

TOOL_NAME: Final = r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*"
ROLES: Final = ("enum", "domain", "path", "number", "id", "text")
MAX_AGE: Final = 366 * 24 * 3600
MAX_KEY_LIFETIME: Final = 10 * 365 * 24 * 3600

# What a call needs to know: said with its proposal, and no older than this when it runs.
NEED: Final = members(
    {
        "name": text(200, least=1),
        "longest_age": {"type": "integer", "minimum": 1, "maximum": MAX_AGE},
    }
)
SHAPE: Final = members(
    {
        "name": text(
            100, least=1, pattern=TOOL_NAME, description="Must be names joined by points."
        ),
        "effect": {"type": "string", "enum": [str(one) for one in Effect]},
        "risk": {"type": "string", "enum": [str(one) for one in Risk]},
        "arguments": FREE,
        "executor": FREE,
    },
    {
        "description": text(10_000),
        "sensitive": {"type": "array", "items": text(500), "maxItems": 100},
        "confirmation": text(500),
        "headline": text(500),
        "consequence": text(500),
        "blast_radius": text(500),
        "failure_modes": {"type": "array", "items": text(500, least=1), "maxItems": 50},
        "roles": {
            "type": "object",
            "additionalProperties": {"type": "string", "enum": list(ROLES)},
            "maxProperties": 200,
        },
        "key_lifetime": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": MAX_KEY_LIFETIME,
        },
        "on_failure": {"type": "string", "enum": ["tell", "interrupt"]},
        "decisions": {
            "type": "array",
            "items": {"type": "string", "enum": [str(one) for one in Choice]},
            "maxItems": len(Choice),
        },
        "cost": text(
            26,
            least=1,
            pattern=r"[0-9]{1,15}(\.[0-9]{1,10})?",
            description='Must be a decimal number as text: "0.50".',
        ),
        "context": {"type": "array", "items": NEED, "maxItems": 20},
        "preview": {"type": ["object", "null"], "additionalProperties": True},
        "reconcile": {"type": ["object", "null"], "additionalProperties": True},
        "compensate": {"type": ["object", "null"], "additionalProperties": True},
        "verifier": {"type": ["object", "null"], "additionalProperties": True},
    },
)
# The members of a tool's full form: what makes a version, and what another version differs in.
FORM: Final = (
    "effect",
    "risk",
    "arguments",
    "sensitive",
    "confirmation",
    "headline",
    "consequence",
    "blast_radius",
    "failure_modes",
    "roles",
    "key_lifetime",
    "on_failure",
    "decisions",
    "executor",
    "preview",
    "reconcile",
    "compensate",
    "verifier",
)
# What a version's digest leaves out where it is not declared: versions made before are the same.
_CAME_LATER: Final = frozenset({"decisions", "verifier"})
# Members that stand in the form of those tools alone that declare them.
OPTIONAL: Final[Mapping[str, Any]] = {"cost": "", "context": []}
_ABSENT: Final[Mapping[str, Any]] = {
    "sensitive": [],
    "confirmation": "",
    "headline": "",
    "consequence": "",
    "blast_radius": "",
    "failure_modes": [],
    "roles": {},
    "key_lifetime": None,
    "on_failure": "tell",
    "decisions": [],
    "preview": None,
    "compensate": None,
}
_TEMPLATES: Final = {"headline": False, "consequence": False, "confirmation": True}
_HIDDEN: Final = "What is sensitive stands in no URL and is shown in no preview."
_check_shape = compile_check(SHAPE)


def check_tool(declaration: Any) -> list[Fault]:
    """Return every fault of a tool's declaration; none: it can be registered."""
    found: Found = []
    _check_shape(declaration, "", found)
    if found:
        return [(fault["pointer"], fault["detail"]) for fault in found]
    return [*_content_faults(declaration)]


def _content_faults(declaration: Mapping[str, Any]) -> Iterator[Fault]:
    schema, sensitive = declaration["arguments"], declaration.get("sensitive", [])
    schema_faults = check_schema(schema)
    sensitive_faults = check_sensitive(sensitive)
    yield from _under("arguments", schema_faults)
    yield from _under("sensitive", sensitive_faults)
    if not schema_faults and not sensitive_faults:
        for member, is_typed in _TEMPLATES.items():
            if declaration.get(member):
                faults = check_template(declaration[member], schema, sensitive, is_typed=is_typed)
                yield from _under(member, faults)
        yield from _role_faults(declaration.get("roles", {}), schema)
    yield from _decision_faults(declaration)
    yield from _context_faults(declaration.get("context", []))
    effect_faults = check_effect(declaration)
    yield from effect_faults
    if not effect_faults:
        yield from _compensation_faults(declaration)
        if not schema_faults and not sensitive_faults:
            yield from _request_faults(declaration, parse_pointers(sensitive))


def _decision_faults(declaration: Mapping[str, Any]) -> Iterator[Fault]:
    """What is declared leaves a way to let the call go and one to stop it."""
    allowed = declaration.get("decisions", [])
    for one in (Choice.APPROVE, Choice.REJECT):
        if allowed and one not in allowed:
            yield "/decisions", f"{one} can't be taken away."
    for index, decision in enumerate(allowed):
        if decision in allowed[:index]:
            yield pointer("decisions", index), "It stands here twice."


def _context_faults(context: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    names = [need["name"] for need in context]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield pointer("context", index, "name"), "Is there twice."


def _role_faults(roles: Mapping[str, str], schema: dict[str, Any]) -> Iterator[Fault]:
    for name in roles:
        if not declares(schema, tuple(name.split("."))):
            yield pointer("roles", name), "No such argument is declared."


def _request_faults(declaration: Mapping[str, Any], sensitive: tuple[Path, ...]) -> Iterator[Fault]:
    """What declared requests send stands in the schema; no URL and no preview shows what is hidden.

    URLs lie in the logs of every proxy on the way.
    """
    schema = declaration["arguments"]
    for place, path, is_url in arguments_named(declaration):
        if path and not declares(schema, path):
            yield place, f"{{arguments.{'.'.join(path)}}} names no declared argument."
        if (is_url or place.startswith("/preview/answer/")) and overlaps(path, sensitive):
            yield place, _HIDDEN
    for place, path in judged_in_urls(declaration):
        if overlaps(path, sensitive):
            yield place, _HIDDEN


def secret_faults(
    declarations: Sequence[Mapping[str, Any]], known: Collection[str]
) -> Iterator[Fault]:
    """Yield a fault for each secret that a checked declaration names and the tenant has not."""
    for index, declaration in enumerate(declarations):
        for place, name in secrets_named(declaration):
            if name not in known:
                yield pointer(index) + place, f"There is no secret {name!r}."


def _compensation_faults(declaration: Mapping[str, Any]) -> Iterator[Fault]:
    offers = offers_of(
        declaration["executor"],
        tool=declaration["name"],
        preview=declaration.get("preview"),
        reconcile=declaration.get("reconcile"),
        compensate=declaration.get("compensate"),
    )
    if declaration["effect"] == Effect.REVERSIBLE and not offers.compensate:
        yield "/effect", "A reversible tool says how it is compensated."


def _under(member: str, faults: list[Fault]) -> Iterator[Fault]:
    for place, detail in faults:
        yield pointer(member) + place, detail


def _decisions(allowed: Collection[str]) -> list[str]:
    """Return what is allowed in one order; all of it is nothing taken away, and so is none named."""
    is_all = len(allowed) == len(Choice)
    return [] if is_all else [one.value for one in Choice if one in allowed]


def full_form(declaration: Mapping[str, Any]) -> dict[str, Any]:
    """Return a checked declaration with everything it leaves out, but its description.

    Two declarations of one full form are the same tool: it is what a version's digest covers.
    """
    executor = dict(declaration["executor"])
    if executor["kind"] == "agent":
        executor.setdefault("lease", DEFAULT_LEASE)
    else:
        executor.setdefault("timeout", DEFAULT_TIMEOUT)
    reconcile = declaration.get("reconcile")
    if reconcile is not None:
        asking = {
            "settle_after": DEFAULT_SETTLE_AFTER,
            "attempts": DEFAULT_ATTEMPTS,
            "backoff": DEFAULT_BACKOFF,
        }
        reconcile = {**asking, **reconcile}
    verifier = declaration.get("verifier")
    if verifier is not None:
        judging = {
            "timeout": DEFAULT_TIMEOUT,
            "attempts": DEFAULT_ATTEMPTS,
            "backoff": DEFAULT_BACKOFF,
            "before_next": True,
        }
        verifier = {**judging, **verifier}
    parts = {"executor": executor, "reconcile": reconcile, "verifier": verifier}
    given = {**_ABSENT, **declaration, **parts}
    given["decisions"] = _decisions(given["decisions"])
    optional = {
        name: given[name] for name, absent in OPTIONAL.items() if given.get(name, absent) != absent
    }
    return {**{member: given[member] for member in FORM}, **optional}


def form_digest(form: Mapping[str, Any]) -> str:
    """Return the digest of a full form, by which a version is told from another."""
    said = {name: one for name, one in form.items() if one or name not in _CAME_LATER}
    return digest(said)
