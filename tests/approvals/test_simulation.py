"""A policy is tried on what was recorded, and a verdict is explained rule by rule."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from approvals.policy import Subject, Verdict, explain
from approvals.policy.differing import differences
from approvals.policy.stages import Stage
from approvals.services import simulation
from interrupts.models import Step
from interrupts.services import runs
from tenants.ids import uuid7
from tenants.scope import tenant_scope
from tests.approvals.house import CALL, fresh
from tests.interrupts.house import everything

DENY_ALL = {"name": "none", "trigger": "action", "tools": ["*"], "then": "deny", "reason": "no"}
SMALL = {
    "name": "small",
    "trigger": "action",
    "tools": ["payments.*"],
    "condition": "decimal(arguments.amount) <= decimal('20')",
    "then": "allow",
}
LARGE = {
    "name": "large",
    "trigger": "action",
    "tools": ["payments.*"],
    "condition": "decimal(arguments.amount) > decimal('100')",
    "then": "deny",
    "reason": "too much",
}


def amount(value):
    return {**CALL, "amount": value}


def simulate(house, *rules, who="ada", **more):
    body = {"policy": {"rules": list(rules)}, **more}
    return house.request(who, "POST", "/policies/simulate", body)


def history(house):
    """One call allowed, one asked about, one denied; newest last."""
    house.policy(SMALL, LARGE)
    return [house.propose(arguments=amount(each)) for each in ("20.00", "50.00", "101.00")]


def test_each_recorded_step_is_judged_by_the_draft_and_set_against_what_was_decided(house):
    allowed, asked, denied = history(house)

    status, said, _ = simulate(house, DENY_ALL)

    assert status == 200
    assert said["results"] == [
        told(denied, "deny", "deny", "none"),
        told(asked, "approve", "deny", "none"),
        told(allowed, "allow", "deny", "none"),
    ]
    summary = said["summary"]
    assert (summary["steps"], summary["changed"], summary["unjudged"]) == (3, 2, 0)
    assert summary["by_rule"] == {"none": {"steps": 3, "changed": 2}}
    assert {(one["decided"], one["simulated"], one["rule"]) for one in summary["changes"]} == {
        ("allow", "deny", "none"),
        ("approve", "deny", "none"),
    }
    assert summary["changes"][0]["examples"] in ([str(asked.pk)], [str(allowed.pk)])
    assert said["next"] is None


def told(step, decided, simulated, rule):
    return {
        "step": str(step.pk),
        "tool": step.tool_name,
        "decided": decided,
        "simulated": simulated,
        "rule": rule,
        "stages": [],
        "differences": [],
        "changed": decided != simulated,
    }


def test_the_policy_in_force_tried_on_its_own_decisions_changes_nothing(house):
    history(house)
    _, said, _ = simulate(house, SMALL, LARGE)
    assert said["summary"]["changed"] == 0
    assert said["summary"]["by_rule"]["large"] == {"steps": 1, "changed": 0}


ASKS = {"name": "asks", "trigger": "action", "tools": ["payments.*"], "then": "approve"}


def test_what_people_are_asked_otherwise_is_a_change_told_in_words_the_looser_first(house):
    house.group("finance", "alice", "bob")
    house.policy({**ASKS, "quorum": 2, "approvers": ["finance"], "expires_in": 600})
    gate = house.ask()
    before = everything()

    draft = {**ASKS, "approvers": ["finance"], "expires_in": 300, "on_expiry": "cancel"}
    _, said, _ = simulate(house, draft)

    (one,) = said["results"]
    assert (one["decided"], one["simulated"], one["changed"]) == ("approve", "approve", True)
    looser = {
        "what": "quorum",
        "words": "It takes 1 approval, where it took 2 approvals.",
        "looser": True,
    }
    assert one["differences"][0] == looser
    assert [(each["what"], each["looser"]) for each in one["differences"]] == [
        ("quorum", True),
        ("expires_in", False),
        ("on_expiry", False),
    ]
    (change,) = said["summary"]["changes"]
    assert (change["rule"], change["looser"], change["steps"]) == ("asks", True, 1)
    assert (change["examples"], change["differences"]) == (
        [str(gate.step_id)],
        one["differences"],
    )
    assert said["summary"]["by_rule"] == {"asks": {"steps": 1, "changed": 1}}
    as_it_is = {**ASKS, "quorum": 2, "approvers": ["finance"], "expires_in": 600}
    assert simulate(house, as_it_is)[1]["summary"]["changed"] == 0
    assert everything() == before


def test_what_is_asked_is_compared_with_the_version_that_asked_then(house):
    house.policy(ASKS)
    first = house.ask()
    house.policy({**ASKS, "cool_down": 60})
    second = house.ask(arguments=amount("1.00"))
    _, said, _ = simulate(house, {**ASKS, "cool_down": 60})
    changed = {one["step"]: one["changed"] for one in said["results"]}
    assert changed == {str(first.step_id): True, str(second.step_id): False}
    (change,) = said["summary"]["changes"]
    assert (change["looser"], change["differences"][0]["what"]) == (False, "cool_down")


def verdict(**asked):
    return Verdict("approve", "r", **asked)


def staged(*stages):
    return {
        "stages": tuple(Stage(approvers, quorum) for approvers, quorum in stages),
        "quorum": sum(quorum for _, quorum in stages),
    }


ONE_OF_FINANCE = {"approvers": ("finance",)}
IN_TURN = staged((("finance",), 1), (("leads",), 2))


@pytest.mark.parametrize(
    ("was", "now", "what", "looser"),
    [
        ({"quorum": 2}, {"quorum": 3}, "quorum", False),
        (ONE_OF_FINANCE, {}, "approvers", True),
        ({}, ONE_OF_FINANCE, "approvers", False),
        (ONE_OF_FINANCE, {"approvers": ("leads",)}, "approvers", True),
        ({"approvers": ("finance", "leads")}, ONE_OF_FINANCE, "approvers", False),
        (ONE_OF_FINANCE, IN_TURN, "stages", False),
        (IN_TURN, {"approvers": ("finance",), "quorum": 3}, "stages", True),
        (IN_TURN, staged((("finance",), 1), (("leads",), 1)), "stages", True),
        (IN_TURN, staged((("finance",), 2), (("leads",), 2)), "stages", False),
        ({"expires_in": 60, "on_expiry": "reject"}, {}, "expires_in", True),
        ({}, {"expires_in": 60, "on_expiry": "cancel"}, "expires_in", False),
        (
            {"expires_in": 60, "on_expiry": "cancel"},
            {"expires_in": 60, "on_expiry": "reject"},
            "on_expiry",
            True,
        ),
        (
            {"expires_in": 60, "on_expiry": "escalate", "escalate_to": "leads"},
            {"expires_in": 60, "on_expiry": "escalate", "escalate_to": "heads"},
            "on_expiry",
            True,
        ),
        ({"expires_in": 60}, {"expires_in": 60, "warn_before": 9}, "warn_before", False),
        ({"expires_in": 60}, {"expires_in": 60, "extendable_to": 99}, "extendable_to", True),
        ({"cool_down": 60}, {"cool_down": 30}, "cool_down", True),
    ],
)
def test_one_demand_that_is_another_is_one_difference(was, now, what, looser):
    (found,) = differences(verdict(**was), verdict(**now))
    assert (found.what, found.looser) == (what, looser)
    assert found.words.endswith(".")
    assert differences(verdict(**now), verdict(**now)) == ()


def test_reasons_that_people_choose_from_are_demanded_of_them_too(house):
    chosen = {"code": "wrong-amount", "text": "Wrong amount", "decisions": ["reject"]}
    house.policy(ASKS, reasons=[chosen])
    house.ask()
    (change,) = simulate(house, ASKS)[1]["summary"]["changes"]
    (found,) = change["differences"]
    assert (found["what"], found["looser"], change["looser"]) == ("reasons", True, True)
    assert found["words"] == "People choose from no reasons, where they chose from wrong-amount."


def test_completions_are_tried_where_policy_gates_them(house):
    open_ = {"name": "all", "trigger": "action", "then": "allow"}
    done = {"name": "done", "trigger": "milestone", "milestones": ["done"], "then": "deny"}
    ends = {"name": "done", "workflow": "refunds", "when": {"before_complete": True}}
    gated = {"milestones": [ends], "rules": [open_, {**done, "reason": "no"}]}
    house.policy(open_)
    free, other, running = house.run(), house.run(workflow="other"), house.run()
    for run in (free, other, running):
        house.propose(run=run)
        house.work(run)
    for run in (free, other):
        runs.complete_run(house.agent, run.pk, output=None)
    house.policy(open_, {**done, "then": "approve"}, milestones=[ends])
    held = house.run()
    house.propose(run=held)
    house.work(held)
    runs.complete_run(house.agent, held.pk, output=None)
    before = everything()

    def completions(policy):
        said = house.request("ada", "POST", "/policies/simulate", {"policy": policy})[1]
        return said["summary"]["completions"]

    denied = completions(gated)
    assert (denied["runs"], denied["changed"]) == (2, 2)
    assert {(one["decided"], one["simulated"], one["looser"]) for one in denied["changes"]} == {
        ("allow", "deny", False),
        ("approve", "deny", False),
    }
    loosened = completions({"rules": [open_]})
    assert (loosened["runs"], loosened["changed"]) == (1, 1)
    (change,) = loosened["changes"]
    assert (change["decided"], change["simulated"], change["looser"]) == ("approve", "allow", True)
    assert (change["rule"], change["examples"]) == ("default", [str(held.pk)])
    assert everything() == before


def test_a_completion_is_tried_once_whatever_of_its_run_is_looked_at(house, monkeypatch):
    """Where its first step is too old, or another page's; and on the page of its newest step only."""
    monkeypatch.setattr(simulation, "_AT_ONCE", 2)
    house.policy({"name": "all", "trigger": "action", "then": "allow"})
    ends = {"name": "done", "workflow": "refunds", "when": {"before_complete": True}}
    done = {"name": "done", "trigger": "milestone", "milestones": ["done"], "then": "deny"}
    gated = {"milestones": [ends], "rules": [{**done, "reason": "no"}]}
    long, short, old = house.run(), house.run(), house.run()
    steps = [house.propose(run=run, arguments=amount(f"{n}.00")) for n, run in enumerate(
        [old, long, old, long, short, long, long], 1)]  # fmt: skip
    for run in (long, short, old):
        house.work(run)
        runs.complete_run(house.agent, run.pk, output=None)
    first = Step.objects.filter(pk=steps[0].pk)
    first.update(created_at=steps[0].created_at - timedelta(days=40))

    def pages(limit):
        after = {}
        while True:
            body = {"policy": gated, "limit": limit, **after}
            said = house.request("ada", "POST", "/policies/simulate", body)[1]
            found = [one["examples"] for one in said["summary"]["completions"]["changes"]]
            yield {one for those in found for one in those}, said["summary"]["completions"]["runs"]
            if said["next"] is None:
                return
            after = {"after": said["next"]}

    ids = {name: str(run.pk) for name, run in (("long", long), ("short", short), ("old", old))}
    assert list(pages(100)) == [(set(ids.values()), 3)]
    assert list(pages(2)) == [({ids["long"]}, 1), ({ids["short"]}, 1), ({ids["old"]}, 1)]


