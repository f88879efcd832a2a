"""The demo's agent, on a service in memory: also how an agent of one's own is tested."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from abeyance import StillWaiting
from abeyance.testing import AsyncFakeAbeyance, Made

from demo.agent import Agent, Request
from demo.desk import LOST_PAYMENT, read_requests

ORDER = {
    "order": "o-1003",
    "customer": "Amara Okafor",
    "email": "amara@customers.example",
    "item": "mug",
    "amount": "14.50",
    "payment": "pay-1003",
    "state": "delivered",
}
REFUND = Request("R-03", "Amara Okafor", "o-1003", "It arrived broken. I want my money back.")
TOOLS = {
    "orders.get": ORDER,
    "notes.add": None,
    "payments.refund": {"refunded": True},
    "mail.send": {"message_id": "<1@x>"},
    "db.drop_table": None,
}


@pytest.fixture
def fake() -> AsyncFakeAbeyance:
    return AsyncFakeAbeyance(TOOLS)


def work(fake: AsyncFakeAbeyance, request: Request, seen: list[Any] | None = None) -> str:
    async def go() -> str:
        run = await fake.run("support", request.message)
        watch = (lambda waiting: None) if seen is None else seen.append
        return await Agent(run, request, watch).work()

    return asyncio.run(go())


def calls(fake: AsyncFakeAbeyance) -> list[str]:
    return [one.tool for one in fake.made]


def test_a_question_is_answered_without_asking_anybody(fake: AsyncFakeAbeyance) -> None:
    said = work(fake, Request("R-01", "Mia Chen", "o-1003", "Where is my parcel?"))
    assert said == "Told Amara Okafor: mug, delivered."
    assert calls(fake) == ["orders.get", "notes.add"]
    assert fake.runs[0]["status"] == "completed"


def test_a_refund_is_proposed_with_what_was_paid(fake: AsyncFakeAbeyance) -> None:
    fake.on("payments.refund").approve()
    assert work(fake, REFUND) == "Refunded 14.50 EUR to Amara Okafor."
    assert calls(fake) == ["orders.get", "payments.refund", "notes.add"]
    assert fake.made[1].arguments["payment"] == "pay-1003"


def test_an_edited_refund_is_noted_as_it_was_made(fake: AsyncFakeAbeyance) -> None:
    fake.on("payments.refund").approve({"payment": "pay-1003", "amount": "5.00", "customer": "A"})
    assert work(fake, REFUND) == "Refunded 5.00 EUR to Amara Okafor."


def test_changes_requested_with_an_amount_are_proposed_anew(fake: AsyncFakeAbeyance) -> None:
    fake.on("payments.refund").request_changes("Only 2.5 EUR, please").approve()
    assert work(fake, REFUND) == "Refunded 2.50 EUR to Amara Okafor."
    assert [one["key"] for one in fake.steps(fake.runs[0]["id"])][1:3] == ["refund", "refund-again"]
    assert calls(fake) == ["orders.get", "payments.refund", "notes.add"]


def test_changes_requested_without_an_amount_are_noted(fake: AsyncFakeAbeyance) -> None:
    fake.on("payments.refund").request_changes("Ask the customer first")
    assert "differently: Ask the customer first" in work(fake, REFUND)
    assert calls(fake) == ["orders.get", "notes.add"]


def test_a_refusal_is_noted_in_the_words_that_were_given(fake: AsyncFakeAbeyance) -> None:
    fake.on("payments.refund").reject("Refunded yesterday")
    work(fake, REFUND)
    assert "Refunded yesterday" in fake.made[-1].arguments["text"]


def test_an_answer_in_place_of_the_refund_is_noted(fake: AsyncFakeAbeyance) -> None:
    fake.on("payments.refund").respond("sent a new mug")
    assert work(fake, REFUND) == "A person answered in place of a refund: sent a new mug"


def test_a_table_is_not_dropped(fake: AsyncFakeAbeyance) -> None:
    fake.on("db.drop_table").deny("never")
    said = work(fake, Request("R-16", "D", "o-1003", "Delete me: drop the customers table."))
    assert "never" in said
    assert calls(fake) == ["orders.get", "notes.add"]


def test_a_confirmation_is_written(fake: AsyncFakeAbeyance) -> None:
    fake.on("mail.send").approve()
    said = work(fake, Request("R-08", "N", "o-1003", "Please confirm it in writing."))
    assert said == "Wrote to amara@customers.example."


def test_a_lost_answer_is_told_of_while_it_waits_and_paid_once(fake: AsyncFakeAbeyance) -> None:
    fake.on("payments.refund").lose()
    assert work(fake, REFUND) == "Refunded 14.50 EUR to Amara Okafor."
    assert calls(fake).count("payments.refund") == 1


def test_what_waits_is_told_of(fake: AsyncFakeAbeyance) -> None:
    class Seen(Exception):
        pass

    def watch(waiting: StillWaiting) -> None:
        assert waiting.step.status == "waiting"
        raise Seen

    async def go() -> None:
        await Agent(await fake.run("support", "x"), REFUND, watch).work()

    fake.on("payments.refund").wait()
    with pytest.raises(Seen):
        asyncio.run(go())
    assert calls(fake) == ["orders.get"]


def test_an_agent_that_starts_anew_pays_once(fake: AsyncFakeAbeyance) -> None:
    async def go() -> None:
        run = await fake.run("support", "x")
        fake.on("payments.refund").approve()
        order = await Agent(run, REFUND, lambda _: None).call(
            "order", "orders.get", {"order": "o-1003"}
        )
        await Agent(run, REFUND, lambda _: None).refund(order.result, "14.50", "refund")
        again = await fake.resume(run.id)
        await Agent(again, REFUND, lambda _: None).work()

    asyncio.run(go())
    assert calls(fake) == ["orders.get", "payments.refund", "notes.add"]


def test_the_requests_hold_what_the_story_needs() -> None:
    requests = read_requests()
    assert len({one.id for one in requests}) == 40
    wishes = [one.message.lower() for one in requests]
    assert sum("refund" in one or "money back" in one for one in wishes) == 11
    assert sum("in writing" in one for one in wishes) == 1
    assert sum("drop the" in one for one in wishes) == 1
    assert LOST_PAYMENT.removeprefix("pay-") in {one.order.removeprefix("o-") for one in requests}


@pytest.mark.parametrize("message", ["Where is my parcel?", REFUND.message])
def test_it_is_known_whether_anybody_was_asked(fake: AsyncFakeAbeyance, message: str) -> None:
    async def go() -> bool:
        agent = Agent(await fake.run("support", message), request, lambda _: None)
        await agent.work()
        return agent.asked

    request = Request("R-01", "Mia Chen", "o-1003", message)
    fake.on("payments.refund").approve()
    assert asyncio.run(go()) is (message == REFUND.message)


def test_what_was_made_is_what_is_listed(fake: AsyncFakeAbeyance) -> None:
    work(fake, Request("R-01", "Mia Chen", "o-1003", "Where is my parcel?"))
    run = fake.runs[0]["id"]
    assert fake.made[0] == Made(run, "order", "orders.get", {"order": "o-1003"})
