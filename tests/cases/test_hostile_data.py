"""Cases of the kind hostile-data: what comes in is refused whole, or kept whole."""

from __future__ import annotations

import json

import pytest

from tests.cases.world import BY_AGENT, World, auto, browser_of

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])


def proposal(arguments: str, tool: str = "t") -> bytes:
    return f'{{"tool":"{tool}","arguments":{arguments}}}'.encode()


def test_a_nul_is_refused_where_it_stands(world: World) -> None:
    """rf-data-01 (LuthienResearch/luthien-proxy#816; getsentry/junior#897)."""
    world.given(world.tool("t"), rules=[auto("t")])
    path = f"/runs/{world.run()['id']}/steps"
    for arguments, pointer in (
        ('{"note":"a\\u0000b"}', "/arguments/note"),
        ('{"k\\u0000":1}', "/arguments"),
        ('{"a":[{"b":"\\ud800"}]}', "/arguments/a/0/b"),
    ):
        reply = world.refused("ops", "POST", path, raw=proposal(arguments), status=422)
        assert (reply.code, reply.pointers) == ("invalid-body", [pointer])


SAID: tuple[tuple[bytes, object], ...] = (
    (b'"tool printed a\\u0000b"', "tool printed a\N{REPLACEMENT CHARACTER}b"),
    (b'{"k\\u0000":"\\ud800"}', {"k\N{REPLACEMENT CHARACTER}": "\N{REPLACEMENT CHARACTER}"}),
    (b'{"id":738529527931269425}', {"id": "738529527931269425"}),
    (b"[1e400, -9007199254740993.0]", ["1e400", "-9007199254740993.0"]),
)


def test_a_receipt_is_not_lost_for_what_the_far_end_says(world: World) -> None:
    """rf-data-01, its second expectation: the effect has happened, whatever its answer holds.

    A character that cannot be kept is replaced where it stands, and the receipt says so; a number
    that is too long becomes its own text, and nothing of it is lost.
    """
    world.given(world.tool("t", effect="irreversible", reconcile=None), rules=[auto("t")])
    for said, kept in SAID:
        world.outside.says("t", b'{"result":' + said + b',"external_id":"X-1"}')
        step = world.propose(world.run(), "t")
        world.work()
        step = world.fresh(step)
        assert (step["status"], step["result"], step["external_id"]) == ("succeeded", kept, "X-1")
        said_so = "replaced" in (step["receipts"][0]["error"] or "")
        assert said_so == ("\N{REPLACEMENT CHARACTER}" in str(kept))


def test_what_only_looks_like_a_nul_is_left_alone(world: World) -> None:
    """rf-data-01, its last expectation."""
    world.given(world.tool("t"), rules=[auto("t")])
    text = "a \\u0000 that is six characters"
    world.outside.says("t", json.dumps({"result": text}).encode())
    step = world.propose(world.run(), "t", {"note": text})
    world.work()
    step = world.fresh(step)
    assert (step["status"], step["arguments"], step["result"]) == (
        "succeeded",
        {"note": text},
        text,
    )
    assert step["receipts"][0]["error"] is None
    assert world.outside.calls("t") == [(step["id"], {"note": text})]


def test_what_is_no_number_is_refused(world: World) -> None:
    """rf-data-03 (encode/django-rest-framework#5235)."""
    world.given(world.tool("t"), rules=[auto("t")])
    path = f"/runs/{world.run()['id']}/steps"
    for number in ("NaN", "-Infinity", "1e400"):
        raw = proposal(f'{{"x":{number}}}')
        reply = world.refused("ops", "POST", path, raw=raw, status=422)
        assert (reply.code, reply.pointers) == ("invalid-body", ["/arguments/x"])
        assert reply.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("member", ["risk_score", "confidence"])
def test_a_score_that_is_none_is_refused_and_compares_as_nothing(world: World, member: str) -> None:
    """rf-data-04 (encode/django-rest-framework#9998)."""
    rules = [
        auto("t"),
        {"name": "risky", "trigger": "risk", "at_least": 0.5, "then": "approve"},
        {"name": "unsure", "trigger": "confidence", "below": 0.5, "then": "approve"},
    ]
    world.given(world.tool("t"), rules=rules)
    run = world.run()
    for score in ("nan", "1e400", -0.1, 1.1, True, "0.1"):
        body = {"tool": "t", "arguments": {}, member: score}
        for path in (f"/runs/{run['id']}/steps", "/policies/check"):
            reply = world.refused("ops", "POST", path, body, status=422)
            assert reply.pointers == [f"/{member}"]
    assert [one["id"] for one in world.get("ops", "/runs")["results"]] == [run["id"]]
    scores = {"risk_score": 0.5, "confidence": 0.49}
    assert world.propose(run, "t", {}, **{member: scores[member]})["status"] == "waiting"


