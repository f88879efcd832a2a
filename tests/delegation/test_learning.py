"""Rules as rows: suggested, begun, brought up to what is learned, and made again from the events."""

from __future__ import annotations

import pytest

from delegation import state, studying
from delegation.models import DecisionEvent, Delegation, DelegationVersion, LearnerState
from delegation.presets import CAUTIOUS, EAGER
from delegation.services import events, learning, rules
from delegation.services.rebuilding import check
from delegation.studying import study
from tenants.models import Tenant
from tests.approvals.house import fresh
from tests.clock import move
from tests.delegation.office import DAY, PREDICATE, TOOL


def test_a_suggestion_comes_after_five_clean_answers_to_what_is_familiar(office):
    office.approve(6)
    office.catch_up()
    assert not Delegation.objects.exists()
    office.approve(1)
    office.catch_up()
    rule = Delegation.objects.get()
    assert (rule.status, rule.origin, rule.risk) == ("suggested", "learned", "low")
    said = {one["f"]: one for one in rule.predicate["all"]}
    assert (said["tier"]["in"], said["amount"]["le"]) == (["gold"], "20")
    assert (said["@agent"]["in"], said["@workflow"]["in"]) == (
        [f"bot:{office.house.agent.id}"],
        ["refunds"],
    )
    assert (rule.backtest["allowed"], rule.backtest["refused"]) == (7, 0)


def test_a_suggestion_says_what_it_would_still_ask_about(office):
    office.approve(1, tier="silver", amount="90.00")
    office.approve(8)
    office.catch_up()
    rule = Delegation.objects.get()
    assert (rule.backtest["allowed"], rule.backtest["asked"]) == (8, 1)
    assert rule.backtest["still_asks"]["arguments"]["tier"] == "silver"


def test_what_is_approved_without_looking_teaches_nothing(office):
    for _ in range(5):
        for _ in range(3):
            office.house.decide("alice", office.ask())
        move(DAY)
    office.catch_up()
    assert DecisionEvent.objects.count() == 15
    assert not Delegation.objects.exists()


def test_only_a_proven_rule_begins_by_itself_and_only_where_policy_lets_it(office):
    office.house.policy(delegation={"mode": "automatic"})
    office.approve(12)
    office.catch_up()
    assert not Delegation.objects.exists()
    tally = LearnerState.objects.get().shadow
    assert sum(one["would"] for one in tally.values()) > 5
    office.approve(14)
    office.catch_up()
    rule = Delegation.objects.get()
    assert (rule.status, rule.origin) == ("active", "learned")
    assert 0 < rule.check_share < 1


def test_a_suggestion_that_was_dismissed_or_revoked_does_not_come_again(office):
    alice = office.house.people["alice"]
    office.approve(8)
    office.catch_up()
    rules.dismiss(alice, Delegation.objects.get().pk)
    office.approve(3)
    office.catch_up()
    assert list(Delegation.objects.values_list("status", flat=True)) == ["revoked"]


def test_an_accepted_rule_sleeps_once_its_person_refuses_what_it_would_allow(office):
    office.approve(8)
    office.catch_up()
    rule = rules.accept(office.house.people["alice"], Delegation.objects.get().pk)
    assert (rule.status, rule.origin) == ("active", "person")
    Delegation.objects.update(check_share=1)
    before = Tenant.objects.get().authority_version
    office.reject()
    office.catch_up()
    rule = fresh(rule)
    assert (rule.status, rule.pause_reason) == ("paused", "refused")
    assert Tenant.objects.get().authority_version > before


def test_a_refusal_of_something_else_leaves_an_accepted_rule_as_it_is(office):
    rule = office.rule()
    office.reject(tier="silver")
    office.catch_up()
    assert fresh(rule).status == "active"


def test_what_was_undone_has_the_rule_sleep_that_allowed_it(office):
    office.tool(compensate={})
    rule = office.rule()
    step = office.propose()
    office.house.work(step.run_id)
    office.undone(fresh(step))
    office.catch_up()
    assert (fresh(rule).status, fresh(rule).pause_reason) == ("paused", "incident")


def test_what_is_learned_is_the_same_in_whatever_order_and_portions_it_came(office):
    office.approve(3)
    office.catch_up()
    office.approve(3, tier="basic", amount="7.10")
    office.reject(tier="silver")
    office.approve(4)
    office.catch_up()
    rule = Delegation.objects.get()
    kept = LearnerState.objects.get()
    assert check() == []
    # One by one in the reverse order, as if every event had come late.
    late = list(DecisionEvent.objects.order_by("-sequence"))
    studied = study(sorted(late, key=lambda one: (one.at, one.source)), CAUTIOUS)
    assert state.dump(studied.learner) == kept.state
    assert rule.version >= 1


