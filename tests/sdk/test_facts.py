"""What an agent can rely on: the same of the service in memory and of the real one, of both clients."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from abeyance import (
    AlreadyAnswered,
    Denied,
    Failed,
    InvalidArguments,
    InvalidRequest,
    NeedsAgent,
    NotAnswered,
    NotPerformed,
    OutcomeUnknown,
    Performed,
    Proposal,
    Receipt,
    Refused,
    Rejected,
    Revised,
    RunEnded,
    StaleSession,
    State,
    StateFormat,
    StepKeyReused,
    StillWaiting,
    UnknownState,
    UnknownTool,
)

PAY = {"amount": "5"}
LOOK = {"command": "uptime"}


def pay(key: str, amount: str = "5") -> Proposal:
    return Proposal(key=key, tool="pay", arguments={"amount": amount})


class TestSteps:
    def test_what_policy_allows_is_made_and_a_second_pass_returns_the_receipt(
        self, stage: Any, run: Any
    ) -> None:
        first = run.step("look", "crm.get", {"customer": "c-1"})
        again = run.step("look", "crm.get", {"customer": "c-1"})
        assert first.result == {"name": "c-1"}
        assert (first.source, first.was_run, first.edited) == ("executor", True, False)
        assert again == first
        assert stage.performed() == [("crm.get", {"customer": "c-1"})]

    def test_what_a_person_approves_is_made_once(self, stage: Any, run: Any) -> None:
        stage.on("pay").approve()
        receipt = run.step("pay", "pay", PAY)
        assert receipt.result == {"paid": "5"}
        assert receipt.tell_model == "pay was run once and succeeded."
        assert stage.performed() == [("pay", PAY)]

    def test_a_dry_run_of_its_own_goes_with_a_call_and_is_no_part_of_it(
        self, stage: Any, run: Any
    ) -> None:
        stage.on("pay").approve()
        change = {"object": "balance", "before": "9", "after": "4"}
        tried = {"summary": "5 is paid", "changes": [change], "warnings": ["in euros"]}
        receipt = run.step("pay", "pay", PAY, dry_run=tried, reasoning="it is due")
        assert run.step("pay", "pay", PAY) == receipt
        assert stage.performed() == [("pay", PAY)]

    def test_an_edit_is_seen_in_the_receipt_also_at_the_second_pass(
        self, stage: Any, run: Any
    ) -> None:
        stage.on("pay").approve({"amount": "4"})
        for receipt in (run.step("pay", "pay", PAY), run.step("pay", "pay", PAY)):
            assert (receipt.edited, receipt.arguments) == (True, {"amount": "4"})
            assert "arguments that a person changed" in receipt.tell_model
        assert stage.performed() == [("pay", {"amount": "4"})]

    def test_what_a_person_asks_is_answered_and_then_it_is_decided(
        self, stage: Any, run: Any
    ) -> None:
        stage.on("pay").ask("Which order?").ask("Are you sure?").approve()
        asked = []

        def answer(question: Any) -> str:
            asked.append(question)
            return f"{question.text} Yes."

        receipt = run.step("pay", "pay", PAY, answer=answer)
        assert [one.text for one in asked] == ["Which order?", "Are you sure?"]
        assert {(one.step, one.gate) for one in asked} == {(receipt.step.id, receipt.step.gate)}
        assert stage.answers(receipt.step.gate) == [
            ("Which order?", "Which order? Yes."),
            ("Are you sure?", "Are you sure? Yes."),
        ]
        assert stage.performed() == [("pay", PAY)]

    def test_an_agent_sees_what_is_asked_and_answers_it_once(self, stage: Any, run: Any) -> None:
        stage.on("pay").ask("Which order?").reject("no")
        (step,) = run.propose(pay("pay"))
        with pytest.raises(StillWaiting) as waiting:
            run.wait(step, timeout=1.5)
        run.refresh()
        (question,) = run.questions
        assert (question.text, question.step) == ("Which order?", step.id)
        assert waiting.value.step.questions == (question,)
        run.answer(question, "o-7")
        assert run.questions == []
        run.answer(question, "o-7")
        with pytest.raises(AlreadyAnswered):
            run.answer(question, "o-8")
        with pytest.raises(Rejected):
            run.wait(step)
        assert stage.answers(step.gate) == [("Which order?", "o-7")]

    def test_a_call_of_the_agents_own_is_made_once_its_questions_are_answered(
        self, stage: Any, run: Any
    ) -> None:
        stage.on("local.ask").ask("On which host?").approve()
        made: list[Any] = []
        receipt = run.step(
            "look",
            "local.ask",
            LOOK,
            make=lambda call: made.append(call.arguments),
            answer=lambda question: "web-1",
        )
        assert made == [LOOK]
        assert stage.answers(receipt.step.gate) == [("On which host?", "web-1")]

    def test_what_a_person_rejects_is_not_made_and_the_reason_is_told(
        self, stage: Any, run: Any
    ) -> None:
        stage.on("pay").reject("paid yesterday")
        for key in ("pay", "pay"):
            with pytest.raises(Rejected) as caught:
                run.step(key, "pay", PAY)
            assert (caught.value.code, caught.value.reason) == ("rejected", "paid yesterday")
            assert caught.value.tell_model == (
                "The call of pay was rejected, so it was not run: paid yesterday."
            )
        assert stage.performed() == []

    def test_changes_requested_are_proposed_under_another_key(self, stage: Any, run: Any) -> None:
        stage.on("pay").request_changes("only 3").approve()
        with pytest.raises(Revised) as caught:
            run.step("pay", "pay", PAY)
        assert caught.value.tell_model.endswith("wants it done differently: only 3.")
        assert run.step("pay again", "pay", {"amount": "3"}).result == {"paid": "3"}
        assert stage.performed() == [("pay", {"amount": "3"})]

    def test_an_answer_in_place_of_the_call_is_its_result(self, stage: Any, run: Any) -> None:
        stage.on("pay").respond({"paid": "in cash"})
        receipt = run.step("pay", "pay", PAY)
        assert (receipt.result, receipt.source) == ({"paid": "in cash"}, "person")
        assert not receipt.was_run
        assert receipt.tell_model == "A person answered in place of pay, which was not run."
        assert stage.performed() == []

    def test_what_policy_denies_is_not_made(self, stage: Any, run: Any) -> None:
        stage.on("db.drop").deny("never")
        with pytest.raises(Denied) as caught:
            run.step("drop", "db.drop", {"table": "customers"})
        assert caught.value.tell_model == (
            "Policy does not allow this call of db.drop, so it was not run: never."
        )
        assert stage.performed() == []

    def test_a_definite_refusal_is_a_failure(self, stage: Any, run: Any) -> None:
        stage.on("note").fail("refused")
        with pytest.raises(Failed) as caught:
            run.step("note", "note", {"text": "hello"})
        assert caught.value.tell_model.startswith("note was tried and failed: ")
        assert stage.performed() == []

    def test_a_lost_answer_is_waited_for_and_nothing_is_made_twice(
        self, stage: Any, run: Any
    ) -> None:
        stage.on("note").lose("performed")
        receipt = run.step("note", "note", {"text": "hello"})
        assert (receipt.result, receipt.source) == ({"noted": "hello"}, "person")
        assert run.step("note", "note", {"text": "hello"}) == receipt
        assert stage.performed() == [("note", {"text": "hello"})]

    def test_a_call_that_is_skipped_after_its_answer_was_lost_has_failed(
        self, stage: Any, run: Any
    ) -> None:
        stage.on("note").lose("failed")
        with pytest.raises(Failed):
            run.step("note", "note", {"text": "hello"})

    def test_what_nobody_can_find_out_ends_the_run_and_is_told(self, stage: Any, run: Any) -> None:
        stage.on("note").lose("never")
        with pytest.raises(OutcomeUnknown) as caught:
            run.step("note", "note", {"text": "hello"})
        assert caught.value.tell_model.startswith("Nobody knows whether note was performed")
        assert run.status == "failed"
        with pytest.raises(RunEnded):
            run.step("more", "crm.get", {"customer": "c-1"})

    def test_waiting_ends_with_the_timeout_and_the_step_goes_on_waiting(
        self, stage: Any, run: Any
    ) -> None:
        stage.on("pay").wait()
        with pytest.raises(StillWaiting) as caught:
            run.step("pay", "pay", PAY, timeout=0.3)
        assert caught.value.step.status == "waiting"
        assert "do not make the call otherwise" in caught.value.tell_model
        assert stage.performed() == []

    def test_a_group_tells_of_each_of_its_calls(self, stage: Any, run: Any) -> None:
        stage.on("pay").reject("no")
        came = run.steps(
            [Proposal(key="look", tool="crm.get", arguments={"customer": "c-1"}), pay("pay")]
        )
        assert isinstance(came[0], Receipt)
        assert isinstance(came[1], Rejected)
        assert run.steps([pay("pay")])[0].reason == "no"

    def test_a_timeout_in_a_group_is_told_beside_what_is_done(self, stage: Any, run: Any) -> None:
        stage.on("pay").wait()
        came = run.steps([pay("a", "1"), pay("b", "2")], timeout=0.5)
        assert [type(one) for one in came] == [StillWaiting, StillWaiting]

    def test_a_step_can_be_proposed_first_and_waited_for_later(self, stage: Any, run: Any) -> None:
        stage.on("pay").approve()
        (step,) = run.propose(pay("pay"))
        assert step.status == "waiting"
        assert run.wait(step).result == {"paid": "5"}


class TestMistakes:
    def test_arguments_that_do_not_fit_say_where(self, stage: Any, run: Any) -> None:
        stage.on("note").misfit("/text", "Must be a string.")
        with pytest.raises(InvalidArguments) as caught:
            run.step("note", "note", {"text": 5})
        assert caught.value.code == "invalid-arguments"
        assert "so nothing was done: text: " in caught.value.tell_model
        assert stage.performed() == []
        assert run.step("note", "note", {"text": "five"}).result == {"noted": "five"}

    def test_a_fault_in_a_group_names_the_argument(self, stage: Any, run: Any) -> None:
        stage.on("note").allow().misfit("/text", "Must be a string.")
        good = Proposal(key="good", tool="note", arguments={"text": "x"})
        bad = Proposal(key="bad", tool="note", arguments={"text": 5})
        with pytest.raises(InvalidArguments) as caught:
            run.steps([good, bad])
        assert "so nothing was done: text: " in caught.value.tell_model
        assert stage.performed() == []

    def test_a_tool_that_there_is_not(self, stage: Any, run: Any) -> None:
        with pytest.raises(UnknownTool):
            run.step("x", "no.such", {})

    def test_a_key_names_one_call_for_ever(self, stage: Any, run: Any) -> None:
        run.step("look", "crm.get", {"customer": "c-1"})
        with pytest.raises(StepKeyReused):
            run.step("look", "crm.get", {"customer": "c-2"})
        assert stage.performed() == [("crm.get", {"customer": "c-1"})]


class TestProcesses:
    def test_a_process_that_starts_anew_gets_what_is_recorded(self, stage: Any, run: Any) -> None:
        stage.on("pay").approve()
        first = run.step("pay", "pay", PAY)
        again = stage.client().resume(run.id)
        assert again.step("pay", "pay", PAY) == first
        assert stage.performed() == [("pay", PAY)]

    def test_one_process_drives_a_run(self, stage: Any, run: Any) -> None:
        again = stage.client().resume(run.id)
        assert again.session == run.session + 1
        with pytest.raises(StaleSession) as caught:
            run.step("look", "crm.get", {"customer": "c-1"})
        assert caught.value.tell_model.endswith("stop.")
        assert stage.performed() == []

    def test_a_key_gives_the_run_that_was_started_under_it(self, stage: Any) -> None:
        one = stage.client().run("refunds", "Refund", key="order-7", inputs={"order": 7})
        two = stage.client().run("refunds", "Refund", key="order-7", inputs={"order": 7})
        assert one.id == two.id
        assert two.document["inputs"] == {"order": 7}

    def test_of_an_ended_run_the_record_can_be_read(self, stage: Any, run: Any) -> None:
        first = run.step("look", "crm.get", {"customer": "c-1"})
        run.complete({"done": True})
        again = stage.client().resume(run.id)
        assert (again.session, again.status) == (None, "completed")
        assert again.step("look", "crm.get", {"customer": "c-1"}) == first

    def test_ending_again_is_no_change_and_ending_otherwise_is_refused(
        self, stage: Any, run: Any
    ) -> None:
        run.complete({"done": True})
        run.complete({"done": True})
        with pytest.raises(RunEnded):
            run.fail("no")
        assert run.status == "completed"

    def test_a_run_can_fail(self, stage: Any, run: Any) -> None:
        run.fail({"why": "no model"})
        assert (run.status, run.document["error"]) == ("failed", {"why": "no model"})


class TestPeople:
    def test_a_question_is_answered_once(self, stage: Any, run: Any) -> None:
        stage.answer("Which account?", {"account": "a-1"})
        schema = {"type": "object", "required": ["account"]}
        assert run.ask("Which account?", schema) == {"account": "a-1"}
        assert stage.client().resume(run.id).ask("Which account?", schema) == {"account": "a-1"}

    def test_a_question_asked_anew_is_asked_anew(self, stage: Any, run: Any) -> None:
        stage.answer("Go on?", 1)
        assert run.ask("Go on?") == 1
        stage.answer("Go on?", 2)
        assert run.ask("Go on?") == 1
        assert run.ask("Go on?", anew=True) == 2
        assert run.ask("Go on?") == 2

    def test_in_place_of_an_answer_there_may_be_guidance(self, stage: Any, run: Any) -> None:
        stage.redirect("Which account?", "take the newest")
        with pytest.raises(NotAnswered) as caught:
            run.ask("Which account?")
        assert (caught.value.code, caught.value.guidance) == ("revised", "take the newest")
        assert [one.text for one in run.guidance] == ["take the newest"]

    def test_a_question_that_nobody_answers_stays_open(self, stage: Any, run: Any) -> None:
        with pytest.raises(NotAnswered) as caught:
            run.ask("Anybody?", timeout=0.3)
        assert caught.value.code == "waiting"
        stage.answer("Anybody?", "yes")
        assert run.ask("Anybody?") == "yes"

    def test_a_stopped_run_waits_and_its_guidance_is_read_and_acknowledged(
        self, stage: Any, run: Any
    ) -> None:
        stage.stop(run, guidance="be kind")
        usage = run.usage(tokens=10, cost="0.25", seconds=1.5)
        assert (usage.stop_requested, usage.tokens, usage.cost) == (True, 10, Decimal("0.25"))
        assert run.step("look", "crm.get", {"customer": "c-1"}).result == {"name": "c-1"}
        assert [one.text for one in run.guidance] == ["be kind"]
        assert run.usage(cost=Decimal("0.5")).guidance == tuple(run.guidance)
        run.acknowledge()
        assert run.guidance == []
        assert run.usage().guidance == ()
        assert run.usage().cost == Decimal("0.75")

    def test_a_run_that_is_cancelled_while_it_is_stopped_ends_the_agents_work(
        self, stage: Any, run: Any
    ) -> None:
        stage.stop(run, cancel=True)
        with pytest.raises(RunEnded) as caught:
            run.step("look", "crm.get", {"customer": "c-1"})
        assert "nothing more can be done in it" in caught.value.tell_model
        assert stage.performed() == []


class TestState:
    def test_the_agents_state_is_kept_and_grows(self, stage: Any, run: Any) -> None:
        first = run.checkpoint(State({"messages": ["a"]}, format="chat", version="2"))
        run.checkpoint(State({"/messages": ["b"]}, format="chat", version="2"), base=first)
        found = stage.client().resume(run.id).latest_checkpoint()
        assert found.state == State({"messages": ["a", "b"]}, format="chat", version="2")

    def test_state_comes_with_a_run_and_with_steps(self, stage: Any) -> None:
        run = stage.client().run("refunds", "Refund", state=State(["began"]))
        assert run.latest_checkpoint().state == State(["began"])
        run.step("look", "crm.get", {"customer": "c-1"}, state=State(["looked"]))
        assert run.latest_checkpoint().state == State(["looked"])

    def test_a_state_grows_with_steps_too(self, stage: Any, run: Any) -> None:
        chat = StateFormat("chat", "2")
        last = run.checkpoint(chat.state({"messages": []}))
        for number in range(2):
            grown = chat.grown(last, {"/messages": [number]})
            run.step(f"look-{number}", "crm.get", {"customer": f"c-{number}"}, state=grown)
            last = run.latest_checkpoint(chat)
        assert last.state == chat.state({"messages": [0, 1]})

    def test_an_older_state_is_brought_to_this_programs_version_and_kept_as_it_was(
        self, stage: Any, run: Any
    ) -> None:
        old = run.checkpoint(State({"texts": ["a"]}, "chat", "1"))
        chat = StateFormat("chat", "3")
        chat.migrates("1", "2")(lambda data: {"messages": data.pop("texts")})
        chat.migrates("2")(lambda data: {**data, "language": None})
        run = stage.client().resume(run.id)
        found = run.latest_checkpoint(chat)
        assert found.state == chat.state({"messages": ["a"], "language": None})
        assert run.latest_checkpoint().state == State({"texts": ["a"]}, "chat", "1")
        for base in (found, replace(found, kept_version=None)):
            with pytest.raises((ValueError, InvalidRequest), match="version"):
                run.checkpoint(chat.state({"/messages": ["b"]}), base=base)
        assert run.latest_checkpoint().id == old.id
        whole = run.checkpoint(found.state)
        run.checkpoint(chat.grown(whole, {"/messages": ["b"]}))
        now = run.latest_checkpoint(chat)
        assert (now.state.data["messages"], now.kept_version) == (["a", "b"], None)

    @pytest.mark.parametrize("kept", [("chat", "4"), ("chat", "0"), ("tree", "3")])
    def test_a_state_that_this_program_cannot_read_is_refused_and_says_what_to_do(
        self, run: Any, kept: tuple[str, str]
    ) -> None:
        put = run.checkpoint(State({"texts": ["a"]}, *kept))
        chat = StateFormat("chat", "3")
        chat.migrates("2")(lambda data: data)
        chat.migrates("0", "1")(lambda data: data)  # leads nowhere
        with pytest.raises(UnknownState) as raised:
            run.latest_checkpoint(chat)
        assert f"{kept[0]} {kept[1]};" in str(raised.value)
        assert "reads chat 3 and can migrate 2." in str(raised.value)
        assert (raised.value.format, raised.value.version) == kept
        assert run.latest_checkpoint().id == put.id

    def test_without_a_state_there_is_none(self, run: Any) -> None:
        found = run.latest_checkpoint()
        assert found is None or found.state is None


class TestCallsOfTheAgent:
    def test_the_agent_makes_the_call_once_and_its_receipt_is_on_record(
        self, stage: Any, run: Any
    ) -> None:
        made = []

        def make(call: Any) -> Performed:
            made.append((call.arguments, call.idempotency_key))
            return Performed({"load": 1}, external_id="x-1", cost="0.10")

        receipt = run.step("look", "local.shell", LOOK, make=make)
        again = stage.client().resume(run.id).step("look", "local.shell", LOOK, make=make)
        assert again == receipt
        assert (receipt.result, receipt.external_id, receipt.source) == (
            {"load": 1},
            "x-1",
            "agent",
        )
        assert receipt.cost == Decimal("0.1")
        assert made == [(LOOK, receipt.step.id)]

    def test_what_was_done_is_on_record_also_where_its_result_cannot_be_kept(
        self, stage: Any, run: Any
    ) -> None:
        said = {"printed": "a\0b", "ids": (2**53, 7, True, None)}
        receipt = run.step("look", "local.shell", LOOK, make=lambda _: said)
        assert receipt.result == {
            "printed": "a\N{REPLACEMENT CHARACTER}b",
            "ids": [str(2**53), 7, True, None],
        }
        (kept,) = receipt.step.receipts
        assert (kept["outcome"], "replaced" in kept["error"]) == ("succeeded", True)

    def test_a_gated_call_is_made_after_the_decision_with_the_decided_arguments(
        self, stage: Any, run: Any
    ) -> None:
        stage.on("local.ask").approve({"command": "date"})
        receipt = run.step("look", "local.ask", LOOK, make=lambda call: call.arguments)
        assert receipt.result == {"command": "date"}
        assert receipt.edited

    def test_a_refusal_is_a_failed_step(self, stage: Any, run: Any) -> None:
        def make(_call: Any) -> None:
            raise Refused("no such command")

        with pytest.raises(Failed) as caught:
            run.step("look", "local.shell", LOOK, make=make)
        assert caught.value.reason == "no such command"

    def test_what_was_not_begun_is_made_later(self, stage: Any, run: Any) -> None:
        def refuse(_call: Any) -> None:
            raise NotPerformed("not now")

        with pytest.raises(NotPerformed):
            run.step("look", "local.shell", LOOK, make=refuse)
        assert run.step("look", "local.shell", LOOK, make=lambda _call: 1).result == 1

    def test_a_crash_leaves_the_outcome_unknown_until_the_agent_finds_out(
        self, stage: Any, run: Any
    ) -> None:
        def crash(_call: Any) -> None:
            raise ZeroDivisionError("secret")

        with pytest.raises(ZeroDivisionError):
            run.step("look", "local.shell", LOOK, make=crash)
        (step,) = run.propose(Proposal(key="look", tool="local.shell", arguments=LOOK))
        assert step.status == "unknown"
        assert "secret" not in str(step)
        settled = run.reconcile(step, performed=True, evidence="saw it", result=7)
        assert settled.status == "succeeded"
        receipt = run.step("look", "local.shell", LOOK, make=crash)
        assert (receipt.result, receipt.source) == (7, "agent")

    def test_without_a_function_it_says_so_and_does_not_wait(self, stage: Any, run: Any) -> None:
        with pytest.raises(NeedsAgent):
            run.step("look", "local.shell", LOOK)
