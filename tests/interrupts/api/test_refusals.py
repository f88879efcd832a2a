"""Every path: who it refuses, in which order, and that another tenant's rows are not there."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.urls import URLPattern, get_resolver

from tenants.api.view import Nowhere
from tenants.models import JournalEntry
from tenants.scope import tenant_scope
from tests.interrupts.api.conftest import NO_SUCH, Api
from tests.tenants.conftest import World

pytestmark = pytest.mark.django_db

# A body that each POST would take, were the object there and the caller the right one.
BODIES: dict[str, Any] = {
    "runs/{id}/claim": {},
    "runs/{id}/usage": {"tokens": 1},
    "runs/{id}/acknowledge": {"guidance": []},
    "runs/{id}/complete": {"output": 1},
    "runs/{id}/fail": {"error": 1},
    "runs/{id}/cancel": {},
    "runs/{id}/checkpoints": {"agent_state": {"format": "f", "version": "1", "data": 1}},
    "runs/{id}/interrupts": {"reason": "operator_stop"},
    "runs/{id}/steps": {"tool": "crm.get", "arguments": {"customer": "c"}},
    "steps/{id}/claim": {},
    "steps/{id}/reconciliation": {"outcome": "performed", "evidence": "seen"},
    "attempts/{id}/heartbeat": {"fence": 1},
    "attempts/{id}/receipt": {"fence": 1, "outcome": "succeeded"},
    "interrupts/{id}/response": {"checkpoint": NO_SUCH, "resolution": "resume"},
}
# Where an agent is refused as an agent, and a person as a person.
FOR_PEOPLE = {"runs/{id}/cancel", "interrupts/{id}/response", "freezes/{id}"}
FOR_BOTH = {"runs/{id}/interrupts"}


def routes() -> list[tuple[str, Any]]:
    """Return every path of the engine's API with its view, `{id}` standing for an id."""
    found = []
    for pattern in _patterns(get_resolver().url_patterns, ""):
        path, view = pattern
        if path.startswith("api/v1/") and view.__module__.startswith("interrupts."):
            found.append((re.sub(r"<id:pk>", "{id}", path.removeprefix("api/v1/")), view))
    assert len(found) >= 28
    return found


