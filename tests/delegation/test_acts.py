"""What people do with rules: who may, what it changes, and that it holds once it has answered."""

from __future__ import annotations

import pytest

from config.errors import Forbidden, InvalidBody, PeopleOnly
from delegation import beside, figures, selectors
from delegation.errors import (
    AlreadyRevoked,
    NotDelegable,
    NotNarrower,
    NotSuggested,
    RuleChanged,
    TooManyRules,
)
from delegation.explaining import explain
from delegation.models import DecisionEvent, Delegation, DelegationTemplate
from delegation.services import rules
from interrupts.models import Attempt, Tool
from tenants.clock import database_now
from tenants.models import JournalEntry, Tenant
from tests.approvals.house import fresh
from tests.delegation.office import PREDICATE, TOOL, known
from tests.races.conftest import attempt_pending, run_locked, waiting


def told(tenant):
    entries = JournalEntry.objects.filter(stream=tenant.pk, kind__startswith="delegation.")
    return list(entries.order_by("seq").values_list("kind", flat=True))


def authority():
    return Tenant.objects.get().authority_version


@pytest.fixture
def alice(office):
    return office.house.people["alice"]


@pytest.fixture
def suggested(office, alice):
    return rules.propose_by_hand(alice, TOOL, PREDICATE)


def test_a_rule_by_hand_is_a_suggestion_that_speaks_once_it_is_accepted(office, alice, suggested):
    assert suggested.status == "suggested"
    assert office.propose().status == "waiting"
    before = authority()
    rules.accept(alice, suggested.pk, version=1)
    assert authority() > before
    again = rules.accept(alice, suggested.pk)
    assert (again.status, again.version) == ("active", 1)
    assert told(office.house.tenant) == ["delegation.suggested", "delegation.began"]


def test_only_its_person_accepts_narrows_or_dismisses_a_rule(office, suggested):
    before = office.trace(), authority()
    for who in ("ada", "carol"):
        person = office.house.people[who]
        for act in (
            lambda: rules.accept(person, suggested.pk),  # noqa: B023
            lambda: rules.tighten(person, suggested.pk, {"per_day": {"calls": 1}}),  # noqa: B023
            lambda: rules.dismiss(person, suggested.pk),  # noqa: B023
        ):
            with pytest.raises(Forbidden):
                act()
    with pytest.raises(PeopleOnly):
        rules.accept(office.house.agent, suggested.pk)
    with pytest.raises(Forbidden):
        rules.revoke(office.house.people["carol"], suggested.pk)
    assert (office.trace(), authority()) == before


def test_an_admin_has_others_rules_sleep_and_only_an_admin_wakes_those(office, alice):
    rule = office.rule()
    ada = office.house.people["ada"]
    rules.pause(ada, rule.pk, "look at this first")
    rule = fresh(rule)
    assert (rule.status, rule.pause_reason, rule.note) == ("paused", "admin", "look at this first")
    with pytest.raises(Forbidden):
        rules.accept(alice, rule.pk)
    assert fresh(rule).status == "paused"
    rules.revoke(ada, rule.pk)
    with pytest.raises(AlreadyRevoked):
        rules.pause(alice, rule.pk)


def test_a_person_has_their_rule_sleep_and_go_on(office, alice):
    rule = office.rule()
    rules.pause(alice, rule.pk, "a holiday")
    rules.pause(alice, rule.pk)
    assert office.propose().status == "waiting"
    rules.accept(alice, rule.pk)
    Delegation.objects.update(check_share=0)
    assert office.propose().status == "ready"
    assert told(office.house.tenant)[-2:] == ["delegation.paused", "delegation.began"]


def test_a_rule_for_what_nobody_proposes_any_more_does_not_begin(office, alice, suggested):
    office.tool()
    before = office.trace(), authority()
    with pytest.raises(NotDelegable):
        rules.accept(alice, suggested.pk, version=1)
    assert (office.trace(), authority()) == before
    again = rules.propose_by_hand(alice, TOOL, PREDICATE)
    Tool.objects.update(retired_at=database_now())
    with pytest.raises(NotDelegable):
        rules.accept(alice, again.pk, version=1)
    assert fresh(again).status == "suggested"