def test_what_comes_late_is_learned_as_if_it_had_come_in_time(office, monkeypatch):
    office.approve(2)
    late = office.ask(tier="basic", amount="5.00")
    office.look_and_decide(late)
    hidden = events._decided

    def without_the_last(after):
        return [one for one in hidden(after) if one.gate != late.pk]

    with monkeypatch.context() as patch:
        patch.setattr(events, "_decided", without_the_last)
        office.approve(6)
        office.catch_up()
    office.catch_up()
    assert DecisionEvent.objects.order_by("-sequence").first().gate == late.pk
    assert check() == []


def test_a_pass_that_breaks_off_is_made_up_for(office, monkeypatch):
    office.approve(8)

    def breaks_off(*_):
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(learning, "_learn", breaks_off)
        with pytest.raises(RuntimeError):
            office.catch_up()
    assert not LearnerState.objects.exists()
    office.catch_up()
    assert Delegation.objects.count() == 1


def test_a_changed_state_or_rule_is_found_by_making_both_again(office):
    office.house.policy(delegation={"mode": "automatic"})
    office.approve(26)
    office.catch_up()
    assert check() == []
    rule = Delegation.objects.get()
    wider = {**rule.predicate, "except_pairs": []}
    wider["all"] = [{**one, "le": "9000"} if "le" in one else one for one in rule.predicate["all"]]
    Delegation.objects.update(predicate=wider)
    assert [fault.about for fault in check()] == [f"rule {rule.pk}"]
    Delegation.objects.update(predicate=rule.predicate)
    kept = LearnerState.objects.get()
    LearnerState.objects.update(state={**kept.state, "last_at": 0})
    assert [fault.about for fault in check()] == [f"person {rule.user_id}"]


def test_rules_expire_and_fade(office):
    rule = office.rule()
    move(91 * DAY)
    learning.expire()
    assert fresh(rule).status == "expired"


def test_each_version_of_a_rule_that_speaks_is_kept(office):
    alice = office.house.people["alice"]
    rule = office.rule()
    rules.tighten(alice, rule.pk, {"per_day": {"calls": 2}})
    rules.tighten(alice, rule.pk, {"per_day": {"calls": 1}})
    kept = DelegationVersion.objects.filter(delegation=rule).order_by("version")
    assert [one.predicate.get("per_day", {}).get("calls") for one in kept] == [None, 2, 1]
    assert {one.by for one in kept} == {f"user:{alice.id}"}


def test_a_template_is_suggested_only_to_whom_it_is_proven_for(office):
    office.house.policy(delegation={"mode": "automatic"})

    rules.publish_template(office.house.people["ada"], TOOL, PREDICATE)
    office.approve(8)
    office.catch_up()
    assert not Delegation.objects.filter(origin="template").exists()
    office.approve(18)
    office.catch_up()
    offered = Delegation.objects.get(origin="template")
    assert offered.status == "suggested"
    rules.accept(office.house.people["alice"], offered.pk)
    assert fresh(offered).status == "active"


def test_another_preset_is_taken_up_and_what_was_learned_before_is_still_checked(office):
    office.approve(8)
    office.catch_up()
    assert LearnerState.objects.get().state["settings"] == CAUTIOUS.digest
    office.house.policy(delegation={"preset": "eager"})
    assert check() == []
    office.catch_up()
    assert LearnerState.objects.get().state["settings"] == EAGER.digest
    assert check() == []
    before = LearnerState.objects.values().get()
    office.catch_up()
    assert LearnerState.objects.values().get() == before


def test_what_is_appended_while_it_is_learned_is_learned_once(office, monkeypatch, crew):
    office.approve(3)
    events.collect()
    office.reject(tier="silver")
    portion = learning._portion

    def meanwhile(*said):
        found = portion(*said)
        crew.start(events.collect).result()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(learning, "_portion", meanwhile)
        learning.learn([office.house.people["alice"].id])
    assert LearnerState.objects.get().sequence == 3
    office.catch_up()
    assert LearnerState.objects.get().sequence == 4
    assert check() == []


def test_many_events_are_learned_in_portions_and_rules_follow_the_last(office, monkeypatch):
    office.house.policy(delegation={"mode": "automatic"})
    office.approve(26)
    office.reject()
    events.collect()
    monkeypatch.setattr(learning, "PORTION", 5)
    monkeypatch.setattr(studying, "PORTION", 5)
    office.catch_up()
    assert LearnerState.objects.get().sequence == 27
    assert check() == []
    # Of the approvals alone it would have begun.
    assert not Delegation.objects.filter(accepted_at__isnull=False).exists()
