"""The service scores the risk of a call; what the agent says of it only raises."""

import random
from typing import Any

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from approvals.models import Gate
from approvals.policy import Subject, Verdict, compile_policy, explain, validate_policy
from approvals.services.policies import publish_draft, save_draft
from config.errors import InvalidBody
from tenants.journal import SYSTEM
from tests.approvals.house import House
from tests.approvals.policies import OF_TRIGGER, is_as_strict
from tests.approvals.test_policy_judging import call, rule
from tests.interrupts.house import everything

LARGE = "decimal(arguments.amount) > decimal('100') ? 0.9 : 0.1"
OPEN = rule("open", then="allow")
RISKY = rule("risky", "risk", at_least=0.7)


def scorer(score: str = LARGE, name: str = "amount", **others: Any) -> dict[str, Any]:
    return {"name": name, "tools": ["payments.*"], "score": score, **others}


def judge(scorers: list[Any], subject: Subject, *rules: Any) -> Verdict:
    document = {"rules": [OPEN, *(rules or [RISKY])], "scorers": scorers}
    assert validate_policy(document) == []
    return compile_policy(document).judge(subject)


def amount(value: Any, **said: Any) -> Subject:
    return call(arguments={"amount": value}, **said)


@pytest.mark.parametrize("own", [None, 0, 0.2])
def test_the_service_raises_what_the_agent_says_or_leaves_out(own: float | None) -> None:
    verdict = judge([scorer()], amount("100.01", risk_score=own))
    assert verdict.verdict == "approve"
    said = "The risk score 0.9 is at least 0.7. So says the scorer amount."
    assert verdict.triggers[0]["explanation"] == said


def test_the_agents_own_score_raises_what_the_service_says() -> None:
    assert judge([scorer()], amount("1")).verdict == "allow"
    verdict = judge([scorer()], amount("1", risk_score=0.8))
    assert verdict.triggers[0]["explanation"] == "The risk score 0.8 is at least 0.7."


def test_a_scorer_is_for_its_tools_only() -> None:
    subject = call("mail.send", arguments={"amount": "1000"})
    assert judge([scorer("1")], subject).verdict == "allow"
    assert judge([scorer("1")], subject, rule("any", "risk", at_least=0)).verdict == "allow"


def test_the_largest_of_several_scores_counts_in_any_order() -> None:
    several = [scorer("0.1", "a"), scorer("0.8", "b"), scorer("0.3", "c"), scorer("0.8", "d")]
    for seed in range(6):
        shuffled = random.Random(seed).sample(several, len(several))  # noqa: S311
        told = judge(shuffled, amount("1")).triggers[0]["explanation"]
        assert told == "The risk score 0.8 is at least 0.7. So says the scorer b."


@pytest.mark.parametrize(
    ("score", "subject"),
    [
        ("0.5", call()),
        ("tool.effect == 'irreversible' ? 0.5 : 0", call(effect="irreversible")),
        ("tool.risk == 'high' ? 0.5 : 0", call(risk="high")),
        ("agent.name == 'new' ? 0.5 : 0", call(agent="new")),
        ("run.workflow == 'pay' ? 0.5 : 0", call(workflow="pay")),
        ("arguments.to.exists(one, one.endsWith('.example')) ? 0.5 : 0", call(arguments={"to": ["a.example"]})),
        ("has(arguments.note) ? 0 : 0.25 + 0.25", call()),
    ],
)  # fmt: skip
def test_a_score_is_made_of_arguments_tool_agent_and_run(score: str, subject: Subject) -> None:
    exactly = [rule("r", "risk", at_least=0.5), rule("more", "risk", at_least=0.51)]
    assert [one["rule"] for one in judge([scorer(score)], subject, *exactly).triggers] == ["r"]


WRONG = {
    "arguments.missing > 1 ? 0.1 : 0": "a member or an item that it names is not there",
    "decimal(arguments.note) > decimal('1') ? 0.1 : 0": "decimal() was given what is no decimal",
    "1 / 0": "a calculation in it has no result",
    "'0.1'": "it gives no number",
    "true": "it gives no number",
    "null": "it gives no number",
    "arguments": "it gives no number",
    "1.0001": "it gives a number outside 0 to 1",
    "-0.1": "it gives a number outside 0 to 1",
    "0.0 / 0.0": "it gives a number outside 0 to 1",
}


@pytest.mark.parametrize("score", WRONG)
def test_what_is_no_score_counts_as_the_highest_and_says_so(score: str) -> None:
    highest = rule("highest", "risk", at_least=1)
    verdict = judge([scorer(score), scorer("0", "other")], amount("1", risk_score=0), highest)
    assert verdict.verdict == "approve"
    told = verdict.triggers[0]["explanation"]
    assert told.startswith("The risk score 1.0 is at least 1. The scorer amount gave no score (")
    assert WRONG[score] in told
    assert told.endswith(", which counts as 1.0.")


