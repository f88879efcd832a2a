"""What a policy says of delegation."""

from __future__ import annotations

from approvals.policy import validate_policy
from approvals.policy.conditions import Facts
from approvals.tenantfile import policytext
from delegation.modes import Mode, Modes, Never, modes


def facts(**arguments: object) -> Facts:
    return Facts(arguments=arguments, tool={"name": "payments.refund"}, agent={"name": "bot"})


def test_what_a_policy_leaves_out_is_suggested_cautiously() -> None:
    assert modes({}) == modes({"delegation": {}}) == Modes(Mode.SUGGEST, Mode.SUGGEST, "cautious")
    assert modes({}).of("low") is Mode.SUGGEST


def test_a_mode_is_of_every_risk_or_of_each_and_never_of_what_is_high() -> None:
    assert modes({"delegation": {"mode": "off"}}).is_off
    said = modes({"delegation": {"low": "automatic", "preset": "eager"}})
    assert (said.low, said.medium, said.preset) == (Mode.AUTOMATIC, Mode.SUGGEST, "eager")
    said = modes({"delegation": {"mode": "automatic"}})
    assert (said.of("medium"), said.of("high")) == (Mode.AUTOMATIC, Mode.OFF)
    assert said.of("irreversible") is said.of("") is Mode.OFF


def test_the_floor_holds_where_its_condition_does_or_has_no_answer() -> None:
    whole = modes({"delegation": {"never": [{"tools": ["db.*"]}]}})
    assert whole.never == (Never(("db.*",)),)
    assert whole.forbids("db.drop", facts())
    assert not whole.forbids("mail.send", facts())
    above = "decimal(arguments.amount) > decimal('20')"
    some = modes({"delegation": {"never": [{"tools": ["payments.*"], "condition": above}]}})
    assert some.forbids("payments.refund", facts(amount="20.01"))
    assert not some.forbids("payments.refund", facts(amount="20"))
    assert not some.forbids("mail.send", facts(amount="99"))
    assert some.forbids("payments.refund", facts())
    assert some.forbids("payments.refund", facts(amount="much"))


def test_off_is_said_in_yaml_as_the_docs_write_it() -> None:
    text = "rules: []\ndelegation: {low: off, medium: suggest, preset: eager}\n"
    document = policytext.read(text)
    assert document["delegation"]["low"] == "off"
    validate_policy(document)
    assert modes(document).of("low") is Mode.OFF
    assert policytext.read(policytext.write(document)) == document
    assert policytext.read("a: yes\nb: true\nc: No\nd: on") == {
        "a": True,
        "b": True,
        "c": False,
        "d": "on",
    }
