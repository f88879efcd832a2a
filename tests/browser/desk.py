"""An agent's side of the demo, one call at a time, and what its shop did of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from abeyance import Abeyance, Proposal, Receipt, Run, Step, StillWaiting

from demo.service import Service

LONGEST_SECONDS = 120.0


@dataclass
class Call:
    """A call that an agent asked for."""

    run: Run
    step: Step
    arguments: dict[str, str]

    @property
    def gate(self) -> str:
        assert self.step.gate
        return self.step.gate

    def receipt(self) -> Receipt:
        """Wait for what comes of it, as the agent does; raise what the agent is told instead."""
        return self.run.wait(self.step, timeout=LONGEST_SECONDS)

    def until(self, status: str) -> None:
        """Wait until its step has the status."""
        deadline = time.monotonic() + LONGEST_SECONDS
        while self.step.status != status:
            assert time.monotonic() < deadline, f"it is {self.step.status}"
            try:
                self.run.wait(self.step, timeout=0.5)
            except StillWaiting as waiting:
                self.step = waiting.step


class Desk:
    """Asks for the calls that people then decide."""

    def __init__(self, service: Service, client: Abeyance) -> None:
        self.service = service
        self.client = client

    def refund(self, amount: str = "12.80", *, answer_lost: bool = False) -> Call:
        """Ask for a refund to a customer whom no other call names."""
        customer = f"Grace Murphy {uuid4().hex[:8]}"
        arguments = {"payment": "pay-1017", "amount": amount, "customer": customer}
        if answer_lost:
            self.service.far_end.order(
                {
                    "tool": "payments.refund",
                    "mode": "lost_answer",
                    "match": {"customer": customer},
                    "lookups": False,
                }
            )
        return self.call("payments.refund", arguments)

    def mail(self) -> Call:
        arguments = {
            "to": f"grace-{uuid4().hex[:8]}@example.org",
            "subject": "Your order o-1017",
            "body": "Dear Grace,\n\nyour candles are on their way.\n\nAcme Home Goods",
        }
        return self.call("mail.send", arguments)

    def note(self) -> Call:
        """Ask for a note that the agent is unsure of: of low risk, and asked about."""
        arguments = {"order": "o-1017", "text": f"She may be cross. {uuid4().hex[:8]}"}
        return self.call("notes.add", arguments, confidence=0.4)

    def call(self, tool: str, arguments: dict[str, str], **more: Any) -> Call:
        run = self.client.run("support", "Grace Murphy (o-1017): The candles smell of nothing.")
        words = {"reasoning": "The customer asks for it.", **more}
        (step,) = run.propose(Proposal(key="it", tool=tool, arguments=arguments, words=words))
        call = Call(run, step, arguments)
        call.until("waiting")
        bob = self.service.person("bob")
        gate = bob.get(f"gates/{call.gate}")
        while gate["state"] == "preparing":
            gate = bob.get(f"gates/{call.gate}", wait="10", after_version=gate["state_version"])
        assert gate["state"] == "pending", gate["state"]
        return call

    def reject(self, call: Call) -> None:
        """Have somebody reject it, who is not at a browser."""
        carol, gate = self.service.person("carol"), f"gates/{call.gate}"
        digest = carol.get(gate)["what"]["digest"]
        said = {"verdict": "reject", "digest": digest, "reason": "Not now."}
        carol.post(f"{gate}/decisions", said)

    def done(self, call: Call) -> list[dict[str, Any]]:
        """Return what the shop has in its ledger for the customer."""
        return [
            one
            for one in self.service.far_end.entries()
            if one["arguments"].get("customer") == call.arguments["customer"]
        ]