def test_a_suggestion_neither_sleeps_nor_is_dismissed_once_it_speaks(office, alice, suggested):
    with pytest.raises(NotSuggested):
        rules.pause(alice, suggested.pk)
    rules.accept(alice, suggested.pk)
    before = office.trace()
    with pytest.raises(NotSuggested):
        rules.dismiss(alice, suggested.pk)
    assert office.trace() == before


def test_what_ended_is_not_changed_any_more(office, alice, suggested):
    rules.revoke(alice, suggested.pk)
    before = office.trace()
    rules.revoke(alice, suggested.pk)
    for act in (
        lambda: rules.accept(alice, suggested.pk),
        lambda: rules.tighten(alice, suggested.pk, {}),
    ):
        with pytest.raises(AlreadyRevoked):
            act()
    assert office.trace() == before


def test_a_rule_is_only_narrowed_and_says_where_it_would_not_be(office, alice, suggested):
    wider = [{**one, "le": "51"} if one["f"] == "amount" else one for one in PREDICATE["all"]]
    before = office.trace()
    with pytest.raises(NotNarrower) as refusal:
        rules.tighten(alice, suggested.pk, {"all": wider})
    assert refusal.value.errors[0]["pointer"] == "/change/all"
    with pytest.raises(InvalidBody) as fault:
        rules.tighten(alice, suggested.pk, {"per_day": {"calls": "many"}})
    assert fault.value.errors[0]["pointer"] == "/change/per_day"
    with pytest.raises(RuleChanged):
        rules.tighten(alice, suggested.pk, {"per_day": {"calls": 1}}, version=2)
    assert office.trace() == before
    narrowed = rules.tighten(alice, suggested.pk, {"per_day": {"calls": 1}}, version=1)
    assert (narrowed.version, narrowed.narrowed_from) == (2, known(PREDICATE))
    with pytest.raises(RuleChanged):
        rules.accept(alice, suggested.pk, version=1)
    limited = rules.accept(
        alice, suggested.pk, limits={"per_day": {"calls": 1, "sum": {"amount": "9"}}}
    )
    assert (limited.version, limited.predicate["per_day"]["sum"]) == (3, {"amount": "9"})


@pytest.mark.parametrize(
    ("predicate", "pointer"),
    [
        ({"any": []}, "/predicate"),
        ({"all": [{"f": "@agent", "in": ["bot"]}]}, "/predicate/all"),
        ({"all": [*PREDICATE["all"], {"f": "extra", "any": True}]}, "/predicate/all"),
        (
            {
                "all": [
                    {**one, "in": ["1"]} if one["f"] == "amount" else one
                    for one in PREDICATE["all"]
                ]
            },
            "/predicate",
        ),
        (
            {
                "all": [
                    {"f": "tier", "any": True} if one["f"] == "tier" else one
                    for one in PREDICATE["all"]
                ]
            },
            "/predicate/all/3",
        ),
        ({"all": [{"f": "tier", "matches": "g.*"}]}, "/predicate"),
    ],
)
def test_a_rule_by_hand_speaks_of_each_argument_by_its_role(office, alice, predicate, pointer):
    with pytest.raises(InvalidBody) as refusal:
        rules.propose_by_hand(alice, TOOL, predicate)
    assert refusal.value.errors[0]["pointer"] == pointer
    assert not Delegation.objects.exists()


@pytest.mark.parametrize(
    "more",
    [
        {"risk": "high"},
        {"effect": "irreversible"},
        {"roles": {}},
        {"roles": {"order": "id", "tier": "text", "amount": "number"}},
    ],
)
def test_no_rule_is_made_for_what_is_never_delegated(office, alice, more):
    office.tool(**more)
    with pytest.raises(NotDelegable):
        rules.propose_by_hand(alice, TOOL, PREDICATE)
    with pytest.raises(NotDelegable):
        rules.publish_template(office.house.people["ada"], TOOL, PREDICATE)
    assert not Delegation.objects.exists()
    assert not DelegationTemplate.objects.exists()