def test_the_agents_own_words_and_the_tools_version_are_those_of_then(house):
    house.propose(confidence=0.2, risk_score=0.9, milestone="go-live")
    house.tool(effect="read", risk="high")
    for rule in (
        {"trigger": "confidence", "below": 0.5},
        {"trigger": "risk", "at_least": 0.9},
        {"trigger": "milestone", "milestones": ["go-live"]},
        {"trigger": "action", "tools": ["*"], "condition": "tool.risk == 'low'"},
        {"trigger": "action", "tools": ["*"], "condition": "run.workflow == 'refunds'"},
        {"trigger": "action", "tools": ["*"], "condition": "agent.name == 'bot'"},
    ):
        _, said, _ = simulate(house, {"name": "r", "then": "deny", "reason": "x", **rule})
        assert said["results"][0]["simulated"] == "deny", rule


def test_nothing_is_recorded_and_nothing_is_decided_again(house):
    history(house)
    before = everything()
    simulate(house, DENY_ALL)
    assert everything() == before


def test_a_policy_that_could_not_be_published_is_refused_with_the_place_of_the_fault(house):
    history(house)
    before = everything()
    wrong = {**LARGE, "condition": "arguments.amount >"}
    status, said, _ = simulate(house, SMALL, wrong)
    assert (status, said["code"]) == (422, "invalid-body")
    assert said["errors"][0]["pointer"] == "/policy/rules/1/condition"
    assert everything() == before


