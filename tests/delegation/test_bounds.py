"""Rules and templates by hand are bounded: in number, and in what one of them holds."""

from __future__ import annotations

from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import pytest

from config.errors import InvalidBody
from delegation import drafts
from delegation.errors import TooManyRules
from delegation.models import Delegation, DelegationTemplate
from delegation.services import rules
from tests.delegation.office import PREDICATE, ROLES, SCHEMA, TOOL


def of_tiers(*tiers):
    return {"all": [*PREDICATE["all"][:3], {"f": "tier", "in": list(tiers)}]}


def test_a_person_has_so_many_rules_of_a_tool_and_one_more_once_one_has_ended(office, at_once):
    alice = office.house.people["alice"]
    for _ in range(rules.MOST_RULES - 1):
        first = rules.propose_by_hand(alice, TOOL, PREDICATE)

    def propose():
        try:
            return rules.propose_by_hand(alice, TOOL, PREDICATE)
        except TooManyRules as refusal:
            return refusal

    found = at_once(propose, propose, propose)
    refused = [one for one in found if isinstance(one, TooManyRules)]
    assert (len(refused), Delegation.objects.count()) == (2, rules.MOST_RULES)
    status, told, _ = office.house.request(
        "alice", "POST", "/delegations", {"tool": TOOL, "predicate": PREDICATE}
    )
    assert (status, told["code"], told["errors"][0]["pointer"]) == (422, "too-many-rules", "/tool")
    assert Delegation.objects.count() == rules.MOST_RULES
    # Of others, and of another tool, nothing is counted.
    rules.propose_by_hand(office.house.people["carol"], TOOL, PREDICATE)
    office.house.tool("mail.send", arguments=SCHEMA, roles=ROLES)
    rules.propose_by_hand(alice, "mail.send", PREDICATE)
    rules.dismiss(alice, first.pk)
    rules.propose_by_hand(alice, TOOL, PREDICATE)


def test_no_more_rules_of_a_person_begin_at_once_than_may_speak(office, monkeypatch, at_once):
    monkeypatch.setattr(rules, "MOST_ACTIVE", 1)
    alice = office.house.people["alice"]
    made = [rules.propose_by_hand(alice, TOOL, PREDICATE) for _ in range(3)]
    counted, both = rules._check_active, Barrier(3)

    def meet(rule):
        # Whoever has counted waits for the others, unless they cannot come so far.
        counted(rule)
        with suppress(BrokenBarrierError):
            both.wait(1)

    monkeypatch.setattr(rules, "_check_active", meet)

    def accept(rule):
        def begin():
            try:
                return rules.accept(alice, rule.pk)
            except TooManyRules as refusal:
                return refusal

        return begin

    found = at_once(*map(accept, made))
    refused = [one for one in found if isinstance(one, TooManyRules)]
    begun = Delegation.objects.filter(status="active").count()
    assert (len(refused), begun) == (2, 1)


def test_so_many_templates_of_a_tool_are_offered(office):
    ada = office.house.people["ada"]
    for _ in range(rules.MOST_TEMPLATES):
        made = rules.publish_template(ada, TOOL, PREDICATE)
    status, told, _ = office.house.request(
        "ada", "POST", "/delegation-templates", {"tool": TOOL, "predicate": PREDICATE}
    )
    assert (status, told["code"], told["errors"][0]["pointer"]) == (422, "too-many-rules", "/tool")
    assert DelegationTemplate.objects.count() == rules.MOST_TEMPLATES
    rules.withdraw_template(ada, made.pk)
    rules.publish_template(ada, TOOL, PREDICATE)


def test_what_one_holds_is_bounded_and_refused_where_it_is_too_much(office):
    alice, ada = office.house.people["alice"], office.house.people["ada"]
    tiers = [f"tier-{at}" for at in range(drafts.MOST_VALUES + 1)]
    pairs = [[["tier", one], ["@agent", "bot"]] for one in tiers]
    ceilings = [{"f": "amount", "le": "1", "when": ["tier", one]} for one in tiers]
    long = [f"{at:04}{'x' * 190}" for at in range(340)]
    for predicate, pointer in (
        (of_tiers(*tiers), "/predicate/all/3/in"),
        ({**PREDICATE, "except_pairs": pairs}, "/predicate/except_pairs"),
        ({**PREDICATE, "ceilings": ceilings}, "/predicate/ceilings"),
        (of_tiers(*long), "/predicate"),
    ):
        for propose, who in ((rules.propose_by_hand, alice), (rules.publish_template, ada)):
            with pytest.raises(InvalidBody) as refusal:
                propose(who, TOOL, predicate)
            assert refusal.value.errors[0]["pointer"] == pointer
    assert not Delegation.objects.exists()
    assert not DelegationTemplate.objects.exists()
    rules.propose_by_hand(alice, TOOL, of_tiers(*tiers[:-1]))
