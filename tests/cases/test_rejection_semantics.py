"""Cases of the kind rejection-semantics: a no is a no, for as long as its run."""

from __future__ import annotations

import pytest

from tests.cases.test_double_decision import told
from tests.cases.world import BY_AGENT, World

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])


def test_of_one_turn_only_what_was_approved_is_done(world: World) -> None:
    """rf-rej-01 (langchain-ai/langchain#37092; langchain-ai/langchain#39247)."""
    world.given(
        world.tool("db.drop"), world.tool("mail.send"), world.tool("own", executor=BY_AGENT)
    )
    run = world.run()
    calls = [
        {"tool": "db.drop", "arguments": {"table": "t"}},
        {"tool": "own", "arguments": {}},
        {"tool": "mail.send", "arguments": {"to": "x@example.org"}},
    ]
    steps = world.post("ops", f"/runs/{run['id']}/steps", {"steps": calls})["steps"]
    dropped, own, mailed = steps
    world.decide(dropped, "reject", reason="never that table")
    world.decide(own, "request_changes", reason="otherwise")
    world.decide(mailed)
    world.catch_up()
    assert world.outside.times == {"mail.send": 1}
    for settled in (dropped, own):
        path = f"/steps/{settled['id']}/claim"
        assert world.refused("ops", "POST", path, {}, status=409).code in (
            "already-claimed",
            "not-authorized",
        )
    listed = world.get("ops", f"/runs/{run['id']}/steps")["results"]
    assert [(one["id"], one["status"], one["reason"]) for one in listed] == [
        (dropped["id"], "rejected", "never that table"),
        (own["id"], "revised", "otherwise"),
        (mailed["id"], "succeeded", None),
    ]
    assert [one["authorization"] is None for one in listed] == [True, True, False]


def test_what_was_refused_is_not_asked_again(world: World) -> None:
    """rf-rej-02 (curie-eng/curie#2885; langchain-ai/deepagents#2946).

    Two minutes after the no the agent asks the same, in a loop.
    """
    world.given(world.tool("filing.submit"))
    run = world.run()
    call = {"q": "FY26Q2", "pages": [1, 2]}
    step = world.propose(run, "filing.submit", call)
    world.decide(step, "reject", reason="wrong quarter")
    before = told("notice.asked")
    for number in range(3):
        world.advance(120)
        again = world.propose(run, "filing.submit", {"pages": [1, 2], "q": "FY26Q2"})
        assert (again["status"], again["reason"]) == ("rejected", "wrong quarter")
        assert (again["gate"], again["interrupt"], again["id"] != step["id"]) == (None, None, True)
        keyed = world.propose(run, "filing.submit", call, key=f"k{number}", reasoning="please")
        assert keyed["status"] == "rejected"
    assert world.inbox("appr1") == world.inbox("appr2") == []
    assert told("notice.asked") == before
    assert world.fresh(run)["status"] == "running"
    # Another call, and the same in another run that a person lets begin, are asked about.
    other = world.propose(run, "filing.submit", {**call, "q": "FY26Q3"})
    anew = world.propose(world.run(), "filing.submit", call)
    assert (other["status"], anew["status"]) == ("waiting", "waiting")
    assert world.decide(anew)["state"] == "approved"
    world.catch_up()
    assert world.outside.calls("filing.submit") == [(anew["id"], call)]
