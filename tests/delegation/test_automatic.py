"""What a rule decides in a person's name: in the step's own transaction, and only where it may."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from unittest.mock import Mock, patch
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from approvals import selectors as approvals_selectors
from approvals.models import Assignment, Decision, Gate
from approvals.services import decisions
from approvals.services.grants import set_grants
from delegation import authorizer, figures, locks, selectors, speaking
from delegation.models import Delegation, DelegationDay, DelegationUse, SpotCheck
from delegation.services import rules
from delegation.services.rebuilding import check
from delegation.transitions import approving
from interrupts import verification
from interrupts.models import Interrupt, Run
from interrupts.services import steps
from tenants import statements
from tenants.clock import database_now
from tenants.journal import SYSTEM
from tenants.models import Agent, JournalEntry
from tests.approvals.house import fresh
from tests.clock import move
from tests.delegation.office import CALL, DAY, PREDICATE, ROLES, SCHEMA, TOOL, kinds
from tests.interrupts.history import assert_history_holds

ASKS = {"name": "ask", "trigger": "action", "tools": ["*"], "then": "approve"}


def refuses(office, propose):
    """What is proposed is asked about as without any rule: nothing ran, and nothing was decided."""
    before = office.trace()
    step = propose()
    assert (step.status, step.authorized_by) == ("waiting", None)
    assert Gate.objects.get(pk=step.gate).state in ("pending", "preparing")
    office.house.work(step.run_id)
    assert office.trace() == before
    assert not Decision.objects.filter(delegation__isnull=False, gate__step=step).exists()
    return step


def runs(office, propose):
    step = propose()
    assert (step.status, step.authorized_by) == ("ready", "delegation")
    return step


def test_a_call_that_a_rule_covers_runs_as_if_its_person_had_approved_it(office):
    rule = office.rule()
    step = runs(office, office.propose)
    gate = Gate.objects.get(pk=step.gate)
    assert (gate.pattern, gate.state, gate.interrupt_id) == ("allowlist", "approved", None)
    decision = Decision.objects.get(gate=gate)
    assert (decision.user_id, decision.delegation, decision.verdict) == (
        rule.user_id,
        rule.pk,
        "approve",
    )
    use = DelegationUse.objects.get()
    assert (use.version, use.decision, use.step) == (rule.version, decision.pk, step.pk)
    day = DelegationDay.objects.get()
    assert (day.calls, day.sums) == (1, {"amount": "20"})
    run = Run.objects.get(pk=step.run_id)
    assert (run.status, run.open_interrupts) == ("running", 0)
    assert not Interrupt.objects.exists()
    assert not Assignment.objects.exists()
    assert office.house.work(run) > 0
    assert office.house.calls == [(TOOL, CALL)]
    assert list(verification.of_tenant()) == []


def test_what_came_before_a_call_that_a_rule_allowed_is_read_when_it_is_looked_at(office):
    office.rule()
    run = office.house.run()
    before, step = (runs(office, lambda: office.propose(run=run)) for _ in range(2))
    gate = Gate.objects.select_related("run", "step").get(pk=step.gate)
    assert gate.why["previous_steps"] is None
    assert told(gate) == [(str(before.pk), before.position, TOOL, "ready", None)]
    office.house.work(run)
    assert told(gate) == [(str(before.pk), before.position, TOOL, "succeeded", "succeeded")]
    first = Gate.objects.select_related("run", "step").get(pk=before.gate)
    both = approvals_selectors.shown_gates([first, gate], None)
    assert [len(one.facts["why"]["previous_steps"]) for one in both] == [0, 1]


def told(gate):
    shown = approvals_selectors.shown_gate(gate, None).facts["why"]["previous_steps"]
    return [tuple(one.values()) for one in shown]


def test_the_journal_tells_that_the_rule_decided_and_what_it_said(office):
    rule = office.rule()
    step = office.propose()
    entries = list(JournalEntry.objects.filter(stream=step.run_id).order_by("seq"))
    told = {one.kind: one.text for one in entries}
    for kind in ("gate.opened", "gate.decided", "step.authorized"):
        assert f'"actor":{{"id":"{rule.pk}","kind":"delegation"}}' in told[kind].replace(" ", "")
    assert rule.sha256 in told["gate.decided"]
    assert '"kind":"agent"' in told["step.proposed"].replace(" ", "")


def test_what_the_agent_and_the_rule_say_is_written_to_the_journal_at_once(office):
    office.rule()
    run = office.house.run()
    before = JournalEntry.objects.filter(stream=run.pk).count()
    with patch.object(statements, "_bind", wraps=statements._bind) as sent:
        runs(office, lambda: office.propose(run=run))
    texts = [text for (_, text, _), _ in sent.call_args_list]
    assert sum("tenants_journal" in text for text in texts) == 1
    entries = JournalEntry.objects.filter(stream=run.pk).order_by("seq")[before:]
    speakers = [json.loads(entry.text)["actor"]["kind"] for entry in entries]
    assert speakers[0] == "agent"
    assert speakers[-3:] == ["delegation"] * 3
    assert_history_holds(run)


@pytest.mark.parametrize(
    "arguments",
    [
        {"amount": "50.01"},
        {"tier": "platinum"},
        {"tier": "Gold"},
        {"tier": "g\u043eld"},
        {"tier": "gold "},
        {"tier": "gold\u200b"},
        {"tier": "\uff47old"},
        {"amount": "1e1"},
        {"amount": "-0"},
        {"amount": "020.00"},
        {"note": "and a word"},
        {"order": "o\u0000-1"},
    ],
)
def test_what_the_rule_does_not_cover_is_asked_about(office, arguments):
    office.rule()
    if "\u0000" in arguments.get("order", ""):
        arguments = {"order": "o\n-1"}
    refuses(office, lambda: office.propose(**arguments))


def test_another_agent_is_asked_about(office):
    office.rule()
    Agent.objects.filter(name="bot").update(name="renamed")
    office.house.policy(ASKS)  # what is known of agents is remembered for one authority version
    refuses(office, office.propose)


@pytest.mark.parametrize("more", [{"risk": "high"}, {"effect": "irreversible"}])
def test_what_is_high_or_irreversible_is_asked_about_whatever_a_rule_says(office, more):
    office.rule()
    office.tool(**more)
    Delegation.objects.update(tool_number=2)
    refuses(office, office.propose)


def test_a_new_version_of_the_tool_is_asked_about(office):
    office.rule()
    office.tool(risk="medium")
    refuses(office, office.propose)


@pytest.mark.parametrize(
    "rule",
    [
        {"quorum": 2},
        {"stages": [{"approvers": ["finance"]}, {"approvers": ["board"]}]},
        {"cool_down": 60},
        {"trigger": "confidence", "below": 0.9},
        {"trigger": "risk", "at_least": 0.1},
        {"trigger": "milestone", "milestones": ["launch"]},
        {"approvers": ["finance"]},
    ],
)
def test_what_policy_asks_more_about_than_one_person_or_for_another_cause_is_asked(office, rule):
    office.rule()
    office.house.group("finance", "carol")
    office.house.group("board", "ada")
    office.house.policy({**ASKS, **rule})
    words = {"confidence": 0.5, "risk_score": 0.5, "milestone": "launch"}
    refuses(office, lambda: office.house.propose(TOOL, CALL, **words))


def test_a_group_that_the_person_is_in_may_be_asked_by_policy(office):
    office.rule()
    office.house.group("finance", "alice")
    office.house.policy({**ASKS, "approvers": ["finance"]})
    runs(office, office.propose)


@pytest.mark.parametrize(
    "document",
    [
        {"mode": "off"},
        {"low": "off"},
        {"never": [{"tools": ["refunds.*"]}]},
        {"never": [{"tools": ["*"], "condition": 'arguments.tier == "gold"'}]},
    ],
)
def test_the_tenants_floor_comes_before_every_rule(office, document):
    office.rule()
    office.house.policy(ASKS, delegation=document)
    refuses(office, office.propose)


def test_policys_denial_comes_before_everything(office):
    office.rule()
    office.house.policy({**ASKS, "then": "deny", "reason": "No refunds today."})
    before = office.trace()
    step = office.propose()
    assert step.status == "denied"
    assert office.trace() == before


def test_a_learned_rule_speaks_only_where_policy_is_automatic(office):
    rule = office.rule()
    Delegation.objects.filter(pk=rule.pk).update(origin="learned")
    refuses(office, office.propose)
    office.house.policy(ASKS, delegation={"mode": "automatic"})
    runs(office, office.propose)


def test_a_person_who_may_not_decide_it_has_no_rule_that_does(office):
    office.rule()
    with transaction.atomic():
        set_grants(SYSTEM, {"alice": [], "carol": ["*"]})
    refuses(office, office.propose)


def test_a_limit_of_the_persons_authority_holds_for_their_rules(office):
    office.rule()
    with transaction.atomic():
        limited = {"tools": ["*"], "condition": 'decimal(arguments.amount) <= decimal("10.00")'}
        set_grants(SYSTEM, {"alice": [limited], "carol": ["*"]})
    refuses(office, office.propose)


def first(person):
    """Have this person be drawn before others."""
    return lambda people, _key, _step: iter(sorted(people, key=lambda one: one != person.id))


def test_of_several_who_may_decide_one_is_drawn_whose_rule_alone_may_speak(office, monkeypatch):
    alice, carol = office.house.people["alice"], office.house.people["carol"]
    with transaction.atomic():
        set_grants(SYSTEM, {"alice": ["*"], "carol": ["*"]})
    office.rule()
    office.rule(who="carol", all=[*PREDICATE["all"][:3], {"f": "tier", "in": ["basic"]}])
    monkeypatch.setattr("delegation.speaking.in_drawn_order", first(alice))
    runs(office, office.propose)
    monkeypatch.setattr("delegation.speaking.in_drawn_order", first(carol))
    refuses(office, office.propose)
    assert office.propose(tier="basic").status == "ready"
    assert Decision.objects.latest("id").user_id == carol.id
    with transaction.atomic():
        set_grants(SYSTEM, {"alice": ["*"], "carol": []})
    runs(office, office.propose)


def test_nobody_s_rule_decides_what_runs_for_them_or_what_their_own_agent_does(office):
    office.rule()
    with transaction.atomic():
        set_grants(SYSTEM, {"alice": ["*"], "carol": ["*"]})
    alice = office.house.people["alice"].id
    refuses(office, lambda: office.propose(run=office.house.run(requested_by="alice")))
    Agent.objects.filter(name="bot").update(owner=alice)
    refuses(office, office.propose)


def test_an_order_is_drawn_of_everybody_in_which_each_is_as_likely_to_be_first():
    people = [UUID(int=number) for number in range(40)]
    orders = [list(speaking.in_drawn_order(people, b"key", str(step))) for step in range(400)]
    assert all(sorted(one) == people for one in orders)
    firsts = Counter(one[0] for one in orders)
    assert len(firsts) == 40
    assert max(firsts.values()) < 30
    assert orders[0] == list(speaking.in_drawn_order(people, b"key", "0"))
    assert orders[0] != list(speaking.in_drawn_order(people, b"another", "0"))


def test_so_many_people_are_looked_at_to_decide_a_call_and_no_more(monkeypatch):
    looked: list[UUID] = []
    monkeypatch.setattr(speaking, "current_tenant_id", lambda: UUID(int=0))
    people = [UUID(int=number) for number in range(1_000)]
    monkeypatch.setattr(speaking, "_people", lambda _asked: people)
    monkeypatch.setattr(speaking, "_read", lambda *given: looked.extend(given[-1]) or [])
    asked = Mock(tool=UUID(int=2), tool_number=1, learned=True)
    assert list(speaking.drawn(asked, ("shape", "call"), 1, b"key", UUID(int=1))) == []
    assert len(looked) == len(set(looked)) == sum(speaking.BATCHES) < 200


def test_what_is_kept_of_a_rules_decision_is_what_was_made(office, monkeypatch):
    made = []
    keep = approving.as_record
    monkeypatch.setattr(approving, "as_record", lambda row: made.append(row) or keep(row))
    office.rule()
    runs(office, office.propose)
    assert [type(one) for one in made] == [Gate, Decision, DelegationUse]
    for one in made:
        kept = type(one).objects.get(pk=one.pk)
        for column in one._meta.concrete_fields:
            stored, given = getattr(kept, column.attname), getattr(one, column.attname)
            assert stored == given, column


def sent(act):
    """How many statements are sent, prepared ones among them."""
    with (
        CaptureQueriesContext(connection) as plain,
        patch.object(statements, "_execute", wraps=statements._execute) as prepared,
    ):
        act()
    return len(plain) + prepared.call_count


def test_a_step_that_a_rule_decides_costs_three_statements_more_than_one_that_policy_allows(office):
    allowed = {"name": "free", "trigger": "action", "tools": ["free.make"], "then": "allow"}
    office.house.tool("free.make", arguments=SCHEMA, roles=ROLES)
    office.house.policy(allowed, {**ASKS, "tools": [TOOL]})
    office.rule()
    plain, ruled = office.house.run(), office.house.run()
    proposals = [
        lambda: office.house.propose("free.make", CALL, run=plain),
        lambda: runs(office, lambda: office.propose(run=ruled)),
    ]
    for propose in proposals:  # what is remembered from now on
        propose()
    costs = [sent(propose) for propose in proposals]
    assert costs[1] - costs[0] == 3


def test_who_asked_to_see_everything_is_asked(office):
    office.rule()
    alice = office.house.people["alice"]
    rules.ask_everything(alice)
    refuses(office, office.propose)
    rules.ask_everything(alice, wanted=False)
    runs(office, office.propose)


@pytest.mark.parametrize("status", ["suggested", "paused", "revoked", "expired"])
def test_only_an_active_rule_decides(office, status):
    rule = office.rule()
    Delegation.objects.filter(pk=rule.pk).update(status=status)
    authorizer._TOOLS._kept.clear()
    refuses(office, office.propose)


def test_a_rule_whose_time_is_over_decides_nothing_before_anybody_has_looked(office):
    office.rule()
    move(91 * DAY)
    refuses(office, office.propose)


def test_a_day_ends_at_its_bounds_and_the_next_begins_anew(office):
    office.rule(per_day={"calls": 2, "sum": {"amount": "35"}})
    runs(office, lambda: office.propose(amount="20.00"))
    refuses(office, lambda: office.propose(amount="15.01"))
    runs(office, lambda: office.propose(amount="15.00"))
    refuses(office, lambda: office.propose(amount="0.00"))
    move(DAY)
    runs(office, office.propose)


def test_what_is_proposed_together_counts_together(office):
    office.rule(per_day={"calls": 2})
    run = office.house.run()

    proposals = [{"tool": TOOL, "arguments": {**CALL, "order": f"o-{at}"}} for at in range(4)]
    made, _ = steps.propose(office.house.agent, run.pk, proposals=proposals)
    assert [one.authorized_by for one in made] == ["delegation", "delegation", None, None]
    assert DelegationDay.objects.get().calls == 2


def test_a_days_bound_holds_for_whoever_proposes_at_once(office, at_once):
    office.rule(per_day={"calls": 3})
    made = at_once(*([office.propose] * 6))
    assert sorted(one.authorized_by or "" for one in made) == [""] * 3 + ["delegation"] * 3
    assert (DelegationDay.objects.get().calls, DelegationUse.objects.count()) == (3, 3)


def test_a_spot_check_is_told_from_no_other_prompt(office, monkeypatch):
    rule = office.rule(share=1)
    step = office.propose()
    plain = office.propose(tier="silver")
    shown, other = (Gate.objects.get(pk=one.gate) for one in (step, plain))
    assert (shown.state, shown.pattern, shown.triggers) == (
        other.state,
        other.pattern,
        other.triggers,
    )
    assert office.house.kinds(step.run_id) == office.house.kinds(plain.run_id)
    check = SpotCheck.objects.get()
    assert (check.delegation_id, check.gate, check.verdict) == (rule.pk, shown.pk, None)
    office.look_and_decide(shown, "reject")
    office.catch_up()
    assert fresh(check).verdict == "reject"
    assert fresh(rule).status == "paused"


def test_a_spot_check_that_was_changed_is_not_counted_as_approved(office):
    rule = office.rule(share=1)
    gate = Gate.objects.get(pk=office.propose().gate)
    office.look_and_decide(gate, arguments={**CALL, "amount": "1.00"})
    office.catch_up()
    assert SpotCheck.objects.get().verdict == "edit"
    assert figures.tenant_figures().wrong_rate == 1
    assert selectors.card(rule.pk).checks_refused == 1


def test_a_step_that_is_proposed_again_under_its_key_has_the_same_answer(office):
    office.rule(share=0.5)
    run = office.house.run()
    first = office.house.propose(TOOL, CALL, run=run, key="pay")
    again = office.house.propose(TOOL, CALL, run=run, key="pay")
    assert (first.pk, first.authorized_by) == (again.pk, again.authorized_by)


def test_what_a_rule_decides_is_no_evidence(office):
    office.rule()
    for at in range(9):
        office.propose(order=f"o-{at}")
    office.catch_up()
    assert set(kinds()) == {"ran"}
    assert Delegation.objects.count() == 1


def test_a_rule_that_was_revoked_stops_what_it_allowed_before_it_starts(office):
    rule = office.rule()
    step = office.propose()
    rules.revoke(office.house.people["alice"], rule.pk)
    office.house.work(step.run_id)
    step = fresh(step)
    assert (step.status, office.house.calls) == ("waiting", [])
    old, new = Gate.objects.filter(step=step).order_by("id")
    assert (old.state, new.state) == ("superseded", "pending")
    assert list(verification.of_tenant()) == []


@pytest.mark.parametrize("what", ["grant", "ask", "pause", "tighten", "floor", "mode", "version"])
def test_what_takes_the_rule_away_stops_what_it_allowed_before_it_starts(office, what):
    rule = office.rule()
    alice = office.house.people["alice"]
    with transaction.atomic():
        set_grants(SYSTEM, {"alice": ["*"], "carol": ["*"]})
    step = office.propose()
    if what == "grant":
        with transaction.atomic():
            set_grants(SYSTEM, {"alice": []})
    elif what == "ask":
        rules.ask_everything(alice)
    elif what == "pause":
        rules.pause(alice, rule.pk)
    elif what == "tighten":
        tiers = [
            {**one, "in": ["basic"]} if one["f"] == "tier" else one for one in PREDICATE["all"]
        ]
        rules.tighten(alice, rule.pk, {"all": tiers})
    elif what == "floor":
        office.house.policy(ASKS, delegation={"never": [{"tools": ["*"]}]})
    elif what == "mode":
        office.house.policy(ASKS, delegation={"mode": "off"})
    else:
        office.tool()
    office.house.work(step.run_id)
    assert (fresh(step).status, office.house.calls) == ("waiting", [])


def test_what_a_rule_allowed_still_holds_after_something_else_was_narrowed(office):
    office.rule(per_day={"calls": 1})
    step = office.propose()
    office.house.policy(ASKS)
    office.house.work(step.run_id)
    assert len(office.house.calls) == 1
    assert fresh(step).authorized_by == "delegation"


def test_a_tenant_without_rules_pays_no_statement_for_them(office):

    runs_of = [office.house.run() for _ in range(3)]
    office.propose(run=runs_of[0])
    with (
        CaptureQueriesContext(connection) as asked,
        patch.object(speaking, "prepared_rows", side_effect=AssertionError),
    ):
        office.propose(run=runs_of[1])
    assert not [one for one in asked if "delegation_delegation" in one["sql"]]


def test_what_a_rule_allowed_starts_no_later_than_the_rule_lasts(office):
    rule = office.rule()
    Delegation.objects.filter(pk=rule.pk).update(expires_at=database_now() + timedelta(minutes=1))
    step = runs(office, office.propose)
    move(61)
    office.house.work(step.run_id)
    assert (fresh(step).status, office.house.calls) == ("waiting", [])
    assert Gate.objects.filter(step=step, state="pending").count() == 1
    assert list(verification.of_tenant()) == []


def test_learning_holds_a_persons_rules_and_their_calls_run_meanwhile(office, crew):
    rule = office.rule()
    with transaction.atomic():
        assert locks.lock_rules(rule.user_id) == [rule]
        assert locks.lock_rule(rule.pk) == rule
        step = crew.start(office.propose).result()
        assert step.authorized_by == "delegation"


def test_a_day_out_of_order_is_not_waited_for(office, crew):
    office.house.tool("mail.send", arguments=SCHEMA, roles=ROLES)
    first, alice = office.rule(), office.house.people["alice"]
    second = rules.propose_by_hand(alice, "mail.send", PREDICATE)
    rules.accept(alice, second.pk)
    Delegation.objects.update(check_share=0)
    assert first.pk < second.pk
    runs(office, office.propose)

    def both(*tools):
        run = office.house.run()
        proposals = [{"tool": name, "arguments": CALL} for name in tools]
        made, _ = steps.propose(office.house.agent, run.pk, proposals=proposals)
        return [one.authorized_by for one in made]

    with transaction.atomic():
        locks.lock_day(first.pk, database_now().date())
        worker = crew.start(lambda: both("mail.send", TOOL))
        assert worker.result() == ["delegation", None]
        waiting = crew.start(lambda: both(TOOL, "mail.send"))
        waiting.waits()
    assert waiting.result() == ["delegation"] * 2
    assert both("mail.send", TOOL) == ["delegation"] * 2
    assert sorted(DelegationDay.objects.values_list("calls", flat=True)) == [3, 3]


def test_who_takes_back_what_their_rule_approved_is_asked_and_the_rule_sleeps(office):
    rule, alice = office.rule(), office.house.people["alice"]
    step = runs(office, office.propose)
    decision = Decision.objects.get(gate=step.gate)
    decisions.withdraw_decision(alice, decision.gate_id, decision.pk)
    office.house.work(step.run_id)
    assert (fresh(step).status, office.house.calls) == ("waiting", [])
    gate = Gate.objects.get(pk=fresh(step).gate)
    assert gate.state == "pending"
    assert list(verification.of_tenant()) == []
    office.catch_up()
    assert kinds() == ["ran", "withdraw"]
    assert (fresh(rule).status, fresh(rule).pause_reason) == ("paused", "refused")
    office.look_and_decide(gate)
    office.house.work(step.run_id)
    assert len(office.house.calls) == 1
    office.catch_up()
    assert kinds() == ["ran", "withdraw", "approve"]
    assert list(verification.of_tenant()) == []
    assert check() == []