def test_a_saved_score_that_no_longer_compiles_counts_as_the_highest() -> None:
    document = {"rules": [OPEN, RISKY], "scorers": [scorer("no_such_function(arguments)")]}
    assert compile_policy(document).judge(call()).verdict == "approve"


def test_a_call_too_large_to_be_scored_counts_as_the_highest() -> None:
    of_all = scorer("arguments.all(name, name != 'x') ? 0.1 : 0.2")
    assert judge([of_all], call(arguments={f"n{n}": 1 for n in range(20_000)})).rule == "risky"


def test_an_explanation_quotes_no_argument_where_there_is_no_score() -> None:
    for value in ["secret-4111", 4111]:
        assert "4111" not in str(judge([scorer("arguments.amount")], amount(value)))


def test_a_denial_by_risk_is_one_by_the_services_score() -> None:
    never = rule("never", "risk", then="deny", at_least=0.9, reason="Too risky.")
    assert judge([scorer()], amount("101"), never).reason == "Too risky."


# Saving

BAD = [
    ({"score": "arguments.amount >"}, "/score"),
    ({"score": "amount > 1 ? 1 : 0"}, "/score"),
    ({"score": "history.approved"}, "/score"),
    ({"score": "risk_score"}, "/score"),
    ({"score": ""}, "/score"),
    ({"score": 0.5}, "/score"),
    ({"tools": ["pay**"]}, "/tools/0"),
    ({"tools": []}, "/tools"),
    ({"tools": ["a", "a"]}, "/tools/1"),
    ({"tools": "a"}, "/tools"),
    ({"name": ""}, "/name"),
    ({"name": "default"}, "/name"),
    ({"name": 7}, "/name"),
    ({"weight": 2}, "/weight"),
]


@pytest.mark.parametrize(("members", "place"), BAD)
def test_a_scorer_that_could_not_score_is_refused_with_its_place(
    members: dict[str, Any], place: str
) -> None:
    found = validate_policy({"scorers": [scorer("0.5", "sound"), scorer(**members)]})
    assert [pointer for pointer, _ in found] == [f"/scorers/1{place}"]


def test_a_score_is_refused_with_the_column_of_its_fault() -> None:
    ((place, detail),) = validate_policy({"scorers": [scorer("amount > 1 ? 1 : 0")]})
    assert (place, detail[-10:]) == ("/scorers/0/score", "(column 1)")
    ((_, detail),) = validate_policy({"scorers": [scorer("1 > 0 ? cost : 0")]})
    assert detail.endswith("(column 9)")


@pytest.mark.parametrize("missing", ["name", "tools", "score"])
def test_a_scorer_says_its_name_its_tools_and_its_score(missing: str) -> None:
    given = scorer()
    del given[missing]
    assert [place for place, _ in validate_policy({"scorers": [given]})] == [
        f"/scorers/0/{missing}"
    ]


def test_scorers_are_a_bounded_list_of_objects_with_names_of_their_own() -> None:
    for wrong in [{}, "x", None, [scorer(name=f"s{n}") for n in range(101)]]:
        assert [place for place, _ in validate_policy({"scorers": wrong})] == ["/scorers"]
    assert [place for place, _ in validate_policy({"scorers": ["x"]})] == ["/scorers/0"]
    twice = validate_policy({"scorers": [scorer(), scorer()]})
    assert twice == [("/scorers/1/name", "Another scorer has this name.")]


def test_a_policy_with_a_scorer_that_cannot_score_is_not_published(house: House) -> None:
    house.policy(OPEN)
    with transaction.atomic():
        draft, _ = save_draft(SYSTEM, {"scorers": [scorer("arguments.amount >")]})
    before = everything()
    with pytest.raises(InvalidBody) as refused, transaction.atomic():
        publish_draft(SYSTEM, draft.pk, seen=draft.digest, instead_of=1, groups={})
    assert [one["pointer"] for one in refused.value.errors or ()] == ["/scorers/0/score"]
    assert everything() == before


# Over the service


def test_a_proposal_is_asked_about_by_the_services_score_and_the_gate_says_so(
    house: House,
) -> None:
    house.policy(OPEN, RISKY, scorers=[scorer()])
    arguments = {"payment": "p-1", "amount": "100.01"}
    assert house.propose(risk_score=0.1).status == "ready"
    step = house.propose(arguments=arguments, risk_score=0.1)
    gate = Gate.objects.select_related("interrupt").get(pk=step.gate)
    assert gate.interrupt is not None
    assert gate.interrupt.reason == "risk_threshold"
    (told,) = gate.triggers
    assert told["explanation"].endswith("So says the scorer amount.")
    assert gate.why["risk_score"] == 0.1


