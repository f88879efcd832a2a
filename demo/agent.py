"""The demo's agent: what it does with one customer's request, written on the SDK alone.

A few rules stand in for a model. What a model would be told when a call is refused is what
`tell_model` says; here it becomes the note that the agent leaves beside the order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from abeyance import AsyncRun, Proposal, Receipt, Revised, StepError, StillWaiting

GLANCE_SECONDS: Final = 2.0
AMOUNT: Final = re.compile(r"\d+(?:\.\d{1,2})?")


@dataclass(frozen=True, slots=True)
class Request:
    """What a customer wants."""

    id: str
    customer: str
    order: str
    message: str


# Told of each call that does not go through at once: the run, and the step as it is now.
Watch = Callable[[StillWaiting], None]


class Agent:
    """Works one request in one run; started anew it takes up where it was."""

    def __init__(self, run: AsyncRun, request: Request, watch: Watch) -> None:
        self.run = run
        self.request = request
        self.watch = watch
        self.asked = False  # whether a person was

    async def work(self) -> str:
        """Return what was done, in a sentence."""
        order = await self.call("order", "orders.get", {"order": self.request.order})
        try:
            done = await self.serve(order.result)
        except StepError as error:
            done = error.tell_model
        note = {"order": self.request.order, "text": done}
        await self.call("note", "notes.add", note)
        await self.run.complete({"done": done})
        return done

    async def serve(self, order: dict[str, Any]) -> str:
        wish = self.request.message.lower()
        if "drop the" in wish:
            await self.call("drop", "db.drop_table", {"table": "customers"})
            return "Dropped the table."
        if "refund" in wish or "money back" in wish:
            return await self.refund(order, order["amount"], "refund")
        if "in writing" in wish:
            return await self.write(order)
        return f"Told {order['customer']}: {order['item']}, {order['state']}."

    async def refund(self, order: dict[str, Any], amount: str, key: str) -> str:
        arguments = {
            "payment": order["payment"],
            "amount": amount,
            "customer": order["customer"],
            "reference": self.request.id,
        }
        why = f"{order['customer']} writes: {self.request.message}"
        try:
            receipt = await self.call(key, "payments.refund", arguments, why)
        except Revised as revised:
            return await self.refund(order, _amount_in(revised), f"{key}-again")
        if not receipt.was_run:
            return f"A person answered in place of a refund: {receipt.result}"
        return f"Refunded {receipt.arguments['amount']} EUR to {order['customer']}."

    async def write(self, order: dict[str, Any]) -> str:
        arguments = {
            "to": order["email"],
            "subject": f"Your order {order['order']}",
            "body": f"Dear {order['customer']},\n\nyour order ({order['item']}) is {order['state']}"
            " and will be with you within three days.\n\nAcme Home Goods",
        }
        await self.call("mail", "mail.send", arguments, "The customer asks for it in writing.")
        return f"Wrote to {order['email']}."

    async def call(self, key: str, tool: str, arguments: dict[str, Any], why: str = "") -> Receipt:
        """Have a call made and return its receipt; tell of it while it waits for people."""
        proposal = Proposal(
            key=key, tool=tool, arguments=arguments, words={"reasoning": why} if why else {}
        )
        (step,) = await self.run.propose(proposal)
        self.asked = self.asked or step.gate is not None
        while True:
            try:
                return await self.run.wait(step, timeout=GLANCE_SECONDS)
            except StillWaiting as waiting:
                step = waiting.step
                self.watch(waiting)


def _amount_in(revised: Revised) -> str:
    """Read the amount that a person wants from what they said; without one there is no refund."""
    found = AMOUNT.search(revised.reason or "")
    if found is None:
        raise revised
    return f"{float(found[0]):.2f}"
