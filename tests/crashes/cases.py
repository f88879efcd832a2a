"""What is tried: each service in the states in which it commits something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from approvals.services import (
    assignments,
    gates,
    inboxes,
    notices,
    preview,
    questions,
    substitutions,
)
from interrupts import sweep
from interrupts.services import (
    attempts,
    checkpoints,
    compensating,
    draining,
    finding,
    forks,
    freezes,
    judging,
    looking,
    runs,
    starting,
)
from tests.crashes import delegated
from tests.crashes.acts import (
    approve_at_once,
    approve_together,
    by,
    decide,
    drain,
    end_drain,
    give_more_time,
    in_transaction,
    keyed,
    look_at_edit,
    of,
    propose,
    read,
    recorded,
    recover,
    renewed,
    respond,
    stop,
    take_back,
    told,
    wake,
    work,
)
from tests.crashes.scene import Scene
from tests.crashes.states import (
    FAR,
    STATE,
    Names,
    a_run,
    a_step,
    agents_unknown,
    approved,
    asked_for_input,
    awaited,
    claimed,
    done,
    drained,
    ended,
    frozen,
    gate_then,
    gated,
    lapsed,
    left_behind,
    lost,
    named,
    not_passed,
    nothing,
    over_budget,
    parent,
    preparing,
    questioned,
    revised,
    stale,
    stood_in_for,
    stopped,
    to_be_asked_first,
    to_be_judged,
    two_gates,
    two_steps,
    undecidable,
    under_way,
    undo_wanted,
    undoing_refused,
    voted,
)
from tests.property.world import GRANTS

INTERRUPTS, APPROVALS = "interrupts.services", "approvals.services"


@dataclass(frozen=True)
class Case:
    """One service in one state; ``drives``: its work goes on by itself after the commit."""

    covers: str
    prepare: Callable[[Scene], Names]
    act: Callable[[Scene, Names], Any]
    drives: bool = False


CASES: dict[str, Case] = {
    # Runs
    "start a run": Case(
        f"{INTERRUPTS}.runs.start_run",
        nothing,
        keyed(lambda scene, _: scene.run(agent_state=STATE)),
    ),
    "start a child": Case(
        f"{INTERRUPTS}.runs.start_run",
        a_run,
        keyed(lambda scene, names: scene.run(parent=UUID(names["run"]))),
    ),
    "claim a run": Case(f"{INTERRUPTS}.runs.claim_run", a_run, keyed(of("run", runs.claim_run))),
    "report usage": Case(
        f"{INTERRUPTS}.runs.report_usage", a_run, keyed(of("run", runs.report_usage, tokens=9))
    ),
    "report usage over the budget": Case(
        f"{INTERRUPTS}.runs.report_usage",
        lambda scene: named(run=scene.run(budget={"tokens": 5})),
        keyed(of("run", runs.report_usage, tokens=9)),
    ),
    "acknowledge guidance": Case(
        f"{INTERRUPTS}.runs.acknowledge",
        revised,
        lambda scene, names: runs.acknowledge(
            scene.agent, UUID(names["run"]), guidance=[UUID(names["guidance"])]
        ),
    ),
    "complete": Case(
        f"{INTERRUPTS}.runs.complete_run", a_run, keyed(of("run", runs.complete_run, output=1))
    ),
    "fail, with a child": Case(
        f"{INTERRUPTS}.runs.fail_run", parent, keyed(of("run", runs.fail_run, error=1))
    ),
    "cancel, with a child": Case(
        f"{INTERRUPTS}.runs.cancel_run", parent, keyed(by("olga", "run", runs.cancel_run))
    ),
    "cancel and undo": Case(
        f"{INTERRUPTS}.runs.cancel_run",
        done("book"),
        by("olga", "run", runs.cancel_run, compensate=True),
        drives=True,
    ),
    "fork": Case(
        f"{INTERRUPTS}.forks.fork_run",
        ended,
        keyed(
            lambda scene, names: forks.fork_run(
                scene.people["olga"], UUID(names["run"]), checkpoint=UUID(names["checkpoint"])
            )
        ),
    ),
    "put a state": Case(
        f"{INTERRUPTS}.checkpoints.put_state",
        a_run,
        keyed(of("run", checkpoints.put_state, agent_state=STATE)),
    ),
    # Steps and attempts
    "propose": Case(f"{INTERRUPTS}.steps.propose", a_run, propose),
    "claim a step": Case(
        f"{INTERRUPTS}.starting.claim_step",
        a_step("mine"),
        keyed(of("step", starting.claim_step)),
    ),
    "renew": Case(f"{INTERRUPTS}.starting.renew", stale, renewed),
    "heartbeat": Case(
        f"{INTERRUPTS}.attempts.heartbeat", claimed, of("attempt", attempts.heartbeat, fence=1)
    ),
    "report success": Case(
        f"{INTERRUPTS}.attempts.report",
        claimed,
        of("attempt", attempts.report, fence=1, outcome="succeeded", result=[1]),
    ),
    "report that nobody knows": Case(
        f"{INTERRUPTS}.attempts.report",
        claimed,
        of("attempt", attempts.report, fence=1, outcome="unknown"),
    ),
    "reconcile": Case(
        f"{INTERRUPTS}.attempts.reconcile",
        agents_unknown,
        keyed(of("step", attempts.reconcile, outcome="performed", evidence="its log")),
    ),
    "record what was seen": Case(f"{INTERRUPTS}.attempts.record_seen", under_way("pay"), recorded),
    "record a read": Case(f"{INTERRUPTS}.attempts.record_read", a_step("look"), read),
    "intend, record and intend the next": Case(
        "interrupts.worker.work_run", two_steps, work, drives=True
    ),
    "work a read": Case("interrupts.worker.work_run", a_step("look"), work, drives=True),
    # Finding out
    "ask what became of it": Case(
        f"{INTERRUPTS}.finding.find_out",
        lost("pay", later=11.0),
        wake("step", finding.find_out, "w"),
        drives=True,
    ),
    "ask what was never performed": Case(
        f"{INTERRUPTS}.finding.find_out",
        lost("pay", "not begun", later=11.0),
        wake("step", finding.find_out, "w"),
        drives=True,
    ),
    "send again to find out": Case(
        f"{INTERRUPTS}.finding.find_out",
        lost("put", later=11.0),
        wake("step", finding.find_out, "w"),
        drives=True,
    ),
    "ask once more before sending again": Case(
        f"{INTERRUPTS}.finding.ask_first",
        to_be_asked_first,
        wake("step", finding.ask_first),
        drives=True,
    ),
    # Undoing
    "have an effect undone": Case(
        f"{INTERRUPTS}.compensating.compensate_step",
        done("book"),
        by("olga", "step", compensating.compensate_step),
        drives=True,
    ),
    "undo": Case(
        f"{INTERRUPTS}.compensating.compensate",
        undo_wanted,
        wake("step", compensating.compensate, "w"),
        drives=True,
    ),
    # Judging
    "do what is to be judged": Case(
        "interrupts.worker.work_run", to_be_judged("pay", "passes"), work, drives=True
    ),
    "judge what was done": Case(
        f"{INTERRUPTS}.judging.judge",
        awaited("pay", "passes"),
        wake("step", judging.judge, "w"),
        drives=True,
    ),
    "judge and reject what was done": Case(
        f"{INTERRUPTS}.judging.judge",
        awaited("book", "rejects"),
        wake("step", judging.judge, "w"),
        drives=True,
    ),
    "undo what was rejected": Case(
        f"{INTERRUPTS}.responses.respond", not_passed, respond("compensate"), drives=True
    ),
    # Stopping and answering
    "stop, with a child": Case(f"{INTERRUPTS}.holds.open_interrupt", parent, stop),
    "release": Case(f"{INTERRUPTS}.responses.respond", stopped, respond()),
    "answer a question": Case(
        f"{INTERRUPTS}.responses.respond", asked_for_input, respond(value="so")
    ),
    "revise": Case(
        f"{INTERRUPTS}.responses.respond",
        stopped,
        respond("revise", value={"guidance": "not so"}),
    ),
    "extend a budget": Case(
        f"{INTERRUPTS}.responses.respond", over_budget, respond(value={"tokens": 99})
    ),
    "find that it was performed": Case(
        f"{INTERRUPTS}.responses.respond", lost("pay"), recover("performed"), drives=True
    ),
    "find that it was not performed": Case(
        f"{INTERRUPTS}.responses.respond",
        lost("pay", "not begun"),
        recover("not_performed"),
        drives=True,
    ),
    "skip what was not performed": Case(
        f"{INTERRUPTS}.responses.respond", lost("pay", "not begun"), recover("skip")
    ),
    "find nothing out": Case(
        f"{INTERRUPTS}.responses.respond", lost("pay"), recover("unresolvable")
    ),
    "cancel by an answer": Case(f"{INTERRUPTS}.responses.respond", stopped, respond("cancel")),
    "undo again": Case(
        f"{INTERRUPTS}.responses.respond",
        undoing_refused,
        respond("compensate", value={"action": "try_again"}),
        drives=True,
    ),
    "freeze": Case(
        f"{INTERRUPTS}.freezes.freeze",
        a_step("pay"),
        keyed(lambda scene, _: freezes.freeze(scene.people["olga"], scope="tenant")),
    ),
    "thaw": Case(
        f"{INTERRUPTS}.freezes.thaw", frozen, by("olga", "freeze", freezes.thaw), drives=True
    ),
    "drain a host": Case(f"{INTERRUPTS}.draining.begin_drain", nothing, drain),
    "end a drain": Case(f"{INTERRUPTS}.draining.end_drain", drained, end_drain),
    "wait for intents": Case(
        f"{INTERRUPTS}.draining.wait_for_intents",
        a_run,
        lambda *_: draining.wait_for_intents(lambda: 20.0),
    ),
    # Time
    "look at a lapsed lease": Case(
        f"{INTERRUPTS}.looking.look", lapsed, wake("run", looking.look), drives=True
    ),
    "look at an expired gate": Case(
        f"{INTERRUPTS}.looking.look", gate_then(61.0), wake("run", looking.look)
    ),
    "sweep": Case(
        "interrupts.sweep.sweep_once", lapsed, lambda *_: sweep.sweep_once(), drives=True
    ),
    # Gates
    "look at a gate": Case(
        f"{APPROVALS}.gates.look_at_gate", gated("book"), by("olga", "gate", gates.look_at_gate)
    ),
    "approve": Case(f"{APPROVALS}.decisions.decide_gate", gated("book"), decide(), drives=True),
    "approve under a key": Case(
        f"{APPROVALS}.decisions.decide_gate", gated("book"), keyed(decide()), drives=True
    ),
    "approve under a key at once": Case(
        f"{APPROVALS}.decisions.approve_at_once", gated("book"), approve_at_once, drives=True
    ),
    "approve for good reasons": Case(
        f"{APPROVALS}.decisions.decide_gate", gated("book"), decide(reason="fine"), drives=True
    ),
    "be the first of two": Case(f"{APPROVALS}.decisions.decide_gate", gated("post"), decide()),
    "be the second of two": Case(
        f"{APPROVALS}.decisions.decide_gate", voted, decide(), drives=True
    ),
    "reject": Case(
        f"{APPROVALS}.decisions.decide_gate", gated("book"), decide("reject", reason="no")
    ),
    "request changes": Case(
        f"{APPROVALS}.decisions.decide_gate",
        gated("book"),
        decide("request_changes", reason="less"),
    ),
    "answer in its place": Case(
        f"{APPROVALS}.decisions.decide_gate", gated("book"), decide("respond", value=1)
    ),
    "approve an edit": Case(
        f"{APPROVALS}.decisions.decide_gate",
        gated("book"),
        decide(arguments={"n": 0, "amount": 2}),
        drives=True,
    ),
    "decide too late": Case(
        f"{APPROVALS}.decisions.decide_gate", gate_then(61.0), told("gate-expired", decide())
    ),
    "approve what has to be looked at anew": Case(
        f"{APPROVALS}.decisions.decide_gate", gate_then(31.0, "send"), decide(), drives=True
    ),
    "approve several together": Case(
        f"{APPROVALS}.bulk.approve_together", two_gates, approve_together, drives=True
    ),
    "take an approval back": Case(f"{APPROVALS}.decisions.withdraw_decision", approved, take_back),
    "ask the agent": Case(
        f"{APPROVALS}.questions.ask_agent",
        gated("book"),
        by("alice", "gate", questions.ask_agent, text="Which order?"),
    ),
    "answer what was asked": Case(
        f"{APPROVALS}.questions.answer_question",
        questioned,
        lambda scene, names: questions.answer_question(
            scene.agent, UUID(names["gate"]), UUID(names["question"]), text="o-7"
        ),
    ),
    "hand a gate on": Case(
        f"{APPROVALS}.assignments.reassign_gate",
        gated("book"),
        lambda scene, names: assignments.reassign_gate(
            scene.people["alice"], UUID(names["gate"]), to=scene.people["carol"].name
        ),
    ),
    "give a gate more time": Case(
        f"{APPROVALS}.extensions.extend_gate", gated("book"), give_more_time
    ),
    "have another decide": Case(
        f"{APPROVALS}.substitutions.set_as",
        gated("book"),
        lambda scene, _: substitutions.set_as(
            scene.people["alice"], substitute=scene.people["carol"].name, ends_at=FAR
        ),
    ),
    "end a substitution": Case(
        f"{APPROVALS}.substitutions.end_as",
        stood_in_for,
        by("alice", "substitution", substitutions.end_as),
        drives=True,
    ),
    "look at an edit": Case(f"{APPROVALS}.edits.look_at_edit", gated("book"), look_at_edit),
    "bring up to date": Case(
        f"{APPROVALS}.gates.bring_up_to_date", left_behind, wake("gate", gates.bring_up_to_date)
    ),
    "take a preview": Case(
        f"{APPROVALS}.preview.take_preview",
        preparing,
        wake("gate", preview.take_preview),
        drives=True,
    ),
    "take a preview anew": Case(
        f"{APPROVALS}.preview.renew_preview",
        gate_then(31.0, "send"),
        wake("gate", preview.renew_preview),
    ),
    "refresh inboxes": Case(
        f"{APPROVALS}.inboxes.refresh_inboxes",
        undecidable,
        in_transaction(lambda _: inboxes.refresh_inboxes()),
        drives=True,
    ),
    "look who may decide": Case(
        f"{APPROVALS}.inboxes.recheck", undecidable, wake("gate", inboxes.recheck)
    ),
    "wish for no mail": Case(
        f"{APPROVALS}.notices.wishes.set_wishes",
        nothing,
        lambda scene, _: notices.set_wishes(scene.people["alice"], notices.Wishes(asked=False)),
    ),
    # Configuration
    "publish a policy": Case(
        f"{APPROVALS}.policies.publish_policy",
        a_step("pay"),
        in_transaction(lambda scene: scene.world.publish("closed")),
    ),
    "withdraw authority": Case(
        f"{APPROVALS}.grants.set_grants",
        gated("book"),
        in_transaction(
            lambda scene: scene.world.grant({k: v for k, v in GRANTS.items() if k != "alice"})
        ),
    ),
}
CASES.update({name: Case(*case) for name, case in delegated.cases().items()})