def test_the_policy_says_beforehand_what_its_scorers_would(house: House) -> None:
    house.policy(OPEN, RISKY, scorers=[scorer()])
    for value, own, verdict in [("101.00", 0, "approve"), ("1.00", 0, "allow"), ("1.00", 1, "approve")]:  # fmt: skip
        call = {"tool": "payments.refund", "arguments": {"payment": "p", "amount": value}}
        _, said, _ = house.request("bot", "POST", "/policies/check", {**call, "risk_score": own})
        assert said["verdict"] == verdict


def test_recorded_steps_are_scored_by_a_draft_and_explained_by_the_version_that_judged(
    house: House,
) -> None:
    house.policy(OPEN, RISKY)
    step = house.propose(arguments={"payment": "p", "amount": "101.00"}, risk_score=0.1)
    draft = {"rules": [OPEN, RISKY], "scorers": [scorer()]}
    _, said, _ = house.request("olga", "POST", "/policies/simulate", {"policy": draft})
    assert [(one["decided"], one["simulated"]) for one in said["results"]] == [("allow", "approve")]
    house.policy(OPEN, RISKY, scorers=[scorer()])
    _, said, _ = house.request("vera", "GET", f"/policies/why?step={step.pk}")
    assert (said["verdict"], said["now"]["verdict"]) == ("allow", "approve")


def test_a_score_below_a_rule_is_explained_with_where_it_comes_from() -> None:
    document = {"rules": [RISKY], "scorers": [scorer(), scorer("1", "other", tools=["db.*"])]}
    (told,) = explain(document, amount("1", risk_score=0.05))
    said = "The risk score 0.1 is below 0.7. So says the scorer amount."
    assert (told.counts, told.explanation) == (False, said)


# Properties

SCORES = st.sampled_from(["0", "0.2", "0.5", "0.7", "1", "2", "1 / 0", LARGE, "arguments.missing"])
SCORERS = st.lists(
    st.builds(scorer, SCORES, tools=st.sampled_from([["*"], ["payments.*"], ["db.*"]])),
    max_size=4,
).map(lambda made: [{**one, "name": f"s{number}"} for number, one in enumerate(made)])
OWN = st.none() | st.floats(0, 1)
SUBJECTS = st.builds(amount, st.sampled_from(["99", "101", "x", None]))
RULES = st.lists(
    st.one_of(
        [
            st.fixed_dictionaries(
                {"then": st.sampled_from(["approve", "deny"]), "trigger": st.just(trigger), **more}
            )
            for trigger, more in OF_TRIGGER.items()
        ]
    ),
    max_size=4,
).map(lambda made: [OPEN, *({**one, "name": f"r{number}"} for number, one in enumerate(made))])


def verdict_of(rules: list[Any], scorers: list[Any], subject: Subject) -> Verdict:
    return compile_policy({"rules": rules, "scorers": scorers}).judge(subject)


@given(RULES, SCORERS, SUBJECTS, OWN, OWN, st.sampled_from([None, "deploy", "end"]))
def test_whatever_the_agent_says_of_its_risk_never_loosens(
    rules: list[Any],
    scorers: list[Any],
    silent: Subject,
    own: float | None,
    confidence: float | None,
    milestone: str | None,
) -> None:
    said = {"risk_score": own, "confidence": confidence, "milestone": milestone}
    speaking = call(arguments=silent.arguments, **said)
    before, after = verdict_of(rules, scorers, silent), verdict_of(rules, scorers, speaking)
    assert is_as_strict(after, before)


@given(RULES, SCORERS, st.builds(scorer, SCORES, st.just("added")), SUBJECTS)
def test_a_further_scorer_never_loosens(
    rules: list[Any], scorers: list[Any], added: Any, subject: Subject
) -> None:
    before = verdict_of(rules, scorers, subject)
    assert is_as_strict(verdict_of(rules, [*scorers, added], subject), before)


@given(RULES, SCORERS, SUBJECTS, st.integers())
def test_the_verdict_does_not_depend_on_the_order_of_scorers(
    rules: list[Any], scorers: list[Any], subject: Subject, seed: int
) -> None:
    shuffled = random.Random(seed).sample(scorers, len(scorers))  # noqa: S311
    assert verdict_of(rules, shuffled, subject) == verdict_of(rules, scorers, subject)
