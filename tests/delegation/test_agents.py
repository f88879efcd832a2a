"""A rule is about an agent, and not about whoever has its name."""

from __future__ import annotations

import pytest
from django.db import transaction

from config.errors import InvalidBody
from delegation.models import DecisionEvent, Delegation
from delegation.records import agent_name, agent_value
from delegation.services import rules
from delegation.services.rebuilding import check
from tenants.ids import uuid7
from tenants.journal import SYSTEM
from tenants.models import Agent, Tenant
from tenants.principal import Principal
from tenants.services.agents import AgentWanted, end_agents, set_agents
from tests.delegation.office import CALL, PREDICATE, TOOL
from tests.delegation.test_automatic import ASKS


def begin_again(name="bot"):
    """End an agent, and have one begin under its name: another key, and another machine for all one knows."""
    with transaction.atomic():
        end_agents(SYSTEM, [name])
    with transaction.atomic():
        set_agents(SYSTEM, [AgentWanted(name)])


def refuses(office, propose):
    before = office.trace()
    assert propose().status == "waiting"
    assert office.trace() == before


def test_neither_a_renamed_agent_nor_the_one_with_its_name_meets_its_rules(office):
    office.rule()
    assert office.propose().authorized_by == "delegation"
    Agent.objects.filter(name="bot").update(name="former")
    new = Agent.objects.create(name="bot")
    office.house.policy(ASKS)  # what is known of agents is remembered for one authority version
    refuses(office, office.propose)
    office.house.agent = Principal("agent", new.pk, office.house.tenant.pk, "bot", None)
    refuses(office, office.propose)
    office.rule()
    assert office.propose().authorized_by == "delegation"


def test_an_agent_that_begins_again_is_another_one_under_its_name(office):
    office.approve(8)
    office.catch_up()
    rule = rules.accept(office.house.people["alice"], Delegation.objects.get().pk)
    Delegation.objects.update(check_share=0)
    assert office.propose().authorized_by == "delegation"
    late = office.ask(order="o-late", tier="basic")
    version = Tenant.objects.get().authority_version
    begin_again()
    assert Tenant.objects.get().authority_version > version + 1
    refuses(office, office.propose)
    # What was asked for the former, and is answered only now, is evidence of neither.
    office.look_and_decide(late)
    office.approve(1)
    office.catch_up()
    of_late, of_new = DecisionEvent.objects.order_by("-at", "-source")[:2][::-1]
    assert (of_late.data["agent"], of_late.data["identity"]) == ("bot", "")
    identity = str(Agent.objects.get(name="bot").identity)
    assert of_new.data["identity"] == identity != str(office.house.agent.id)
    assert rule.predicate["all"][0]["in"] == [agent_value("bot", str(office.house.agent.id))]
    refuses(office, office.propose)
    assert check() == []


def test_what_was_allowed_before_its_agent_ended_does_not_start_under_the_new_one(office):
    office.rule()
    step = office.propose()
    begin_again()
    office.house.work(step.run_id)
    step.refresh_from_db()
    assert (step.status, office.house.calls) == ("waiting", [])


def test_a_rule_by_hand_names_agents_that_there_are(office):
    alice = office.house.people["alice"]
    for given in ("nobody", agent_value("bot", str(uuid7())), "Bot"):
        asked = [{"f": "@agent", "in": ["other", given]}, *PREDICATE["all"][1:]]
        with pytest.raises(InvalidBody) as refusal:
            rules.propose_by_hand(alice, TOOL, {"all": asked})
        assert refusal.value.errors[0]["pointer"] == "/predicate/all/0/in/1"
        pair = {"except_pairs": [[["@agent", given], ["tier", "gold"]]]}
        with pytest.raises(InvalidBody) as refusal:
            rules.propose_by_hand(alice, TOOL, {**PREDICATE, **pair})
        assert refusal.value.errors[0]["pointer"] == "/predicate/except_pairs/0"
    assert not Delegation.objects.exists()
    of_bot = agent_value("bot", str(office.house.agent.id))
    bound = [{"f": "amount", "le": "9", "when": ["@agent", "bot"]}]
    made = rules.propose_by_hand(alice, TOOL, {**PREDICATE, "ceilings": bound})
    assert made.predicate["ceilings"][0]["when"] == ["@agent", of_bot]
    rules.accept(alice, made.pk)
    Delegation.objects.update(check_share=0)
    refuses(office, lambda: office.propose(amount="9.01"))
    assert office.propose(amount="9").authorized_by == "delegation"
    assert (agent_name(of_bot), agent_name("bot"), CALL["tier"]) == ("bot", "bot", "gold")
