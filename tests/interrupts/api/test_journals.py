"""The journal over the API: in pages, and as a stream."""

import json
from typing import Any
from uuid import UUID

import pytest

from tenants.journal import SYSTEM, Entry, append_to_tenant
from tenants.models import JournalEntry
from tenants.scope import tenant_scope
from tests.interrupts.api.conftest import Api, Reply

pytestmark = pytest.mark.django_db


def long_run(api: Api, entries: int) -> Any:
    run = api.run()
    for _ in range(entries - 1):
        api.post("agent", f"runs/{run['id']}/usage", {"tokens": 1}, status=200)
    return run


def events(reply: Reply) -> list[tuple[int, str, Any]]:
    found = []
    for block in reply.text.removesuffix("\n\n").split("\n\n") if reply.text else []:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found


def test_an_entry_is_the_very_text_that_was_hashed_and_its_hash(api: Api) -> None:
    run = api.run()
    reply = api("vera", "GET", f"runs/{run['id']}/journal")
    (entry,) = reply.body["results"]
    assert (entry["seq"], entry["kind"]) == (1, "run.started")
    assert entry["actor"] == {"kind": "agent", "id": str(api.world.agent.pk)}
    assert entry["data"]["workflow"] == "refunds"
    with tenant_scope(api.world.id):
        stored = JournalEntry.objects.get(stream=run["id"])
    assert stored.text[:-1] in reply.text
    assert entry["hash"] == bytes(stored.hash).hex()
    assert json.loads(stored.text) == {key: entry[key] for key in entry if key != "hash"}


def test_a_journal_is_read_on_from_the_last_entry_known(api: Api) -> None:
    run = long_run(api, 53)
    path = f"runs/{run['id']}/journal"

    def page(query: str) -> tuple[list[int], Any, Any]:
        body = api.get("agent", query)
        return [one["seq"] for one in body["results"]], body["next"], body["previous"]

    seqs, following, before = page(path)
    assert (seqs, before) == (list(range(1, 51)), None)
    seqs, end, before = page(following.partition("/api/v1/")[2])
    assert (seqs, end) == ([51, 52, 53], None)
    assert page(before.partition("/api/v1/")[2])[0] == list(range(1, 51))
    assert page(f"{path}?after=52")[0] == [53]
    assert page(f"{path}?after=53")[0] == []
    for after in ("x", "-1", "1.5", "9" * 40):
        reply = api("agent", "GET", f"{path}?after={after}")
        assert (reply.status, reply.code) == (422, "invalid-query")


def test_a_stream_gives_entries_by_their_sequence_and_says_how_it_goes_on(api: Api) -> None:
    run = long_run(api, 3)
    path = f"runs/{run['id']}/events"
    reply = api("agent", "GET", path)
    assert reply.headers["Content-Type"].startswith("text/event-stream")
    listed = api.get("agent", f"runs/{run['id']}/journal")["results"]
    assert [data for _, _, data in events(reply)] == listed
    assert [(seq, kind) for seq, kind, _ in events(reply)] == [
        (one["seq"], one["kind"]) for one in listed
    ]
    assert reply.headers["X-Abeyance-Stream"] == f"run:{run['id']}"
    assert reply.headers["X-Abeyance-Version"] == "3"
    assert "X-Abeyance-Stream-End" not in reply.headers


def test_a_stream_goes_on_after_the_last_event_that_was_seen(api: Api) -> None:
    run = long_run(api, 3)
    path = f"runs/{run['id']}/events"
    assert [one[0] for one in events(api("agent", "GET", path, Last_Event_ID="2"))] == [3]
    assert [one[0] for one in events(api("agent", "GET", f"{path}?after=1"))] == [2, 3]
    nothing = api("agent", "GET", path, Last_Event_ID="3")
    assert (nothing.status, nothing.text) == (200, "")
    assert nothing.headers["Content-Type"].startswith("text/event-stream")
    assert nothing.headers["X-Abeyance-Version"] == "3"
    for last in ("x", "-1", "٣"):
        reply = api("agent", "GET", path, Last_Event_ID=last)
        assert (reply.status, reply.code) == (422, "invalid-header")


def test_a_stream_of_an_ended_run_ends(api: Api) -> None:
    run = api.run()
    api.post("agent", f"runs/{run['id']}/complete", {"output": 1}, status=200)
    path = f"runs/{run['id']}/events"
    told = api("agent", "GET", path)
    assert "X-Abeyance-Stream-End" in told.headers
    last = events(told)[-1][0]
    again = api("agent", "GET", path, Last_Event_ID=str(last))
    assert (again.status, again.text) == (204, "")
    assert "X-Abeyance-Stream" not in again.headers


def test_a_long_stream_comes_in_batches_and_ends_after_the_last(api: Api) -> None:
    run = long_run(api, 205)
    api.post("agent", f"runs/{run['id']}/complete", {"output": 1}, status=200)
    path = f"runs/{run['id']}/events"
    first = api("agent", "GET", path)
    assert [one[0] for one in events(first)] == list(range(1, 201))
    assert "X-Abeyance-Stream-End" not in first.headers
    rest = api("agent", "GET", path, Last_Event_ID=first.headers["X-Abeyance-Version"])
    assert events(rest)[0][0] == 201
    assert "X-Abeyance-Stream-End" in rest.headers


def test_the_tenants_journal_is_followed_by_people(api: Api) -> None:
    with tenant_scope(api.world.id):
        append_to_tenant(SYSTEM, Entry("policy.published", {"version": 1}))
    made = api.post("olga", "freezes", {"scope": "tenant", "note": "x"})
    reply = api("vera", "GET", "events")
    assert [(seq, kind) for seq, kind, _ in events(reply)] == [
        (1, "policy.published"),
        (2, "freeze.set"),
    ]
    assert events(reply)[1][2]["data"]["freeze"] == made["id"]
    assert reply.headers["X-Abeyance-Stream"] == f"tenant:{api.world.id}"
    assert reply.headers["X-Abeyance-Version"] == "2"
    assert [one[0] for one in events(api("vera", "GET", "events", Last_Event_ID="1"))] == [2]
    assert api("agent", "GET", "events").code == "people-only"


def test_what_a_journal_holds_stands_in_one_line_of_a_stream(api: Api) -> None:
    with tenant_scope(api.world.id):
        append_to_tenant(SYSTEM, Entry("note.made", {"text": "a\n\nid: 9\ndata: b\r\u2028"}))
    ((seq, kind, data),) = events(api("vera", "GET", "events"))
    assert (seq, kind) == (1, "note.made")
    assert data["data"]["text"] == "a\n\nid: 9\ndata: b\r\u2028"


def test_an_agent_is_not_told_which_person_acted(api: Api) -> None:
    run = api.run()
    api.post("olga", f"runs/{run['id']}/interrupts", {"reason": "operator_stop"})
    path = f"runs/{run['id']}/journal"
    of_people = api.get("vera", path)["results"]
    of_agents = api.get("agent", path)["results"]
    assert [one["hash"] for one in of_agents] == [one["hash"] for one in of_people]
    actors = [one["actor"] for one in of_agents]
    assert {"kind": "user", "id": None} in actors
    assert [UUID(one["id"]) for one in actors if one["kind"] == "agent"] == [api.world.agent.pk]
