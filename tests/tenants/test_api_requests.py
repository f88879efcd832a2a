"""The order of refusals and what each stage of a request reads."""

import json
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from tenants.models import Group, Membership, Role, UserToken
from tenants.scope import VARIABLE, tenant_scope
from tests.tenants.conftest import World

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.tenants.api_urls")]
NO_SUCH = "00000000-0000-7000-8000-000000000000"


def send(
    client: Client,
    method: str,
    path: str,
    body: Any = None,
    raw: bytes | None = None,
    **headers: str,
) -> tuple[int, Any, Any]:
    data = raw if raw is not None else (b"" if body is None else json.dumps(body).encode())
    answer = client.generic(
        method,
        f"/api/v1/{path}",
        data,
        content_type=headers.pop("content_type", "application/json"),
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )
    return answer.status_code, json.loads(answer.content) if answer.content else None, answer


def as_(world: World, who: str) -> dict[str, str]:
    return world.bearer(who)


@pytest.fixture
def group(acme: World) -> Group:
    with tenant_scope(acme.id):
        return Group.objects.create(name="finance")


def names(world: World) -> list[str]:
    with tenant_scope(world.id):
        return list(Group.objects.order_by("pk").values_list("name", flat=True))


@pytest.mark.parametrize("header", [None, "Bearer ", "Bearer aby_agent_x", "Basic x", "Bearer x y"])
def test_who_is_not_known_is_refused(client: Client, acme: World, header: str | None) -> None:
    headers = {"Authorization": header} if header else {}
    for method, path in (("POST", "groups"), ("GET", "nowhere"), ("PUT", f"groups/{NO_SUCH}")):
        status, body, answer = send(client, method, path, raw=b"{", **headers)
        assert (status, body["code"]) == (401, "unauthenticated")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert names(acme) == []


def test_a_revoked_key_an_inactive_agent_and_a_former_member_are_not_known(
    client: Client, acme: World
) -> None:
    assert send(client, "GET", "groups", **as_(acme, "agent"))[0] == 200
    with tenant_scope(acme.id):
        acme.agent.active = False
        acme.agent.save()
        Membership.objects.filter(user=acme.users["bob"]).update(active=False)
        UserToken.objects.filter(membership__user=acme.users["olga"]).update(
            revoked_at="2026-01-01T00:00:00Z"
        )
    acme.users["vera"].is_active = False
    acme.users["vera"].save()
    for who in ("agent", "bob", "olga", "vera"):
        assert send(client, "GET", "groups", **as_(acme, who))[0] == 401


def test_the_scheme_is_read_in_any_case(client: Client, acme: World) -> None:
    assert send(client, "GET", "groups", Authorization=f"bearer {acme.secrets['bob']}")[0] == 200


@pytest.mark.parametrize("path", ["nowhere", "groups/not-a-uuid", f"groups/{NO_SUCH}", "groups/"])
@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
def test_what_is_not_there_is_404_whatever_else_is_wrong(
    client: Client, acme: World, method: str, path: str
) -> None:
    status, body, _ = send(client, method, path, raw=b"{", **as_(acme, "agent"))
    assert (status, body["code"]) == (404, "not-found")


def test_what_another_tenant_has_is_not_there(
    client: Client, acme: World, umbrella: World, group: Group
) -> None:
    for method in ("GET", "DELETE", "POST"):
        status, *_ = send(
            client, method, f"groups/{group.pk}", {"name": "x"}, **as_(umbrella, "charlie")
        )
        assert status == 404
    assert names(acme) == ["finance"]


def test_another_method_is_refused_with_those_there_are(
    client: Client, acme: World, group: Group
) -> None:
    status, body, answer = send(client, "PUT", "groups", raw=b"{", **as_(acme, "agent"))
    assert (status, body["code"]) == (405, "method-not-allowed")
    assert answer.headers["Allow"] == "GET, POST, HEAD, OPTIONS"
    assert send(client, "PATCH", f"groups/{group.pk}", **as_(acme, "agent"))[0] == 405


def test_options_says_what_there_is(client: Client, acme: World) -> None:
    status, _, answer = send(client, "OPTIONS", "groups", **as_(acme, "agent"))
    assert (status, answer.headers["Allow"]) == (204, "GET, POST, HEAD, OPTIONS")


def test_a_large_body_is_refused_before_its_path_is_looked_at(client: Client, acme: World) -> None:
    large = b'{"name": "' + b"x" * 1024 * 1024 + b'"}'
    for path in ("groups", "nowhere"):
        status, body, _ = send(client, "POST", path, raw=large, **as_(acme, "agent"))
        assert (status, body["code"]) == (413, "body-too-large")
    assert names(acme) == []


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b'{"name": "x"', 400, "malformed-json"),
        (b'{"name": "x", "name": "y"}', 422, "invalid-body"),
        (b'{"name": "x\\u0000"}', 422, "invalid-body"),
        (b'{"name": NaN}', 422, "invalid-body"),
        (b"[]", 422, "invalid-body"),
        (b"null", 422, "invalid-body"),
        (b"", 422, "invalid-body"),
        (b'{"name": 7}', 422, "invalid-body"),
        (b'{"name": ""}', 422, "invalid-body"),
        (b'{"name": "x", "nme": 1}', 422, "invalid-body"),
    ],
)
def test_what_is_not_the_declared_body_is_refused(
    client: Client, acme: World, raw: bytes, status: int, code: str
) -> None:
    found, body, _ = send(client, "POST", "groups", raw=raw, **as_(acme, "agent"))
    assert (found, body["code"]) == (status, code)
    assert names(acme) == []


