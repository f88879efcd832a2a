"""What holds of the learner whatever a person answers."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delegation.canonical import canonical
from delegation.learner import Event, coin
from delegation.predicates import check, matches, refusal, sha256
from delegation.presets import CAUTIOUS, EAGER, Stage
from delegation.proof import MIXTURE, Proof, bet, wealth
from delegation.records import Answer, Request
from delegation.rules import Rule
from delegation.state import OtherVersion, digest, dump, load
from tests.delegation.histories import (
    GOOD,
    KEY,
    NO,
    PLAIN,
    START,
    again,
    call,
    event,
    histories,
    requests,
    taught,
)

few = settings(max_examples=60)
CALLS = [
    call(20_000, agent=agent, tier=tier, reason=reason, amount=amount, context={"env": env})
    for agent, tier, reason, amount, env in product(
        ["agent-a", "agent-b"],
        ["basic", "silver", "gold"],
        ["late", "damaged"],
        [5, 20, "20.5", 75, 300],
        ["staging", "prod"],
    )
]


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3, 0.7])
@pytest.mark.parametrize("size", [size for _, size in MIXTURE])
def test_a_bet_is_fair_at_the_line_and_loses_beyond_it(alpha, size):
    def mean(mu):
        return mu * bet(size, alpha, 1) + (1 - mu) * bet(size, alpha, 0)

    assert mean(alpha) == pytest.approx(1, abs=1e-12)
    assert bet(size, alpha, 1) >= -1e-12
    assert all(mean(mu) < 1 for mu in (alpha + 0.01, (1 + alpha) / 2, 1.0))


@given(st.lists(st.booleans(), max_size=30), st.sampled_from([0.05, 0.1, 0.3]))
def test_wealth_is_the_mixture_of_the_bets_products(answers, alpha):
    products = sum(
        share * math.prod(bet(size, alpha, int(one)) for one in answers) for share, size in MIXTURE
    )
    assert wealth(len(answers), sum(answers), alpha) == pytest.approx(products, rel=1e-6, abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.sampled_from([0.1, 0.3]))
@few
def test_whatever_the_chances_are_wealth_over_its_means_stays_one_on_average(chances, alpha):
    total = 0.0
    for outcome in product([0, 1], repeat=len(chances)):
        chance = math.prod(mu if one else 1 - mu for mu, one in zip(chances, outcome, strict=True))
        ratio = math.prod(
            bet(0.5, alpha, one) / (1 + 0.5 / (1 - alpha) * (alpha - mu))
            for mu, one in zip(chances, outcome, strict=True)
        )
        total += chance * ratio
    assert total == pytest.approx(1, rel=1e-9)


def test_looking_after_each_answer_proves_what_is_false_as_rarely_as_promised():
    drawn, proved, people = random.Random(7), 0, 2_000  # noqa: S311 - no secret
    for _ in range(people):
        proof = Proof((0.1,))
        for _ in range(150):
            proof.count(refused=drawn.random() < 0.1)
            if proof.stage(CAUTIOUS.stages["low"][:1], 2 * 0.05):
                proved += 1
                break
    assert proved / people <= 0.05


def test_a_proof_begun_anew_costs_more_and_all_of_them_cost_delta_together():
    lines = [Proof((0.1,), tries=tries).line(0.05) for tries in range(5_000)]
    assert lines == sorted(lines)
    assert 0.0249 < sum(1 / one for one in lines) <= 0.025


@pytest.mark.parametrize(
    ("alpha", "answers"), [(0.7, 5), (0.3, 14), (0.2, 22), (0.1, 47), (0.05, 95), (0.02, 241)]
)
def test_a_stage_takes_as_many_clean_answers_as_it_says(alpha, answers):
    proof, stages = Proof((alpha,)), (Stage(alpha, 0.1),)
    assert proof.needed(0.05) == answers
    for _ in range(answers):
        assert proof.stage(stages, 0.05) is None
        proof.count(refused=False)
    assert proof.stage(stages, 0.05) == stages[0]


def test_a_proof_without_hope_is_begun_anew():
    proof = Proof((0.1,))
    for number in range(60):
        proof.count(refused=number % 3 == 0)
    assert proof.tries == 1
    assert proof.answers < 60


@given(st.integers(0, 200), st.integers(0, 30), st.sampled_from([0.05, 0.2]))
def test_a_refusal_more_or_an_approval_less_never_adds_to_the_wealth(clean, refused, alpha):
    here = wealth(clean + refused, refused, alpha)
    assert wealth(clean + refused + 1, refused + 1, alpha) <= here
    assert wealth(max(0, clean - 1) + refused, refused, alpha) <= here


@given(histories(), requests)
@few
def test_a_refusal_more_never_widens_a_rule(history, refused):
    last = Event(START + 9e6, "z", "answer", refused, NO)
    assert_no_wider(again(history), again([*history, last]))


@given(histories(), requests, st.sampled_from(["incident", "lost"]))
@few
def test_an_incident_more_never_widens_a_rule(history, wrong, kind):
    last = Event(START + 9e6, "z", kind, wrong)
    assert_no_wider(again(history), again([*history, last]))


@given(st.lists(requests, min_size=1, max_size=40), st.data())
@few
def test_an_approval_less_never_widens_a_rule(asked, data):
    history = [event(f"e{at:03}", "answer", one, GOOD) for at, one in enumerate(asked)]
    left_out = data.draw(st.integers(0, len(history) - 1))
    without = [one for at, one in enumerate(history) if at != left_out]
    assert_covers_no_more(again(history), again(without))


def test_an_approval_less_can_prove_a_rule_sooner_since_its_day_had_fewer_calls():
    early = [call(0, amount=5, context={"env": env}) for env in ("staging", "prod")]
    usual = [call(at, amount=5) for at in (*[0] * 5, 960, 960)]
    asked = [*early, call(0, amount=20), *usual]
    history = [event(f"e{at:03}", "answer", one, GOOD) for at, one in enumerate(asked)]
    counted = [again(one).units.popitem()[1].clean for one in (history, history[1:])]
    assert counted[0] < counted[1]
    assert_covers_no_more(again(history), again(history[1:]))


@given(histories())
@few
def test_the_last_approval_less_never_widens_a_rule(history):
    ordered = sorted(history, key=lambda one: (one.at, one.id))
    while ordered and not (ordered[-1].kind == "answer" and ordered[-1].answer == GOOD):
        ordered.pop()
    assert_no_wider(again(ordered), again(ordered[:-1]))


def assert_no_wider(before, after):
    assert_covers_no_more(before, after)
    for one in CALLS:
        if after.decide(one).automatic:
            assert before.decide(one).automatic


def assert_covers_no_more(before, after):
    at = max(before.last_at, after.last_at)
    wide, narrow = by_tool(before.rules(at)), by_tool(after.rules(at))
    for unit, rule in narrow.items():
        for one in CALLS:
            if matches(rule.predicate, canonical(one)):
                assert unit in wide
                assert matches(wide[unit].predicate, canonical(one))


def by_tool(rules: list[Rule]) -> dict[tuple[str, int], Rule]:
    return {(one.tool.id, one.tool.version): one for one in rules}


@given(histories())
@few
def test_nothing_unseen_is_ever_automatic(history):
    learner, ordered = again(history), sorted(history, key=lambda one: (one.at, one.id))
    approved = list(attentively_approved(ordered))
    for one in CALLS:
        if not learner.decide(one).would:
            continue
        asked = canonical(one)
        for value in asked.values.items():
            assert any(value in other.values.items() for other in approved)
        for first, second in product(asked.values.items(), repeat=2):
            assert any({first, second} <= set(other.values.items()) for other in approved)
        assert any(asked.amounts["amount"] <= other.amounts["amount"] for other in approved)


def attentively_approved(events: list[Event]) -> Iterator:
    for one in events:
        if one.kind != "answer" or one.request is None or one.answer is None:
            continue
        if one.answer == GOOD:
            yield canonical(one.request)
        elif one.answer.decision == "edit":
            yield canonical(one.request, one.answer.final)


@given(histories(), st.sampled_from([PLAIN, EAGER, CAUTIOUS]))
@few
def test_a_rules_json_allows_exactly_what_the_learner_takes_as_familiar(history, chosen):
    learner = again(history, chosen)
    learner.stopped.clear()
    for unit in learner.units.values():
        unit.left = 0
    for one in CALLS:
        ruling, rule = learner.decide(one), learner.rule_for(one)
        is_familiar = ruling.would
        if rule is None:
            assert not is_familiar
            continue
        written = json.loads(json.dumps(rule.document()))["predicate"]
        check(written)
        assert matches(written, canonical(one), learner.spent(one)) == is_familiar
        assert sha256(written) == rule.sha256


@given(histories(), st.randoms(use_true_random=False), st.sampled_from([EAGER, CAUTIOUS]))
@few
def test_events_in_any_order_make_the_same_rules(history, drawn, chosen):
    shuffled = list(history)
    drawn.shuffle(shuffled)
    one, other = again(history, chosen), again(shuffled, chosen)
    assert digest(one) == digest(other)
    assert [rule.sha256 for rule in one.rules()] == [rule.sha256 for rule in other.rules()]


@given(histories(), histories(10), st.sampled_from([EAGER, CAUTIOUS]))
@few
def test_a_learner_read_from_its_json_goes_on_as_if_it_had_stayed(history, later, chosen):
    stayed = again(history, chosen)
    back = load(json.loads(json.dumps(dump(stayed))), chosen, KEY)
    assert digest(back) == digest(stayed)
    for one in sorted(later, key=lambda one: (one.at, one.id)):
        stayed.take(one)
        back.take(one)
    assert digest(back) == digest(stayed)
    assert [back.decide(one) for one in CALLS] == [stayed.decide(one) for one in CALLS]


@pytest.mark.parametrize(
    "change", [{"version": 0}, {"settings": "sha256:0"}, {"settings": None}], ids=str
)
def test_a_state_of_other_settings_or_form_is_refused(change):
    state = dump(taught([call(1)]))
    with pytest.raises(OtherVersion):
        load({**state, **change}, PLAIN, KEY)


@given(histories())
@few
def test_deciding_changes_nothing(history):
    learner = again(history)
    before = digest(learner)
    for one in CALLS:
        learner.decide(one)
        learner.rule_for(one)
    learner.rules()
    assert digest(learner) == before


careless = st.sampled_from(
    [
        Answer("approve", seconds=9.0, opened=True, bulk=True),
        Answer("approve", seconds=0.5, opened=True),
        Answer("approve", seconds=60.0, opened=False),
    ]
)


@given(histories(), st.lists(st.tuples(requests, careless), max_size=30))
@few
def test_careless_approvals_and_automatic_decisions_teach_nothing(history, others):
    learner = again(history)
    at = learner.last_at if history else START
    before = {unit: rule.sha256 for unit, rule in by_tool(learner.rules(at)).items()}
    for request, answer in others:
        learner.observe(replace_at(request, at), answer)
        learner.ran(replace_at(request, at))
    after = {unit: rule.sha256 for unit, rule in by_tool(learner.rules(at)).items()}
    assert {unit: after[unit] for unit in before} == before
    assert all(
        rule.is_empty for unit, rule in by_tool(learner.rules(at)).items() if unit not in before
    )


def replace_at(request: Request, at: float) -> Request:
    return replace(request, at=at)


def test_the_coin_is_the_keys_and_the_calls_alone():
    tossed = [coin(KEY, f"r{number}") for number in range(4_000)]
    assert tossed == [coin(KEY, f"r{number}") for number in range(4_000)]
    assert tossed != [coin(b"another", f"r{number}") for number in range(4_000)]
    assert all(0 <= one < 1 for one in tossed)
    assert 0.08 < sum(one < 0.1 for one in tossed) / len(tossed) < 0.12


def test_what_no_rule_allows_says_why_as_the_learner_does():
    learner = taught(call(number) for number in range(12))
    one = call(20, tier="gold")
    assert refusal(learner.rules()[0].predicate, canonical(one)) == learner.decide(one).reason