def test_a_long_number_is_text_or_nothing(world: World) -> None:
    """rf-data-05 (oceanbase/powercontext#91; com-lihaoyi/upickle#522).

    The browser rounds an id, and the approver confirms another account.
    """
    world.given(world.tool("account.close", executor=BY_AGENT))
    run = world.run()
    path = f"/runs/{run['id']}/steps"
    raw = proposal('{"id":738529527931269425}', "account.close")
    reply = world.refused("ops", "POST", path, raw=raw, status=422)
    assert reply.pointers == ["/arguments/id"]
    assert "string" in reply.body["errors"][0]["detail"]
    step = world.propose(run, "account.close", {"id": "738529527931269425"})
    gate = world.gate(step)
    assert gate["what"]["arguments"] == {"id": "738529527931269425"}
    page = browser_of(world, "appr1").get(f"/decisions/{gate['id']}").content.decode()
    assert "738529527931269425" in page
    path = f"/gates/{gate['id']}/decisions"
    other = {**world.decision(gate), "digest": f"sha256:{'0' * 64}"}
    assert world.refused("appr1", "POST", path, other, status=409).code == "digest-mismatch"
    world.decide(step)
    claimed = world.claim(step)
    assert claimed["arguments"] == {"id": "738529527931269425"}
    assert claimed["digest"] == step["digest"]


DEPTHS = (20_000, 900, 63, 62, 20)


def test_the_depth_is_bounded_by_ourselves(world: World) -> None:
    """rf-data-07 (flop-labs/technocore-chat#130; influxdata/influxdb3_plugins#169)."""
    world.given(world.tool("t"), rules=[auto("t")])
    path = f"/runs/{world.run()['id']}/steps"
    nested = {deep: proposal(f'{{"args":{"[" * deep}{"]" * deep}}}') for deep in DEPTHS}
    for deep in (20_000, 900, 63):
        reply = world.refused("ops", "POST", path, raw=nested[deep], status=422)
        assert "64" in reply.body["errors"][0]["detail"]
    for deep in (62, 20):
        reply = world.send("ops", "POST", path, raw=nested[deep])
        assert reply.status == 201, reply
    world.work()
    assert world.outside.times == {"t": 2}
    url = f"/runs/{reply.body['run']}"
    assert browser_of(world, "appr1").get(url).status_code == 200


API = ("/runs", "/gates", "/interrupts", "/tools")
LONG = "9" * 5000
QUERIES = (
    "q=%00", "run=%00", f"run={LONG}", "page=-1", "cursor=%00", f"cursor={LONG}", "status=%00",
    "workflow=%00", f"workflow={LONG}", "agent=%00", "tool=%00", "suspension=%00", "mine=%00",
    "wait=nan", f"wait={LONG}", "after=%00", f"after={LONG}", "after_version=1e400", "%00=%00",
    "workflow=%ED%A0%80", "agent=%FF",
)  # fmt: skip


def test_no_query_is_a_fault_of_ours(world: World) -> None:
    """rf-data-09 (mozilla/normandy#1526; AppraiseDev/Appraise#24)."""
    world.given(world.tool("t"))
    run = world.run()
    world.propose(run, "t")
    for path in (*API, *(f"/runs/{run['id']}{more}" for more in ("", "/journal", "/steps"))):
        for query in QUERIES:
            reply = world.send("appr1", "GET", f"{path}?{query}")
            assert reply.status in (200, 404, 422), (path, query[:40])
            assert reply.status == 200 or reply.code in ("invalid-query", "not-found")


PAGES = ("/inbox", "/decided", "/runs", "/notices")
PAGE_QUERIES = (
    "q=%00", f"q={LONG}", "agent=%00", "tool=%00", "status=%00", "workflow=%00", "agent=%ED%A0%80",
    "after=%00", "after=AAAA", f"after={LONG}", "before=%00", f"before={LONG}", "state=%00",
    "risk=%00", "show=%00", "next=%00", "%00=%00",
)  # fmt: skip


def test_no_query_of_a_page_is_a_fault_of_ours(world: World) -> None:
    """rf-data-09, on the pages that people search."""
    world.given(world.tool("t"))
    run = world.run()
    step = world.propose(run, "t")
    browser = browser_of(world, "appr1")
    for path in (*PAGES, f"/runs/{run['id']}", f"/decisions/{step['gate']}"):
        for query in PAGE_QUERIES:
            answer = browser.get(f"{path}?{query}")
            assert answer.status_code in (200, 302, 400, 404), (path, query[:40])


ADMIN = (
    "/admin/interrupts/run/", "/admin/interrupts/step/", "/admin/interrupts/interrupt/",
    "/admin/interrupts/tool/", "/admin/approvals/gate/", "/admin/tenants/agent/",
    "/admin/tenants/membership/",
)  # fmt: skip
ADMIN_QUERIES = (
    "q=%00", f"q={LONG}", "run__id__exact=%00", f"run__id__exact={LONG}", "p=-1", f"p={LONG}",
    "agent__id__exact=%00", "o=%00", "e=1", "_facets=%00", "id__exact=%00", "q=%ED%A0%80",
    "status__exact=%00", "created_at__gte=%00", f"created_at__gte={LONG}",
)  # fmt: skip


def test_no_query_of_the_admin_is_a_fault_of_ours(world: World) -> None:
    """rf-data-09, where the administrator searches."""
    world.given(world.tool("t"))
    world.propose(world.run(), "t")
    browser = browser_of(world, "adm")
    for path in ADMIN:
        assert browser.get(path).status_code == 200, path
        for query in ADMIN_QUERIES:
            answer = browser.get(f"{path}?{query}")
            assert answer.status_code in (200, 302, 400, 403, 404), (path, query[:40])