def test_every_fault_of_a_body_is_told_at_once(client: Client, acme: World) -> None:
    _, body, _ = send(
        client,
        "POST",
        "groups",
        {"cost": "1e3", "until": "yesterday", "a/b": 1},
        **as_(acme, "agent"),
    )
    assert {fault["pointer"] for fault in body["errors"]} == {"/name", "/cost", "/until", "/a~1b"}


def test_only_json_is_taken(client: Client, acme: World) -> None:
    form = {"content_type": "application/x-www-form-urlencoded"}
    status, body, _ = send(client, "POST", "groups", raw=b"name=x", **form, **as_(acme, "agent"))
    assert (status, body["code"]) == (415, "unsupported-media-type")
    assert (
        send(client, "POST", "groups", {"name": "x"}, content_type="", **as_(acme, "agent"))[0]
        == 201
    )


def test_malformed_json_is_told_before_who_may(client: Client, acme: World, group: Group) -> None:
    assert send(client, "POST", f"groups/{group.pk}", raw=b"{", **as_(acme, "agent"))[0] == 400


def test_who_may_is_told_before_the_shape(client: Client, acme: World, group: Group) -> None:
    for method, path, who, code in (
        ("POST", f"groups/{group.pk}", "agent", "people-only"),
        ("GET", "agents", "bob", "agents-only"),
        ("DELETE", f"groups/{group.pk}", "bob", "forbidden"),
        ("POST", "groups", "vera", "forbidden"),
        ("POST", f"groups/{group.pk}", "vera", "forbidden"),
    ):
        status, body, _ = send(client, method, path, {"nme": 1}, **as_(acme, who))
        assert (status, body["code"]) == (403, code), (method, path, who)
    assert names(acme) == ["finance"]


def test_a_viewer_may_post_what_only_looks(client: Client, acme: World) -> None:
    assert send(client, "POST", "looking", **as_(acme, "vera"))[1] == {"tenant": str(acme.id)}


def test_an_upper_case_id_names_the_same_thing(client: Client, acme: World, group: Group) -> None:
    path = f"groups/{str(group.pk).upper()}"
    assert send(client, "GET", path, **as_(acme, "bob"))[1] == {"name": "finance"}


def test_head_is_get_without_a_body(client: Client, acme: World) -> None:
    assert send(client, "HEAD", "groups", **as_(acme, "bob"))[0] == 200


@pytest.mark.parametrize(
    ("tag", "status"),
    [
        ('"7"', 200),
        ('"6", "7"', 200),
        ("*", 200),
        ('"6"', 412),
        ('W/"7"', 412),
        ("7", 412),
        ("", 412),
    ],
)
def test_a_change_is_made_only_to_the_version_its_caller_saw(
    client: Client, acme: World, group: Group, tag: str, status: int
) -> None:
    found, body, _ = send(
        client, "POST", f"groups/{group.pk}", {"name": "new"}, If_Match=tag, **as_(acme, "bob")
    )
    assert found == status
    assert names(acme) == ["new" if status == 200 else "finance"]
    if status == 412:
        assert body["code"] == "version-mismatch"


def test_the_tenant_is_left_after_every_request(client: Client, acme: World) -> None:
    client.raise_request_exception = False
    for method, path in (
        ("GET", "groups"),
        ("GET", "nowhere"),
        ("POST", "groups"),
        ("GET", "failing"),
    ):
        send(client, method, path, **as_(acme, "agent"))
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT current_setting('{VARIABLE}', true)")
            assert not cursor.fetchone()[0], (method, path)


def test_an_unforeseen_failure_is_a_problem_without_internals(client: Client, acme: World) -> None:
    client.raise_request_exception = False
    status, body, answer = send(client, "GET", "failing", **as_(acme, "agent"))
    assert (status, body["code"]) == (500, "internal-error")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert uuid.UUID(body["incident"])
    assert "hunter2" not in answer.content.decode()