@pytest.mark.parametrize(
    ("who", "code"), [("bot", "people-only"), ("vera", "forbidden"), ("alice", "forbidden")]
)
def test_only_operators_and_admins_try_a_policy(house, who, code):
    status, said, _ = simulate(house, DENY_ALL, who=who)
    assert (status, said["code"]) == (403, code)


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"limit": 0}, "/limit"),
        ({"limit": 5001}, "/limit"),
        ({"since": "yesterday"}, "/since"),
        ({"after": "x"}, "/after"),
        ({"until": "x"}, "/until"),
    ],
)
def test_what_is_asked_for_wrongly_is_refused(house, more, pointer):
    status, said, _ = simulate(house, DENY_ALL, **more)
    assert (status, said["errors"][0]["pointer"]) == (422, pointer)


def test_a_long_history_is_tried_page_by_page(house, monkeypatch):
    monkeypatch.setattr(simulation, "_AT_ONCE", 2)
    steps = [house.propose(arguments=amount(f"{n}.00")) for n in range(1, 6)]
    seen, after = [], {}
    for _ in range(4):
        _, said, _ = simulate(house, DENY_ALL, limit=2, **after)
        seen += [one["step"] for one in said["results"]]
        if said["next"] is None:
            break
        after = {"after": said["next"]}
    assert seen == [str(step.pk) for step in reversed(steps)]


