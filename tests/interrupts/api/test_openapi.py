"""The published document: valid as OpenAPI 3.1 as far as we use it, and of every path."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from rest_framework.test import APIClient

from tests.interrupts.api.test_refusals import routes

pytestmark = pytest.mark.django_db


@pytest.fixture
def document() -> Any:
    answer = APIClient().get("/api/v1/schema/")
    assert answer.status_code == 200
    return json.loads(answer.content)


def operations(document: Any) -> Iterator[tuple[str, str, Any]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def schemas(value: Any) -> Iterator[Any]:
    """Give every schema in the document."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "schema":
                yield inner
            yield from schemas(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from schemas(inner)


def test_every_method_of_every_path_is_published_and_no_other(document: Any) -> None:
    published = {
        (path, method.upper())
        for path, method, operation in operations(document)
        if operation["operationId"] != "schema"
    }
    served = {
        ("/api/v1/" + path.replace("<str:name>", "{name}"), method)
        for path, view in routes()
        for method in view.operations
        if method != "HEAD"
    }
    assert served <= published
    others = "/(gates|policies|substitutions|delegations|delegation-templates)"
    ours = {entry for entry in published if not re.search(others, entry[0])}
    assert ours == served


def test_each_operation_says_what_it_needs_and_what_it_answers(document: Any) -> None:
    assert document["openapi"].startswith("3.1")
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(ids)) == len(ids)
    for path, method, operation in operations(document):
        assert operation["summary"], path
        assert operation["security"] == [{"bearer": []}, {"session": []}]
        in_path = [one["name"] for one in operation["parameters"] if one["in"] == "path"]
        assert in_path == re.findall(r"\{(\w+)\}", path)
        assert all(one["required"] for one in operation["parameters"] if one["in"] == "path")
        assert ("requestBody" in operation) == (method == "post")
        good = [status for status in operation["responses"] if status.startswith("2")]
        assert good, path
        assert "401" in operation["responses"]
        assert ("404" in operation["responses"]) == ("{" in path)


def test_every_schema_is_one_and_every_reference_leads_somewhere(document: Any) -> None:
    components = document["components"]["schemas"]
    for schema in [*schemas(document["paths"]), *components.values()]:
        jsonschema_rs.meta.validate(schema)
    text = json.dumps(document)
    for name in re.findall(r'"#/components/schemas/(\w+)"', text):
        assert name in components


def test_a_request_body_lists_the_members_the_service_takes(document: Any) -> None:
    path = document["paths"]["/api/v1/runs/{id}/steps"]["post"]
    single, group = path["requestBody"]["content"]["application/json"]["schema"]["oneOf"]
    assert set(single["required"]) == {"tool", "arguments"}
    assert single["additionalProperties"] is False
    assert set(group["required"]) == {"steps"}
    headers = [one["name"] for one in path["parameters"] if one["in"] == "header"]
    assert headers == ["Idempotency-Key", "If-Match"]
    assert "`step-key-reused`" in path["responses"]["409"]["description"]
