"""Cases of the kind delegation-learning: what a person's rule may come from, and when it ends."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.cases.world import (
    Body,
    World,
    any_of,
    as_superuser,
    auto,
    by_hand,
    document,
    one_of,
    page_of,
)

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])

DAY = 86_400
OFFER = "Stop asking me about this?"
HOST, PAGE = one_of("host", "docs.example.org"), any_of("page")
DOCS = {"host": "docs.example.org", "page": "a"}


def read_and_decide(world: World, step: Any, verdict: str = "approve") -> Any:
    """Have appr1 open a gate, take the time to read it, and decide it."""
    gate = world.gate(step)
    world.advance(5)
    body = world.decision(gate, verdict)
    return world.post("appr1", f"/gates/{gate['id']}/decisions", body)


def practise(world: World, tool: str, *calls: Body) -> None:
    """Have appr1 approve each call as somebody who reads what they approve, three a day."""
    for number, arguments in enumerate(calls):
        if number % 3 == 0:
            world.advance(DAY)
        read_and_decide(world, world.asked(tool, arguments))
    learn(world)


def learn(world: World) -> None:
    """Have all that was decided be learned from."""
    world.advance(600)
    world.catch_up()


def fetching(world: World, **more: Any) -> Body:
    return {**world.read_tool("http.get", host="domain", page="id"), **more}


def test_nothing_is_learned_of_a_command_that_holds_two(world: World) -> None:
    """rf-deleg-01 (anomalyco/opencode#40152).

    One approval of a compound line stored a rule for every command in it.
    """
    both, plain = {"cmd": "git status && rm -rf build"}, {"cmd": "git status"}
    world.given(world.read_tool("shell.exec", cmd="enum"))
    gate = world.gate(world.asked("shell.exec", both))
    remember = {**world.decision(gate), "remember": "offer"}
    reply = world.refused("appr1", "POST", f"/gates/{gate['id']}/decisions", remember, status=422)
    assert reply.pointers == ["/remember"]
    practise(world, "shell.exec", *[both] * 12)
    assert world.rules_of("appr1") == []
    gate = world.gate(world.asked("shell.exec", both))
    assert gate["delegation_offer"] is None
    assert OFFER not in page_of(world, "appr1", f"/decisions/{gate['id']}")

    # What can be learned is one command; its whole reach stands beside the answer, and it is no
    # part of the answer: it begins where its person says so.
    practise(world, "shell.exec", *[plain] * 8)
    (rule,) = world.rules_of("appr1")
    named = {one["f"]: one.get("in") for one in rule["predicate"]["all"]}
    assert (rule["status"], named["cmd"]) == ("suggested", ["git status"])
    gate = world.gate(world.asked("shell.exec", plain))
    assert gate["delegation_offer"]["id"] == rule["id"]
    assert "git status" in gate["delegation_offer"]["sentence"]
    assert OFFER in page_of(world, "appr1", f"/decisions/{gate['id']}")
    assert world.rules_of("appr1") == [rule]
    world.begin(rule)
    for command in ("rm -rf /", "rm -rf build", both["cmd"], "git", "git push"):
        world.asked("shell.exec", {"cmd": command})
    world.unasked("shell.exec", plain, "delegation")


def test_what_is_learned_of_a_target_is_for_that_target(world: World) -> None:
    """rf-deleg-02 (anomalyco/opencode#37183; tontinton/maki#256).

    Who allowed one host for good had allowed all of them.
    """
    world.given(fetching(world))
    practise(world, "http.get", *({**DOCS, "page": f"p-{number}"} for number in range(8)))
    gate = world.gate(world.asked("http.get", DOCS))
    (rule,) = world.rules_of("appr1")
    assert gate["delegation_offer"]["id"] == rule["id"]
    assert "docs.example.org" in gate["delegation_offer"]["sentence"]
    named = {one["f"]: one for one in rule["predicate"]["all"]}
    assert (named["host"], named["page"]) == (HOST, PAGE)
    world.begin(rule)
    for arguments in (
        {**DOCS, "host": "evil.example"},
        {**DOCS, "host": "www.docs.example.org"},
        {**DOCS, "then": "https://evil.example"},
        {"host": DOCS["host"]},
    ):
        world.asked("http.get", arguments)
    step = world.unasked("http.get", {**DOCS, "page": "b"}, "delegation")
    world.catch_up()
    assert (step["id"], {**DOCS, "page": "b"}) in world.outside.calls("http.get")
    assert {arguments["host"] for _, arguments in world.outside.calls("http.get")} == {
        HOST["in"][0]
    }


def no_match_all(world: World) -> None:
    """Show that nobody stores a rule for whatever is asked for."""
    for conditions, at in (
        ([any_of("host"), PAGE], "/predicate/all/1"),
        ([one_of("host", "*"), PAGE], "/predicate/all/1/in/0"),
        ([one_of("host"), PAGE], "/predicate/all/1/in"),
        ([PAGE], "/predicate/all"),
        ([], "/predicate/all"),
    ):
        body = by_hand("http.get", *conditions)
        for who, path in (("appr1", "/delegations"), ("adm", "/delegation-templates")):
            assert world.refused(who, "POST", path, body, status=422).pointers == [at]
    anybody = by_hand("http.get", HOST, PAGE, agent="*")
    assert world.refused("appr1", "POST", "/delegations", anybody, status=422).pointers == [
        "/predicate/all/0/in/0"
    ]


def test_a_rule_that_was_revoked_is_gone_at_once(world: World) -> None:
    """rf-deleg-03 (talex-touch/tuff#296; jikig-ai/soleur#5536).

    A rule was struck from where it was kept, and went on where it was remembered.
    """
    world.given(fetching(world))
    rule = world.rule("http.get", HOST, PAGE)
    world.rule("http.get", one_of("host", "other.example"), PAGE)
    other = world.rule("http.get", HOST, PAGE, who="appr1@globex")
    for _ in range(3):  # all that a process remembers of rules is remembered by now
        world.unasked("http.get", DOCS, "delegation")
    world.catch_up()
    ran = len(world.outside.calls("http.get"))
    step = world.unasked("http.get", DOCS, "delegation")
    # Not there, or another tenant's; a colleague's is there, and refused.
    for who, named, status in (
        ("appr1", str(uuid4()), 404),
        ("appr1", other["id"], 404),
        ("appr1@globex", rule["id"], 404),
        ("appr2", rule["id"], 403),
    ):
        world.refused(who, "POST", f"/delegations/{named}/revoke", {}, status=status)
    revoked = world.post("appr1", f"/delegations/{rule['id']}/revoke")
    assert revoked["status"] == "revoked"
    world.asked("http.get", DOCS)
    world.unasked("http.get", {**DOCS, "host": "other.example"}, "delegation")
    # Nor does what it had allowed start any more: it is asked about.
    world.catch_up()
    step = world.fresh(step)
    assert (step["status"], step["authorization"]) == ("waiting", None)
    made = [arguments for _, arguments in world.outside.calls("http.get")]
    assert made == [DOCS] * ran + [{**DOCS, "host": "other.example"}]
    reply = world.refused(
        "appr1", "POST", f"/delegations/{rule['id']}/accept", {"version": 1}, status=409
    )
    assert reply.code == "already-revoked"
    assert world.rules_of("appr1@globex")[0]["status"] == "active"


def mailing(world: World) -> Body:
    return {**world.read_tool("mail.send", list="enum", n="id"), "effect": "reversible"} | {
        "compensate": world.tool("mail.send", effect="reversible")["compensate"]
    }


def letter(number: int) -> Body:
    return {"list": "newsletter", "n": f"n-{number}"}


@pytest.mark.parametrize("how", ["rejected", "undone"])
def test_what_was_wrong_ends_what_ran_unasked(world: World, how: str) -> None:
    """rf-deleg-05 (mozilla/addons-server#6545; agentkitai/agentgate#51).

    Who was rejected asked again, until what had been learned before let it through.
    """
    world.given(mailing(world))
    practise(world, "mail.send", *map(letter, range(8)))
    (rule,) = world.rules_of("appr1")
    world.begin(rule)
    step = world.unasked("mail.send", letter(10), "delegation")
    world.catch_up()
    if how == "undone":  # it ran, and an operator has it undone
        world.post("opr", f"/steps/{step['id']}/compensation", {})
        learn(world)
        assert world.fresh(step)["status"] == "compensated"
        reason, told = "incident", "something that you or it allowed was undone"
    else:  # it is asked about by chance, and refused
        share(1)
        read_and_decide(world, world.asked("mail.send", letter(11)), "reject")
        learn(world)
        share(0)
        reason, told = "refused", "you refused what it would have allowed"
    (rule,) = world.rules_of("appr1")
    assert (rule["status"], rule["pause_reason"]) == ("paused", reason)
    assert told in page_of(world, "appr1", "/delegation/")
    sent = len(world.outside.calls("mail.send"))
    read_and_decide(world, world.asked("mail.send", letter(12)), "reject")
    world.asked("mail.send", letter(13))
    # As many approvals as it took before bring nothing back.
    practise(world, "mail.send", *map(letter, range(20, 28)))
    assert [one["status"] for one in world.rules_of("appr1")] == ["paused"]
    world.asked("mail.send", letter(30))
    assert len(world.outside.calls("mail.send")) == sent + 8


def share(of_calls: float) -> None:
    """Have so large a share of what rules allow be asked about all the same."""
    with as_superuser() as connection:
        connection.execute("UPDATE delegation_delegation SET check_share = %s", [of_calls])


def let_go_on(world: World) -> None:
    """Have appr1 let a rule go on that sleeps since policy denied its tool."""
    learn(world)
    (slept,) = world.rules_of("appr1")
    assert (slept["status"], slept["pause_reason"]) == ("paused", "denied")
    assert slept["note"].startswith("version ")
    told = f"policy denied this tool in {slept['note']}; let it go on if it still holds"
    assert told in page_of(world, "appr1", "/delegation/")
    world.asked("db.export", {"table": "orders"})
    world.begin(slept)


def test_policy_is_asked_before_any_rule_of_a_person(world: World) -> None:
    """rf-deleg-07 (nicobailon/pi-mcp-adapter#536; oops-rs/mentra#43).

    What a person had allowed was looked up before the policy that had become stricter since.
    """
    tool = world.read_tool("db.export", table="enum")
    orders = {"table": "orders"}
    says = {"name": "exports", "trigger": "action", "tools": ["db.export"]}
    world.given(tool)
    rule = world.rule("db.export", one_of("table", "orders"))
    allowed = world.unasked("db.export", orders, "delegation")

    world.given(tool, rules=[{**says, "then": "deny", "reason": "No exports."}])
    step = world.propose(world.run(), "db.export", orders)
    assert (step["status"], step["reason"]) == ("denied", "No exports.")
    world.catch_up()  # what the rule had allowed before, and had not begun
    assert (world.fresh(allowed)["status"], world.outside.performed) == ("denied", [])

    # Policy asks one person again: what the rule says was said before, so that person is asked, and
    # the rule sleeps until they let it go on.
    world.given(tool, rules=[{**says, "then": "approve"}])
    world.asked("db.export", orders)
    let_go_on(world)
    world.unasked("db.export", orders, "delegation")
    # Where policy means that none is to speak, it says so, and where it asks two, no rule is the
    # second.
    for stricter in (
        {"rules": [{**says, "then": "approve", "quorum": 2}]},
        {"rules": [{**says, "then": "approve"}], "delegation": {"mode": "off"}},
        {"delegation": {"never": [{"tools": ["db.*"]}]}},
    ):
        world.given(tool, **stricter)
        world.asked("db.export", orders)
    paused = world.post("adm", f"/delegations/{rule['id']}/pause", {"note": "looking"})
    world.given(tool)
    assert paused["pause_reason"] == "admin"
    world.asked("db.export", orders)
    path = f"/delegations/{rule['id']}/accept"
    assert world.refused("appr1", "POST", path, {"version": 1}, status=403).code == "forbidden"
    world.catch_up()
    assert world.outside.performed == []


def test_a_rule_speaks_for_its_person_in_its_tenant_only(world: World) -> None:
    """rf-deleg-09 (anomalyco/opencode#30227; RooCodeInc/Roo-Code#1069).

    What one had allowed held for everybody on the machine.
    """
    tool, two = fetching(world), {"others": ["appr2"]}
    routed = {**auto("http.get"), "then": "approve", "approvers": ["others"]}
    world.given(tool)
    # appr1 belongs to both tenants, and decides everything in both.
    theirs = document("globex", world.port, [tool], [], groups={}, may_decide={})
    theirs["members"].append(
        {
            "username": "appr1",
            "email": "appr1@acme.test",
            "role": "approver",
            "may_decide": ["*"],
        }
    )
    world.apply(theirs)
    no_match_all(world)
    world.rule("http.get", HOST, PAGE)
    world.unasked("http.get", DOCS, "delegation")

    step = world.asked("http.get", DOCS, who="ops@globex")
    assert world.get("opr@globex", f"/gates/{step['gate']}")["state"] == "pending"
    assert world.rules_of("appr1@globex") == []
    # What policy has appr2 decide is nothing that appr1 is used to.
    ours = document("acme", world.port, [tool], [routed], groups=two, may_decide={})
    world.apply(ours)
    step = world.asked("http.get", DOCS)
    assert world.inbox("appr2") == [step["gate"]]
    assert world.gate(step)["may_decide"] is False
    # Nor does it hold for another agent, or for what runs on appr1's own behalf.
    world.apply(document("acme", world.port, [tool], [], groups=two, may_decide={}))
    world.asked("http.get", DOCS, who="other")
    own = world.propose(world.run(requested_by="appr1"), "http.get", DOCS)
    assert own["status"] == "waiting"
    world.unasked("http.get", DOCS, "delegation")