def test_all_pages_of_an_answer_are_one_answer(house, monkeypatch):
    monkeypatch.setattr(simulation, "_AT_ONCE", 2)
    for n in range(1, 6):
        house.propose(arguments=amount(f"{n}.00"))
    _, said, _ = simulate(house, DENY_ALL)
    assert (said["summary"]["steps"], said["next"]) == (5, None)


def test_where_the_time_is_up_it_says_where_to_go_on(house, monkeypatch):
    monkeypatch.setattr(simulation, "_AT_ONCE", 2)
    monkeypatch.setattr(simulation, "MOST_SECONDS", 0.0)
    steps = [house.propose(arguments=amount(f"{n}.00")) for n in range(1, 4)]
    _, said, _ = simulate(house, DENY_ALL)
    assert (said["summary"]["steps"], said["next"]) == (2, str(steps[1].pk))


def test_what_is_older_is_left_out(house):
    old, new = house.propose(), house.propose(arguments=amount("1.00"))
    Step.objects.filter(pk=old.pk).update(created_at=old.created_at - timedelta(days=40))
    _, said, _ = simulate(house, DENY_ALL)
    assert [one["step"] for one in said["results"]] == [str(new.pk)]
    since = (old.created_at - timedelta(days=41)).isoformat()
    assert len(simulate(house, DENY_ALL, since=since)[1]["results"]) == 2


def test_another_tenants_steps_are_not_tried(house):
    history(house)

    def of_another_tenant():
        try:
            with tenant_scope(uuid7()):
                return simulation.simulate({"rules": [DENY_ALL]})
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as apart:
        made = apart.submit(of_another_tenant).result(30)
    assert (made.tried, made.unjudged, made.erased) == ([], 0, 0)


def test_what_policy_was_never_asked_about_and_what_was_erased_is_counted_apart(house):
    _, asked, denied = history(house)
    Step.objects.filter(pk=denied.pk).update(reason=simulation.AGENT_ENDED)
    erase(asked)
    _, said, _ = simulate(house, DENY_ALL)
    summary = said["summary"]
    assert (summary["steps"], summary["unjudged"], summary["erased"]) == (1, 1, 1)


def erase(step):
    from tests.database import as_owner

    with as_owner() as owner:
        owner.execute("DELETE FROM interrupts_content WHERE digest = %s", [bytes(step.arguments)])


def test_it_asks_the_database_no_more_often_for_more_steps(house):
    house.propose()
    simulation.simulate({"rules": [DENY_ALL]})
    few = statements(lambda: simulation.simulate({"rules": [DENY_ALL]}))
    for n in range(20):
        house.propose(arguments=amount(f"{n}.50"))
    assert statements(lambda: simulation.simulate({"rules": [DENY_ALL]})) == few


def statements(act):
    with CaptureQueriesContext(connection) as queries:
        act()
    return len(queries)


# Why


def why(house, step, who="vera"):
    return house.request(who, "GET", f"/policies/why?step={step.pk}")


