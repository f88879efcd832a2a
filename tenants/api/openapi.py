"""OpenAPI 3.1, made from the same declarations that are enforced (`tenants.api.operation`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from django.conf import settings
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema

from config.errors import PROBLEM_JSON
from tenants.api.body import ID, NO_BODY
from tenants.api.checks import Schema
from tenants.api.operation import Operation

_COMPONENTS: dict[str, Schema] = {
    "Problem": {
        "type": "object",
        "description": "RFC 9457. `code` is the stable name of the refusal.",
        "required": ["type", "title", "status", "detail", "code", "errors"],
        "properties": {
            "type": {"type": "string", "format": "uri"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "code": {"type": "string"},
            "errors": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["pointer", "detail"],
                    "properties": {
                        "pointer": {"type": "string", "format": "json-pointer"},
                        "detail": {"type": "string"},
                    },
                },
            },
            "incident": {"type": "string", "description": "Finds an unexpected error in the log."},
        },
    }
}
_SECURITY: Final = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "`aby_agent_…` of an agent, `aby_user_…` of a person.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": settings.SESSION_COOKIE_NAME,
        "description": "The web session; what changes something needs its CSRF token.",
    },
}
_CODES: Final = {
    401: "unauthenticated",
    403: "forbidden",
    404: "not-found",
    422: "invalid-body",
}


def component(name: str, schema: Schema) -> Schema:
    """Publish ``schema`` under ``name`` and return a reference to it."""
    if _COMPONENTS.setdefault(name, schema) != schema:
        raise ValueError(f"another component is called {name}")
    return {"$ref": f"#/components/schemas/{name}"}


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """Return the OpenAPI document of every path; made once a process."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    made: dict[str, Any] = generator.get_schema(public=True)  # type: ignore[no-untyped-call]
    made["openapi"] = "3.1.0"
    parts = made.setdefault("components", {})
    parts["schemas"] = dict(sorted({**parts.get("schemas", {}), **_COMPONENTS}.items()))
    parts["securitySchemes"] = _SECURITY
    return made


class TenantSchema(AutoSchema):
    """Publishes what a `TenantView` declares; the rest of the generator's guesses is not needed."""

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: Any
    ) -> dict[str, Any] | None:
        del path_regex, registry
        declared: Operation | None = getattr(self.view, "operations", {}).get(method)
        if declared is None:
            return None
        parts = re.sub(path_prefix, "", path).strip("/").split("/")
        made = {
            "operationId": "_".join([method.lower(), *(part.strip("{}") for part in parts)]),
            "summary": declared.summary,
            "description": _description(declared),
            "tags": [parts[0]],
            "security": [{"bearer": []}, {"session": []}],
            "parameters": _parameters(path, method, declared),
            "responses": _responses(declared, has_object="{" in path),
        }
        if method == "POST":
            made["requestBody"] = _request_body(declared)
        return made


def _description(declared: Operation) -> str:
    who = {"agents": "Agents only.", "people": "People only.", "both": ""}[declared.who]
    roles = f"Roles: {', '.join(sorted(declared.roles))}." if declared.roles else ""
    return " ".join(part for part in (declared.description, who, roles) if part)


def _parameters(path: str, method: str, declared: Operation) -> list[dict[str, Any]]:
    text: Schema = {"type": "string"}
    made = [
        _parameter("path", name, text if name == "name" else ID, required=True)
        for name in re.findall(r"\{(\w+)\}", path)
    ]
    made += [_parameter("query", name, schema) for name, schema in declared.query.items()]
    if method == "POST":
        made.append(_parameter("header", "Idempotency-Key", {"type": "string", "maxLength": 255}))
    if declared.versioned:
        made.append(_parameter("header", "If-Match", text))
    return made


def _parameter(where: str, name: str, schema: Schema, *, required: bool = False) -> dict[str, Any]:
    plain = {key: value for key, value in schema.items() if key != "description"}
    made: dict[str, Any] = {"name": name, "in": where, "schema": plain, "required": required}
    if "description" in schema:
        made["description"] = schema["description"]
    return made


def _request_body(declared: Operation) -> dict[str, Any]:
    schema = declared.body.schema
    required = declared.body is not NO_BODY and ("oneOf" in schema or bool(schema.get("required")))
    return {"required": required, "content": {"application/json": {"schema": schema}}}


def _responses(declared: Operation, *, has_object: bool) -> dict[str, Any]:
    answers = declared.answers or {200: {}}
    made = {str(status): _response(status, schema) for status, schema in answers.items()}
    codes: dict[str, int] = {code: status for status, code in _CODES.items()}
    if not has_object:
        codes.pop("not-found")
    by_status: dict[int, list[str]] = {}
    for code, status in {**codes, **declared.refusals}.items():
        by_status.setdefault(status, []).append(code)
    for status, names in sorted(by_status.items()):
        made[str(status)] = _problem(", ".join(f"`{name}`" for name in names))
    made["default"] = _problem("Any other refusal.")
    return made


def _response(status: int, schema: Schema | None) -> dict[str, Any]:
    if schema is None or status == 204:
        return {"description": "Done."}
    return {"description": "Done.", "content": {"application/json": {"schema": schema}}}


def _problem(description: str) -> dict[str, Any]:
    reference: Mapping[str, Any] = {"$ref": "#/components/schemas/Problem"}
    return {"description": description, "content": {PROBLEM_JSON: {"schema": reference}}}