def test_a_page_begins_where_the_last_one_ended(client: Client, acme: World) -> None:
    with tenant_scope(acme.id):
        for number in range(120):
            Group.objects.create(name=f"g{number:03}")
    seen: list[str] = []
    path = "groups?x=1"
    while path:
        _, body, _ = send(client, "GET", path, **as_(acme, "bob"))
        assert (body["previous"] is None) == (not seen)
        seen += [one["name"] for one in body["results"]]
        last, path = body, body["next"] and body["next"].partition("/api/v1/")[2]
        assert path is None or "x=1" in path
    assert seen == [f"g{number:03}" for number in range(120)]
    assert len(last["results"]) == 20
    _, back, _ = send(client, "GET", last["previous"].partition("/api/v1/")[2], **as_(acme, "bob"))
    assert [one["name"] for one in back["results"]] == seen[50:100]
    _, first, _ = send(client, "GET", back["previous"].partition("/api/v1/")[2], **as_(acme, "bob"))
    assert [one["name"] for one in first["results"]] == seen[:50]
    assert first["previous"] is None


@pytest.mark.parametrize("cursor", ["", "x", "!!", "bnVsbA", "bjE", "cDE"])
def test_a_foreign_cursor_is_refused(client: Client, acme: World, cursor: str) -> None:
    status, body, _ = send(client, "GET", f"groups?cursor={cursor}", **as_(acme, "bob"))
    assert (status, body["code"]) == (422, "invalid-query")


@pytest.mark.parametrize(
    ("query", "waits"),
    [
        ("", False),
        ("?wait=0", False),
        ("?wait=30", True),
        ("?wait=0.5", True),
        ("?wait=30&after_version=7", True),
        ("?wait=30&after_version=6", False),
        ("?after_version=7", False),
    ],
)
def test_a_wait_is_for_a_change_past_the_known_version(
    client: Client, acme: World, group: Group, query: str, waits: bool
) -> None:
    status, _, answer = send(client, "GET", f"groups/{group.pk}{query}", **as_(acme, "bob"))
    assert status == 200
    assert answer.headers.get("X-Abeyance-Wait") == (f"run:{group.pk}" if waits else None)
    assert answer.headers.get("X-Abeyance-Version") == ("7" if waits else None)


def test_asked_again_by_the_front_a_wait_ends_with_a_newer_version(
    client: Client, acme: World, group: Group
) -> None:
    for seen, waits in (("6", False), ("7", True)):
        *_, answer = send(
            client,
            "GET",
            f"groups/{group.pk}?wait=9",
            X_Abeyance_Seen=seen,
            **as_(acme, "bob"),
        )
        assert ("X-Abeyance-Wait" in answer.headers) == waits


@pytest.mark.parametrize(
    "query", ["wait=61", "wait=-1", "wait=nan", "wait=x", "wait=inf", "wait=1&after_version=x"]
)
def test_a_wait_out_of_bounds_is_refused(
    client: Client, acme: World, group: Group, query: str
) -> None:
    status, body, _ = send(client, "GET", f"groups/{group.pk}?{query}", **as_(acme, "bob"))
    assert (status, body["code"]) == (422, "invalid-query")


def test_the_web_session_is_its_persons_in_the_tenant_they_chose(
    acme: World, umbrella: World
) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(acme.users["bob"], backend="django.contrib.auth.backends.ModelBackend")
    assert send(browser, "GET", "groups")[0] == 401  # no tenant chosen
    session = browser.session
    session["tenant"] = str(umbrella.id)
    session.save()
    assert send(browser, "GET", "groups")[0] == 401  # not a member there
    session["tenant"] = str(acme.id)
    session.save()
    assert send(browser, "GET", "groups")[0] == 200
    status, body, _ = send(browser, "POST", "groups", {"name": "x"})
    assert (status, body["code"]) == (403, "forbidden")
    assert "CSRF" in body["detail"]
    assert names(acme) == []
    browser.cookies["csrftoken"] = token = "a" * 32
    assert send(browser, "POST", "groups", {"name": "x"}, X_CSRFToken=token)[0] == 201
    with tenant_scope(acme.id):
        Membership.objects.filter(user=acme.users["bob"]).update(role=Role.VIEWER)
    assert send(browser, "POST", "groups", {"name": "y"}, X_CSRFToken=token)[0] == 403
    with tenant_scope(acme.id):
        Membership.objects.filter(user=acme.users["bob"]).update(active=False)
    assert send(browser, "GET", "groups")[0] == 401


def test_what_is_published_is_what_is_declared(client: Client) -> None:
    from tenants.api import openapi

    openapi.document.cache_clear()
    published = openapi.document()
    openapi.document.cache_clear()
    assert published["openapi"] == "3.1.0"
    rename = published["paths"]["/api/v1/groups/{id}"]["post"]
    assert rename["description"] == "People only."
    assert {one["name"] for one in rename["parameters"]} == {"id", "Idempotency-Key", "If-Match"}
    schema = rename["requestBody"]["content"]["application/json"]["schema"]
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["name"]
    assert "/api/v1/" not in published["paths"]


def test_the_docs_page_needs_nothing_from_elsewhere(client: Client) -> None:
    answer = client.get("/api/v1/docs/")
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "//" not in page.replace("<!doctype html>", "")
    assert "<script>" not in page
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