def test_so_many_rules_of_a_person_speak_for_a_tool_and_no_more(office, alice, monkeypatch):
    monkeypatch.setattr(rules, "MOST_ACTIVE", 2)
    made = [rules.propose_by_hand(alice, TOOL, PREDICATE) for _ in range(3)]
    for one in made[:2]:
        rules.accept(alice, one.pk)
    with pytest.raises(TooManyRules):
        rules.accept(alice, made[2].pk)
    path = f"/delegations/{made[2].pk}/accept"
    answer = office.house.request("alice", "POST", path, {"version": 1})
    assert (answer[0], answer[1]["code"]) == (422, "too-many-rules")
    assert fresh(made[2]).status == "suggested"
    rules.pause(alice, made[0].pk)
    assert rules.accept(alice, made[2].pk).status == "active"


def test_nothing_begins_where_policy_delegates_nothing(office, alice, suggested):
    office.house.policy(delegation={"mode": "off"})
    with pytest.raises(NotDelegable):
        rules.accept(alice, suggested.pk)
    assert fresh(suggested).status == "suggested"


def test_templates_are_an_admins_and_end_with_their_word(office, alice):
    with pytest.raises(Forbidden):
        rules.publish_template(alice, TOOL, PREDICATE)
    ada = office.house.people["ada"]
    made = rules.publish_template(ada, TOOL, PREDICATE)
    with pytest.raises(Forbidden):
        rules.withdraw_template(alice, made.pk)
    assert rules.withdraw_template(ada, made.pk).withdrawn_at is not None
    assert told(office.house.tenant) == [
        "delegation.template_published",
        "delegation.template_withdrawn",
    ]


def test_asking_about_everything_is_told_once(office, alice):
    before = authority()
    rules.ask_everything(alice)
    rules.ask_everything(alice)
    assert authority() == before + 1
    assert told(office.house.tenant) == ["delegation.ask_everything"]


# Races


ACTS = ["revoke", "pause", "ask"]


def take_away(alice, rule, act):
    if act == "revoke":
        rules.revoke(alice, rule.pk)
    elif act == "pause":
        rules.pause(alice, rule.pk)
    else:
        rules.ask_everything(alice)


@pytest.mark.parametrize("act", ACTS)
def test_an_intent_that_waited_while_the_rule_was_taken_away_starts_nothing(office, crew, act):
    rule = office.rule()
    step = office.propose()
    with run_locked(crew, step.run):
        intent = waiting(crew, lambda: office.house.work(step.run_id))
        # It holds the drain lock from before it waited: whoever takes the rule away waits for it.
        away = waiting(crew, lambda: take_away(office.house.people["alice"], rule, act))
    away.result()
    intent.result()
    assert (fresh(step).status, office.house.calls) == ("waiting", [])
    assert not Attempt.objects.exists()


def test_taking_a_rule_away_answers_only_after_the_intents_that_saw_it(office, crew):
    rule = office.rule()
    step = office.propose()
    with attempt_pending(crew, step):
        intent = waiting(crew, lambda: office.house.work(step.run_id))
        away = waiting(crew, lambda: take_away(office.house.people["alice"], rule, "revoke"))
        assert not away.over
    intent.result()
    away.result()
    # What had begun is finished; nothing begins any more.
    assert Attempt.objects.count() == 1
    assert office.propose(order="o-2").status == "waiting"


def test_a_proposal_beside_a_revocation_runs_by_the_rule_or_is_asked_about(office, at_once):
    rule = office.rule()
    alice = office.house.people["alice"]
    made = at_once(office.propose, lambda: rules.revoke(alice, rule.pk), office.propose)
    for step in (made[0], made[2]):
        office.house.work(step.run_id)
        assert fresh(step).status == "waiting"
    assert office.house.calls == []


