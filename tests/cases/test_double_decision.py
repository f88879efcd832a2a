"""Cases of the kind double-decision: two answers at once are one decision."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest

from tests.cases.world import BY_AGENT, Pair, Reply, World, as_superuser, browser_of

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
TIMES = 10  # tests/races does more of them
GRANT = {"role": "admin", "user": "u1"}


def told(kind: str) -> int:
    """How many e-mails of this kind were written."""
    with as_superuser() as looking:
        query = "SELECT count(*) FROM tenants_outboxmessage WHERE kind LIKE %s"
        (count,) = looking.execute(query, [f"{kind}%"]).fetchone() or (0,)
    return int(count)


def decide(world: World, who: str, gate: Any, verdict: str, key: str | None = None) -> Reply:
    body = world.decision(gate, verdict)
    return world.send(who, "POST", f"/gates/{gate['id']}/decisions", body, key=key)


def test_a_double_click_is_one_decision(world: World, pair: Pair) -> None:
    """rf-race-01 (coleam00/Archon#2113; fivexl/terraform-aws-sso-elevator#212).

    Each click comes on a connection of its own, as to another process; every second time the two
    carry the idempotency keys of two tabs.
    """
    world.given(world.tool("iam.grant", executor=BY_AGENT))
    seen: Counter[tuple[int, int]] = Counter()
    for number in range(TIMES):
        step = world.propose(world.run(), "iam.grant", GRANT)
        gate = world.gate(step)
        keys = (f"a{number}", f"b{number}") if number % 2 else (None, None)
        first, second = pair.at_once(
            *(partial(decide, world, "appr1", gate, "approve", key) for key in keys)
        )
        seen[tuple(sorted((first.status, second.status)))] += 1  # type: ignore[index]
        ids = {one["id"] for reply in (first, second) for one in reply.body["decisions"]}
        assert len(ids) == 1
        assert (first.body["state"], second.body["state"]) == ("approved", "approved")
    assert seen == {(200, 201): TIMES}
    kinds = Counter(kind for run in _runs(world) for kind in world.kinds(run))
    assert (kinds["gate.decided"], kinds["step.authorized"]) == (TIMES, TIMES)
    before = told("notice")
    browser = browser_of(world, "appr2")  # late, from a page that is still open
    late = browser.post(f"/decisions/{gate['id']}/approve", {"digest": gate["what"]["digest"]})
    assert (late.status_code, "Already decided by" in late.content.decode()) == (409, True)
    assert told("notice") == before
    world.claim(step)


def _runs(world: World) -> list[Any]:
    found, path = [], "/runs"
    while path:
        page = world.get("opr", path)
        found += page["results"]
        path = (page["next"] or "").partition("/api/v1")[2]
    return found


def test_of_a_yes_and_a_no_at_once_one_is_the_decision(world: World, pair: Pair) -> None:
    """rf-race-02 (Growth-Circle/cadis#1736; nathanwoulfe/Plumber#140)."""
    world.given(world.tool("iam.grant", executor=BY_AGENT))
    won: Counter[str] = Counter()
    for number in range(TIMES):
        step = world.propose(world.run(), "iam.grant", {**GRANT, "n": number})
        gate = world.gate(step)
        world.gate(step, "appr2")
        yes = partial(decide, world, "appr1", gate, "approve")
        no = partial(decide, world, "appr2", gate, "reject")
        replies = pair.at_once(yes, no) if number % 2 else pair.at_once(no, yes)[::-1]
        (winner,) = [reply for reply in replies if reply.status == 201]
        (loser,) = [reply for reply in replies if reply.status != 201]
        assert (loser.status, loser.code) == (409, "already-decided")
        # Whoever lost is told who decided what, and when.
        (decision,) = loser.body["gate"]["decisions"]
        assert decision == winner.body["decisions"][0]
        assert decision["by"] == ("appr1" if decision["verdict"] == "approve" else "appr2")
        won[decision["verdict"]] += 1
        seen = world.fresh(step)
        authorized = seen["authorization"] is not None
        assert authorized == (decision["verdict"] == "approve")
        assert seen["status"] == ("ready" if authorized else "rejected")
    assert won.total() == TIMES


def test_a_plan_that_is_approved_twice_is_done_once(world: World, pair: Pair) -> None:
    """rf-race-04 (hmislk/hmis#22104; apache/inlong#7892).

    Goods were ordered twice because two submits walked the same list. Here each line has its gate.
    """
    world.given(world.tool("po.line"))
    lines = [{"sku": sku, "qty": qty} for sku, qty in (("A", 10), ("B", 5), ("C", 1))]
    body = {"steps": [{"tool": "po.line", "arguments": line} for line in lines]}
    for _ in range(2):
        world.outside.performed.clear()
        run = world.run()
        steps = world.post("ops", f"/runs/{run['id']}/steps", body)["steps"]
        gates = [world.gate(step) for step in steps]
        pairs = [{"gate": gate["id"], "digest": gate["what"]["digest"]} for gate in gates]
        submit = partial(world.send, "appr1", "POST", "/gates/decisions", {"decisions": pairs})
        replies = [*pair.at_once(submit, submit), submit()]  # and once more: its answer was lost
        for reply in replies:
            assert [one["status"] for one in reply.body["results"]] == ["approved"] * 3
        world.catch_up()
        done = [arguments for _, arguments in world.outside.calls("po.line")]
        assert done == lines
        assert world.kinds(run).count("gate.decided") == 3
        assert [world.fresh(step)["attempts"] for step in steps] == [1, 1, 1]
