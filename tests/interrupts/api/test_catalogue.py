"""Tools and the stop switch over the API."""

from typing import Any

import pytest

from interrupts.models import Freeze, Tool
from tenants.models import JournalEntry
from tenants.scope import tenant_scope
from tests.interrupts.api.conftest import NO_SUCH, TOOLS, Api, make_tool

pytestmark = pytest.mark.django_db


def frozen(api: Api) -> tuple[int, int]:
    with tenant_scope(api.world.id):
        entries = JournalEntry.objects.filter(stream=api.world.id).count()
        return Freeze.objects.filter(lifted_at=None).count(), entries


def test_tools_say_how_they_are_proposed(api: Api) -> None:
    listed = api.get("agent", "tools")["results"]
    assert [one["name"] for one in listed] == list(TOOLS)
    shown = api.get("agent", "tools/cards.charge")
    assert shown in listed
    assert (shown["version"], shown["effect"], shown["risk"]) == (1, "idempotent", "low")
    assert shown["arguments"] == TOOLS["cards.charge"]["arguments"]
    assert shown["sensitive"] == ["/card_number"]
    assert api("agent", "GET", "tools/no.such").status == 404


def test_a_tool_says_what_a_call_costs_and_what_it_needs_to_know(api: Api) -> None:
    needs = [{"name": "balance", "longest_age": 60}]
    make_tool(api.world, "dear.pay", {**TOOLS["crm.get"], "cost": "0.60", "context": needs})
    for who in ("agent", "vera"):
        told = api.get(who, "tools/dear.pay")
        assert (told["cost"], told["context"]) == ("0.60", needs)
    plain = api.get("agent", "tools/crm.get")
    assert (plain["cost"], plain["context"]) == (None, [])


def test_agents_are_not_told_where_a_tool_is_called(api: Api) -> None:
    assert api.get("vera", "tools/crm.get")["executor"]["url"] == "https://acme.test/crm.get"
    assert api.get("agent", "tools/crm.get")["executor"] == {"kind": "http", "timeout": 10}
    assert "acme.test" not in api("agent", "GET", "tools").text


def test_a_retired_tool_is_listed_no_more_and_still_told_of(api: Api) -> None:
    with tenant_scope(api.world.id):
        Tool.objects.filter(name="db.drop").update(retired_at="2026-01-01T00:00:00Z")
    names = [one["name"] for one in api.get("agent", "tools")["results"]]
    assert "db.drop" not in names
    assert api.get("agent", "tools/db.drop")["retired_at"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nobody_changes_a_tool_over_the_api(api: Api, method: str) -> None:
    before = api.get("alice", "tools")
    for who in ("agent", "alice"):
        for path in ("tools", "tools/crm.get"):
            assert api(who, method, path, {}).code == "method-not-allowed"
    assert api.get("alice", "tools") == before


@pytest.mark.parametrize(
    ("scope", "name"), [("tool", "crm.get"), ("agent", "agent"), ("tenant", None)]
)
def test_a_freeze_lists_what_is_in_flight_and_is_lifted_again(
    api: Api, scope: str, name: str | None
) -> None:
    step = api.step(api.run(), "local.shell", {"command": "ls"})
    attempt = api.post("agent", f"steps/{step['id']}/claim", status=200)["attempt"]
    body = {"scope": scope, "note": "look at this", **({"name": name} if name else {})}
    made = api.post("olga", "freezes", body)
    assert (made["scope"], made["name"], made["note"]) == (scope, name, "look at this")
    assert made["in_flight"] == ([] if scope == "tool" else [attempt])
    told = {key: value for key, value in made.items() if key != "in_flight"}
    assert api.get("vera", "freezes")["results"] == [told]
    assert frozen(api)[0] == 1
    for _ in range(2):
        lifted = api("olga", "DELETE", f"freezes/{made['id']}")
        assert (lifted.status, lifted.text) == (204, "")
    assert api.get("vera", "freezes")["results"] == []
    assert frozen(api) == (0, 2)


def test_a_frozen_step_is_proposed_and_not_claimed(api: Api) -> None:
    made = api.post("olga", "freezes", {"scope": "tool", "name": "local.shell", "note": ""})
    step = api.step(api.run(), "local.shell", {"command": "ls"})
    assert step["status"] == "ready"
    reply = api("agent", "POST", f"steps/{step['id']}/claim")
    assert (reply.status, reply.code) == (409, "not-authorized")
    assert api.get("agent", f"steps/{step['id']}")["attempts"] == 0
    api("olga", "DELETE", f"freezes/{made['id']}")
    api.post("agent", f"steps/{step['id']}/claim", status=200)


@pytest.mark.parametrize(
    ("who", "status", "code"),
    [("agent", 403, "people-only"), ("carol", 403, "forbidden"), ("vera", 403, "forbidden")],
)
def test_operators_and_admins_freeze_and_nobody_else(
    api: Api, who: str, status: int, code: str
) -> None:
    made = api.post("alice", "freezes", {"scope": "tenant", "note": ""})
    before = frozen(api)
    for reply in (
        api(who, "POST", "freezes", {"scope": "tenant", "note": "x"}),
        api(who, "DELETE", f"freezes/{made['id']}"),
    ):
        assert (reply.status, reply.code) == (status, code)
    assert frozen(api) == before


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"scope": "world", "note": ""}, "/scope"),
        ({"scope": "tenant"}, "/note"),
        ({"scope": "tenant", "name": "acme", "note": ""}, "/name"),
        ({"scope": "tool", "note": ""}, "/name"),
        ({"scope": "tool", "name": "no.such", "note": ""}, "/name"),
        ({"scope": "agent", "name": "crm.get", "note": ""}, "/name"),
    ],
)
def test_a_freeze_that_names_nothing_is_refused(
    api: Api, body: dict[str, Any], pointer: str
) -> None:
    reply = api("olga", "POST", "freezes", body)
    assert (reply.status, reply.code, reply.pointers) == (422, "invalid-body", [pointer])
    assert frozen(api) == (0, 0)