def _patterns(patterns: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for one in patterns:
        path = prefix + str(one.pattern)
        if isinstance(one, URLPattern):
            view = getattr(one.callback, "cls", None)
            if view is not None and view is not Nowhere:
                yield path, view
        else:
            yield from _patterns(one.url_patterns, path)


OF_OBJECTS = [(path, view) for path, view in routes() if "{id}" in path]


@pytest.fixture
def ids(api: Api) -> dict[str, str]:
    """One of everything of acme, by the first part of its path."""
    run = api.run(agent_state={"format": "f", "version": "1", "data": 1})
    step = api.step(run, "local.shell", {"command": "ls"})
    grant = api.post("agent", f"steps/{step['id']}/claim", status=200)
    held = api.post("olga", f"runs/{run['id']}/interrupts", {"reason": "operator_stop"})
    frozen = api.post("olga", "freezes", {"scope": "tool", "name": "crm.get", "note": ""})
    return {
        "runs": run["id"],
        "steps": step["id"],
        "attempts": grant["attempt"],
        "interrupts": held["id"],
        "checkpoints": run["checkpoint"],
        "freezes": frozen["id"],
    }


def rows(world: World) -> dict[str, list[Any]]:
    """Return every row of the tenant, of every table that has one."""
    with tenant_scope(world.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.columns"
            " WHERE column_name = 'tenant_id' AND table_schema = 'public' ORDER BY 1"
        )
        tables = [name for (name,) in cursor.fetchall()]
        found = {}
        for table in tables:
            cursor.execute(f"SELECT t::text FROM {table} t ORDER BY 1")
            found[table] = cursor.fetchall()
    return found


@pytest.mark.parametrize(("path", "view"), OF_OBJECTS, ids=[path for path, _ in OF_OBJECTS])
def test_nothing_of_a_tenant_is_there_for_another(
    api: Api, umbrella: World, ids: dict[str, str], path: str, view: Any
) -> None:
    stranger = Api(umbrella)
    theirs, ours = rows(api.world), rows(umbrella)
    named = path.replace("{id}", ids[path.partition("/")[0]])
    for who in ("agent", "charlie"):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            for raw in (None, b"{", b'{"colour": 1}'):
                reply = stranger(who, method, named, BODIES.get(path, {}), raw=raw)
                assert (reply.status, reply.code) == (404, "not-found"), (who, method, raw)
    for method in view.operations:
        reply = stranger("charlie", method, named, BODIES.get(path), Idempotency_Key="k")
        assert reply.status == 404
    assert rows(api.world) == theirs
    assert rows(umbrella) == ours


def test_lists_and_names_hold_nothing_of_another_tenant(
    api: Api, umbrella: World, ids: dict[str, str]
) -> None:
    stranger = Api(umbrella)
    for path in ("runs", "interrupts", "freezes", f"interrupts?run={ids['runs']}"):
        assert stranger.get("charlie", path)["results"] == []
        assert api.get("alice", path)["results"] != []
    assert stranger("charlie", "GET", "events").text == ""
    mine = stranger.get("charlie", "tools/crm.get")
    assert mine["executor"]["url"] == "https://umbrella.test/crm.get"


def test_a_body_that_names_another_tenants_row_is_refused_with_its_place(
    api: Api, umbrella: World, ids: dict[str, str]
) -> None:
    stranger = Api(umbrella)
    run = stranger.run()
    before = rows(umbrella), rows(api.world)
    kind = {"format": "f", "version": "1"}
    for path, body, pointer in (
        ("runs", {"workflow": "w", "goal": "g", "parent": ids["runs"]}, "/parent"),
        ("runs", {"workflow": "w", "goal": "g", "requested_by": "alice"}, "/requested_by"),
        (
            f"runs/{run['id']}/checkpoints",
            {"agent_state": {**kind, "base": ids["checkpoints"], "append": {}}},
            "/agent_state/base",
        ),
        (
            f"runs/{run['id']}/steps",
            {"tool": "crm.get", "arguments": {"customer": "c"}, "group": ids["steps"]},
            "/group",
        ),
    ):
        reply = stranger("agent", "POST", path, body)
        assert (reply.status, reply.pointers) == (422, [pointer])
    assert (rows(umbrella), rows(api.world)) == before


@pytest.mark.parametrize("path", [path for path, _ in routes()])
def test_nobody_gets_in_without_a_credential(api: Api, ids: dict[str, str], path: str) -> None:
    before = rows(api.world)
    named = path.replace("{id}", ids.get(path.partition("/")[0], "")).replace(
        "<str:name>", "crm.get"
    )
    for method in ("GET", "POST", "DELETE", "PUT"):
        reply = api(None, method, named, raw=b"{")
        assert (reply.status, reply.code) == (401, "unauthenticated")
    assert rows(api.world) == before


@pytest.mark.parametrize("path", sorted(BODIES))
def test_refusals_come_in_the_order_that_is_promised(
    api: Api, ids: dict[str, str], path: str
) -> None:
    kind = path.partition("/")[0]
    named, nowhere = path.replace("{id}", ids[kind]), path.replace("{id}", NO_SUCH)
    before = rows(api.world)
    right, wrong = ("olga", "agent") if path in FOR_PEOPLE else ("agent", "olga")
    for_kind = "people-only" if path in FOR_PEOPLE else "agents-only"
    mebibytes = 17 if path == "runs/{id}/checkpoints" else 1
    large = b'{"x": "' + b"x" * (mebibytes * 1024 * 1024) + b'"}'

    def code(who: str | None, where: str, raw: bytes, method: str = "POST") -> tuple[int, Any]:
        reply = api(who, method, where, raw=raw)
        return reply.status, reply.code

    assert code(None, named, large) == (401, "unauthenticated")
    assert code(right, nowhere, large) == (413, "body-too-large")
    assert code(right, nowhere, b"{") == (404, "not-found")
    assert code(wrong, nowhere, b"{") == (404, "not-found")
    assert code(right, nowhere, b"{", "PUT") == (404, "not-found")
    assert code(right, path.replace("{id}", "x"), b"{") == (404, "not-found")
    assert code(right, named, b"{", "PUT") == (405, "method-not-allowed")
    assert code(wrong, named, b"{") == (400, "malformed-json")
    if path not in FOR_BOTH:
        assert code(wrong, named, b'{"colour": 1}') == (403, for_kind)
    assert code(right, named, b'{"colour": 1}') == (422, "invalid-body")
    if right == "agent":
        assert code("other", named, b'{"colour": 1}') == (422, "invalid-body")
    if path not in FOR_PEOPLE | FOR_BOTH:
        reply = api("other", "POST", named, BODIES[path])
        assert (reply.status, reply.code) == (403, "not-your-run")
    assert rows(api.world) == before


def test_a_persons_role_is_looked_at_before_the_shape_of_the_body(
    api: Api, ids: dict[str, str]
) -> None:
    before = rows(api.world)
    for who in ("carol", "vera"):
        for path in (f"runs/{ids['runs']}/cancel", "freezes"):
            reply = api(who, "POST", path, {"colour": 1})
            assert (reply.status, reply.code) == (403, "forbidden")
    assert rows(api.world) == before


def test_a_viewer_changes_nothing(api: Api, ids: dict[str, str]) -> None:
    before = rows(api.world)
    for path in sorted(BODIES):
        named = path.replace("{id}", ids[path.partition("/")[0]])
        assert api("vera", "POST", named, BODIES[path]).status == 403, path
    assert api("vera", "DELETE", f"freezes/{ids['freezes']}").status == 403
    assert rows(api.world) == before


def test_a_look_changes_nothing(api: Api, ids: dict[str, str]) -> None:
    before = rows(api.world)
    for path, view in routes():
        if "GET" in view.operations:
            named = path.replace("{id}", ids.get(path.partition("/")[0], ""))
            for who in ("agent", "alice", "vera"):
                assert api(who, "GET", named.replace("<str:name>", "crm.get")).status in {200, 403}
                assert api(who, "HEAD", named.replace("<str:name>", "crm.get")).status in {200, 403}
    assert rows(api.world) == before


def test_the_same_key_answers_the_same_before_session_and_state_are_looked_at(api: Api) -> None:
    run = api.run()
    first = api.post("agent", f"runs/{run['id']}/claim", status=200)
    body = {"tool": "note.write", "arguments": {"text": "x"}, "session": first["session"]}
    path = f"runs/{run['id']}/steps"
    made = api("agent", "POST", path, body, Idempotency_Key="k", If_Match='"2"')
    assert made.status == 201
    api.post("agent", f"runs/{run['id']}/claim", status=200)
    api.post("olga", f"runs/{run['id']}/interrupts", {"reason": "operator_stop"})
    with tenant_scope(api.world.id):
        entries = JournalEntry.objects.filter(stream=run["id"]).count()
    again = api("agent", "POST", path, body, Idempotency_Key="k", If_Match='"2"')
    assert (again.status, again.text) == (201, made.text)
    assert again.headers["Idempotent-Replayed"] == "true"
    other = {**body, "arguments": {"text": "y"}}
    reply = api("agent", "POST", path, other, Idempotency_Key="k")
    assert (reply.status, reply.code) == (422, "idempotency-key-reused")
    assert api("other", "POST", path, body, Idempotency_Key="k").code == "not-your-run"
    with tenant_scope(api.world.id):
        assert JournalEntry.objects.filter(stream=run["id"]).count() == entries
