"""What must be true of a call as it is made, worked out from outside."""

from __future__ import annotations

import json

from config import jsontext
from interrupts.effects import Call
from tests.property.facts import Facts, Outside, Row
from tests.property.farend import Ledger
from tests.property.world import World, verdict


class Calls:
    """Holds each call to an authorization that is current as it begins."""

    outside: Outside
    world: World
    far: Ledger
    faults: list[str]
    policy: str
    versions: dict[str, int]
    may: set[str]
    amounts: dict[int, set[int | None]]
    agent_acts: bool

    def begins(self, call: Call) -> None:
        """Hold a call to what must be true when it begins; what is not is told after the step."""
        try:
            self.is_authorized(call)
        except (AssertionError, LookupError) as fault:  # a tool's errors are no test's
            self.faults.append(f"{call.tool} began: {fault!r}")

    def is_authorized(self, call: Call) -> None:
        now = self.outside.look()
        step = now.steps[call.step]
        run = now.runs[step["run_id"]]
        read = step["effect"] == "read"
        again = step["tool_name"] == "put" and run["status"] == "suspended"
        held = now.of("interrupts", run_id=run["id"], status="open")
        if again:
            assert {one["reason"] for one in held} == {"outcome_unknown"}, "sent while it is held"
            assert {one["step"] for one in held} == {step["id"]}, "another holds the run"
        else:
            assert run["status"] == "running", f"the run is {run['status']}"
            assert not held, "an interrupt is open"
        if not read:
            attempt = now.attempts[call.attempt]
            assert (step["status"], attempt["fence"]) == ("executing", step["fence"])
            assert (attempt["settled_at"], attempt["lapsed_at"]) == (None, None)
            assert attempt["epoch"] == run["epoch"], "an older epoch"
        self.stamp_is_current(now, step, run)
        assert call.idempotency_key == step["id"]
        self.is_what_was_approved(now, step, call)
        if not read and not again:
            self.nothing_is_unknown(now, step)

    def stamp_is_current(self, now: Facts, step: Row, run: Row) -> None:
        assert step["authorized_under"] == now.tenant["authority_version"], "a stale authorization"
        assert self.agent_acts, "its agent was deactivated"
        for freeze in now.freezes.values():
            named = {"tenant": "", "tool": step["tool_name"], "agent": "bot"}[freeze["scope"]]
            assert freeze["name"] != named, "it is frozen"
        says, quorum = verdict(self.policy, step["tool_name"])
        assert says != "deny", "policy denies it"
        if step["authorized_by"] == "policy":
            assert says == "allow", "policy asks about it"
            return
        gate = now.gates[step["authorized_gate"]]
        assert gate["state"] == "approved", f"its gate is {gate['state']}"
        votes = now.of("decisions", gate_id=gate["id"], counts=True, verdict="approve")
        by = [one for one in votes if one["user_id"] in self.deciders(run)]
        assert len(by) >= max(quorum if says == "approve" else 1, gate["quorum"]), "too few"

    def is_what_was_approved(self, now: Facts, step: Row, call: Call) -> None:
        said = json.loads(call.arguments)
        assert jsontext.canonical(said) == call.arguments
        assert call.tool_version == self.versions[step["tool_name"]], "an older version"
        assert said.get("amount") in self.amounts[said["n"]], "nobody asked for these arguments"
        if step["authorized_by"] == "policy":
            assert said.get("amount") is None, "policy allowed the arguments as proposed"
            return
        digest = jsontext.digest_bytes(call.arguments)
        for one in now.of("decisions", gate_id=step["authorized_gate"], counts=True):
            assert one["approves"] == digest, "other arguments were approved"

    def nothing_is_unknown(self, now: Facts, step: Row) -> None:
        """What was tried before is proved not to have been performed, or somebody says so.

        One that may be repeated is, to find out: then the newest of its tries is what is settled.
        """
        receipts = now.of("receipts", step_id=step["id"], outcome="not_performed")
        tries = now.of("attempts", step_id=step["id"], compensation=False)
        earlier = [one for one in tries if one["fence"] < step["fence"]]
        for one in earlier[-1:] if step["effect"] == "idempotent" else earlier:
            proved = [receipt for receipt in receipts if receipt["attempt"] == one["id"]]
            assert proved, "an unknown outcome is repeated"

    def undoes(self, call: Call) -> None:
        now = self.outside.look()
        step = now.steps[call.step]
        later = [
            one
            for one in now.of("steps", run_id=step["run_id"], status="succeeded", undo_wanted=True)
            if one["position"] > step["position"] and one["fence"] == 1
        ]
        if step["status"] != "compensating" or not self.far.performed[call.idempotency_key]:
            self.faults.append(f"what is {step['status']} is undone")
        if len(now.of("steps", run_id=step["run_id"], status="compensating")) > 1:
            self.faults.append(f"two are undone at once; {len(later)} later ones wait")

    def deciders(self, run: Row) -> set[str]:
        """The ids of those who may decide: granted, no viewer, not the owner, not who asked."""
        names = self.may - {"ada", "vera"}
        ids = {str(self.principal(name).id) for name in names}
        return ids - {run["requested_by_id"]}