def test_a_verdict_is_explained_rule_by_rule(house):
    unsure = {"name": "unsure", "trigger": "confidence", "below": 0.5, "then": "approve"}
    mails = {"name": "mails", "trigger": "action", "tools": ["mail.*"], "then": "deny"}
    house.policy(SMALL, LARGE, unsure, {**mails, "reason": "no mail"})
    step = house.propose(arguments=amount("20.00"), confidence=0.7)

    status, said, _ = why(house, step)

    assert status == 200
    assert (said["decided"], said["verdict"], said["rule"]) == ("allow", "allow", "small")
    assert said["policy_version"] == said["now"]["policy_version"] == 1
    assert [(one["rule"], one["then"], one["counts"]) for one in said["rules"]] == [
        ("small", "allow", True),
        ("large", "deny", False),
        ("mails", "deny", False),
        ("unsure", "approve", False),
    ]
    words = {one["rule"]: one["explanation"] for one in said["rules"]}
    assert words["small"].endswith(f"Its condition holds: {SMALL['condition']}")
    assert words["large"] == f"Its condition does not hold: {LARGE['condition']}"
    assert words["mails"] == "It is for other tools: mail.*."
    assert words["unsure"] == "The stated confidence 0.7 is not below 0.5."


@pytest.mark.parametrize(
    ("rule", "said", "words"),
    [
        (
            {"trigger": "risk", "at_least": 0.5},
            {},
            "No scorer is for its tool, and the agent stated no risk score.",
        ),
        (
            {"trigger": "risk", "at_least": 0.5},
            {"risk_score": 0.4},
            "The risk score 0.4 is below 0.5.",
        ),
        ({"trigger": "confidence", "below": 0.5}, {}, "The agent stated no confidence."),
        (
            {"trigger": "milestone", "milestones": ["b", "a"]},
            {"milestone": "c"},
            "The step is none of its milestones: a, b.",
        ),
    ],
)
def test_a_rule_that_does_not_count_says_why(rule, said, words):
    document = {"rules": [{"name": "r", "then": "deny", **rule}]}
    (one,) = explain(document, subject(**said))
    assert (one.counts, one.explanation) == (False, words)


@pytest.mark.parametrize(("then", "counts"), [("allow", False), ("approve", True), ("deny", True)])
def test_a_condition_that_errs_is_told_and_never_allows(then, counts):
    rule = {"name": "r", "trigger": "action", "condition": "arguments.missing == 1", "then": then}
    (one,) = explain({"rules": [rule]}, subject())
    assert one.counts is counts
    assert "could not be evaluated" in one.explanation
    assert "arguments.missing == 1" in one.explanation or counts


def subject(**said):
    return Subject("t", "reversible", "low", {}, "bot", "w", **said)


def test_what_was_decided_by_a_version_before_is_explained_by_it_and_by_the_one_now(house):
    house.policy(SMALL)
    allowed = house.propose(arguments=amount("20.00"))
    house.policy(DENY_ALL)
    denied = house.propose(arguments=amount("20.00"))

    _, before, _ = why(house, allowed)
    _, since, _ = why(house, denied)

    assert (before["policy_version"], before["decided"], before["rule"]) == (1, "allow", "small")
    now = {"policy_version": 2, "verdict": "deny", "rule": "none", "stages": []}
    assert before["now"] == now
    assert (since["policy_version"], since["decided"], since["rule"]) == (2, "deny", "none")
    assert since["reason"] == "no"


def test_of_a_gate_the_version_is_explained_that_it_was_opened_or_updated_under(house):
    gate = house.ask()
    _, said, _ = why(house, fresh(gate).step)
    assert (said["decided"], said["rule"]) == ("approve", "default")
    assert said["policy_version"] == gate.policy_version


def test_erased_arguments_are_told_and_explain_nothing(house):
    step = house.propose()
    erase(step)
    status, said, _ = why(house, step)
    assert (status, said["rules"], said["verdict"], said["now"]) == (200, None, None, None)
    assert said["decided"] == "approve"


def test_why_takes_the_id_of_a_step_of_the_tenant_and_is_for_people(house):
    step = house.propose()
    assert why(house, step, "bot")[1]["code"] == "people-only"
    for query in ("", "?step=", "?step=x"):
        status, said, _ = house.request("vera", "GET", f"/policies/why{query}")
        assert (status, said["errors"][0]["pointer"]) == (422, "/step")
    assert house.request("vera", "GET", f"/policies/why?step={uuid7()}")[0] == 404


# Versions


def test_published_versions_are_listed_with_who_when_and_why(house):
    house.policy(SMALL)
    house.policy(LARGE)
    status, said, _ = house.request("vera", "GET", "/policies")
    assert status == 200
    assert [one["policy_version"] for one in said["results"]] == [1, 2]
    assert said["results"][1]["policy"] == {"rules": [LARGE]}
    assert {"why", "published_at", "published_by", "digest"} <= said["results"][1].keys()
    assert house.request("bot", "GET", "/policies")[1]["code"] == "people-only"