def test_several_acts_on_one_rule_at_once_end_in_one_that_holds(office, at_once):
    rule = office.rule()
    alice, ada = office.house.people["alice"], office.house.people["ada"]
    at_once(
        lambda: rules.revoke(alice, rule.pk),
        lambda: rules.pause(ada, rule.pk),
        lambda: rules.revoke(ada, rule.pk),
        lambda: rules.tighten(alice, rule.pk, {"per_day": {"calls": 1}}),
    )
    assert fresh(rule).status == "revoked"
    assert told(office.house.tenant).count("delegation.revoked") == 1


# What is shown


def test_a_card_tells_what_a_rule_allows_and_what_it_did(office, alice):
    rule = office.rule(per_day={"calls": 5, "sum": {"amount": "100"}})
    office.propose()
    office.propose(tier="basic")
    (card,) = selectors.of_person(alice.id).active
    assert (card.tool, card.person, card.uses) == (TOOL, "alice", 2)
    assert (card.used_today.calls, card.used_today.calls_limit) == (2, 5)
    assert dict(card.used_today.sums) == {"amount": "40"}
    assert [one.field for one in card.sentence] == ["agent", "amount", "order", "tier"]
    assert selectors.card(rule.pk).delegation == rule
    office.catch_up()
    assert figures.removed(alice.id).ran == 2
    assert (figures.chart(alice.id)[-1].ran, len(figures.chart(alice.id))) == (2, 30)
    assert figures.tenant_figures().people[0].share == 1.0


def test_beside_a_gate_it_is_said_why_it_is_asked_and_what_may_be_accepted(office, alice):
    office.approve(8)
    office.catch_up()
    gate = office.ask()
    offered = beside.offer(gate, alice.id)
    assert (offered["allowed"], offered["refused"]) == (8, 0)
    assert beside.offer(gate, office.house.people["carol"].id) is None
    rules.accept(alice, Delegation.objects.get().pk)
    Delegation.objects.update(check_share=1)
    assert beside.why_asked(office.ask(tier="silver"), alice.id) == "`silver` is new"
    spot = office.ask(order="o-9")
    assert beside.why_asked(spot, alice.id) is None
    assert beside.why_asked(office.ask(note="x"), alice.id) is not None


def test_what_is_estimated_to_be_wrong_weighs_each_check_by_how_rare_it_was():
    rate, bound = figures.wrong_rate([(0.25, False)] * 9 + [(0.25, True)])
    assert rate == pytest.approx(0.1)
    assert bound is not None
    assert rate < bound < 0.45
    assert figures.wrong_rate([]) == (None, None)
    mixed, _ = figures.wrong_rate([(0.5, True), (0.1, False)])
    assert mixed == pytest.approx(2 / 12)


def test_a_step_is_explained(office, alice):
    rule = office.rule()
    step = office.propose()
    said = "\n".join(explain(step.pk))
    assert f"by their rule {rule.pk} in version 1" in said
    assert rule.sha256 in said
    other = office.propose(tier="silver")
    assert "alice is asked since `silver` is new." in explain(other.pk)
    Delegation.objects.update(check_share=1)
    checked = office.propose()
    assert "It was a spot check" in "\n".join(explain(checked.pk))


def test_the_tenants_figures_take_as_many_statements_however_many_there_are(
    office, django_assert_num_queries
):
    for who in ("alice", "bob", "carol", "olga"):
        DecisionEvent.objects.create(
            user_id=office.house.people[who].id,
            sequence=DecisionEvent.objects.count() + 1,
            kind="approve",
            tool=Tool.objects.get(name=TOOL).pk,
            data={"arguments": {}, "risk": "low", "answer": {"bulk": who == "bob"}},
            at=database_now(),
        )
        with django_assert_num_queries(4):
            found = figures.tenant_figures()
    assert sorted((one.name, one.careless, one.approvals) for one in found.people) == [
        (who, 1, 1) for who in ("alice", "bob", "carol", "olga")
    ]
    assert found.p10 is None, "who looks at nothing is not among those whose savings are told"