def test_what_a_freeze_would_stop_is_asked_by_people(api: Api) -> None:
    step = api.step(api.run(), "local.shell", {"command": "ls"})
    asked = "freezes/reach?scope=tool&name=local.shell"
    found = api.get("vera", asked)
    tool = {"tool": "local.shell", "in_flight": 0, "held": 1, "waiting": 0}
    assert found["tools"] == [tool]
    assert (found["scope"], found["name"], found["runs"], found["held"]) == (
        *("tool", "local.shell"),
        *(1, 1),
    )
    api.post("agent", f"steps/{step['id']}/claim", status=200)
    assert api.get("vera", "freezes/reach")["in_flight"] == 1
    assert frozen(api) == (0, 0)
    assert api("agent", "GET", asked).code == "people-only"


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("scope=world", "/scope"),
        ("scope=tool", "/name"),
        ("name=acme", "/name"),
        ("scope=agent&name=crm.get", "/name"),
    ],
)
def test_a_freeze_of_nothing_stops_nothing(api: Api, query: str, pointer: str) -> None:
    reply = api("olga", "GET", f"freezes/reach?{query}")
    assert (reply.status, reply.code, reply.pointers) == (422, "invalid-query", [pointer])


def test_the_same_freeze_under_one_key_is_one_freeze(api: Api) -> None:
    body = {"scope": "tenant", "note": "x"}
    first = api("olga", "POST", "freezes", body, Idempotency_Key="k")
    again = api("olga", "POST", "freezes", body, Idempotency_Key="k")
    assert (again.status, again.text) == (201, first.text)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert frozen(api)[0] == 1


def test_an_unknown_freeze_is_not_there(api: Api) -> None:
    for path in (f"freezes/{NO_SUCH}", "freezes/x"):
        assert api("olga", "DELETE", path).code == "not-found"


def test_tools_come_in_pages(api: Api) -> None:
    for number in range(50):
        make_tool(api.world, f"bulk.get{number}", TOOLS["crm.get"])
    first = api.get("agent", "tools")
    rest = api.get("agent", first["next"].partition("/api/v1/")[2])
    assert (len(first["results"]), len(rest["results"])) == (50, len(TOOLS))
